"""Everything that the author of a domain, perturbation or agent wants to know about it, a line each.

Every fault is reported with the part that causes it; an exception of the author's code with its file and line.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from crosswind.authoring import plugins
from crosswind.authoring.domain_checks import relative_path
from crosswind.base.errors import CrosswindError, UnknownName
from crosswind.core import laws
from crosswind.core.audit import audit_kind, do_not_fit, is_auditable
from crosswind.core.domain import Domain
from crosswind.core.draw import SEVERITY, Drawn, draw
from crosswind.core.perturbation import SEVERITIES
from crosswind.core.registry import agents, did_you_mean, domains, perturbations
from crosswind.core.types import Message, Trajectory
from crosswind.episodes.play import judge, play
from crosswind.episodes.reasons import bare_reason, why_not
from crosswind.episodes.survey import UNJUDGED, Progress, survey, survey_clean
from crosswind.models.spec import open_agent, spec_of_file
from crosswind.words import banks

Mark = Literal["yes", "no", "none"]
EPISODE = 60.0  # seconds that an agent may take over one episode
GRACE = 2.0  # more seconds for what it must end by itself
DRAWS = 6  # of a kind, in each domain and at each severity; at the middle one as many as there are families
UNFAIR = "the task itself is unfair, without any perturbation"
SETS = {"a clean episode": (), "a perturbed episode": ("semantic_rename", "transient_error")}


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One thing that was looked at, and what came of it; `none` is neither good nor bad."""

    mark: Mark
    name: str
    text: str


@dataclass(slots=True)
class Checkup:
    """What was found out about one domain, perturbation, agent or file."""

    sort: str
    name: str
    origin: str = ""
    lines: list[CheckLine] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(line.mark != "no" for line in self.lines)

    def add(self, mark: Mark, name: str, text: str) -> None:
        self.lines.append(CheckLine(mark, name, text))

    @contextmanager
    def guard(self, name: str) -> Iterator[None]:
        """Turn an exception raised inside into a line that names the code that raised it."""
        try:
            yield
        except CrosswindError as error:
            for line in str(error).splitlines():
                self.add("no", name, line)
        except Exception as error:
            theirs = plugins.blamed(error)
            ours = f"crosswind itself raised {type(error).__name__}: {error}; this is our mistake, please report it"
            self.add("no", name, f"{theirs}; fix this line of the plug-in" if theirs else ours)


def check(target: str, progress: Progress) -> list[Checkup]:
    """Check whatever a path, a registered name or the spec of an agent stands for."""
    if Path(target).suffix in (".py", ".yaml", ".yml") or Path(target).exists():
        out = Checkup("file", target)
        try:
            found = plugins.load(target).added
        except CrosswindError as error:
            spec = spec_of_file(target) or "python:MODULE:NAME"
            hint = f"; to check a function or class that plays, run: crosswind check {spec}"
            for line in str(error).splitlines():
                out.add("no", "loads", line + (hint if "registers nothing" in line else ""))
            return [out]
        return [CHECKS[sort](name, progress) for sort, name in found]
    sorts = [registry.sort for registry in plugins.REGISTRIES if target in registry]
    if not sorts and ":" not in target:
        known = [name for registry in plugins.REGISTRIES for name in registry.names()]
        near = did_you_mean(target, known)
        raise UnknownName(
            f"no file, domain, perturbation or agent {target!r}" + (f"; {near}" if "mean" in near else "")
        )
    return [CHECKS[sort](target, progress) for sort in sorts or ["agent"]]


# ---------------------------------------------------------------- domains


def check_domain(name: str, progress: Progress) -> Checkup:
    """The tasks of a domain by themselves, its tools, and every kind of perturbation over it."""
    domain = domains[name]
    out = Checkup("domain", name, domains.origin(name))
    rows: list[dict[str, Any]] = []
    with out.guard("families"):
        rows = survey_clean([name], progress=progress)
    tools = {row["where"].partition("/")[0].partition(".")[2]: row["reason"] for row in rows if "." in row["where"]}
    told = {reason: f"tool {tool}" for tool, reason in tools.items() if tool}  # reasons, and where each is told
    for row in rows:
        _clean_line(out, domain, row, told)
    if rows:
        _tools(out, domain, rows)
    unfair = {row["where"] for row in rows if not row["fair"]}
    fair = [row["where"].partition("/")[2] for row in rows if row["fair"]]
    if not is_auditable(domain):
        fair = list(domain.families)
        out.add("none", "families", "not judged by themselves: their tools or solutions are somebody else's")
    _bank(out, domain)
    kinds = perturbations.names()
    raised = {line.name for line in out.lines if line.mark == "no"} & {f"family {f}" for f in fair}
    if not fair or raised or any("/" not in row["where"] or row["law"] in UNJUDGED for row in rows):
        out.add("none", "kinds", "not tried: first make the domain fair by itself")
        return out
    fine: list[str] = []
    for kind in kinds:
        with out.guard(kind):
            (row,) = survey([name], [kind], 2, 0, SEVERITY, without=unfair, looks=3, progress=progress)
            if row["failed"] and all(do_not_fit(kind, domain, law) for law in row["laws"]):
                out.add("none", kind, f"does not apply: the domain and {kind} do not fit: {_counted(row['reasons'])}")
            elif row["failed"]:
                out.add("no", kind, f"no fair draw for {row['failed']} tasks: {_counted(row['reasons'])}")
            elif not row["applies"]:
                out.add("none", kind, f"does not apply: {why_not(row['why_not'])}")
            else:
                fine.append(kind)
    out.add("yes" if fine else "no", "kinds", f"{len(fine)} of {len(kinds)} are fair here: {', '.join(fine) or 'none'}")
    return out


