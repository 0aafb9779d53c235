"""What the oracle thinks before it acts, for demonstrations to show: how it read the request, what a call is for, what
an error comes to. What it compares, counts and adds up comes from the walk itself (`domains/notes.py`).

Every thought can be told from what was shown by then. One that knew how the walk goes on would teach guessing: what
differs in it would differ before the reason for it is seen. `tests/train/test_reasons.py` compares walks that
part late.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from crosswind.core import entity_names
from crosswind.core.oracle import Walk
from crosswind.core.types import ASK, Model, Refusal, ToolCall, ToolError, Tools, ToolSpec
from crosswind.models.prompts import call_form
from crosswind.perturbations.domain.missing_tool import NO_TOOL

RULES = {"latest": "latest", "strict": "strict", "spare": "spare {value}", "surcharge": "plus {value}"}
NOBODY = "none"  # the tool for something that no tool does
MADE = 4  # characters that a value has at least if nobody could know it before it was told
CHAIN = 3  # calls of which each is made for the next
QUOTED = 160  # characters of an error that a thought quotes
TURNS = 6  # calls after which one that did not go through is no longer taken up


class Habits(Model):
    """How demonstrations are written; what stands first is how they were always written."""

    refusals: Literal["at_once", "looked"] = (
        "at_once"  # where a tool is missing: at the beginning, or where it is needed
    )
    errors: Literal["code", "quoted"] = "code"  # how a thought takes up an error
    names: Literal["bare", "quoted"] = "bare"  # of tools in thoughts; quoted, their tokens are those of calls


class Thinking:
    """The thoughts of one walk."""

    def __init__(self, gold: Walk, texts: Sequence[str], opening: str, habits: Habits = Habits()) -> None:  # noqa: B008
        self.habits = habits
        self.gold, self.steps, self.texts = gold, gold.steps, texts
        self.notes = gold.notes
        self.seen = [opening]  # what was shown before each step
        for text in texts:
            self.seen.append(f"{self.seen[-1]}\n{text}")
        self.looked_up: set[str] = set()
        self.writers = {spec.name for spec in gold.session.world.specs if spec.writes}
        self.readings = {0}  # steps before which the request is read
        self._menu: tuple[Tools, dict[str, ToolSpec]] = ((), {})

    def before(self, n: int, menu: Tools, slipped: ToolError | None = None) -> str:
        """What is thought before a step, or at the end of all, under a menu of tools; `slipped`: what a mistake was
        answered with that was made in its place."""
        parts = [self.reading(menu)] if n in self.readings else []
        parts += [self.notes[n]] if n in self.notes and not slipped else []
        last = n == len(self.steps)
        failed = slipped or (self.steps[n - 1].result.error if n else None)
        stop = "stop" if failed and isinstance(self.gold.end, Refusal) else ""
        why = stop if last else self._why(n, self.named(menu), slipped is not None)
        if failed and not why and not last:
            why = self.steps[n].call.tool
        return self._written([*parts, *([f"{self._quoted(failed)}: {why}" if failed else why] if why else [])], menu)

    def _quoted(self, failed: ToolError) -> str:
        """An error as a thought takes it up: its code, or the code and what it says."""
        text = failed.text if len(failed.text) <= QUOTED else f"{failed.text[:QUOTED].rsplit(' ', 1)[0]} ..."
        return f"{failed.code} ({text})" if self.habits.errors == "quoted" and text else failed.code

    def _written(self, parts: Sequence[str], menu: Tools) -> str:
        """Parts of a thought as one, with the names of tools as they are spelt in calls."""
        text = "; ".join(parts)
        if self.habits.names == "quoted" and text and menu:
            names = sorted(self.named(menu), key=len, reverse=True)
            text = re.sub(rf"(?<![\w\"-])({'|'.join(map(re.escape, names))})(?![\w\"-])", r'"\1"', text)
        return text

    def named(self, menu: Tools) -> dict[str, ToolSpec]:
        """The tools of a menu by their names."""
        if menu is not self._menu[0]:
            self._menu = (menu, {tool.name: tool for tool in menu})
        return self._menu[1]

    def slipping(self, n: int, tool: str) -> str:
        """What is thought before a mistake in the place of a step; how its tools are called is looked up again then."""
        self.looked_up -= {self.steps[n].call.tool, tool}
        return self._written([part for part in (self.notes.get(n, ""), tool) if part], ())

    # -- the request

    def reading(self, menu: Tools) -> str:
        """The request as it was read: its details in their order, the rules that stand, and the tools it will take.

        `garden, city ?, 2031-04-20; rules none; plan search find_places, slots list_slots, hold none`: a detail that
        was not given has a question mark, and a tool that nobody has is none.
        """
        task, family = self.gold.session.task, self.gold.session.domain.family(self.gold.session.task)
        stated, rules = task.brief.stated, task.brief.rules.items()
        values = [
            entity_names.shown(task, str(stated[key])) if key in stated else f"{detail.label} ?"
            for key, detail in family.details.items()
        ]
        stand = [RULES.get(rule, "{rule} by {value}").format(rule=rule, value=value) for rule, value in rules]
        read = [", ".join(values), f"rules {', '.join(stand) or 'none'}"]
        if plan := [f"{part} {self._planned(tool, menu)}" for part, tool in family.takes().items()]:
            read.append(f"plan {', '.join(plan)}")
        return "; ".join(part for part in read if part)

    def hopeless(self, menu: Tools) -> str:
        """What is thought if the walk ends for want of a tool, which is known at once: the request as it was read, and
        `hold none: stop`."""
        if not isinstance(self.gold.end, Refusal) or self.gold.end.reason != NO_TOOL:
            return ""
        family = self.gold.session.domain.family(self.gold.session.task)
        missing = [part for part, tool in family.takes().items() if self._planned(tool, menu) == NOBODY]
        return self._written([self.reading(menu), f"{missing[0]} {NOBODY}: stop"], menu) if missing else ""

    def _planned(self, tool: str, menu: Tools) -> str:
        """By what name the walk first tries a canonical tool. Who was sent on to it by another had that one in mind."""
        name = next((shown.name for shown in menu if tool in shown.ids), NOBODY)
        at = next((n for n, step in enumerate(self.steps) if step.call.tool == name), None)
        while at and self._sent_on(at):
            at -= 1
        return name if at is None else self.steps[at].call.tool

    def _sent_on(self, n: int) -> bool:
        """Is a call the one before in the hands of another tool?"""
        if n == 0:
            return False
        before, call = self.steps[n - 1], self.steps[n].call
        return before.result.error is not None and before.call.args == call.args and before.call != call

    # -- a call

    def _why(self, n: int, menu: Mapping[str, ToolSpec], slipped: bool) -> str:
        """What a call is for, and how its tool is called if that was not said before.

        `reserve(slot_id yes, code no) needs code: request_code(slot_id yes)`: which of its arguments are known is gone
        through one by one, and a call that is made for the sake of another says so. The call before, made again with
        what it was answered with, is `again, page 2`.
        """
        call = self.steps[n].call
        if call.tool not in menu:
            return ""
        if call.tool == ASK:
            return self._missing(call.args["question"]) + self._form(n, n, menu[ASK])
        if n and self.steps[n - 1].call.tool == call.tool and not slipped:
            before, told = self.steps[n - 1].call.args, self.texts[n - 1]
            more = {key: value for key, value in call.args.items() if before.get(key) != value}
            if before.keys() <= call.args.keys() and len(more) <= 1 and all(str(v) in told for v in more.values()):
                return ", ".join(["again", *(f"{key} {value}" for key, value in more.items())])
        chain: list[tuple[int, str]] = [(n, "")]  # the steps for the sake of which it is made, and the argument
        while not self._sent_on(n) and len(chain) < CHAIN and (target := self._needed(chain[-1][0], menu)):
            chain.append(target)
        said = ""
        for at, key in reversed(chain):
            name = self.steps[at].call.tool
            if len(chain) > 1 or name not in self.looked_up:
                said += self._form(at, n, menu[name]) + (f" needs {key}: " if key else "")
        return said

    def _missing(self, question: str) -> str:
        """Which detail a question is about."""
        details = self.gold.session.domain.family(self.gold.session.task).details.values()
        return next((f"{detail.label} ?: " for detail in details if detail.question == question), "")

    def meant(self, n: int, menu: Mapping[str, ToolSpec]) -> ToolCall:
        """The call that somebody has in mind at a step: the one that it is made for, as far as that is known."""
        target = self._needed(n, menu)
        if target is None:
            return self.steps[n].call
        at = target[0]
        call = self.steps[at].call
        return ToolCall(call.tool, {key: value for key, value in call.args.items() if self._known(value, at, n)})

    def _form(self, at: int, now: int, tool: ToolSpec) -> str:
        """How a tool is called, with what the call has already; its name only, if that was said before."""
        if tool.name in self.looked_up:
            return tool.name
        self.looked_up.add(tool.name)
        args = self.steps[at].call.args
        known = {name: name in args and self._known(args[name], at, now) for name in tool.params}
        return call_form(tool, known, quoted=self.habits.names == "quoted")

    def _known(self, value: Any, at: int, now: int) -> bool:
        """Is a value that a call will have known by now, or will it be told on the way there?"""
        if not isinstance(value, str) or len(value) < MADE or value in self.seen[now]:
            return True
        return value not in self.seen[at]

    def _needed(self, n: int, menu: Mapping[str, ToolSpec]) -> tuple[int, str] | None:
        """The later step that needs what a call issues, a code say, and the argument that it needs it for.

        Whether the answer is lost, comes in another form or only at the next try makes no difference: what a call is
        for was known before.
        """
        call, names = self.steps[n].call, {self.steps[n].call.tool}
        for at, step in enumerate(self.steps[n : n + TURNS], n):
            if at > n and self._sent_on(at) and self.steps[at - 1].call.tool in names:
                names.add(step.call.tool)
            if step.call.tool not in names or not call.args.items() <= step.call.args.items():
                continue
            made = [(inner.tool, result.content) for inner, result in step.inner if result.error is None]
            if made:  # the world's own tools issue something if they write it down and tell nothing else
                values = list(made[-1][1].values()) if isinstance(made[-1][1], dict) else []
                issues = made[-1][0] in self.writers and len(values) == 1
                return self._used({str(value) for value in values}, at, names, menu) if issues else None
            if step.result.error is None and not (n and self.steps[n - 1].result.error):  # a layer has answered
                told = {v for s in self.steps[at + 1 :] for v in s.call.args.values() if isinstance(v, str)}
                new = {v for v in told if len(v) >= MADE and v in self.texts[at] and v not in self.seen[n]}
                if found := self._used(new, at, names, menu):
                    return found
        return None

    def _used(self, values: set[str], n: int, names: set[str], menu: Mapping[str, ToolSpec]) -> tuple[int, str] | None:
        """The first step after one that has one of some values, by another tool than those, and as what."""
        for at in range(n + 1, len(self.steps)):
            call = self.steps[at].call
            if call.tool in menu and call.tool not in names:
                for key, given in call.args.items():
                    if given in values:
                        return at, key
        return None
