"""Between one client and one server: tools are shown perturbed and calls translated back; all else passes untouched.

Where no layer is applied to the server, calls pass untouched as well, byte for byte both ways, and are put on record.

A relay never looks at the handshake except to note who speaks and to say that lists of tools may change, so clients
and servers of either era of the protocol meet as they would without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from crosswind.base.errors import CannotPerturb, Unfair
from crosswind.core.session import OpenCall, Session
from crosswind.core.types import Request, ToolCall, ToolError, ToolResult
from crosswind.episodes.play import result_text
from crosswind.episodes.schedule import StreamMark
from crosswind.mcp import envelopes, wire
from crosswind.mcp import tools as forms
from crosswind.mcp.listing import Listing
from crosswind.mcp.plan import Plan
from crosswind.mcp.schema import Json, record
from crosswind.mcp.toolbox import ServerTools
from crosswind.mcp.tools import PROTOCOL, SERVER, Tool
from crosswind.mcp.upstream import ServerLink
from crosswind.mcp.wire import BadFrame, Message, WireError
from crosswind.models.mender import Mender
from crosswind.models.repairs import as_data, error_in

MOST = 1000  # calls of one client under way; more are read when some are done
PATIENCE = 5.0  # seconds for a server to list its tools before its instructions go to the client as they are
CANCELLED, UNANSWERED, LOST = "cancelled", "unanswered", "infrastructure"  # what became of calls without an answer
BEGINNINGS = ("initialize", "server/discover")  # requests whose answers hold the server's instructions
OWN_PARAMS = ("name", "arguments")  # of a call; all others are handed on


class Front(Protocol):
    """The client's side: takes frames for the client; the message is given as well, to tell where they belong."""

    async def send(self, frame: bytes, message: Message) -> None: ...


Note = Callable[[Session, OpenCall, bool], None]  # told of a call that is about to ask the server, or is over (True)


@dataclass(slots=True)
class PlanFailure:
    """Why a plan cannot be applied to a server; `told` is set once the client knows."""

    why: str = ""
    told: asyncio.Event = field(default_factory=asyncio.Event)


class _Refused(Exception):
    """The server answered a request of ours with an error that is the client's to read."""

    def __init__(self, error: Any) -> None:
        super().__init__("refused")
        self.error = error


@dataclass(slots=True)
class _Waiting:
    """A call that the server cannot answer before the client has told it more."""

    opened: OpenCall
    raws: list[Json] = field(default_factory=list)


