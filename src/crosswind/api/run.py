"""A finished or unfinished run in Python: print it, put it into a data frame, report, gate and compare it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind.api.arguments import in_python, naming_arguments
from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.base.files import write_output
from crosswind.episodes.record import Record
from crosswind.gate.gate import MOST_ERRORS, Outcome, Rule, examine, parse_rule, rule
from crosswind.metrics import GROUPINGS, By, Drop, Summary, formats, pairs
from crosswind.metrics import drops as drops_of
from crosswind.metrics import summary as summary_of
from crosswind.metrics.scores import cell, sides
from crosswind.metrics.together import same_ending
from crosswind.report import compare as comparing
from crosswind.report.markup import join, tag
from crosswind.report.parts import table as html_table
from crosswind.report.table import CHANGE, HEADS, as_text, change_cells, legend, score_rows, wrapped
from crosswind.report.verdict import details, verdict
from crosswind.runs import comparison, store
from crosswind.runs.baselines import trivial_of
from crosswind.runs.runner import Progress
from crosswind.runs.store import Manifest

if TYPE_CHECKING:
    import pandas

MaxDrop = float | Mapping[str, float] | Iterable[str]


class Drops(dict[str, Drop]):
    """Paired differences by group, each with its interval: shifted minus clean success on the same solvable tasks."""

    def __init__(self, by: str, found: Mapping[str, Drop]) -> None:
        super().__init__(found)
        self.by = by

    def _rows(self) -> list[list[str]]:
        return [[name, *change_cells(drop), formats.chance(drop.p_holm)] for name, drop in self.items()]

    @property
    def _heads(self) -> tuple[str, ...]:
        return (self.by, *CHANGE, f"p, Holm-adjusted over {len(self)}")

    def __str__(self) -> str:
        return as_text(self._heads, self._rows())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self._heads, self._rows()).html


class Run:
    """The episodes of one agent over one suite. `evaluate` and `load_run` make it.

    >>> import crosswind as cw
    >>> run = cw.evaluate("retrier", "quick")
    >>> run
    <Run of retrier on quick@1: 20 episodes, clean 100 %, shifted 0 %>
    >>> run.drops(by="kind")["semantic_rename"].delta
    -1.0
    >>> [episode.cause for episode in run if not episode.passed][0]
    'memorised interface'
    """

    def __init__(self, stored: store.StoredRun) -> None:
        self.stored = stored

    @property
    def folder(self) -> Path:
        """The folder that holds the run, as `crosswind run --out` writes it."""
        return self.stored.folder

    @property
    def manifest(self) -> Manifest:
        """What was run, and how far it came."""
        return self.stored.manifest

    @property
    def records(self) -> list[Record]:
        """The finished episodes."""
        return self.stored.records

    @property
    def problems(self) -> list[str]:
        """What a reader should know, one sentence each; empty for a complete run."""
        why = self.manifest.why if self.manifest.state == "stopped" else ""
        return [*([f"it stopped: {why}"] if why else []), *self.stored.problems]

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    # -- in words

    def _tally(self) -> Progress:
        tally = Progress()
        for record in self.records:
            tally.add(record)
        return tally

    def _scores(self) -> Summary:
        return summary_of(self.records, measures=False, by=("tier",), trivial=trivial_of(self.stored))

    def _notes(self, tally: Progress, found: Summary) -> list[str]:
        """What belongs under the table."""
        out = [legend(found)] if found.drop else []
        out += filter(None, (verdict(found, self.manifest.agent), details(found)))
        played = f"{formats.many(len(self), 'episode')} of {self.manifest.agent} on {self.manifest.name}"
        out.append(f"{played}; {tally.spent.in_words}.")
        if tally.errors:
            lost = f"{tally.errors} ended in infrastructure errors and are not scored"
            out.append(f"{lost} (the last: {terminal.short(tally.trouble, 300)}).")
        out += [f"Note: {problem}." for problem in self.problems]
        if tally.exceptions:
            raised = "1 time" if tally.exceptions == 1 else f"{tally.exceptions} times"
            out.append(f"The agent raised an exception {raised}; each counts as a failure. The last:")
        return out

    def __str__(self) -> str:
        tally, found = self._tally(), self._scores()
        lines = [as_text(HEADS, score_rows(found)).rstrip(), *map(wrapped, self._notes(tally, found))]
        return terminal.safe("\n".join([*lines, *([tally.raised] if tally.raised else [])]))

    def __repr__(self) -> str:
        shares = [
            f", {side} {formats.percent(found.rate)}".replace(formats.PERCENT, " %")
            for side, of in sides(self.records).items()
            if (found := cell(of)).n
        ]
        played = formats.many(len(self), "episode")
        return f"<Run of {self.manifest.agent} on {self.manifest.name}: {played}{''.join(shares)}>"

    def _repr_html_(self) -> str:
        tally, found = self._tally(), self._scores()
        notes = (tag("p", note) for note in self._notes(tally, found))
        trace = tag("pre", tally.raised) if tally.raised else None
        return join(html_table(HEADS, score_rows(found)), notes, trace).html

    # -- as data

    def drops(self, by: By = "tier") -> Drops:
        """Compare each solvable shifted episode with the clean one of its task, by group.

        >>> import crosswind as cw
        >>> drops = cw.evaluate("memoriser", "quick").drops(by="tier")
        >>> drop = drops["perception"]
        >>> drop.pairs, drop.clean, drop.shifted, drop.delta, round(drop.low, 2), round(drop.high, 2)
        (4, 1.0, 0.0, -1.0, -1.0, -0.31)

        `by` is "all", "tier", "published", "axis", "cell", "kind", "condition", "domain", "family", "level",
        "severity" or "kind@severity". Intervals resample tasks, because episodes of one task are correlated.
        """
        if by not in GROUPINGS:
            raise CrosswindError(f"episodes are not grouped by {by!r}; groupings are {', '.join(GROUPINGS)}")
        return Drops(by, drops_of(self.records, by))

    def summary(self) -> Summary:
        """Return everything that a report says, as data: shares, drops by every grouping, causes, costs."""
        return summary_of(self.records, trivial=trivial_of(self.stored))

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with one row per episode.

        >>> import crosswind as cw
        >>> frame = cw.evaluate("retrier", "quick").to_frame()
        >>> frame.groupby("tier")["passed"].mean().to_dict()
        {'interaction': 0.0, 'internalization': 1.0, 'perception': 0.0, 'reasoning': 0.0}

        `passed` is missing where an episode has no verdict, and `exposed` where nothing was perturbed. `clean_passed`
        is there for the episodes that success is counted over: how the clean episode of the same solvable task ended.
        Their means of `clean_passed` and `passed` are the success, clean and shifted, that every table gives.
        """
        try:
            import pandas
        except ImportError:
            raise CrosswindError(
                "to_frame needs pandas, which is not installed; run: pip install pandas. "
                "`run.records` holds the same data without it"
            ) from None
        clean = {shifted.key: one.passed for one, shifted in pairs(self.records)}
        rows = [_row(record) | {"clean_passed": clean.get(record.key)} for record in self.records]
        frame = pandas.DataFrame(rows, columns=list(_COLUMNS))
        flags = dict.fromkeys(("passed", "clean_passed", "exposed"), "boolean")
        return frame.astype({**flags, "severity": "Int64", "cost": "float64"})

    # -- files and verdicts

    def report(
        self, path: str | os.PathLike[str] = "report.html", *, episodes: int = 48, baselines: int | None = None
    ) -> Path:
        """Write the report as one HTML page and return its path.

        `episodes` is the number of episodes to open on the page, `baselines` that of shifted episodes on which
        scripted agents are played for scale (default: 150; 0: none).
        """
        from crosswind.report import html
        from crosswind.report.content import content
        from crosswind.runs.analysis import analyse

        return _written(path, html.page(content(analyse(self.stored, baselines=baselines, opened=episodes))))

    @naming_arguments
    def gate(
        self,
        max_drop: MaxDrop = (),
        *,
        min_clean: float | None = None,
        min_refusals: float | None = None,
        max_false_refusals: float | None = None,
        min_stability: float | None = None,
        max_recovery: int | None = None,
        max_errors: float = MOST_ERRORS,
        baseline: Run | str | os.PathLike[str] | None = None,
        partial: bool = False,
    ) -> Outcome:
        """Judge the run by rules; the verdict is true if all of them hold.

        >>> import crosswind as cw
        >>> verdict = cw.evaluate("oracle", "quick").gate(max_drop={"perception": 0.9}, min_clean=0.3)
        >>> verdict.passed, verdict.verdict
        (True, 'pass')

        `max_drop` allows a drop for each group of a grouping ({"tier": 0.10}), for one group ({"perception": 0.2}) or
        over all pairs (0.10). Without a `baseline` a drop is clean minus shifted success; with one it is the
        baseline's success minus this run's on the same episodes. Tasks to refuse count in no drop: `min_refusals` and
        `max_false_refusals` judge refusals. `min_clean` is 0.5 unless given, and a run that cannot be told from that of
        a trivial agent does not pass. A verdict can also be "inconclusive", where more
        pairs are needed, or "infrastructure", where too many episodes (more than `max_errors`) ended as errors.

        A baseline that shares less than half of the episodes is refused, unless the comparison may be `partial`.

        Of streams, `min_stability` judges success on tasks that no release touches, and `max_recovery` asks that the
        agent recover within this many episodes of at least four in five changes.
        """
        before = None if baseline is None else _run(baseline)
        if before is not None:
            same_ending(before.stored, self.stored)
        found = examine(
            self.records,
            _rules(max_drop),
            baseline=None if before is None else before.records,
            partial=partial,
            min_clean=min_clean,
            min_refusals=min_refusals,
            max_false_refusals=max_false_refusals,
            min_stability=min_stability,
            max_recovery=max_recovery,
            max_errors=max_errors,
            trivial=trivial_of(self.stored),
            unfinished=[f"{r.folder}: {r.stored.lacks}" for r in (self, before) if r is not None and r.stored.lacks],
        )
        return found.model_copy(update={"notes": tuple(map(in_python, found.notes)), "says": in_python(found.says)})

    def compare(self, *others: Run | str | os.PathLike[str]) -> RunComparison:
        """Compare other runs with this one; see `compare`."""
        return compare(self, *others)