def _clean_line(out: Checkup, domain: Domain, row: dict[str, Any], told: dict[str, str]) -> None:
    _, _, name = row["where"].partition("/")
    if row["fair"]:
        ends = "refused with a proof" if domain.families[name].refusal else "solved; no tie, leak or free choice"
        out.add("yes", f"family {name}", f"{row['tasks']} tasks by themselves: {ends}")
        with out.guard(f"family {name}"):
            _worlds(out, domain, name)
    elif name:
        first = told.setdefault(row["reason"].replace(row["where"], ""), name)
        said = f"{UNFAIR}: {row['law']}: {row['reason']}" if first == name else f"the same as for {first}"
        out.add("no", f"family {name}", said)


def _tools(out: Checkup, domain: Domain, rows: Sequence[dict[str, Any]]) -> None:
    """Whether tools keep to their footprints, which cannot be judged while something raises."""
    named = {row["reason"] for row in rows if "." in row["where"]}
    wrong = [r for r in rows if "/" not in r["where"] and ("." in r["where"] or r["reason"] not in named)]
    for row in wrong:
        tool = row["where"].partition(".")[2]
        out.add("no", f"tool {tool}" if tool else "domain", f"{row['law']}: {row['reason']}")
    if any(row["law"] in UNJUDGED for row in rows):
        out.add("none", "tools", "not judged: first fix the families above")
    elif not wrong:
        n = len(domain.world_class.specs)
        many = f"{n} tools read and write only what they declare"
        keep = many if n != 1 else "1 tool reads and writes only what it declares"
        out.add("yes", "tools", keep)


def _worlds(out: Checkup, domain: Domain, family: str) -> None:
    """Without other worlds that lead another way, the law that no layer may hold the answer has nothing to look at."""
    if not domain.families[family].refusal and not any(
        laws.twins(domain, domain.task(family, seed), 1) for seed in range(3)
    ):
        out.add("none", f"family {family}", "no other world leads it another way; let `vary` move what decides it")


def _bank(out: Checkup, domain: Domain) -> None:
    bank = banks.data(domain.name)
    parts = [part for part, held in bank.items() if held]
    if parts:
        out.add("yes", "word bank", f"has {', '.join(sorted(parts))}")
    else:
        out.add("none", "word bank", "none; docs/plugins.md says which kinds one opens")


# ---------------------------------------------------------------- perturbations


def check_kind(kind: str, progress: Progress) -> Checkup:
    """Where a kind applies, how often it is fair there, and the laws that judge it as a whole."""
    out = Checkup("perturbation", kind, perturbations.origin(kind))
    cls = perturbations[kind]
    for part, what in (("severities", "what 1 to 5 mean"), ("needs", "it needs ..."), ("way", "the agent must ...")):
        if not getattr(cls, part):
            out.add("none", part, f"is empty; it says {what} in messages and reports")
    applied, told = 0, dict[str, str]()
    for name in domains.names():
        with out.guard(f"in {name}"):
            unfair = [complaint for complaint in audit_kind(kind, domains[name]) if complaint.law != "applies"]
            for complaint in unfair:
                reason = bare_reason(complaint.reason)
                said = reason if reason.startswith(f"{complaint.law}: ") else f"{complaint.law}: {reason}"
                first = told.setdefault(said, name)
                out.add("no", f"in {name}", said if first == name else f"the same as in {first}")
            if any(complaint.law in UNJUDGED for complaint in unfair):
                out.add("none", "elsewhere", "not tried: first fix what raises")
                return out
            if not unfair:
                counts = {s: len(domains[name].families) if s == SEVERITY else DRAWS for s in SEVERITIES}
                rows = {s: survey([name], [kind], n, 0, s, looks=1, progress=progress)[0] for s, n in counts.items()}
                applied += _in_domain(out, name, rows)
    if not applied and out.passed:
        out.add("no", "applies", f"to no task of any domain; `sample` gave None each time: it needs {cls.needs or '?'}")
    return out


def _in_domain(out: Checkup, name: str, rows: dict[int, dict[str, Any]]) -> bool:
    """Add what came of a kind in a domain at each severity; tells whether it applied."""
    tried = sum(row["certified"] + row["refused"] for row in rows.values())
    severities = [s for s, row in rows.items() if row["applies"]]
    if not severities:
        why = Counter[str]()
        for row in rows.values():
            why.update(row["why_not"])
        out.add("none", f"in {name}", f"does not apply: {why_not(why)}")
        return False
    reasons = Counter[str]()
    for row in rows.values():
        reasons.update(row["reasons"])
    families = {family for row in rows.values() for family in row["families"]}
    certified, failed = (sum(row[key] for row in rows.values()) for key in ("certified", "failed"))
    every = len(families) == len(domains[name].families)
    where = f"severity {_range(severities)}; families: {'all' if every else ', '.join(sorted(families))}"
    said = f"{certified} of {tried} draws certified, {where}"
    out.add("no" if failed else "yes", f"in {name}", f"{said}; refused: {_counted(reasons)}" if reasons else said)
    return True


