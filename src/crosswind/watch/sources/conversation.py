"""One episode out of its spans: tool spans are calls with their times, spans of the model hold the conversation.

Where both are there, a call takes its time and error from the tool's span and what the span lacks from the messages.
Where a log has no content, calls have names, order, errors and times alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from crosswind.mcp.schema import record
from crosswind.watch.observed import (
    ABSENT,
    Data,
    ListedTool,
    Listing,
    ObservedCall,
    ObservedEpisode,
    failure_in,
    listed,
    listed_tool,
    loaded,
)
from crosswind.watch.sources.trajectories import answered, text_of, user_says

MODEL_SPANS = ("chat", "generate_content", "text_completion", "invoke_agent", "create_agent")
_OLD = re.compile(r"(gen_ai\.prompt|gen_ai\.completion|llm\.input_messages|llm\.output_messages)\.(\d+)\.(.+)")
_CALL = re.compile(r"(?:message\.)?tool_calls\.(\d+)\.(?:tool_call\.)?(?:function\.)?(\w+)")
_FUNCTION = re.compile(r"llm\.(?:request\.functions|tools)\.(\d+)\.(.+)")


@dataclass(slots=True)
class Span:
    """A span, whatever wrote it."""

    group: str
    service: str
    name: str
    start: float
    end: float
    attributes: Data
    failed: bool = False
    message: str = ""
    events: list[tuple[str, Data]] = field(default_factory=list)

    @property
    def tool(self) -> str | None:
        """The tool that it is a call of; None for other spans."""
        found = self.attributes
        operation = found.get("gen_ai.operation.name")
        kind = found.get("openinference.span.kind") or found.get("traceloop.span.kind")
        if operation == "execute_tool" or str(kind).upper() == "TOOL" or found.get("mcp.method.name") == "tools/call":
            named = found.get("gen_ai.tool.name") or found.get("tool.name") or found.get("traceloop.entity.name")
            named = named or found.get("mcp.tool.name")
            return str(named or self.name.removeprefix("execute_tool ").removeprefix("tools/call "))
        return None

    @property
    def is_model(self) -> bool:
        found = self.attributes
        if str(found.get("openinference.span.kind")).upper() == "LLM":
            return True
        return found.get("gen_ai.operation.name") in MODEL_SPANS or any(
            key in found
            for key in ("gen_ai.system", "gen_ai.provider.name", "llm.request.type", "gen_ai.request.model")
        )


def first(found: Data, *names: str) -> Any:
    return next((found[name] for name in names if found.get(name) not in (None, "")), None)


def episode_of_spans(name: str, spans: list[Span]) -> ObservedEpisode | None:
    """The episode; None where no span is of an agent's work."""
    spans.sort(key=lambda span: (span.start, span.end))
    tools = [span for span in spans if span.tool is not None]
    models = [span for span in spans if span.is_model and span.tool is None]
    listings = [span for span in spans if span.attributes.get("mcp.method.name") == "tools/list"]
    if not tools and not models and not listings:
        return None
    first_span = spans[0]
    out = ObservedEpisode(id=name, source=first_span.service, start=first_span.start)
    times = [span.end for span in spans if span.end]
    out.seconds = max(times) - first_span.start if times and first_span.start else None
    agents = (first(s.attributes, "gen_ai.agent.name", "agent.name") for s in spans)
    names = (first(s.attributes, "gen_ai.request.model", "llm.model_name") for s in models)
    out.agent = str(next((found for found in (*agents, *names) if found), ""))
    out.turns = sum(span.attributes.get("gen_ai.operation.name") != "invoke_agent" for span in models) or None
    _list(out, [*listings, *models])
    if out.listing is None:
        out.described = _described(tools)
    told, calls, ids = _conversation(models)
    _talk(out, told, bool(models and any(told)))
    waiting = list(calls)
    out.calls = [_tool_call(span, waiting, ids) for span in tools] or calls
    return out


# ---------------------------------------------------------------- tools shown


def _list(out: ObservedEpisode, spans: Sequence[Span]) -> None:
    for span in sorted(spans, key=lambda span: span.start):
        found = span.attributes
        given = first(found, "gen_ai.tool.definitions", "gen_ai.request.tools", "mcp.tools", "llm.tools")
        shown = listed(loaded(given)) if given is not None else None
        if shown is None:
            shown = listed(_functions(found) or record(loaded(found.get("llm.invocation_parameters"))).get("tools"))
        if not shown:
            continue
        if out.listing is None:
            out.listing = shown
        elif shown != (out.later[-1] if out.later else out.listing):
            out.later.append(shown)