class Relay:
    """One client's connection to one server."""

    def __init__(
        self, front: Front, link: ServerLink, plan: Plan, say: Callable[[str], None], failure: PlanFailure | None = None
    ) -> None:
        self.front, self.link, self.plan, self.say = front, link, plan, say
        self.failure = failure or PlanFailure()
        self.mender = plan.adapt.mender() if plan.adapt else None
        self.session: Session | None = None  # these three from the first listing on
        self.toolbox: ServerTools
        self.listing: Listing
        self.mark: StreamMark | None = None  # where in a stream this session stands
        self.client = ""  # who the client says it is
        self.shook_hands = False  # as in the older era; in the newer one each request says its revision
        self.instructions = ""
        self.note: Note = lambda session, opened, over: None
        self.first_shown: tuple[Json, ...] = ()
        self._page: Message = {}  # what the server's list of tools says besides
        self._stale = False
        self._refreshing = asyncio.Lock()
        self._calls: dict[str, asyncio.Task[None]] = {}
        self._passed: dict[str, Any] = {}  # requests of the client that the server answers itself: method by id
        self._listens: dict[str, tuple[Any, bool]] = {}  # open subscriptions: their id, and whether we serve them
        self._suspended: dict[str, _Waiting] = {}
        self._awaited: dict[str, asyncio.Future[tuple[Message, bytes]]] = {}  # calls that were handed on as they came
        self._late: set[str] = set()  # of those, the ones that the client was told have no answer
        self._hello: Message = {}  # parameters of the request that began
        self._greeted = False  # has the server been told that the client is ready, before it was?
        self._held: list[tuple[bytes, Message]] | None = None  # what the server said before its tools were known
        self._room = 0  # bytes for more of that
        self._introducing: asyncio.Timeout | None = None
        self._closing = False

    # -- from the client

    async def from_client(self, frame: bytes) -> None:
        """Take a frame of the client."""
        try:
            message = wire.parse(frame, lenient=not self.plan.perturbs)
        except BadFrame as bad:
            await self._answer(wire.failure(None, bad.code, str(bad)))
            return
        method, id = message.get("method"), message.get("id")
        params = record(message.get("params"))
        self._see_client(method, params)
        if "id" in message and (method == "tools/call" or (method == "tools/list" and self.plan.perturbs)):
            while len(self._calls) >= MOST:
                await asyncio.wait(self._calls.values(), return_when=asyncio.FIRST_COMPLETED)
            if envelopes.key(id) in self._calls:
                await self._answer(wire.failure(id, wire.INVALID_REQUEST, "a request with this id is under way"))
                return
            work = partial(self._list, id, params)
            if method == "tools/call":
                calls = self.plan.perturbs or self.mender is not None
                work = partial(self._call, id, params) if calls else partial(self._pass, id, params, frame)
            task = asyncio.create_task(self._guarded(id, work))
            self._calls[envelopes.key(id)] = task
            task.add_done_callback(lambda _: self._calls.pop(envelopes.key(id), None))
            return
        if method == wire.CANCELLED:
            wanted = envelopes.key(params.get("requestId"))
            if (running := self._calls.get(wanted)) is not None:
                running.cancel()
                if wanted not in self._awaited:  # the server does not know the call by this id, or not yet
                    return
            if self._listens.pop(wanted, (None, False))[1]:
                return
            self._passed.pop(wanted, None)
        elif method == wire.LISTEN and "id" in message:
            self._listens[envelopes.key(id)] = (id, False)
        elif method in BEGINNINGS:
            self._hello = params
        elif method == wire.INITIALIZED and self._greeted:
            return
        if method is not None and "id" in message:
            self._passed[envelopes.key(id)] = method
        try:
            await self.link.channel.write(frame)
        except WireError:
            if method is not None and "id" in message:
                await self.gone()

    def _see_client(self, method: str | None, params: Message) -> None:
        """See who the client is."""
        who = params.get("clientInfo") if method == "initialize" else None
        if method != "initialize" and not self.client:
            who = record(params.get("_meta")).get(wire.CLIENT_KEY)
        if isinstance(who, dict):
            self.client = f"{who.get('name', '')} {who.get('version', '')}".strip()

    async def _guarded(self, id: Any, work: Callable[[], Awaitable[None]]) -> None:
        """Do what the client asked for, and answer with an error where it cannot be done."""
        try:
            await work()
        except _Refused as refused:
            await self._answer({"jsonrpc": "2.0", "id": id, "error": refused.error})
        except CannotPerturb as error:
            self.failure.why = str(error)
            await self._answer(wire.failure(id, wire.INTERNAL_ERROR, f"crosswind: {error}"))
            self.failure.told.set()
        except WireError as error:
            code = error.code if isinstance(error, BadFrame) else wire.UPSTREAM_GONE
            await self._answer(wire.failure(id, code, str(error)))
        except asyncio.CancelledError:
            raise
        except RecursionError:
            await self._answer(wire.failure(id, wire.UPSTREAM_GONE, "what the server sent nests too deeply"))
        except Exception as error:  # ours: said aloud, and the client is not left waiting
            self.say(f"internal error: {type(error).__name__}: {error}")
            await self._answer(wire.failure(id, wire.INTERNAL_ERROR, f"crosswind failed: {type(error).__name__}"))

    async def _answer(self, message: Message) -> None:
        await self.front.send(wire.dump(message), message)

    # -- from the server

    async def from_server(self, message: Message, frame: bytes) -> None:
        """Take a message of the server that is not an answer to a request of ours."""
        method = message.get("method")
        if method == wire.LIST_CHANGED:
            self._stale = True
        elif method == wire.ACKNOWLEDGED and self._moves and "notifications" in record(message.get("params")):
            record(message["params"]["notifications"])["toolsListChanged"] = True
            frame = wire.dump(message)
        elif method is None:
            key = envelopes.key(message["id"])
            if (awaited := self._awaited.pop(key, None)) is not None and not awaited.done():
                awaited.set_result((message, frame))
                return
            if key in self._late:
                self._late.discard(key)
                return
            asked = self._passed.pop(envelopes.key(message["id"]), None)
            self.shook_hands = self.shook_hands or (asked == "initialize" and "result" in message)
            if asked in BEGINNINGS and self._begun(message):
                frame = wire.dump(message)
            if asked in BEGINNINGS and self.plan.perturbs and self.instructions:
                introduced = asyncio.create_task(self._introduce(message))
                self._calls[key] = introduced
                introduced.add_done_callback(lambda _: self._calls.pop(key, None))
                return
            if asked == wire.LISTEN:
                if "error" in message and self._moves and key in self._listens:
                    await self._serve_listening(message["id"])
                    return
                self._listens.pop(key, None)
        if self._held is not None and method is not None:
            self._held.append((frame, message))
            self._room -= len(frame)
            if self._room < 0 and self._introducing is not None and not self._introducing.expired():
                self._introducing.reschedule(0.0)  # wait no longer
                await asyncio.sleep(0)
            return
        await self.front.send(frame, message)

    async def _introduce(self, message: Message) -> None:
        """Hand on the server's instructions with the names that its tools are shown by; so these are listed first."""
        self._held, self._room = [], wire.LIMIT
        try:
            if self.shook_hands and not self._greeted:
                self._greeted = True
                await self.link.send(wire.notification(wire.INITIALIZED))
            async with asyncio.timeout(PATIENCE) as self._introducing:
                await self._ready(self._hello)
            self.instructions = self.listing.clean(self.instructions, "")
            message["result"]["instructions"] = self.instructions
        except Exception as error:  # whatever it is: the client waits for this answer
            self.say(f"the server's instructions are handed on as they are ({type(error).__name__}: {error})")
        held, self._held = self._held, None
        await self._answer(message)
        for frame, other in held:
            await self.front.send(frame, other)

    def _begun(self, message: Message) -> bool:
        """Say that the list of tools may change, if it may; was the message changed?"""
        about = message.get("result")
        if not isinstance(about, dict):
            return False
        self.instructions = str(about.get("instructions") or "")
        told = bool(self.mark and self.mark.notice)
        if told and self.mark:
            self.instructions = about["instructions"] = f"{self.instructions}\n\n{self.mark.notice}".strip()
        capabilities = record(about.get("capabilities"))
        tools, tasks = capabilities.get("tools"), record(record(capabilities.get("tasks")).get("requests"))
        if not self.plan.perturbs:
            return told
        moves = isinstance(tools, dict) and tools.get("listChanged") is not True
        if isinstance(tools, dict):
            tools["listChanged"] = True
        return tasks.pop("tools", None) is not None or moves or told  # results of tasks would go round the layers

    @property
    def _moves(self) -> bool:
        """May layers change the list of tools on the way?"""
        return self.plan.perturbs and (self.session is None or bool(self.session.moments))

    async def _serve_listening(self, id: Any) -> None:
        """Keep a subscription that the server does not offer."""
        self._listens[envelopes.key(id)] = (id, True)
        params = {"notifications": {"toolsListChanged": True}, "_meta": {wire.SUBSCRIPTION_KEY: id}}
        await self._answer(wire.notification(wire.ACKNOWLEDGED, params))

    async def gone(self) -> None:
        """The server is gone: anyone who waits is told."""
        passed, self._passed = self._passed, {}
        for key in passed:
            await self._answer(
                wire.failure(json.loads(key), wire.UPSTREAM_GONE, self.link.ended or "the server is gone")
            )

    async def close(self) -> None:
        """End what is under way, and put it on record."""
        self._closing = True
        tasks = list(self._calls.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        suspended, self._suspended = self._suspended, {}
        for waiting in suspended.values():
            assert self.session is not None
            self._lose(self.session, waiting.opened, asyncio.CancelledError())

    async def drain(self) -> None:
        """Wait until the client has all its answers."""
        while self._calls or self._passed.keys() - self._listens.keys():
            await asyncio.sleep(0.005)

    async def settle(self) -> None:
        """Let calls come to their answers; for when the server is gone, so that they all do at once."""
        for awaited in self._awaited.values():
            if not awaited.done():
                awaited.set_exception(WireError(self.link.ended or "the server is gone"))
        await asyncio.gather(*self._calls.values(), return_exceptions=True)

    # -- tools

    async def _ready(self, params: Message) -> Session:
        """The session, once the server's tools are known and a stack is drawn for them."""
        async with self._refreshing:
            if self.session is not None and not self._stale:
                return self.session
            meta = params.get("_meta")
            meta = {k: v for k, v in meta.items() if k != "progressToken"} if isinstance(meta, dict) else None
            self._stale = False
            listed, page = await self.link.listing(meta)
            if "error" in page:
                raise _Refused(page["error"])
            tools = forms.tools_of(listed)
            if self.session is None:
                self._page, self.session = page, self._begin(tools)
                return self.session
            before = self.toolbox.tools
            self.toolbox.renew(tools)
            try:
                self.session.refresh()
                self._page = page
            except Exception as error:
                self.toolbox.renew(before)
                if not isinstance(error, Unfair):
                    raise
                self.say(f"the server's new tools do not go with the layers ({error}); the old ones stay")
            return self.session

    def _begin(self, tools: Mapping[str, Tool]) -> Session:
        drawn = self.plan.draw(tools, self.mark)
        self.toolbox = ServerTools(tools, self._ask)
        session = Session(self.toolbox, drawn.layers)
        self.listing = Listing(session, self.toolbox, drawn.certificate.gold.steps)
        self.toolbox.origins = self.listing.origins
        if self.plan.perturbs:
            kinds = ", ".join(layer.kind for layer in drawn.layers) or "nothing"
            at = f"session {self.mark.number} of the stream, release {self.mark.version}: " if self.mark else ""
            self.say(f"{at}applied to {len(tools)} tools: {kinds}")
            for why in drawn.left_out:
                self.say(f"NOT APPLIED: {why}")
        self.first_shown = tuple(self.listing.shown().values())
        return session

    async def _list(self, id: Any, params: Message) -> None:
        if params.get("cursor") is not None:
            await self._answer(wire.failure(id, wire.INVALID_PARAMS, "no such cursor: the list comes in one page"))
            return
        session = await self._ready(params)
        page = dict(self._page)
        if session.moments and "ttlMs" in page:
            page["ttlMs"] = 0
        await self._answer(wire.result(id, {**page, "tools": list(self.listing.shown().values())}))

    # -- calls

    async def _call(self, id: Any, params: Message) -> None:
        name, args = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not (args is None or isinstance(args, dict)):
            await self._answer(wire.failure(id, wire.INVALID_PARAMS, "a call has a name and an object of arguments"))
            return
        if params.get("task") is not None:
            why = "calls as tasks are not offered under layers; call without `task`"
            await self._answer(wire.failure(id, wire.INVALID_PARAMS, why))
            return
        session = await self._ready(params)
        more = {key: value for key, value in params.items() if key not in OWN_PARAMS}
        waiting = (
            self._suspended.pop(envelopes.state(name, params), None) if params.keys() & envelopes.CONTINUATION else None
        )
        modern = wire.VERSION_KEY in record(params.get("_meta"))  # a request of the newer era says its revision
        if waiting is None and self.mender is not None:
            await self._mended(
                id, self.mender, session, Request(id="", tool=name, args=args or {}), more, modern=modern
            )
            return
        if waiting is None:
            waiting = await self._opened(session, ToolCall(name, args or {}))
        if await self._through(id, name, waiting, session, more):
            self._finished(waiting, session)
            await self._reply(id, waiting, session, modern=modern)

    async def _opened(self, session: Session, call: ToolCall) -> _Waiting:
        """A call that has begun."""
        before = session.specs
        waiting = _Waiting(session.begin(call))
        if session.specs is not before:
            await self._list_changed()
        return waiting

    async def _through(self, id: Any, name: str, waiting: _Waiting, session: Session, more: Message) -> bool:
        """Bring a call to its result; False if the server wants more of the client first, which is told so."""
        opened = waiting.opened
        try:
            while opened.asked is not None:
                self.note(session, opened, False)
                response = await self._ask(opened.asked, more)
                envelopes.as_json(response)
                value = response.get("result")
                if isinstance(value, dict) and value.get("resultType", "complete") != "complete":
                    self._suspended[envelopes.state(name, value)] = waiting
                    await self._answer(wire.result(id, value))
                    return False
                answer = self.toolbox.answer(opened.asked, response)
                waiting.raws.append(response)
                session.resume(opened, answer)
                more = envelopes.again(more)
        except BaseException as error:
            if all(one is not waiting for one in self._suspended.values()):
                self._lose(session, opened, error)
            raise
        return True

    async def _mended(
        self, id: Any, mender: Mender, session: Session, asked: Request, more: Message, *, modern: bool
    ) -> None:
        """Make a call and what it takes besides, and tell the client what came of it."""
        if why := mender.objection(mender.fitted(asked, session.tools()), session.tools()):
            await self._answer(wire.result(id, envelopes.spoken(why, is_error=True, modern=modern)))
            return
        mending = mender.handle(asked, session.tools)
        last: _Waiting | None = None
        try:
            request = next(mending)
            while True:
                last = await self._opened(session, ToolCall(request.tool, request.args))
                if not await self._through(id, asked.tool, last, session, more):
                    return
                self._finished(last, session)
                more = envelopes.again(more)
                assert last.opened.result is not None
                request = mending.send(result_text(last.opened.result))
        except StopIteration as end:
            text: str = end.value
        if last is not None and last.opened.result is not None and text == result_text(last.opened.result):
            await self._reply(id, last, session, modern=modern)
        elif error_in(text):
            await self._answer(wire.result(id, envelopes.spoken(text, is_error=True, modern=modern)))
        else:
            value = envelopes.spoken(text, is_error=False, modern=modern)
            if "outputSchema" in self.listing.shown().get(asked.tool, {}):
                data = as_data(text)
                value["structuredContent"] = data if isinstance(data, dict) else {"result": data}
            await self._answer(wire.result(id, value))

    async def _pass(self, id: Any, params: Message, frame: bytes) -> None:
        """Hand a call on as it came, and its answer as well; what is noted of them is for the record alone."""
        name, args = params.get("name"), params.get("arguments")
        waiting: _Waiting | None = None
        if isinstance(name, str) and (args is None or isinstance(args, dict)):
            session = await self._known(params)
            if params.keys() & envelopes.CONTINUATION:
                waiting = self._suspended.pop(envelopes.state(name, params), None)
            waiting = waiting or _Waiting(session.begin(ToolCall(name, args or {})))
            self.note(session, waiting.opened, False)
        try:
            response, answer = await self._handed_on(id, frame)
        except BaseException as error:
            if waiting is not None:
                self._lose(session, waiting.opened, error)
            raise
        if waiting is not None:
            self._answered(session, str(name), waiting, response)
        await self.front.send(answer, response)

    def _answered(self, session: Session, name: str, waiting: _Waiting, response: Message) -> None:
        """Put the answer to a call that was handed on as it came on record, whatever it is."""
        opened, value = waiting.opened, response.get("result")
        if isinstance(value, dict) and value.get("resultType", "complete") != "complete":
            self._suspended[envelopes.state(name, value)] = waiting
            return
        assert opened.asked is not None
        try:
            session.resume(opened, self.toolbox.answer(opened.asked, response))
        except WireError as error:
            self._lose(session, opened, error)
            return
        assert opened.result is not None
        self._record(session, opened, opened.result)

    async def _known(self, params: Message) -> Session:
        """The session of a server without layers; one whose list of tools cannot be had has calls, too."""
        try:
            return await self._ready(params)
        except (_Refused, WireError) as error:
            if self.session is None:
                self.say(f"the server's tools are not known to the record ({error})")
                self.session = self._begin({})
            return self.session

    async def _handed_on(self, id: Any, frame: bytes) -> tuple[Message, bytes]:
        """Send a call to the server as it came, and wait for the answer."""
        key = envelopes.key(id)
        self._late.discard(key)  # the client uses the id again
        awaited: asyncio.Future[tuple[Message, bytes]] = asyncio.get_running_loop().create_future()
        self._awaited[key] = awaited
        try:
            if self.link.ended:
                raise WireError(self.link.ended)
            async with asyncio.timeout(self.plan.timeout):
                await self.link.channel.write(frame)
                return await awaited
        except TimeoutError:
            self._late.add(key)
            with contextlib.suppress(WireError):
                await self.link.send(wire.notification(wire.CANCELLED, {"requestId": id, "reason": "timeout"}))
            raise WireError(f"the server did not answer tools/call within {self.plan.timeout:g} seconds") from None
        finally:
            self._awaited.pop(key, None)

    def _lose(self, session: Session, opened: OpenCall, error: BaseException) -> None:
        """Put a call on record that comes to no answer, with what the server was asked all the same."""
        if not isinstance(error, asyncio.CancelledError):
            lost = ToolError(LOST, str(error) or type(error).__name__)
        elif self._closing:
            lost = ToolError(UNANSWERED, "the session ended before an answer came")
        else:
            lost = ToolError(CANCELLED, "the client cancelled the call")
        result = ToolResult(None, lost)
        if opened.asked is not None:
            opened.inner.append((opened.asked, result))
        self._record(session, opened, result)

    def _record(self, session: Session, opened: OpenCall, result: ToolResult) -> None:
        session.close_call(opened, result)
        self.note(session, opened, True)

    async def _ask(self, call: ToolCall, more: Message) -> Message:
        params = {"name": call.tool, "arguments": dict(call.args), **more}
        return await self.link.request("tools/call", params, timeout=self.plan.timeout)

    def _finished(self, waiting: _Waiting, session: Session) -> None:
        """Put a call on record that has come to its result."""
        opened, result = waiting.opened, waiting.opened.result
        assert result is not None
        if result.error is not None and result.error.code in (SERVER, PROTOCOL):
            text = self.listing.clean(result.error.text, opened.call.tool)
            if text != result.error.text:
                result = ToolResult(None, ToolError(result.error.code, text))
            opened.result = result
        self._record(session, opened, result)

    async def _reply(self, id: Any, waiting: _Waiting, session: Session, *, modern: bool) -> None:
        """Answer the client's call."""
        opened, result = waiting.opened, waiting.opened.result
        assert result is not None
        asked = opened.inner[-1][1] if opened.inner else None
        if result is asked and result.error is None:  # as the server gave it
            await self._answer({**waiting.raws[-1], "id": id})
            return
        if result.error is not None and asked is not None and asked.error and asked.error.code == result.error.code:
            clean = partial(self.listing.clean, tool=opened.call.tool)
            said = forms.reworded(waiting.raws[-1], asked.error.text, result.error.text, clean)
            await self._answer({**said, "id": id})
            return
        inner = [raw["result"] for raw in waiting.raws if isinstance(raw.get("result"), dict)]
        structured = "outputSchema" in self.listing.shown().get(opened.call.tool, {})
        value = forms.answer(result, inner, structured=structured)
        if modern:
            value["resultType"] = "complete"
        await self._answer(wire.result(id, value))

    async def _list_changed(self) -> None:
        """Tell the client that other tools are shown now, in the manner of its era."""
        if self.shook_hands:
            await self._answer(wire.notification(wire.LIST_CHANGED))
        for id, _ in list(self._listens.values()):
            await self._answer(wire.notification(wire.LIST_CHANGED, {"_meta": {wire.SUBSCRIPTION_KEY: id}}))
