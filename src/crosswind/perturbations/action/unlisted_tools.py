"""Tools leave the list and come back while the agent works, and nobody says so."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Model, Step, ToolCall, ToolResult, Tools, failed
from crosswind.perturbations.action.distractor_tools import IdleTool, mixed
from crosswind.words import banks

GONE = {1: 1, 2: 1, 3: 2, 4: 2, 5: 3}  # tools on the way that leave
AWAY = {1: 1, 2: 2, 3: 2, 4: 3, 5: 4}  # calls for which one is away
MOST = 6  # calls: anyone who repeats a call that says it may be repeated gets through
COMING = {1: 0, 2: 1, 3: 2, 4: 3, 5: 4}  # tools that nobody needs and that come midway


class Absence(Model):
    """The calls during which a tool is not listed."""

    tool: str
    first: int
    after: int  # one past the last


@perturbation
class UnlistedTools(Perturbation):
    """Needed tools disappear from the list for a few calls and come back, and others appear, without notice."""

    kind: Literal["unlisted_tools"] = "unlisted_tools"
    axis, tier, rank, group = "action", "interaction", "fault", "listing"
    receipt_source = "tools"
    severities = (
        "Tools in the solution that vanish for a while: 1, 1, 2, 2, 3, for 1, 2, 2, 3, 4 calls; 0 to 4 irrelevant "
        "tools appear as well."
    )
    needs = "a call in the solution after the first one"
    way = "retry an unlisted tool, or list the tools again, until it is back"
    absences: tuple[Absence, ...]
    text: str  # what a call is answered meanwhile
    coming: tuple[IdleTool, ...]
    since: int  # the call at which these appear

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        gold, tools, split = scene.gold, scene.tools, scene.task.split
        calls = [(i, step.call.tool) for i, step in enumerate(gold) if i and step.call.tool in tools]
        options = list(dict.fromkeys(name for _, name in calls))
        if not options:
            return None
        out: list[Absence] = []
        asked = len(scene.task.withheld)  # questions may come before, and count as calls
        shift = 0  # calls that were made again so far
        for name in sorted(rng.sample(options, min(len(options), GONE[severity])), key=options.index):
            at = rng.choice([i for i, one in calls if one == name]) + shift
            away = min(AWAY[severity] + asked, MOST)
            out.append(Absence(tool=name, first=max(1, at - rng.randint(0, 1)), after=at + away))
            shift += AWAY[severity]
        taken, coming = scene.names, []
        for _ in range(COMING[severity]):
            spec = banks.distractor(scene.domain.name, split, rng, taken)
            taken.add(spec.name)
            params = {param: p.type for param, p in spec.params.items()}
            coming.append(IdleTool(name=spec.name, doc=spec.doc, params=params, at=round(rng.random(), 3)))
        return cls(
            absences=tuple(out),
            text=banks.phrase("unavailable", split, rng),
            coming=tuple(coming),
            since=out[0].first,
        )

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each call that finds its tool away, and each tool that comes and goes."""
        return super().difficulty(gold, place) + len(self.absences) + len(self.coming)

    def turns(self) -> tuple[int, ...]:
        return tuple(sorted({n for a in self.absences for n in (a.first, a.after)} | {self.since}))

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        away = self._away(nth)
        out = tuple(t.replace(listed=False) if t.name in away else t for t in tools)
        return mixed(out, [(idle.at, idle.spec()) for idle in self.coming]) if nth >= self.since else out

    def _away(self, nth: int) -> set[str]:
        return {a.tool for a in self.absences if a.first <= nth < a.after}

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool in self._away(memo.nth):
            memo.fire()
            return failed("unavailable", self.text, retryable=True)
        if any(idle.name == call.tool for idle in self.coming):
            return ToolResult({"status": "ok", "items": []})
        return (yield call)
