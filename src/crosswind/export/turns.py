"""An episode turn by turn, as both formats need it."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from crosswind.core.types import SAY
from crosswind.episodes.record import Record

Data = dict[str, Any]


def slug(key: str) -> str:
    """A name for a file: the key's harmless characters, and a digest that keeps different keys apart."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", key).strip("-.")[:80]
    return f"{plain}-{hashlib.sha256(key.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"


class Turn:
    """A step as the agent lived it: words or a call, what came back, and what the user then said."""

    def __init__(self, step: Data, nth: int, kinds: tuple[str, ...]) -> None:
        call, result = step["call"], step["result"]
        self.id = f"call_{nth}"
        self.tool: str | None = None if call["tool"] == SAY else str(call["tool"])
        args = call["args"]
        self.args: Data = args if isinstance(args, dict) else {"(not an object)": args}
        self.error: Data | None = result.get("error")
        content = result.get("content")
        if self.error:
            content = {"error": self.error["code"], "message": self.error["text"]}
        self.result = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        self.words = str(self.args.get("text", "")) if self.tool is None else ""
        heard = [str(words) for words in step["heard"]]
        self.heard = heard if self.tool or content is None else [self.result, *heard]
        self.world: list[Data] = list(step["inner"])
        self.fired = [kinds[i] for i in step["fired"] if i < len(kinds)]

    @property
    def beneath(self) -> Data:
        """What the agent did not see."""
        return {"world": self.world, "obstacles": self.fired}


def turns(record: Record) -> list[Turn]:
    return [Turn(step, nth, record.kinds) for nth, step in enumerate(record.steps, 1)]


def facts_of(record: Record) -> Data:
    """What is known of an episode beside its conversation."""
    fields = (
        *("key", "pair", "task_id", "domain", "family", "level", "condition", "severity", "trial", "layers", "outcome"),
        *("ended", "finish", "refuse", "receipts", "checks", "judge", "gold_steps", "budget", "stage", "cause", "why"),
    )
    return record.model_dump(mode="json", include=set(fields))