def _functions(found: Data) -> list[Any]:
    """Tools that are numbered attributes: `llm.request.functions.0.name`, `llm.tools.0.tool.json_schema`."""
    out: dict[int, Data] = defaultdict(dict)
    for key, value in found.items():
        if key.startswith("llm.") and (match := _FUNCTION.fullmatch(key)):
            if match[2] in ("tool.json_schema", "json_schema"):
                out[int(match[1])] = record(loaded(value))
            elif match[2] in ("name", "description", "parameters", "input_schema"):
                out[int(match[1])][match[2]] = loaded(value)
    return [out[n] for n in sorted(out)]


def _described(tools: Sequence[Span]) -> Listing:
    """Tools that the spans of their calls describe."""
    out = dict[str, ListedTool]()
    for span in tools:
        found = span.attributes
        doc, schema = first(found, "gen_ai.tool.description", "tool.description"), _schema(found)
        if span.tool and (doc or schema):
            one = {"name": span.tool, "description": doc or "", **({"parameters": schema} if schema else {})}
            if (tool := listed_tool(one)) is not None:
                out.setdefault(tool.name, tool)
    return tuple(out.values())


def _schema(found: Data) -> Data:
    """What `tool.parameters` declares; empty where it holds arguments, as some instrumentations write it."""
    given = record(loaded(found.get("tool.parameters")))
    return given if given.get("type") == "object" and isinstance(given.get("properties"), dict) else {}


# ---------------------------------------------------------------- calls


def _tool_call(span: Span, waiting: list[ObservedCall], ids: dict[str, ObservedCall]) -> ObservedCall:
    """The call that a tool's span is of, with what the messages say of it: the call with its id, or else the first of
    those of this tool that have no span yet."""
    found = span.attributes
    made = ObservedCall(span.tool or "", seconds=span.end - span.start if span.end and span.start else None)
    declared = () if _schema(found) else ("tool.parameters",)
    args = first(
        found, "gen_ai.tool.call.arguments", *declared, "input.value", "traceloop.entity.input", "mcp.arguments"
    )
    result = first(found, "gen_ai.tool.call.result", "output.value", "traceloop.entity.output", "mcp.result")
    for name, more in span.events:
        if name == "gen_ai.tool.message":
            result = first(more, "content", "gen_ai.event.content") if result is None else result
        elif name == "exception":
            made.error, made.text = str(more.get("exception.type", "error")), str(more.get("exception.message", ""))
    same = ids.get(str(first(found, "gen_ai.tool.call.id", "tool_call.id")))
    same = same or next((call for call in waiting if call.tool == made.tool), None)
    if same in waiting:
        waiting.remove(same)
    if args is not None:
        made.args = loaded(args)
    if same is not None and (args is None or not isinstance(made.args, dict)):
        made.args = same.args if isinstance(same.args, dict) else made.args
    if result is not None:
        answered(made, _unwrapped(loaded(result)))
    elif same is not None:
        made.result, made.error, made.text = same.result, same.error or made.error, same.text or made.text
    code = found.get("error.type")
    if code and not made.error:
        made.error, made.text, made.result = str(code), made.text or span.message, ABSENT
    elif span.failed and not made.error:
        made.error, made.text = "error", span.message
    return made


def _unwrapped(result: Any) -> Any:
    """The content of an MCP result or of a message of LangChain, or the result."""
    if isinstance(result, dict) and result.get("type") == "tool" and "content" in record(result.get("data")):
        message = record(result["data"])
        content = loaded(text_of(message["content"]))
        failed = message.get("status") == "error" and failure_in(content) is None
        return {"error": {"code": "error", "message": text_of(content)}} if failed else content
    if (
        isinstance(result, dict)
        and isinstance(result.get("content"), list)
        and set(result) <= {*("content", "isError", "structuredContent", "_meta")}
    ):
        return loaded(text_of(result["content"]))
    return result


# ---------------------------------------------------------------- messages


def _conversation(models: Sequence[Span]) -> tuple[list[Data], list[ObservedCall], dict[str, ObservedCall]]:
    """The longest conversation that a span of the model holds, with its last reply, and the calls in it."""
    best: list[Data] = []
    for span in models:
        found = _messages(span)
        if len(found) >= len(best):
            best = found
    calls: list[ObservedCall] = []
    ids: dict[str, ObservedCall] = {}
    for message in best:
        for request in message["calls"]:
            call = ObservedCall(request["name"], args=loaded(request.get("arguments")))
            calls.append(call)
            if request.get("id"):
                ids[str(request["id"])] = call
        for response in message["responses"]:
            waiting = next((c for c in calls if c.result is ABSENT and c.error is None), None)
            call_of = ids.get(str(response.get("id"))) or waiting
            if call_of is not None:
                answered(call_of, _unwrapped(loaded(response["content"])))
    return best, calls, ids


