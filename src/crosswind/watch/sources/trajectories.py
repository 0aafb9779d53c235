"""Trajectories of ATIF (Harbor) and logs of Inspect."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crosswind.base.errors import BadFile
from crosswind.base.files import open_regular
from crosswind.mcp.schema import record
from crosswind.watch.observed import (
    ABSENT,
    Data,
    ObservedCall,
    ObservedEpisode,
    damage,
    failure_in,
    listed,
    loaded,
    parsed,
)

LARGEST = 512 * 2**20  # bytes of a sample, unpacked


def is_atif(data: Any) -> bool:
    return isinstance(data, dict) and (
        str(data.get("schema_version", "")).startswith("ATIF") or ("steps" in data and "session_id" in data)
    )


def is_inspect(data: Any) -> bool:
    return isinstance(data, dict) and ("samples" in data and "eval" in data)


def text_of(content: Any) -> str:
    """The text of a message whose content is text or a list of parts."""
    if isinstance(content, list):
        parts = (one if isinstance(one, str) else record(one).get("text", "") for one in content)
        return "\n".join(str(part) for part in parts if part)
    return "" if content is None else str(content)


def answered(call: ObservedCall, content: Any, error: Any = None) -> None:
    """Give a call its result."""
    found = failure_in(content)
    if isinstance(error, Mapping):
        call.error, call.text = str(error.get("type") or "error"), str(error.get("message") or "")
        if found is not None:
            call.error, call.text = found
    elif error:
        call.error = str(error)
    elif found is not None:
        call.error, call.text = found
    else:
        call.result = loaded(content) if isinstance(content, str) and content[:1] in "{[" else content


# ---------------------------------------------------------------- ATIF


def atif_episode(data: Data, where: str) -> ObservedEpisode:
    """A trajectory of Harbor's format."""
    with damage(where, "trajectory of ATIF"):
        return _atif(data, where)


def _atif(data: Data, where: str) -> ObservedEpisode:
    agent, steps = record(data.get("agent")), data.get("steps")
    if not isinstance(steps, list):
        raise BadFile(f"{where}: an ATIF trajectory without a list of steps")
    out = ObservedEpisode(
        id=str(data.get("trajectory_id") or data.get("session_id") or where),
        source=str(agent.get("name", "")),
        agent=str(agent.get("model_name") or agent.get("name") or ""),
        listing=listed(agent.get("tool_definitions")),
    )
    for step in steps:
        if not isinstance(step, dict):
            raise BadFile(f"{where}: an ATIF step is not an object")
        _atif_step(out, step)
    if out.said:
        out.final = out.said.pop()
    return out


def _atif_step(out: ObservedEpisode, step: Data) -> None:
    words, source = text_of(step.get("message")), step.get("source")
    if source == "system":
        out.policy = f"{out.policy}\n{words}" if out.policy else words
    elif source == "user":
        user_says(out, words)
    else:
        calls = {}
        for one in step.get("tool_calls") or ():
            call = ObservedCall(str(one.get("function_name", "")), args=one.get("arguments"))
            calls[one.get("tool_call_id")] = call
            out.calls.append(call)
        results = record(step.get("observation")).get("results") or ()
        waiting = iter(calls.values())
        for result in results:
            made = calls.get(result.get("source_call_id")) or next(waiting, None)
            if made is not None:
                answered(made, text_of(result.get("content")), result.get("error"))
        if words and not calls:
            out.said.append(words)
        out.turns = (out.turns or 0) + 1


def user_says(out: ObservedEpisode, words: str) -> None:
    """The request, an answer to what the agent wrote, or something unasked."""
    if out.query is None:
        out.query = words
    elif len(out.said) > len(out.replies):
        out.replies.append(words)
    else:
        out.heard.append(words)


# ---------------------------------------------------------------- Inspect


def inspect_episodes(data: Data, where: str) -> Iterator[ObservedEpisode]:
    """The samples of an Inspect log in JSON."""
    spec = record(data.get("eval"))
    if not isinstance(data["samples"], list):
        raise BadFile(f"{where}: an Inspect log without its samples; write it with the samples")
    for nth, sample in enumerate(data["samples"], 1):
        yield _sample(record(sample), spec, f"{where}, sample {nth}")


def inspect_archive(path: Path) -> Iterator[ObservedEpisode]:
    """The samples of an Inspect archive, one file after the other."""
    try:
        with open_regular(path, links=True) as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if large := next((one for one in archive.infolist() if one.file_size > LARGEST), None):
                raise BadFile(f"{path}: {large.filename} is over {LARGEST >> 20} MiB; expected smaller samples")
            head = next((n for n in ("header.json", "_journal/start.json") if n in names), None)
            spec = record(parsed(archive.read(head), f"{path}, {head}").get("eval")) if head else {}
            for name in names:
                if name.startswith("samples/") and name.endswith(".json"):
                    yield _sample(record(parsed(archive.read(name), f"{path}, {name}")), spec, f"{path}, {name}")
    except (OSError, ValueError, zipfile.BadZipFile, KeyError, RecursionError) as error:
        raise BadFile(f"{path}: cannot be read as a log of Inspect ({error}); expected an .eval archive") from None


def _sample(data: Data, spec: Data, where: str) -> ObservedEpisode:
    with damage(where, "sample of Inspect"):
        return _observed(data, spec)


def _observed(data: Data, spec: Data) -> ObservedEpisode:
    out = ObservedEpisode(
        id=f"{data.get('id')}/{data.get('epoch', 1)}",
        source=str(spec.get("task", "")),
        agent=str(spec.get("model", "")),
        seconds=data.get("total_time"),
        failed=str(record(data.get("error")).get("message", "")).partition("\n")[0],
    )
    _inspect_tools(out, data.get("events"))
    calls: dict[str, ObservedCall] = {}
    for message in data.get("messages") or ():
        _inspect_message(out, record(message), calls)
    if out.query is None and isinstance(data.get("input"), str):
        out.query = data["input"]
    if out.said:
        out.final = out.said.pop()
    return out


def _inspect_tools(out: ObservedEpisode, events: Any) -> None:
    """The tools of each turn of the model."""
    for event in events if isinstance(events, list) else ():
        if record(event).get("event") == "model" and event.get("tools"):
            shown = listed(event["tools"])
            if out.listing is None:
                out.listing = shown
            elif shown is not None and shown != (out.later[-1] if out.later else out.listing):
                out.later.append(shown)


def _inspect_message(out: ObservedEpisode, message: Data, calls: dict[str, ObservedCall]) -> None:
    role, words = message.get("role"), text_of(message.get("content"))
    if role == "system":
        out.policy = f"{out.policy}\n{words}" if out.policy else words
    elif role == "user":
        user_says(out, words)
    elif role == "assistant":
        out.turns = (out.turns or 0) + 1
        for one in message.get("tool_calls") or ():
            call = ObservedCall(str(one.get("function", "")), args=loaded(one.get("arguments")))
            calls[str(one.get("id"))] = call
            out.calls.append(call)
        if words and not message.get("tool_calls"):
            out.said.append(words)
    elif role == "tool":
        found = calls.get(str(message.get("tool_call_id")))
        if found is not None and found.result is ABSENT:
            answered(found, words, message.get("error"))