_COLUMNS = (
    *("key", "task", "domain", "family", "level", "seed", "trial", "condition", "kind", "tier", "axis", "severity"),
    *(
        "clean",
        "outcome",
        "passed",
        "clean_passed",
        "refuse",
        "exposed",
        "ended",
        "stage",
        "cause",
        "steps",
        "gold_steps",
        "budget",
    ),
    *("input_tokens", "output_tokens", "tokens", "requests", "seconds", "cost", "query", "final", "why", "agent"),
)


def _row(record: Record) -> dict[str, Any]:
    usage = record.usage
    held = {
        name: getattr(source, name, None) for name in _COLUMNS for source in (record, usage) if hasattr(source, name)
    }
    return held | {
        "task": record.task_id,
        "kind": "+".join(record.kinds) or None,
        "passed": record.passed if record.judged else None,
        "exposed": None if record.clean else record.exposed,
        "steps": len(record.steps),
        "tokens": usage.tokens,
    }


class RunComparison:
    """Runs compared over the episodes that they share. `compare` makes it."""

    def __init__(self, found: comparison.Comparison) -> None:
        self.found = found

    @property
    def verdict(self) -> str:
        """Which run is better and by how much, in one sentence."""
        return comparing.verdict(self.found)

    def _rows(self) -> list[list[str]]:
        rows = []
        for one in self.found.versus:
            groups = {"clean": one.clean, "shifted": one.shifted, **one.groups["tier"]}
            groups |= {"right refusals": one.right, "false refusals": one.false}
            rows += [[one.name, group, *change_cells(drop)] for group, drop in groups.items() if drop]
        return rows

    @property
    def _heads(self) -> tuple[str, ...]:
        return ("run", "episodes", "pairs", "tasks", f"{self.found.first} %", "this run %", CHANGE[-1])

    def __str__(self) -> str:
        more = filter(None, (self.verdict, comparing.details(self.found)))
        return "\n".join([terminal.safe(as_text(self._heads, self._rows()).rstrip()), *map(wrapped, more)])

    def __repr__(self) -> str:
        return f"<RunComparison of {', '.join(self.found.runs)}>"

    def _repr_html_(self) -> str:
        told = (tag("p", text) for text in (self.verdict, *comparing.details(self.found).splitlines()))
        return join(html_table(self._heads, self._rows()), told).html

    def report(self, path: str | os.PathLike[str] = "compare.html") -> Path:
        """Write the comparison as one HTML page and return its path."""
        return _written(path, comparing.page(self.found))


