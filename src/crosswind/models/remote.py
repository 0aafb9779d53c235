"""What agents on a provider's chat API have in common: sending, asking again, falling back to text, counting.

A subclass writes a conversation in its provider's way (`body`), sends it (`send`) and reads what came (`read`). Nothing
that a provider sends is trusted to have the right shape. Which failure is whose:

- the agent's: arguments that are not JSON, unknown tools, an empty reply, a conversation too long for the model;
- the infrastructure's: no answer, an error status, an answer that is not a chat completion (`InfrastructureError`);
- the user's to fix, if nothing has worked yet: a key, the name of the model, the address (`CrosswindError`).
"""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import json
import os
import re
import sys
import warnings
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from crosswind.base.errors import CrosswindError, InfrastructureError
from crosswind.base.extras import extra
from crosswind.core.draw import Drawn
from crosswind.core.flow import rng_for
from crosswind.core.types import Ending, Message, Request, Tools
from crosswind.episodes.record import Usage
from crosswind.models.parsing import arguments, clean, parse, spoken_aloud
from crosswind.models.prompts import as_text
from crosswind.models.redact import Secrets, environment, passwords, strip_credentials
from crosswind.models.retry import RETRYABLE, Fault, persist, retry_after
from crosswind.models.source import AgentSettings, Price, used

OURS = "CROSSWIND_API_KEY"
NO_KEY = "none"  # what to set a variable to where a server wants no key
LARGEST = 64 * 2**20  # bytes of an answer
DENSEST_CODE = {"identity": 1, "gzip": 1032, "deflate": 1032}  # bytes that one byte of an answer may stand for
HTTP = frozenset({"httpx2", "httpcore2", "httpx", "httpcore"})
TOLD = 300  # characters of an error that are repeated
DENSEST = 12  # characters that a token of a JSON schema stands for at the very most
TOKENS = 1024  # of one reply, unless the settings say
WEARY = 3  # requests given up in a row, after which each is tried once only until one works
_ADDRESS = re.compile(r"(?P<model>.+?)@(?P<url>[A-Za-z][A-Za-z0-9+.-]*://.*)", re.S)
_HOST = re.compile(r".*@(localhost|[\w.-]+:\d+|[\w.-]+/).*", re.S)
_ABOUT_TOOLS = re.compile(r"\btool(s|_choice|[ -]choice|[ -]call|[ -]use)?\b|--jinja|function[ -_]call", re.I)
_ABOUT_CONTEXT = re.compile(r"context.{0,20}(length|window|size|limit)|maximum context|too long|exceed_context", re.I)
_ABOUT_QUOTA = re.compile(r"insufficient_quota|billing|credit balance", re.I)


class ProviderError(InfrastructureError):
    """A provider failed an episode; playing it again is worth a try unless `retryable` is False."""

    def __init__(self, text: str, *, retryable: bool) -> None:
        super().__init__(text)
        self.retryable = retryable


class ModelWarning(UserWarning):
    """Something about a provider that the user should know and that stops nothing."""


@dataclass(slots=True)
class Said:
    """What a provider answered, taken out of its wrapping; calls are (id, tool, arguments as they came)."""

    text: str
    calls: list[tuple[Any, Any, Any]] = field(default_factory=list)
    input_tokens: int | None = None  # None: the provider did not say
    output_tokens: int | None = None


class ModelAgent:
    """One episode's agent."""

    def __init__(self, source: RemoteModel, rng: Random) -> None:
        self.source, self.rng = source, rng
        self.usage = Usage()
        self.ids: set[str] = set()

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        return await self.source.answer(self, chat, tools)

    def retried(self, fault: Fault) -> None:
        self.usage = self.usage.plus(Usage(retries=1))
        if fault.wait is not None and fault.wait > self.source.limits.longest_wait:
            most = self.source.limits.longest_wait
            self.source.say(f"the server asks to wait {fault.wait:.0f} s (Retry-After); waiting {most:g} s at most")

    def fresh(self, id: object) -> str:
        """An id that no other request of the episode has, the provider's own if it will do."""
        wanted = clean(id)
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", wanted) or wanted in self.ids:
            wanted = f"call_{len(self.ids)}"
            while wanted in self.ids:
                wanted += "x"
        self.ids.add(wanted)
        return wanted


