"""What the proxy must not change (clean calls, errors, schemas, who judges arguments), and what it must not show."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from crosswind.mcp import hiding, live, schema, wire
from crosswind.mcp.listing import parameter_names
from crosswind.mcp.plan import Plan
from tests.fake_mcp import TOOLS, Shop
from tests.mcp.test_proxy import Complaining, Desk, plan, run

Json = dict[str, Any]


ODD_ANSWERS: tuple[Json, ...] = (
    {
        "content": [{"type": "text", "text": 'no {get_customer} in {"a": {x}}', "annotations": {"priority": 0.10}},
                    {"type": "image", "data": "QUJD", "mimeType": "x/y", "_meta": {"k": "{get_customer}"}}],
        "structuredContent": {"code": 1.0, "big": 12345678901234567890123, "get_customer": "{customer_id}"},
        "_meta": {"trace": "\u00e9 {search_orders}", "example.org/x": [None]},
        "isError": True,
    },
    {"content": [], "isError": True},
    {"content": "none"},
    {"task": {"taskId": "t1", "status": "working", "ttl": 1}, "_meta": {"a": 1}},
    {"content": [{"type": "text", "text": "{}"}], "structuredContent": {"n": float("nan")}},
)  # fmt: skip


def test_a_clean_session_is_byte_for_byte_the_direct_one() -> None:
    """Calls and answers are handed on as they came, however odd, and put on record besides."""

    class Odd(Shop):
        def _call(self, params: Json) -> Json | None:
            return ODD_ANSWERS[params["arguments"]["n"]] if isinstance(params.get("arguments"), dict) else None

    async def work() -> None:
        shop = Odd()
        async with Desk(Plan(), shop) as desk:
            sent, got = list[bytes](), list[bytes]()
            write = desk.channel.write

            async def writing(frame: bytes) -> None:
                sent.append(frame)
                await write(frame)

            async def sending(frame: bytes, message: Json) -> None:
                got.append(frame)

            desk.channel.write, desk.send = writing, sending  # type: ignore[method-assign]
            frames = [
                b'{"method":"tools/call", "id":%d,"params":{"arguments":{"n":%d,"x":1.10,"y":1e400},"name":"a",'
                b'"task":{"ttl":1},"_meta":{"progressToken":1}},"jsonrpc":"2.0"}' % (100 + n, n)
                for n in range(len(ODD_ANSWERS))
            ]
            frames.append(b'{"jsonrpc":"2.0","id":"z","method":"tools/call","params":{"name":7,"arguments":[1]}}')
            for count, frame in enumerate(frames, 1):
                await desk.relay.from_client(frame)
                while len(got) < count:
                    await asyncio.sleep(0)
            assert [frame for frame in sent if b"crosswind-" not in frame] == frames
            assert got == [json.dumps(shop.answer(wire.parse(frame, lenient=True))).encode() for frame in frames]
            session = desk.relay.session
            assert session is not None
            assert [step.call.args["n"] for step in session.steps] == list(range(len(ODD_ANSWERS)))
            error = session.steps[0].result.error
            assert error is not None
            assert error.text == ODD_ANSWERS[0]["content"][0]["text"]

    run(work)


def test_a_clean_call_without_an_answer_is_told_and_recorded() -> None:
    class Mute(Shop):
        def _call(self, params: Json) -> Json | None:
            raise LookupError

        def answer(self, message: Json) -> Json | None:
            try:
                return super().answer(message)
            except LookupError:
                return None

    async def work() -> None:
        async with Desk(Plan(timeout=0.05), Mute()) as desk:
            answer = await desk.ask("tools/call", {"name": "slow_call", "arguments": {}})
            assert "did not answer tools/call within 0.05 seconds" in answer["error"]["message"]
            assert desk.channel.got[-1]["method"] == "notifications/cancelled"
            assert desk.channel.got[-1]["params"]["requestId"] == desk.count
            late = json.dumps({"jsonrpc": "2.0", "id": desk.count, "result": {}}).encode()
            desk.channel.frames.put_nowait(late)
            assert (await desk.ask("ping"))["result"] == {}
            assert desk.heard == [], "a request is answered once"
            assert desk.relay._late == set()
            assert [step.result.error.code for step in desk.relay.session.steps] == ["infrastructure"]  # type: ignore[union-attr]

    run(work)


def test_calls_as_tasks_are_advertised_where_they_are_taken() -> None:
    class Tasks(Shop):
        def answer(self, message: Json) -> Json | None:
            answer = super().answer(message)
            if message.get("method") == "initialize" and answer is not None:
                tasks: Json = {"list": {}, "requests": {"tools": {"call": {}}, "sampling": {}}}
                answer["result"]["capabilities"]["tasks"] = tasks
            return answer

    async def work() -> None:
        for wanted, offered in ((Plan(), True), (plan("envelope:3"), False)):
            tools = [{**TOOLS[1], "execution": {"taskSupport": "optional"}}]
            async with Desk(wanted, Tasks(tools)) as desk:
                assert ("tools" in desk.began["result"]["capabilities"]["tasks"]["requests"]) is offered
                assert "sampling" in desk.began["result"]["capabilities"]["tasks"]["requests"]
                assert all(("execution" in tool) is offered for tool in (await desk.tools()).values())

    run(work)


NESTED: list[Json] = [
    {
        "name": "find_parts",
        "title": "Find Parts",
        "description": "Search. See order_part.",
        "inputSchema": {
            "title": "FindPartsInput",
            "type": "object",
            "properties": {
                "part_filter": {"$ref": "#/$defs/find_partsFilter", "title": "Part Filter"},
                "max_results": {"type": "integer", "description": "As in orderPart; at most 10 max_results."},
            },
            "required": ["part_filter"],
            "$defs": {
                "find_partsFilter": {
                    "title": "FindPartsFilter",
                    "type": "object",
                    "properties": {"color": {"$ref": "#/$defs/Color"}, "title": {"type": "string"}},
                    "description": "What findParts looks for.",
                },
                "Color": {"enum": ["red"], "examples": ["find_parts"]},
            },
        },
        "outputSchema": {
            "title": "find_partsOutput",
            "type": "object",
            "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/FindPartsRow"}}},
            "required": ["result"],
            "$defs": {"FindPartsRow": {"type": "object", "title": "Find Parts Row", "properties": {"part_id": {}}}},
        },
        "annotations": {"title": "Find Parts", "readOnlyHint": True},
    },
    {
        "name": "order_part",
        "title": "Order Part",
        "description": "Buy one.",
        "inputSchema": {"type": "object", "properties": {"part_id": {"type": "string", "description": "find_parts"}}},
        "outputSchema": {"type": "object", "title": "order_partOutput", "$comment": "OrderPart", "properties": {}},
    },
]


@pytest.mark.parametrize("kinds", [["semantic_rename:5"], ["identity_erasure:5", "parameter_rename:5"],
                                   ["foreign_interface:2"], ["semantic_rename:1", "envelope:1"]])  # fmt: skip
def test_no_part_of_a_schema_or_an_error_holds_a_hidden_name(kinds: list[str]) -> None:
    """Looked for as parts of words and in every spelling: in titles, definitions, descriptions and errors."""
    bare: Callable[[str], str] = lambda text: re.sub(r"[^a-z0-9]", "", text.lower())  # noqa: E731

    async def work() -> None:
        shop = Complaining(NESTED)
        for seed in range(3):
            async with Desk(plan(*kinds, seed=seed), shop) as desk:
                shown = await desk.tools()
                hidden = [bare(tool["name"]) for tool in NESTED if tool["name"] not in shown]
                assert hidden
                for tool in shown.values():
                    text = json.dumps(tool)
                    for ref in re.findall(r'"\$ref": "#/\$defs/(\w+)"', text):
                        assert any(ref in tool.get(key, {}).get("$defs", {}) for key in ("inputSchema", "outputSchema"))
                    assert not any(name in bare(text) for name in hidden), text
                    shop.says = (
                        "1 error for find_partsArguments: FindParts, orderPart (order-part), Order Part, find_parts"
                    )
                    required = tool["inputSchema"].get("required", ())
                    raw = await desk.call(tool["name"], **{key: {} for key in required})
                    assert raw["isError"]
                    assert not any(name in bare(json.dumps(raw)) for name in hidden), raw

    run(work)


@pytest.mark.parametrize("modern", [False, True])
def test_instructions_speak_of_tools_by_the_names_shown(modern: bool) -> None:
    class Instructing(Shop):
        def answer(self, message: Json) -> Json | None:
            answer = super().answer(message)
            if answer and "instructions" in answer.get("result", {}):
                answer["result"]["instructions"] = "Call get_customer before create_order; {braces} stay."
            return answer

    async def work() -> None:
        for wanted in (Plan(), plan("semantic_rename:5")):
            async with Desk(wanted, Instructing(TOOLS), modern=modern) as desk:
                began = await desk.ask("server/discover") if modern else desk.began
                await desk.relay.from_client(wire.dump(wire.notification("notifications/initialized")))
                shown = await desk.tools()
                told = began["result"]["instructions"]
                named = {"get_customer": "get_customer", "create_order": "create_order"}
                if wanted.perturbs:
                    specs = desk.relay.session.tools()  # type: ignore[union-attr]
                    named = {id: spec.name for spec in specs for id in spec.ids}
                assert told == f"Call {named['get_customer']} before {named['create_order']}; {{braces}} stay."
                assert set(named.values()) <= set(shown)
                heard = [m["method"] for m in desk.channel.got]
                assert heard.count("notifications/initialized") == 1

    run(work)


def test_a_parameter_by_the_name_of_a_hidden_tool_stays() -> None:
    async def work() -> None:
        schema = {"type": "object", "properties": {"get_customer": {"type": "boolean", "description": "It."}}}
        tools = [*TOOLS, {"name": "make_report", "description": "Report.", "inputSchema": schema}]
        shop = Complaining(tools)
        async with Desk(plan("semantic_rename:5"), shop) as desk:
            await desk.tools()
            specs = desk.relay.session.tools()  # type: ignore[union-attr]
            name = next(spec.name for spec in specs if "make_report" in spec.ids)
            shop.says = "1 error for make_reportArguments\nget_customer\n  Input should be a boolean"
            raw = await desk.call(name, get_customer="maybe")
            assert raw["content"][0]["text"] == shop.says.replace("make_report", name)

    run(work)


def test_errors_keep_all_but_hidden_names() -> None:
    class Rich(Shop):
        def _call(self, params: Json) -> Json | None:
            return ODD_ANSWERS[0]

    async def work() -> None:
        async with Desk(plan("semantic_rename:5"), Rich(TOOLS)) as desk:
            shown = await desk.tools()
            named = {id: spec.name for spec in desk.relay.session.tools() for id in spec.ids}  # type: ignore[union-attr]
            raw = await desk.call(named["get_customer"], customer_id="C1")
            text = json.dumps(ODD_ANSWERS[0]).replace("search_orders", named["search_orders"])
            expected = json.loads(text.replace("{get_customer}", f"{{{named['get_customer']}}}"))
            expected["structuredContent"]["get_customer"] = expected["structuredContent"].pop("get_customer")
            assert raw == expected
            assert len(shown) == len(TOOLS)

    run(work)


FAULTS = ["lost_acknowledgement:5", "transient_error:5", "rate_limit:5", "redirection:5", "service_hours:3",
          "unlisted_tools:3", "retired_midway:1", "verification_code:5", "name_noise:5"]  # fmt: skip


@pytest.mark.parametrize("kind", FAULTS)
def test_kinds_that_leave_results_alone_leave_their_schemas_alone(kind: str) -> None:
    async def work() -> None:
        async with Desk(plan(kind)) as desk:
            shown = await desk.tools()
            by_id = {id: shown[spec.name] for spec in desk.relay.session.tools() for id in spec.ids}  # type: ignore[union-attr]
            for tool in TOOLS:
                had = {key: value for key, value in tool["outputSchema"].items() if key != "title"}
                has = by_id[tool["name"]]["outputSchema"]
                assert {key: value for key, value in has.items() if key != "title"} == had

    run(work)


@pytest.mark.parametrize("seed", range(4))
def test_a_tool_without_a_result_in_the_trial_keeps_no_schema_that_its_results_may_break(seed: int) -> None:
    """A write whose answer is lost has none there, and its keys are renamed all the same."""

    async def work() -> None:
        async with Desk(plan("lost_acknowledgement:5", "key_rename:5", seed=seed)) as desk:
            tool = (await desk.tools())["create_order"]
            for _ in range(3):
                raw = await desk.call("create_order", customer_id="C1", item="lamp")
                if not raw.get("isError"):
                    assert set(tool["outputSchema"].get("required", ())) <= raw["structuredContent"].keys()

    run(work)


LOOSE: tuple[tuple[Json, Json], ...] = (
    ({"customer_id": "C1", "limit": "1"}, {}),  # a type that the server may bend
    ({"customer_id": 7, "limit": [1]}, {}),
    ({"customer_id": "C1"}, {"verbose": True, "nested": {"a": [None]}}),  # arguments that it does not list
    ({"limit": 3}, {}),  # one that it requires is missing
    ({"customer_id": None, "status": "lost"}, {}),  # a value that is not in its list
)


class Lax(Shop):
    """A server that takes whatever arguments it is sent."""

    def _call(self, params: Json) -> Json | None:
        self.calls.append(params)
        return _rows()


def _rows() -> Json:
    rows = [{"order_id": "O1", "total": 1000.5, "date": "2030-01-01", "status": "open"}]
    return {"content": [], "structuredContent": {"result": rows}}


@pytest.mark.parametrize("kind", [kind for kind in live.applicable() if kind not in ("tool_split", "lookalike_tools")])
def test_the_server_judges_arguments_with_layers_as_without(kind: str) -> None:
    """What no layer wrote in another form reaches the server as it would without layers, right or wrong."""

    async def work() -> None:
        schema = {**TOOLS[0]["inputSchema"], "additionalProperties": False}  # which many servers only say
        tools = [{**TOOLS[0], "inputSchema": schema, "annotations": {"readOnlyHint": True}}, *TOOLS[1:]]
        reached = 0
        for seed in range(3):
            async with Desk(plan(f"{kind}:5", seed=seed), Lax(tools)) as desk:
                await desk.tools()
                session = desk.relay.session
                assert session is not None
                for args, extra in LOOSE:
                    for _ in range(8):  # obstacles in time are passed by calling again
                        spec = next(s for s in session.tools() if "search_orders" in s.ids)
                        names = parameter_names(session)[spec.name]
                        desk.shop.calls.clear()
                        raw = await desk.call(spec.name, **{names[k]: v for k, v in args.items()}, **extra)
                        assert not any("internal error" in said for said in desk.said), desk.said
                        if desk.shop.calls:
                            reached += 1
                            assert desk.shop.calls[0]["arguments"] == {**args, **extra}
                            break
                        assert "bad_arguments" not in json.dumps(raw) or kind == "parameter_format", raw
                hidden = {p for p, name in names.items() if p != name}
                if hidden:
                    raw = await desk.call(spec.name, **dict.fromkeys(hidden, "C1"))
                    assert raw["isError"], "a hidden name works no more"
        assert reached >= {"parameter_format": 1, "rate_limit": 1, "service_hours": 0, "late_approval": 0}.get(kind, 15)

    run(work)


def test_a_tool_that_has_moved_says_so_whatever_it_is_called_with() -> None:
    """What stands in the place of a server's tool judges arguments no more strictly than that would."""

    async def work() -> None:
        async with Desk(plan("redirection:5"), Lax(TOOLS)) as desk:
            await desk.tools()
            session = desk.relay.session
            assert session is not None
            stubs = [spec for spec in session.tools() if not spec.ids and "customer_id" in spec.params]
            assert stubs
            for spec in stubs:
                for args in ({"customer_id": 7, "verbose": True}, {}):
                    said = (await desk.call(spec.name, **args))["content"][0]["text"]
                    assert json.loads(said)["error"] == "moved"

    run(work)


