"""Audits: the laws that judge a whole domain or a whole kind, once for each version of its code.

`audit_domain` looks at a domain without any perturbation, `audit_kind` at a kind over a domain. Both return complaints;
an empty list means fair. `draw` runs them before the first draw that counts (`require_fair`) and remembers the verdict
(`verdicts.py`); docs/laws.md says which law runs when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from crosswind.base.errors import CannotDraw, CannotPerturb, Unfair
from crosswind.core import (
    aggregates,
    candour,
    claims,
    conduct,
    evidence,
    footprints,
    laws,
    leftovers,
    marks,
    processes,
    promises,
    refusal_proofs,
    secrets,
    task_laws,
    verdicts,
)
from crosswind.core.certify import certify, certify_task
from crosswind.core.domain import Domain
from crosswind.core.drawing import Drawn, draw_unaudited
from crosswind.core.flow import rng_for
from crosswind.core.oracle import Walk, Walks
from crosswind.core.perturbation import SEVERITIES
from crosswind.core.registry import domains, perturbations
from crosswind.core.types import SPLITS, Split, Task

TASKS = 3  # tasks of each family that a domain is judged by
RULED = 4  # of each family for the rules of the policy
GUESSES = 14  # and tasks that agents try which call nothing
DRAWS = 4  # draws that a kind is judged by
RIVALS = 3  # other draws that each of them is compared with
SHUFFLES = (0, 1, 2)
TELLING = {"code", "footprint", "grounded", "leak", "mentions", "secrets", "value"}  # a kind that breaks one is unfair
OWN = {"code", "footprint", "seeded", "task"}  # laws whose breach lies in the domain, whatever kind brings it to light


@dataclass(frozen=True, slots=True)
class Complaint:
    """A law that a domain or a kind breaks."""

    law: str
    where: str  # DOMAIN, DOMAIN/FAMILY, DOMAIN.TOOL or KIND
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.law}: {self.reason}"


# ---------------------------------------------------------------- domains


def is_auditable(domain: Domain) -> bool:
    """Is it a world of ours or of a plug-in? Golds of other people and tools of servers are judged as they come."""
    if domain.hosted or not domain.grounds:
        return False
    world = getattr(domain, "world_class", None)
    return world is not None and not (world.foreign or world.made_up)


def audit_domain(
    domain: Domain, families: Sequence[str] | None = None, *, count: int = TASKS, split: Split = "test"
) -> list[Complaint]:
    """What is unfair about a domain without any perturbation; `families` limits which are looked at."""
    return list(complaints(domain, families, count=count, split=split))


def complaints(
    domain: Domain,
    families: Sequence[str] | None = None,
    *,
    count: int = TASKS,
    split: Split = "test",
    guesses: int = GUESSES,
) -> Iterator[Complaint]:
    """The same one by one, for callers who need to know only whether there is any."""
    yield from _footprints(domain, split)
    for family in families or domain.families:
        yield from audit_family(domain, family, count=count, split=split, guesses=guesses)


def _footprints(domain: Domain, split: Split = "test") -> list[Complaint]:
    """Fences: every tool of a domain does what its footprint says."""
    out = []
    try:
        if why := processes.differs(domain.name, "domain"):
            return [Complaint("seeded", domain.name, why)]
        tasks = list(_tasks(domain, list(domain.families), 1, split))
        for tool, reason in footprints.exercise(domain, tasks):
            out.append(Complaint("footprint", f"{domain.name}.{tool}" if tool else domain.name, reason))
        if not out:
            evidence.lasting(domain, tasks)
            evidence.agreed(domain, tasks)
            promises.kept(domain, tasks)
            promises.as_rows_stand(domain, tasks)
            claims.hold(domain, tasks)
            claims.followed(domain, _tasks(domain, list(domain.families), RULED, split))
    except Unfair as unfair:
        out.append(Complaint(unfair.law, domain.name, unfair.reason))
    return out


def audit_family(
    domain: Domain, family: str, *, count: int = TASKS, split: Split = "test", guesses: int = GUESSES
) -> list[Complaint]:
    """What is unfair about the tasks of a family: clean certificates, ties, leaks, and agents that call nothing."""
    where = f"{domain.name}/{family}"
    try:
        walked: list[tuple[Task, Walk]] = []
        for n in range(count):
            task = domain.task(family, n, split=split)
            if domain.task(family, n, split=split) != task:
                raise Unfair("seeded", f"{task.id} drawn twice gives two tasks")
            walks = Walks(domain, task)
            certify_task(walks)
            walked.append((task, walks.clean))
            laws.repeatable(walks.clean, Walks(domain, task).clean, "a tool or `solve` remembers or draws by itself")
            task_laws.untied(domain, task, walks.clean, SHUFFLES)
            task_laws.decided(domain, task, walks.clean)
            for barred in _barred(domain, task):
                claims.no_way_out(barred)
                refusal_proofs.unrefuted(domain, barred)
        tasks = [*(task for task, _ in walked), *(domain.task(family, n, split=split) for n in range(count, guesses))]
        for task in tasks:
            task_laws.unlabelled(domain, task)
        walked += [(task, Walks(domain, task).clean) for task in tasks[count:]]
        evidence.chosen_for_a_reason(domain, walked)
        evidence.worked_out(domain, walked)
        evidence.not_in_the_request(domain, walked)
        aggregates.over_what_is_named(domain, walked)
        promises.needed(domain, walked)
        promises.in_their_roles(domain, walked)
        promises.as_described(walked)
        claims.told_of(domain, walked)
        claims.in_their_units(domain, walked)
        claims.stays_in_sight(domain, walked)
        claims.told_apart(domain, walked)
        guessed = task_laws.unguessable(domain, tasks) or task_laws.varied(domain, family, tasks, split)
        if guessed:
            return [Complaint("leak", where, guessed)]
    except Unfair as unfair:
        return [Complaint(unfair.law, where, unfair.reason)]
    except CannotDraw as cannot:
        return [Complaint("task", where, str(cannot))]
    return []


def _barred(domain: Domain, task: Task) -> Iterator[Task]:
    """The task if it is to be refused, or else as each of its obstacles makes it."""
    if task.refuse:
        yield task
        return
    for obstacle in domain.family(task).obstacles(task, domain.state(task), rng_for("audit", task.id)):
        yield task.replace(obstacle=obstacle)


# ---------------------------------------------------------------- kinds


def audit_kind(
    kind: str,
    domain: Domain,
    families: Sequence[str] | None = None,
    *,
    severities: Sequence[int] = SEVERITIES,
    count: int = DRAWS,
    split: Split = "test",
) -> list[Complaint]:
    """What is unfair about a kind over a domain, or why it applies to no family there (law `applies`)."""
    perturbations[kind]
    if why := processes.differs(kind, "perturbation"):
        return [Complaint("seeded", kind, why)]
    judged, reasons, refused, quoted = 0, dict[str, None](), list[Complaint](), list[bool]()
    beside = list[Complaint]()  # said last: what is false beside the way mostly has a reason on it
    tried = set[tuple[Split, int]]()  # what is fair in one split, or at one severity, may not be so in another
    right = list[marks.Case]()
    own = enumerate(_tasks(domain, list(families or domain.families), 2, split))
    here = ((severities[n % len(severities)], n, task) for n, task in own)
    others = [s for s in SPLITS if s != split]
    for severity, n, task in chain(
        here, _elsewhere(domain, list(families or domain.families), others, severities, tried)
    ):
        if task.split == split and judged >= count and n >= len(domain.families) and len(tried) >= len(severities):
            continue  # every family and severity was tried
        before = task.model_dump_json()
        try:
            drawn = draw_unaudited(domain, task, [(kind, severity)], n)
            judged += 1
            if task.model_dump_json() != before:
                raise Unfair("value", "it changes the task it is handed")
            first_of_its_kind = judged <= count or (task.split, severity) not in tried
            if first_of_its_kind:
                examine(drawn, [(kind, severity)], n)
            if judged == 1 and (kept := leftovers.kept(drawn.certificate.gold, type(drawn.layers[-1]))):
                raise Unfair("value", f"{kept} changes from episode to episode; a layer remembers in its notes alone")
            tried.add((task.split, severity))
            conduct.open_handed(drawn.certificate.gold)
            conduct.announced(drawn.certificate.gold)
            conduct.whole(drawn.certificate.gold)
            conduct.unhurried(_walks_of(drawn))
            if first_of_its_kind:
                conduct.undisturbed(_walks_of(drawn))
            task_laws.untied_through(_walks_of(drawn))
            right += marks.cases(drawn.certificate.gold)
            beside += _beside_the_way(drawn, kind) if not beside else []
            leaks = task_laws.quotable(domain, drawn.certificate.gold, drawn.certificate.clean)
            quoted += [] if leaks is None else [leaks]
        except Unfair as unfair:
            return [Complaint(unfair.law, kind, f"{unfair.reason} (drawn for {task.id})")]
        except CannotPerturb as cannot:
            if cannot.at_fault != "draw":
                continue  # no perturbation is to blame
            if not cannot.applies or cannot.law == "bites":
                reasons[str(cannot)] = None
            elif cannot.law in TELLING:
                return [Complaint(cannot.law, kind, str(cannot))]
            else:
                refused.append(Complaint(cannot.law, kind, str(cannot)))
    if beside:
        return beside
    if mark := marks.tell(right):
        return [Complaint("leak", kind, f"what it shows marks what is right: {mark}")]
    if len(quoted) > 1 and all(quoted):
        return [Complaint("leak", kind, f"what it shows gives the answer away in {len(quoted)} of {len(quoted)} draws")]
    if len(refused) > judged:
        return refused[:1]
    if not judged:
        return [Complaint("applies", kind, "; ".join(reasons) or f"{domain.name} has no fair task to try it on")]
    return []


def _elsewhere(
    domain: Domain,
    families: list[str],
    others: Sequence[Split],
    severities: Sequence[int],
    tried: set[tuple[Split, int]],
) -> Iterator[tuple[int, int, Task]]:
    """Tasks of the other splits, until every severity was tried in each of them."""
    for split in others:
        for n, task in enumerate(_tasks(domain, families, len(severities), split)):
            left = [severity for severity in severities if (split, severity) not in tried]
            if not left or (n >= 2 * len(families) and len(left) == len(severities)):
                break
            yield left[n % len(left)], n, task


def _beside_the_way(drawn: Drawn, kind: str) -> list[Complaint]:
    gold = drawn.certificate.gold
    try:
        candour.no_wrong_advice(gold)
        candour.no_false_rows(gold)
        candour.no_false_remarks(gold)
        candour.no_false_success(gold)
        candour.no_rival_figures(gold, conduct.attempted(gold))
        candour.true_elsewhere(_walks_of(drawn))
    except Unfair as unfair:
        return [Complaint(unfair.law, kind, f"{unfair.reason} (drawn for {drawn.base.id})")]
    return []


def examine(drawn: Drawn, kinds: Sequence[tuple[str, int]] = (), seed: int = 0) -> None:
    """Check the laws on a draw that are too dear for every draw. Raises `Unfair`.

    With `kinds` and `seed`, which it was drawn by, it is drawn again, and compared with other draws.
    """
    domain, task = drawn.domain, drawn.base
    walks = _walks_of(drawn)
    laws.value(domain, walks, drawn.certificate.gold)
    laws.round_trip(walks.gold)
    laws.closed(domain, walks.shifted, walks.layers)
    conduct.heeded(walks, ours=True)
    secrets.without(walks, ours=True)
    for i, layer in enumerate(walks.layers):
        shown = secrets.everything_shown(walks.gold)
        for field, other in secrets.altered(layer, shown):
            stack = (*walks.layers[:i], other, *walks.layers[i + 1 :])
            secrets.confusable(walks, stack, f"another {field} of {layer.kind!r}", drawn=False)
    for rival in _others(drawn, kinds, seed):
        secrets.confusable(walks, rival.layers, f"another draw of {', '.join(kind for kind, _ in kinds)}")
    laws.twin(domain, task, walks.layers, certify)


def _walks_of(drawn: Drawn) -> Walks:
    """The walks of a draw, to be made once more."""
    walks = Walks(drawn.domain, drawn.base, drawn.certificate.clean)
    for layer in drawn.layers:
        walks.add(layer)
    return walks


def _others(drawn: Drawn, kinds: Sequence[tuple[str, int]], seed: int) -> Iterator[Drawn]:
    """The same draw again, which must come out the same, and then other draws over the same task."""
    clean = drawn.certificate.clean
    for n in range(1 + RIVALS if kinds else 0):
        other = 7919 * n + seed
        picks = kinds if n < 3 else [(kind, 1 + severity % max(SEVERITIES)) for kind, severity in kinds]
        try:
            found = draw_unaudited(drawn.domain, drawn.base, picks, other, clean=clean)
        except CannotPerturb:
            continue
        if n == 0:
            laws.seeded(drawn.layers, found.layers)
        else:
            yield found


# ---------------------------------------------------------------- before the first draw that counts

KNOWN = 4096  # verdicts held in memory; domains are without number
_known: dict[tuple[object, ...], list[Complaint]] = {}


def require_fair(domain: Domain, family: str, kinds: Sequence[str]) -> None:
    """Raise `CannotPerturb` if an audit complains about the domain, the family or one of the kinds.

    A kind is tried on the domain itself, or on one of ours where that cannot be audited or was generated: generated
    domains are judged before they are handed out, and there is no end of them.
    """
    home = domain if is_auditable(domain) and not domains.is_made(domain.name) else None
    if home is not None:
        _require("domain", domain.name, _footprints, home)
        _require("family", f"{domain.name}/{family}", audit_family, home, family)
    for kind in kinds:
        _require("perturbation", kind, audit_kind, kind, home or domains["poi"])


def _require(sort: str, name: str, audit: Callable[..., list[Complaint]], *parts: Any) -> None:
    key = (audit, *(perturbations[part] if audit is audit_kind and isinstance(part, str) else part for part in parts))
    complaints = _known.get(key)
    if complaints is None:
        if len(_known) >= KNOWN:
            _known.clear()
        complaints = _known[key] = _verdict(audit, parts)
    for complaint in complaints:
        if complaint.law == "applies":
            continue
        if sort == "perturbation" and do_not_fit(name, parts[1], complaint.law):
            raise CannotPerturb(
                f"the domain {parts[1].name} and {name} do not fit: {complaint.law}: {complaint.reason}",
                applies=False,
                law=complaint.law,
            )
        raise CannotPerturb(
            f"the {sort} {name} is unfair and cannot be used: {complaint}", law=complaint.law, at_fault="code"
        )


def do_not_fit(kind: str, domain: Domain, law: str) -> bool:
    """Is a breach neither's fault: of a kind of ours, fair elsewhere, over somebody's domain that is fair by itself?"""
    ours = perturbations[kind].__module__.startswith("crosswind.perturbations.")
    return ours and law not in OWN and bool(domains.origin(domain.name))


def _verdict(audit: Callable[..., list[Complaint]], parts: tuple[Any, ...]) -> list[Complaint]:
    """The verdict on some code: shipped, as it was kept, or made now."""
    codes = _codes(audit, parts)
    if codes is None:
        return audit(*parts)
    if {verdicts.our_code(), verdicts.shipped()} == {*codes}:
        return []
    key = verdicts.key_of(audit.__name__, *(getattr(part, "name", part) for part in parts), *codes)
    kept = verdicts.recall(key)
    if kept is None:
        complaints = audit(*parts)
        verdicts.keep(key, [[c.law, c.where, c.reason] for c in complaints])
        return complaints
    return [Complaint(*one) for one in kept]


def _codes(audit: Callable[..., list[Complaint]], parts: tuple[Any, ...]) -> list[str] | None:
    """Hashes of the code that an audit judges; None where there is code that cannot be read."""
    out: list[str] = []
    for part in parts:
        classes: list[type] = []
        origin = ""
        if isinstance(part, Domain):
            classes, origin = (
                [type(part), part.world_class, *map(type, part.families.values())],
                domains.origin(part.name),
            )
        elif audit is audit_kind:
            classes, origin = [perturbations[part]], perturbations.origin(part)
        for cls in dict.fromkeys(classes):
            code = verdicts.code_of(cls, origin)
            if code is None:
                return None
            out.append(code if code == verdicts.our_code() else f"{cls.__module__}.{cls.__qualname__} {code}")
    return out


def _tasks(domain: Domain, families: Sequence[str], count: int, split: Split) -> Iterator[Task]:
    """Tasks of each family in turn; a family that has none in a world is passed over."""
    for n in range(count):
        for family in families:
            try:
                yield domain.task(family, n, split=split)
            except (CannotDraw, Unfair):
                continue  # `audit_family` says so


def main() -> None:
    """Audit all that the package brings, and note down for which code that was."""
    code = verdicts.our_code()  # as it is now, whatever happens to the files meanwhile
    bad = [str(c) for domain in domains for c in audit_domain(domain)]
    for domain in domains:
        for kind in perturbations.names():
            print(domain.name, kind, flush=True)
            bad += [str(complaint) for complaint in audit_kind(kind, domain)]
    if bad:
        raise SystemExit("\n".join(bad))
    verdicts.SHIPPED.write_text(f"{code}\n")


if __name__ == "__main__":
    main()
