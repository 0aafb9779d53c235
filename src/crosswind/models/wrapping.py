"""The options of `adaptive:`, in front of the spec of the agent behind it.

adaptive:openai:MODEL                        all parts
adaptive:off=retry,tell:openai:MODEL         without some
adaptive:only=names:embedded:static          with one
adaptive:memory=memory.json:embedded:static  with the interface that the agent knows, from `adapt learn`
adaptive:notes=notes.md:openai:MODEL         with a text that the agent is told at the start of every episode
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from crosswind.base.errors import CrosswindError

PREFIX = "adaptive:"
PARTS = {
    "names": "calls of unknown tools go to the one shown that fits them",
    "arguments": "arguments get the keys, types and spellings that the tool shown takes",
    "check": "calls that the tool shown would refuse come back to the agent, with what it takes, before they are made",
    "retry": "calls that failed for a passing reason are made again, as often as the error allows",
    "verify": "after a write whose outcome is not known the agent is told to look before it repeats it",
    "redirect": "calls answered with the name of a successor are made there",
    "results": "results in tables, XML or wrappers are handed on as plain JSON, in the shape that the agent knows",
    "keys": "keys of results get the names that the agent knows",
    "pages": "lists in pages are read to the end",
    "complete": "what a result lacks is looked up in new tools that take the same, or in results that hold it already",
    "replan": "an argument that only a new tool gives is fetched there; after an error about order the agent is told "
    "which tools come before",
    "stuck": "an agent that makes the same call again with the same result is told so, with the tools that may help",
    "ask": "an agent that cannot go on is told when to ask the user and when to refuse",
    "tell": "the agent is told when the list of tools changes, during an episode and since the last one",
    "notes": "what one episode taught about tools and results is kept for the next ones",
}


@dataclass(frozen=True, slots=True)
class Wrapping:
    """What a wrapper does."""

    parts: tuple[str, ...] = tuple(PARTS)
    memory: str = ""  # file with the interface that the agent knows
    notes: str = ""  # file with a text for the agent

    def around(self, spec: str) -> str:
        """The spec of an agent behind this wrapper; of one that has a wrapper, both do their parts."""
        mine = self
        if spec.startswith(PREFIX):
            theirs, spec = unwrapped(spec.removeprefix(PREFIX))
            parts = tuple(part for part in PARTS if part in (*self.parts, *theirs.parts))
            mine = replace(self, parts=parts, memory=self.memory or theirs.memory, notes=self.notes or theirs.notes)
        which = "" if set(mine.parts) == set(PARTS) else f"only={','.join(mine.parts)}:"
        files = "".join(f"{name}={path}:" for name, path in (("memory", mine.memory), ("notes", mine.notes)) if path)
        return f"{PREFIX}{which}{files}{spec}"


def unwrapped(rest: str) -> tuple[Wrapping, str]:
    """The options after `adaptive:`, and the spec of the agent behind."""
    found, spec = Wrapping(), rest
    while True:
        option, _, behind = spec.partition(":")
        word, equals, value = option.partition("=")
        if not equals or word not in ("only", "off", "memory", "notes"):
            break
        if not behind:
            raise CrosswindError(
                f"{PREFIX}{rest} names no agent; expected {PREFIX}{option}:SPEC, as {PREFIX}{option}:retrier"
            )
        if word == "memory":
            found = replace(found, memory=value)
        elif word == "notes":
            found = replace(found, notes=value)
        else:
            given = [name.strip() for name in value.split(",") if name.strip()]
            if unknown := [name for name in given if name not in PARTS]:
                raise CrosswindError(f"adaptive has no part {unknown[0]!r}; its parts are {', '.join(PARTS)}")
            found = replace(found, parts=tuple(name for name in PARTS if (name in given) == (word == "only")))
        spec = behind
    return found, spec