def test_a_listing_that_nests_too_deeply_is_an_error_and_no_silence() -> None:
    deep: Json = {"type": "string"}
    for _ in range(400):
        deep = {"type": "object", "properties": {"a": deep}}
    tools = [*TOOLS, {"name": "deep_tool", "inputSchema": {"type": "object", "properties": {"q": deep}}}]

    async def work() -> None:
        async with Desk(plan("identity_erasure:5"), Shop(tools)) as desk:
            assert desk.began["result"]["instructions"] == "Be kind."
            answer = await desk.ask("tools/list")
            assert answer["error"]["message"] == "what the server sent nests too deeply"

    run(work)
    assert "nest too deeply" in schema.bad_listing(tools)


@pytest.mark.parametrize(
    ("text", "becomes"),
    [("get_customerArguments, XGetCustomer", "fetch-itArguments, Xfetch-it"),
     ("get_customers_all", "get_customers_all"), ("a_b and A B in ABOUT, a-b", "NEW and A B in ABOUT, a-b"),
     ("wa_bc", "wa_bc")],
)  # fmt: skip
def test_names_within_words_are_replaced_if_they_are_long_enough(text: str, becomes: str) -> None:
    tools = {"get_customer": "fetch-it", "a_b": "NEW"}
    for name in list(tools):
        tools |= dict.fromkeys(hiding.spellings(name), tools[name])
    assert hiding.renamed(text, tools, shown=["get_customers_all"]) == becomes