class RemoteModel:
    """A model behind an address."""

    provider: ClassVar[str]
    package: ClassVar[str]  # the SDK, which is also the name of the extra
    client: ClassVar[str]  # the SDK's asynchronous client
    home: ClassVar[str]  # the provider's own address
    variable: ClassVar[str]  # of the environment, which holds the key
    concurrency = 8
    ending: Ending = "finish"
    resumes = True

    def __init__(self, rest: str, settings: AgentSettings) -> None:
        self.model, whole = _split(rest, self.provider, self.home)
        self.url, self.query = _without_query(whole)  # the query goes with every request
        self.limits = settings
        self.max_tokens = settings.max_tokens or TOKENS
        self._key = _key(self.url, self.variable, f"{self.provider}:{self.model}", needed=not settings.offline)
        self.secrets = Secrets(self._key, *environment(), *passwords(whole))
        shown = strip_credentials(self.url)
        self.name = self.secrets.scrub(f"{self.provider}:{self.model}" + (f"@{shown}" if self.url != self.home else ""))
        self.price: Price | None = settings.price()
        self.native = settings.protocol in ("auto", "native")
        self.settings: dict[str, Any] = {
            "model": self.secrets.scrub(self.model),
            "base_url": shown,
            "max_tokens": self.max_tokens,
            "temperature": settings.temperature,
            "protocol": settings.protocol,
        }
        self.worked = self.worked_natively = False  # has a request ever been answered?
        self.given_up = 0  # requests in a row
        self._said: set[str] = set()
        self._client: Any = None
        self._send: Any = None

    def connect(self, sdk: Any) -> Any:
        """A client of the provider's SDK; retries are ours."""
        return getattr(sdk, self.client)(
            api_key=self._key,
            base_url=self.url,
            max_retries=0,
            timeout=self.limits.timeout,
            # no redirects, since a key goes to one address; no proxy on the way to this machine
            http_client=sdk.DefaultAsyncHttpxClient(
                follow_redirects=False,
                trust_env=not loopback(self.url),
                params=self.query or None,
                headers={"Accept-Encoding": "identity"},
                event_hooks={"response": [_bound]},
            ),
        )

    # -- a provider's own

    def body(self, chat: Sequence[Message], tools: Tools) -> dict[str, Any]:
        """The request with native tools."""
        raise NotImplementedError

    def text_body(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """The request without."""
        raise NotImplementedError

    def sender(self, client: Any) -> Any:
        """The method of the client that takes a request and gives a context manager of a response in bytes."""
        raise NotImplementedError

    def read(self, data: Any) -> Said | None:
        """What was said, or None if this is not an answer."""
        raise NotImplementedError

    # -- agents

    def make(self, drawn: Drawn) -> ModelAgent:
        self.ready()
        return ModelAgent(self, rng_for("jitter", self.limits.seed, drawn.base.id))

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    @property
    def keyless(self) -> bool:
        return self._key == NO_KEY

    async def models(self) -> list[str] | None:
        """The models that the server says it has; None where it does not say."""
        try:
            async with asyncio.timeout(self.limits.timeout):
                page = await self.ready().models.list()
            return [self.secrets.scrub(str(model.id)) for model in page.data]
        except (sdk(self.package, self.provider).APIError, Fault, TimeoutError, ValueError, AttributeError, TypeError):
            return None

    def ready(self) -> Any:
        """The client. Making it imports the SDK, which takes a while: this must not count as a provider's time."""
        if self._client is None:
            self._client = self.connect(sdk(self.package, self.provider))
            self._send = self.sender(self._client)
        return self._client

    async def answer(self, agent: ModelAgent, chat: Sequence[Message], tools: Tools) -> Message:
        self.ready()
        while True:
            native = self.native
            body = (
                self.body(chat, tools)
                if native
                else self.text_body(as_text(chat, tools, quoted=self.limits.protocol == "quoted"))
            )
            weary = 1 if self.given_up >= WEARY else None
            try:
                said = await persist(partial(self.request, body), self.limits, agent.rng, agent.retried, weary)
            except Fault as fault:
                if fault.sort == "tools" and native and self.limits.protocol == "auto":
                    self.native = False
                    self.say(f"the server does not take tools ({fault}); they are described and called as text instead")
                    continue
                if fault.sort == "context" and self.worked:
                    return Message(role="assistant")  # nothing more can be said in a conversation this long
                self.given_up += 1
                raise self.failure(fault) from None
            self.worked, self.given_up = True, 0
            agent.usage = agent.usage.plus(used(self.price, said.input_tokens, said.output_tokens))
            if native and self.limits.protocol == "auto" and not self.worked_natively and _unseen(said, body):
                self.native = False
                self.say(
                    f"the server takes tools and does not show them to the model: it counts {said.input_tokens} tokens "
                    "in the first request, too few to hold them, and the answer calls none. They are called as text "
                    "instead. If the count is wrong, give --protocol native"
                )
                continue
            self.worked_natively |= native
            return self._message(agent, said, native)

    def _message(self, agent: ModelAgent, said: Said, native: bool) -> Message:
        text, calls = clean(said.text), said.calls
        if not calls and (not native or "<tool_call>" in text):  # a server may hand on a call as it was written
            text, written = parse(text)
            calls = [(None, call.tool, call.args) for call in written]
        text = spoken_aloud(text)
        hide = self.secrets.within  # once more: calls and their arguments may have been JSON in a text
        requests = tuple(
            Request(id=agent.fresh(id), tool=hide(clean(tool))[:500], args=hide(arguments(args)))
            for id, tool, args in calls
        )
        return Message(role="assistant", content=hide(text), requests=requests)

    def say(self, text: str) -> None:
        """Tell the user something once."""
        sort = text[:20]
        if sort not in self._said:
            self._said.add(sort)
            warnings.warn(ModelWarning(f"{self.name}: {text}"), stacklevel=2)

    # -- requests

    async def request(self, body: dict[str, Any]) -> Said:
        """One attempt. Raises `Fault` for whatever goes wrong."""
        package = sdk(self.package, self.provider)
        try:
            text = await self._receive(body)
        except package.APIStatusError as error:
            raise self.status_fault(error) from None
        except Fault:
            raise
        except Exception as error:  # no connection, or one that broke: of the SDK, or of the HTTP client below it
            root = type(error).__module__.partition(".")[0]
            if not isinstance(error, (package.APIError, OSError)) and root not in HTTP:
                raise
            cause = error.__cause__ or error
            told = self._told(f"{type(cause).__name__}: {cause}")
            raise Fault(told, retryable=True, sort="unreachable") from None
        try:
            data = self.secrets.within(json.loads(text))
            said = self.read(data)
        except (ValueError, RecursionError):
            raise Fault(f"the answer is no JSON: {self._told(text)!r}", retryable=True, sort="nonsense") from None
        if said is None:
            told = self._told(json.dumps(data, ensure_ascii=False))
            raise Fault(f"the answer holds no message: {told!r}", retryable=True, sort="nonsense")
        return said

    async def _receive(self, body: dict[str, Any]) -> str:
        async with self._send(**body) as response:
            return b"".join([chunk async for chunk in response.iter_bytes()]).decode("utf-8", "replace")

    def status_fault(self, error: Any) -> Fault:
        """What an error status means."""
        status = int(error.status_code)
        text = _message_of(error.body) or str(error.message)
        told = f"HTTP {status}: {self._told(text)}"
        retryable = status in RETRYABLE or status >= 500
        if status < 600 and _ABOUT_QUOTA.search(text) and status in (402, 403, 429):
            return Fault(told, status=status, sort="quota")
        if status in (400, 413, 422, 500) and _ABOUT_CONTEXT.search(text):
            return Fault(told, status=status, sort="context")
        if status in (400, 404, 422, 500, 501) and not self.worked_natively and _ABOUT_TOOLS.search(text):
            return Fault(told, status=status, sort="tools")
        if status in (401, 403):
            return Fault(told, status=status, sort="key")
        if status == 404:
            return Fault(told, status=status, sort="model")
        headers = error.response.headers
        wait = retry_after(headers.get("retry-after"))
        if (exact := retry_after(headers.get("retry-after-ms"))) is not None:
            wait = exact / 1000
        return Fault(told, status=status, retryable=retryable, wait=wait)

    def _told(self, text: str) -> str:
        return self.secrets.excerpt(text, TOLD)

    def failure(self, fault: Fault) -> Exception:
        """The exception that a fault ends the episode with, or the run."""
        advice = self.advice(fault)
        text = f"{self.name}: {fault}" + (f"; {advice}" if advice else "")
        fixable = fault.status in (400, 401, 402, 403, 404, 413, 422) or fault.sort in ("quota", "context", "tools")
        if fixable and not self.worked:
            return CrosswindError(text)
        return ProviderError(text, retryable=fault.retryable and self.given_up < WEARY)

    def advice(self, fault: Fault) -> str:
        """What the user can do about a fault."""
        if fault.sort == "key":
            return f"check the key in {self.variable} or {OURS}"
        if fault.sort == "quota":
            return "the account has nothing left to spend"
        if fault.sort == "model":
            return f"is {self._told(self.model)!r} a model of this server, and should the address end in /v1?"
        if fault.sort == "context":
            return "the model's window does not hold the tools: start the server with a larger one"
        if fault.sort == "tools":
            return "the server takes no tools: leave out --protocol native, or switch them on (see crosswind doctor)"
        if fault.sort == "unreachable":
            return f"is a server running at {strip_credentials(self.url)}? `crosswind doctor {self.name}` checks"
        return ""


async def _bound(response: Any) -> None:
    """Let no answer be read beyond `LARGEST` bytes, whatever its status and its encoding."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    density, why = DENSEST_CODE.get(encoding), f"the answer is larger than {LARGEST >> 20} MiB"
    if density is None:
        density, why = LARGEST + 1, f"the answer is encoded as {encoding[:40]!r}, which was not asked for"
    response.stream = _bounded(sys.modules[type(response).__module__])(response.stream, LARGEST // density, why)


@cache
def _bounded(httpx: Any) -> Any:
    """The class of streams that end with a fault."""

    class BoundedStream(httpx.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, most: int, why: str) -> None:
            self.stream, self.most, self.why = stream, most, why

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self.stream:
                self.most -= len(part)
                if self.most < 0:
                    raise Fault(self.why, retryable=True, sort="nonsense")
                yield part

        async def aclose(self) -> None:
            await self.stream.aclose()

    return BoundedStream


def sdk(package: str, name: str) -> Any:
    """A package that an extra brings, or how to get it."""
    with extra(name, "this agent"):
        return importlib.import_module(package)


def loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _split(rest: str, provider: str, home: str) -> tuple[str, str]:
    """Model and address out of `model@url`."""
    found = _ADDRESS.fullmatch(rest)
    if not found:
        if _HOST.fullmatch(rest):
            raise CrosswindError(
                f"{provider}:{strip_credentials(rest)}: the address must begin with http:// or https://, "
                f"such as {provider}:MODEL@http://localhost:8000/v1"
            )
        return rest, home
    model, url = found["model"], found["url"].rstrip("/")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise CrosswindError(f"{strip_credentials(url)} is not a server address; expected http(s)://HOST[:PORT][/PATH]")
    try:
        link_local = ipaddress.ip_address(host).is_link_local
    except ValueError:
        link_local = False
    if link_local:
        raise CrosswindError(
            f"{strip_credentials(url)} is a link-local address, where no model is served but credentials may be"
        )
    return model, url


def _without_query(url: str) -> tuple[str, list[tuple[str, str]]]:
    """An address, and the query that it ended with."""
    parts = urlsplit(url)
    if parts.fragment:
        raise CrosswindError(f"{strip_credentials(url)}: the part after # in an address is never sent; leave it out")
    return urlunsplit(parts._replace(query="")).rstrip("/"), parse_qsl(parts.query, keep_blank_values=True)


def _key(url: str, variable: str, spec: str, *, needed: bool) -> str:
    key = os.environ.get(OURS, "").strip() or os.environ.get(variable, "").strip()
    if key and (not key.isascii() or not key.isprintable()):
        raise CrosswindError(f"the key in {OURS} or {variable} contains characters that keys cannot have; set it again")
    if not key and needed and not loopback(url):
        raise CrosswindError(
            f"{strip_credentials(spec)} needs a key: set {variable} or {OURS} "
            f"(or {OURS}={NO_KEY} if {strip_credentials(url)} takes no key)"
        )
    return key or NO_KEY


def _unseen(said: Said, body: dict[str, Any]) -> bool:
    """Can a prompt of so few tokens not have held the tools? Some servers drop what their chat template cannot show.

    A call of a tool that was sent proves that the model saw it, whatever the server counts.
    """
    tools = body.get("tools", ())
    names = {str(tool.get("function", tool).get("name")) for tool in tools}
    if any(name in names for _, name, _ in said.calls):
        return False
    return 0 < (said.input_tokens or 0) < len(json.dumps(tools)) / DENSEST


def _message_of(body: object) -> str:
    """The text of an error in whatever shape it came."""
    for key in ("error", "message", "detail"):
        if isinstance(body, dict) and key in body:
            body = body[key]
    return body if isinstance(body, str) else json.dumps(body, default=str) if body is not None else ""


def count(value: object) -> int | None:
    """A number of tokens; None if it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None
