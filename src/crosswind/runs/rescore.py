"""Judge a stored run again, with the verifier of this version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.core.domain import JUDGE
from crosswind.episodes.play import judge
from crosswind.episodes.record import Record, certificate, trajectory_of
from crosswind.runs.runner import diagnosed
from crosswind.runs.store import Store, iter_records, load_manifest


@dataclass(slots=True)
class Rescored:
    """What came of judging a run again."""

    judge: str  # version of the verifier now
    episodes: int = 0
    judges: dict[str, int] = field(default_factory=dict)  # version -> episodes that it had judged
    changed: list[tuple[str, str, str]] = field(default_factory=list)  # key, outcome before, outcome now
    backup: str = ""  # where the file went, if another took its place


def rescore(folder: Path | str, *, write: bool = False, tell: Callable[[str], None] | None = None) -> Rescored:
    """Judge the stored trajectories of a run with the present verifier; with `write`, put the verdicts in place."""
    manifest, out = load_manifest(folder), Rescored(JUDGE)
    for record in iter_records(folder):
        _judged(record, out)
        if tell:
            tell(f"{out.episodes} episodes")
    if write and (out.changed or set(out.judges) - {JUDGE}):
        with Store(folder) as store, store.rewriting() as put:
            again = Rescored(JUDGE)
            for record in iter_records(folder):
                put(_judged(record, again))
            out = again
            out.backup = str(store.backup)
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
    out.changed.append((record.key, record.outcome, verdict.outcome))
    return diagnosed(record.model_copy(update={**fresh, "stage": None, "cause": None}), certificate(record))
