"""Our own runs and the logs of the proxy. Read like anybody else's log: what the agent saw and did, and no more.

Layers, conditions, receipts, verdicts and calls on the world's side stand in the same lines and are not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crosswind.base.errors import BadFile
from crosswind.base.files import lines_in, open_regular, real_folder
from crosswind.core.types import ASK, FINISH, SAY
from crosswind.mcp.schema import record
from crosswind.watch.observed import Data, ObservedCall, ObservedEpisode, damage, listed

EPISODES, MANIFEST, SESSIONS = "episodes.jsonl", "run.json", "sessions"


def is_run(path: Path) -> bool:
    return (path / EPISODES).exists() or (path / MANIFEST).exists() or (path / SESSIONS).is_dir()


def is_record(data: Data) -> bool:
    return "steps" in data and "query" in data and "tools" in data and "final" in data


def episode_of(data: Data, where: str) -> ObservedEpisode:
    """A stored episode."""
    with damage(where, "episode"):
        return _episode(data)


def _episode(data: Data) -> ObservedEpisode:
    usage = record(data.get("usage"))
    out = ObservedEpisode(
        id=str(data.get("key", "")),
        source=str(data.get("domain", "")),
        agent=str(data.get("agent", "")),
        query=str(data["query"]) or None,
        policy=str(data.get("policy", "")),
        listing=listed(data["tools"]),
        final=str(data["final"]),
        seconds=usage.get("seconds") or None,
        turns=usage.get("requests") or None,
        failed=str(data.get("why", "")).partition("\n")[0] if data.get("ended") == "error" else "",
    )
    for step in data["steps"]:
        _add(out, step)
    if isinstance(data.get("finish"), dict):
        out.calls.append(ObservedCall(FINISH, args=data["finish"], result=None))
    return out


def _add(out: ObservedEpisode, step: Data) -> None:
    call, result = step["call"], step["result"]
    error = result.get("error")
    heard = [str(words) for words in step.get("heard", ())]
    if call["tool"] in (SAY, ASK):
        args = call.get("args")
        words = " ".join(str(value) for value in args.values()) if isinstance(args, dict) else str(args)
        out.said.append(words)
        if result.get("content") is not None:
            out.replies.append(str(result["content"]))
        if call["tool"] == ASK:
            out.calls.append(ObservedCall(ASK, args=args, result=result.get("content")))
        out.heard += heard
        return
    made = ObservedCall(str(call["tool"]), args=call.get("args"))
    if error:
        made.error, made.text = str(error.get("code", "error")), str(error.get("text", ""))
    else:
        made.result = result.get("content")
    out.calls.append(made)
    out.heard += heard


# ---------------------------------------------------------------- sessions of the proxy


class SessionReader:
    """The file of a proxy's session: a head, and lines for calls (`runs/proxy_sessions.py` writes it)."""

    def __init__(self) -> None:
        self.head: Data | None = None
        self.steps: dict[int, Data] = {}

    def takes(self, data: Data) -> bool:
        return "head" in data or "step" in data or "end" in data

    def add(self, data: Data, where: str) -> None:
        if "head" in data:
            self.head = record(data["head"])
        elif "step" in data:
            if self.head is None or not isinstance(data.get("nth"), int):
                raise BadFile(f"{where}: a call of a session without its head; expected a file of a proxy's sessions")
            self.steps[data["nth"]] = data["step"]

    def end(self) -> Iterator[ObservedEpisode]:
        if self.head is None:
            return
        data = {"query": "", "final": "", **self.head, "steps": [self.steps[n] for n in sorted(self.steps)]}
        data["key"] = str(self.head.get("task_id", "session"))
        yield episode_of(data, "a session of the proxy")
        self.head = None


def open_sessions(folder: Path) -> Iterator[ObservedEpisode]:
    """Sessions of a proxy that are under way or that it left when it was killed."""
    for path in sorted(real_folder(folder / SESSIONS).glob("*.jsonl")):
        reader = SessionReader()
        with open_regular(path) as file:
            for line in lines_in(file, path):
                try:
                    data: Any = json.loads(line)
                except (ValueError, RecursionError):
                    continue  # torn, in the middle of what did not happen any more
                if isinstance(data, dict) and reader.takes(data):
                    reader.add(data, str(path))
        yield from reader.end()
