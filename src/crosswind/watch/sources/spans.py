"""Spans of OpenTelemetry as episodes: OTLP-JSON with the GenAI conventions, older shapes of them, and OpenInference.

    {"resourceSpans": [...]}          OTLP, one export request per line or per file
    {"name": ..., "attributes": ...}  one span per line, as OpenInference stores and span exporters write it

Spans of one conversation, session or trace are one episode. They may come in any order. Only a bounded number of
episodes is held open, and of each a bounded number of spans, so that memory stays flat whatever the length of the log.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from crosswind.base.terminal import short
from crosswind.mcp.schema import record
from crosswind.watch.observed import Data, ObservedEpisode, damage
from crosswind.watch.sources.conversation import Span, episode_of_spans

OPEN = 128  # episodes whose spans may still come
QUIET = 60.0  # seconds without a span after which an episode of a followed log is over
SPANS = 2_000  # of one episode; what comes after is counted and dropped
HIDDEN = "__REDACTED__"  # in the place of content that OpenInference was told to leave out
GROUPS = ("gen_ai.conversation.id", "session.id", "mcp.session.id", "traceloop.association.properties.session_id")


def is_span(data: Data) -> bool:
    """OTLP, or a span by itself."""
    if "resourceSpans" in data or "resource_spans" in data:
        return True
    return ("attributes" in data or "span_attributes" in data) and (
        "span_id" in data or "spanId" in data or "context" in data or "trace_id" in data or "traceId" in data
    )


def spans_of(data: Data, where: str) -> Iterator[Span]:
    """The spans of a document."""
    with damage(where, "span of OTLP-JSON or OpenInference"):
        if "resourceSpans" in data or "resource_spans" in data:
            for resource in data.get("resourceSpans") or data.get("resource_spans") or ():
                service = attributes(record(resource.get("resource")).get("attributes")).get("service.name", "")
                for scope in resource.get("scopeSpans") or resource.get("scope_spans") or ():
                    for span in scope.get("spans") or ():
                        yield _span(span, str(service))
        else:
            yield _span(data, "")


def _span(data: Data, service: str) -> Span:
    context = record(data.get("context"))
    found = attributes(data["attributes"] if "attributes" in data else data.get("span_attributes"))
    trace = data.get("traceId") or data.get("trace_id") or context.get("trace_id") or ""
    group = next((found[name] for name in GROUPS if found.get(name)), None) or trace
    status = data.get("status", data.get("status_code"))
    code = status.get("code", status.get("status_code")) if isinstance(status, dict) else status
    return Span(
        group=str(group),
        service=service or str(found.get("service.name", "")),
        name=str(data.get("name", "")),
        start=moment(data.get("startTimeUnixNano", data.get("start_time"))),
        end=moment(data.get("endTimeUnixNano", data.get("end_time"))),
        attributes=found,
        failed=code in (2, "2", "ERROR", "STATUS_CODE_ERROR"),
        message=str(status.get("message") or status.get("description") or "") if isinstance(status, dict) else "",
        events=[
            (str(event.get("name", "")), attributes(event.get("attributes")))
            for event in data.get("events") or ()
            if isinstance(event, dict)
        ],
    )


def attributes(found: Any) -> Data:
    """Attributes as a flat object, whether they come as a list of pairs, flat, or nested by their dots."""
    out: Data = {}
    if isinstance(found, list):
        out = {str(one["key"]): value_of(one.get("value")) for one in found if isinstance(one, dict) and "key" in one}
    else:
        _flatten("", record(found), out)
    return {key: value for key, value in out.items() if value != HIDDEN} if HIDDEN in out.values() else out


def _flatten(prefix: str, data: Data, out: Data) -> None:
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            _flatten(f"{name}.", value, out)
        elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            for nth, one in enumerate(value):
                _flatten(f"{name}.{nth}.", one, out)
            out[name] = value
        else:
            out[name] = value


def value_of(value: Any) -> Any:
    """A value of OTLP-JSON."""
    if not isinstance(value, dict):
        return value
    for kind, inner in value.items():
        if kind == "intValue":
            return int(inner)
        if kind == "arrayValue":
            return [value_of(one) for one in record(inner).get("values") or ()]
        if kind == "kvlistValue":
            return {one["key"]: value_of(one.get("value")) for one in record(inner).get("values") or ()}
        return inner
    return None


def moment(value: Any) -> float:
    """Seconds since the epoch from nanoseconds or an ISO time; 0 where there is none."""
    if value is None or value == "":
        return 0.0
    if isinstance(value, (int, float)) or (isinstance(value, str) and value.isdecimal()):
        number = float(value) if isinstance(value, str) or abs(value) < 1e30 else 0.0
        return 0.0 if number > 1e30 else number / 1e9 if number > 1e14 else number / 1e3 if number > 1e11 else number
    try:
        return datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


class SpanReader:
    """Gathers spans into episodes. The one that was quiet for longest goes first."""

    def __init__(self, held: int = OPEN, clock: Callable[[], float] = time.monotonic) -> None:
        self.held, self.clock = held, clock
        self.last: dict[str, float] = {}  # when the last span of a group came
        self.groups: OrderedDict[str, list[Span]] = OrderedDict()
        self.dropped = 0

    def add(self, spans: Iterator[Span]) -> Iterator[ObservedEpisode]:
        """Take spans; gives the episodes that make room for them."""
        for span in spans:
            group = self.groups.get(span.group)
            if group is None:
                group = self.groups[span.group] = []
                if len(self.groups) > self.held:
                    yield from self._out()
            elif next(reversed(self.groups)) != span.group:
                self.groups.move_to_end(span.group)
            self.last[span.group] = self.clock()
            if len(group) < SPANS:
                group.append(span)
            else:
                self.dropped += 1

    def _out(self) -> Iterator[ObservedEpisode]:
        name, spans = self.groups.popitem(last=False)
        del self.last[name]
        with damage(f"spans of {short(name, 80)!r}", "conversation"):
            episode = episode_of_spans(name, spans)
        if episode is not None:
            yield episode

    def idle(self) -> Iterator[ObservedEpisode]:
        """Nothing comes at the moment: what has been quiet for long is whole."""
        while self.groups and self.clock() - self.last[next(iter(self.groups))] >= QUIET:
            yield from self._out()

    def end(self) -> Iterator[ObservedEpisode]:
        """All that is held, oldest first."""
        while self.groups:
            yield from self._out()
