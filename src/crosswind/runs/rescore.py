"""Judge a stored run again, with the verifier of this version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.core.domain import JUDGE
from crosswind.core.types import Verdict
from crosswind.episodes.play import judge
from crosswind.episodes.record import Record, certificate, trajectory_of
from crosswind.runs.rewriting import rewrite
from crosswind.runs.runner import diagnosed
from crosswind.runs.store import Store, iter_records, load_manifest


@dataclass(frozen=True, slots=True)
class ChangedVerdict:
    """An episode that is judged otherwise now."""

    key: str
    was: str
    now: str
    sort: str  # what sort of episode it is: to be solved or refused, and how it ended
    checks: str  # those that come out otherwise now
    why: str  # what the first of them says


@dataclass(slots=True)
class Rescored:
    """What came of judging a run again."""

    judge: str  # version of the verifier now
    episodes: int = 0
    judges: dict[str, int] = field(default_factory=dict)  # version -> episodes that it had judged
    changed: list[ChangedVerdict] = field(default_factory=list)
    backup: str = ""  # where the file went, if another took its place

    def sorts(self) -> dict[tuple[str, str, str, str], list[ChangedVerdict]]:
        """The changes by sort of episode, outcomes and checks, the most frequent first."""
        out: dict[tuple[str, str, str, str], list[ChangedVerdict]] = {}
        for one in self.changed:
            out.setdefault((one.sort, one.was, one.now, one.checks), []).append(one)
        return dict(sorted(out.items(), key=lambda item: -len(item[1])))


def rescore(folder: Path | str, *, write: bool = False, tell: Callable[[str], None] | None = None) -> Rescored:
    """Judge the stored trajectories of a run with the present verifier; with `write`, put the verdicts in place."""
    manifest, out = load_manifest(folder), Rescored(JUDGE)
    for record in iter_records(folder):
        _judged(record, out)
        if tell:
            tell(f"{out.episodes} episodes")
    if write and (out.changed or set(out.judges) - {JUDGE}):
        with Store(folder) as store:
            again = Rescored(JUDGE)
            again.backup = str(rewrite(store, lambda record: _judged(record, again)))
            out = again
            store.write(manifest, judge=JUDGE)
    return out


def _judged(record: Record, out: Rescored) -> Record:
    out.episodes += 1
    if record.outcome == "error":
        return record
    out.judges[record.judge] = out.judges.get(record.judge, 0) + 1
    verdict = judge(trajectory_of(record))
    fresh = {"outcome": verdict.outcome, "checks": verdict.checks, "judge": verdict.judge}
    if verdict.outcome == record.outcome:
        return record.model_copy(update=fresh)
    out.changed.append(_change(record, verdict))
    return diagnosed(
        record.model_copy(update={**fresh, "stage": None, "cause": None, "mistake": None}), certificate(record)
    )


def _change(record: Record, verdict: Verdict) -> ChangedVerdict:
    before = {check.name: check.passed for check in record.checks}
    moved = [check for check in verdict.checks if before.get(check.name) != check.passed]
    by = "words" if record.finish is None else "finish"
    moved = moved or [check for check in verdict.checks if not check.passed]
    return ChangedVerdict(
        key=record.key,
        was=record.outcome,
        now=verdict.outcome,
        sort=f"{'to refuse' if record.refuse else 'to solve'}, {record.ended} by {by}",
        checks=", ".join(dict.fromkeys(check.name for check in moved)),
        why=moved[0].why if moved else "",
    )