def _messages(span: Span) -> list[Data]:
    """The messages of a span: role, text, calls and responses."""
    found = span.attributes
    out: list[Data] = []
    system = first(found, "gen_ai.system_instructions")
    if system is not None:
        out.append(_message({"role": "system", "parts": loaded(system)}))
    given = [loaded(found[n]) for n in ("gen_ai.input.messages", "gen_ai.output.messages") if found.get(n) is not None]
    for messages in given:
        out += [_message(one) for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    if not given:
        out += [_message(one) for one in _numbered(found)]
    if not out:
        out += [_message(one) for event in span.events if (one := _event(*event)) is not None]
    return out


def _numbered(found: Data) -> list[Data]:
    """Messages as numbered attributes: `gen_ai.prompt.0.role`, `llm.input_messages.0.message.content`."""
    out: dict[tuple[bool, int], Data] = defaultdict(lambda: {"tool_calls": defaultdict(dict)})
    for key, value in found.items():
        match = _OLD.fullmatch(key)
        if match is None:
            continue
        message = out[match[1] in ("gen_ai.completion", "llm.output_messages"), int(match[2])]
        rest = match[3]
        if (call := _CALL.fullmatch(rest)) is not None:
            message["tool_calls"][int(call[1])][call[2]] = value
        else:
            message[rest.removeprefix("message.")] = value
    for (answer, _), message in out.items():
        message.setdefault("role", "assistant" if answer else "user")
        message["tool_calls"] = [message["tool_calls"][n] for n in sorted(message["tool_calls"])]
    return [out[place] for place in sorted(out)]


def _event(name: str, found: Data) -> Data | None:
    """A message as an event of a span."""
    if name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
        content = first(found, "gen_ai.prompt", "gen_ai.completion")
        messages = loaded(content)
        return messages[-1] if isinstance(messages, list) and messages and isinstance(messages[-1], dict) else None
    role = name.removeprefix("gen_ai.").removesuffix(".message")
    if name == "gen_ai.choice":
        message = loaded(found.get("message"))
        return {"role": "assistant", **record(message)} if isinstance(message, dict) else {"role": "assistant", **found}
    if role in ("system", "user", "assistant", "tool") and name != role:
        return {**found, "role": role, "tool_calls": loaded(found.get("tool_calls"))}
    return None


def _message(data: Data) -> Data:
    """A message in one form, from parts or from the fields of chat APIs."""
    role, words, calls, responses = str(data.get("role", "user")), [], list[Data](), list[Data]()
    content = data.get("parts", data.get("content"))
    parts = content if isinstance(content, list) else [{"type": "text", "content": content}] if content else []
    for part in parts:
        if isinstance(part, str):
            words.append(part)
            continue
        kind = record(part).get("type")
        if kind in ("tool_call", "tool_use", "function_call"):
            args = first(part, "arguments", "input")
            calls.append({"id": part.get("id"), "name": str(part.get("name", "")), "arguments": args})
        elif kind in ("tool_call_response", "tool_result"):
            given = [part[k] for k in ("response", "result", "content") if k in part]
            responses += [{"id": first(part, "id", "tool_use_id"), "content": one} for one in given[:1]]
        elif kind in (None, "text", "output_text", "input_text"):
            words.append(str(first(record(part), "content", "text") or ""))
    for one in data.get("tool_calls") or ():
        function = record(record(one).get("function")) or record(one)
        if function.get("name"):
            request = {
                "id": record(one).get("id"),
                "name": str(function["name"]),
                "arguments": function.get("arguments"),
            }
            calls.append(request)
    text = "\n".join(word for word in words if word)
    if role == "tool" and not responses and "parts" not in data and content is not None:
        responses.append({"id": first(data, "tool_call_id", "id"), "content": loaded(text)})
        text = ""
    return {"role": role, "text": text, "calls": calls, "responses": responses}


def _talk(out: ObservedEpisode, messages: Sequence[Data], has_content: bool) -> None:
    """The request, what was said and heard, and the last words."""
    if not has_content:
        return
    for message in messages:
        role, text = message["role"], message["text"]
        if role == "system" and text:
            out.policy = f"{out.policy}\n{text}" if out.policy else text
        elif role == "user" and text:
            user_says(out, text)
        elif role == "assistant" and text and not message["calls"]:
            out.said.append(text)
    if messages and messages[-1]["role"] == "assistant" and out.said:
        out.final = out.said.pop()