def _range(numbers: Sequence[int]) -> str:
    whole = list(range(numbers[0], numbers[-1] + 1)) == list(numbers)
    return f"{numbers[0]} to {numbers[-1]}" if whole and len(numbers) > 1 else ", ".join(map(str, numbers))


def _counted(reasons: dict[str, int] | Counter[str]) -> str:
    return "; ".join(f"{n} x {reason}" for reason, n in Counter(reasons).most_common())


# ---------------------------------------------------------------- agents


def check_agent(spec: str, progress: Progress) -> Checkup:
    """Whether an agent loads, takes the tools it is shown, answers, and gets through episodes without an exception."""
    out = Checkup("agent", spec, agents.origin(spec) if spec in agents else "")
    poi = domains["poi"]
    with out.guard("loads"):
        source = open_agent(spec)
        out.add("yes", "loads", f"played in poi, by the name {source.name}")
        for name, kinds in SETS.items():
            progress(spec, name)
            if not out.passed:
                out.add("none", name, "not played: first fix the agent")
                continue
            with out.guard(name):
                _episode(out, name, source, draw(poi, poi.task("best_price", 1), kinds, 1))
    return out


def _episode(out: Checkup, name: str, source: Any, drawn: Drawn) -> None:
    async def once() -> Trajectory:
        try:
            agent = source.make(drawn)
            return await asyncio.wait_for(
                play(drawn, _Typed(agent, source.name), source.name, ending=source.ending), EPISODE
            )
        finally:
            await source.aclose()

    episode = _in_time(once)
    if episode.ended == "exception":
        out.add("no", name, f"the agent's own code raised {_last(episode.why)}")
        return
    calls = sum(bool(step["inner"]) or not step["call"]["tool"].startswith("(") for step in episode.steps)
    ends = {
        "answer": "ends with an answer",
        "refusal": "ends with a refusal",
        "budget": f"does not end: stopped after {episode.budget} steps",
        "error": f"its provider failed: {episode.why}",
    }
    solved = "solved" if judge(episode, drawn.domain).outcome == "pass" else "not solved"
    said = f"{ends.get(episode.ended, episode.ended)}; {calls} call{'s' * (calls != 1)} made; the task is {solved}"
    if episode.ended == "error":
        out.add("no", name, ends["error"])
    elif not calls or not episode.final.strip():
        out.add("none", name, said)
    else:
        out.add("yes", name, said)


def _in_time(once: Callable[[], Coroutine[Any, Any, Trajectory]]) -> Trajectory:
    """The episode, unless the agent is too slow. A thread of its own is left behind by an agent that blocks the loop or
    swallows its cancellation."""
    done: Future[Trajectory] = Future()

    def work() -> None:
        try:
            done.set_result(asyncio.run(once()))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=copy_context().run, args=(work,), name="crosswind check", daemon=True).start()
    try:
        return done.result(EPISODE + GRACE)
    except TimeoutError:
        raise CrosswindError(
            f"the agent did not finish an episode within {EPISODE:g} s, and was stopped; a blocking call needs a time "
            "limit of its own"
        ) from None


class _Typed:
    """An agent whose replies are checked for their type, which the game takes for granted."""

    def __init__(self, agent: Any, name: str) -> None:
        if not callable(getattr(agent, "reply", None)):
            made = type(agent).__name__
            raise CrosswindError(f"the agent {name!r} is made as {made}, which has no method reply(chat, tools)")
        self.agent, self.name = agent, name

    async def reply(self, chat: Sequence[Message], tools: Any) -> Message:
        said = self.agent.reply(chat, tools)
        if not hasattr(said, "__await__"):
            raise CrosswindError(f"`reply` of {self.name!r} is a plain function; write async def reply(...)")
        message = await said
        if not isinstance(message, Message):
            got = "None" if message is None else type(message).__name__
            raise CrosswindError(f"`reply` of {self.name!r} returned {got}; return a Message(role='assistant', ...)")
        return message


def _last(traceback: str) -> str:
    """The exception of a traceback in one line, with the line that raised it."""
    places = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', traceback)
    ours = str(Path(__file__).parents[1])
    own = [place for place in places if "site-packages" not in place[0] and not place[0].startswith(ours)] or places
    text = " ".join(traceback.strip().splitlines()[-1].split())
    return f"{text} ({relative_path(own[-1][0])}:{own[-1][1]}, in `{own[-1][2]}`)" if own else text


CHECKS: dict[str, Callable[[str, Progress], Checkup]] = {
    domains.sort: check_domain,
    perturbations.sort: check_kind,
    agents.sort: check_agent,
}