@naming_arguments
def compare(*runs: Run | str | os.PathLike[str], partial: bool = False) -> RunComparison:
    """Compare runs with the first one, over the episodes that they share.

    >>> import crosswind as cw
    >>> found = cw.compare(cw.evaluate("memoriser", "quick"), cw.evaluate("oracle", "quick"))
    >>> found.verdict.partition(" oracle")[0]
    'On the solvable tasks that both played in the open world,'

    Each is a `Run` or the folder of one. Runs that share less than half of their episodes are refused, unless `partial`
    allows it. `print` shows the table, `.report(path)` writes the page.
    """
    if len(runs) < 2:
        raise CrosswindError(f"{len(runs)} run given; compare takes two or more runs, or their folders")
    return RunComparison(comparison.compare([_run(one).stored for one in runs], partial=partial))


def gate(run: Run | str | os.PathLike[str], max_drop: MaxDrop = (), **demands: Any) -> Outcome:
    """Judge a run, or the folder of one, by rules; see `Run.gate`.

    >>> import crosswind as cw
    >>> bool(cw.gate(cw.evaluate("oracle", "quick"), 0.9))
    True
    """
    return _run(run).gate(max_drop, **demands)


@naming_arguments
def load_run(folder: str | os.PathLike[str]) -> Run:
    """Read a run from its folder, the `out` of `evaluate` or of `crosswind run`.

    >>> import crosswind as cw
    >>> run = cw.evaluate("oracle", "quick", limit=4)
    >>> len(cw.load_run(run.folder))
    4
    """
    return Run(store.load_run(os.fspath(folder)))


def _run(given: Run | str | os.PathLike[str]) -> Run:
    return given if isinstance(given, Run) else load_run(given)


def _rules(max_drop: MaxDrop) -> list[Rule]:
    if isinstance(max_drop, (int, float)):
        return [rule("all", max_drop)]
    if isinstance(max_drop, str):
        return [parse_rule(max_drop)]
    if isinstance(max_drop, Mapping):
        return [rule(name, share) for name, share in max_drop.items()]
    return [parse_rule(text) for text in max_drop]


def _written(path: str | os.PathLike[str], page: str) -> Path:
    """Write a page, whole or not at all."""
    file = Path(os.fspath(path))
    try:
        write_output(file, page.encode())
    except OSError as error:
        raise CrosswindError(f"{file}: cannot be written ({error.strerror}); choose another path") from None
    return file
