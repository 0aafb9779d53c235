"""How soon does `crosswind watch` see each kind of perturbation, does it name it, and how often is it wrong?

    python bench/watch.py play FOLDER --agents by_description --domains poi banking
    python bench/watch.py detect FOLDER
    python bench/watch.py play CLEAN --kinds none --episodes 3434 --agents by_description retrier memoriser
    python bench/watch.py unchanged CLEAN
    python bench/watch.py play FOLDER --kinds none --chains 2
    python bench/watch.py chains FOLDER

`play` plays scripted agents and stores what they saw: clean episodes, episodes under each kind at severities 1, 3, 5,
and chains of releases. A kind that can be part of a release is drawn once for all episodes, another for each episode
(a task to which it does not apply is played without it). `detect` watches each: a clean reference, a clean start,
then 50 episodes after the change, with content and without; a CUSUM on outcomes and a plain diff of schemas read the
same episodes. `unchanged` counts alarms where nothing changes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import ValidationError

from crosswind.base.errors import CannotDraw, CannotPerturb, CrosswindError, Unfair
from crosswind.core import entity_names
from crosswind.core.certify import certify
from crosswind.core.draw import Drawn, draw
from crosswind.core.registry import domains, perturbations
from crosswind.core.release import evolve
from crosswind.core.types import Task
from crosswind.episodes.play import judge, play
from crosswind.episodes.schedule import Deck
from crosswind.models.spec import open_agent
from crosswind.watch.alarms import Alarm
from crosswind.watch.observed import ObservedCall, ObservedEpisode
from crosswind.watch.sources.runs import episode_of
from crosswind.watch.watcher import EVIDENCE, Watcher

SEVERITIES = (1, 3, 5)
REFERENCE, START, AFTER = 200, 20, 50 + EVIDENCE
WITHIN = 50
CHAIN = ("semantic_rename:2", "parameter_rename:2", "key_rename:1", "redirection:2", "envelope:1")


# ---------------------------------------------------------------- playing


def line_of(drawn: Drawn, agent: str, key: str) -> dict[str, Any]:
    """One played episode, with its verdict for the test on outcomes."""
    trajectory = asyncio.run(play(drawn, open_agent(agent).make(drawn), agent))
    data = trajectory.model_dump(mode="json", exclude={"task"})
    task = trajectory.task
    query = entity_names.shown(task, task.brief.query)
    outcome = judge(trajectory, drawn.domain).outcome
    return {**data, "key": key, "domain": task.domain, "query": query, "outcome": outcome}


def tasks(domain: str, start: int) -> Iterator[tuple[int, Task]]:
    deck, n = Deck(domains[domain], 7, split="test"), start
    while True:
        with suppress(CannotDraw):
            yield n, deck.task(n)
        n += 1


def clean(domain: str, agent: str, start: int, count: int) -> Iterator[dict[str, Any]]:
    for n, task in tasks(domain, start):
        try:
            drawn = Drawn(domains[domain], task, (), certify(domains[domain], task, ()))
        except Unfair:
            continue
        yield line_of(drawn, agent, f"{domain} {n}")
        count -= 1
        if not count:
            return


def shifted(domain: str, agent: str, kind: str, severity: int, start: int, count: int) -> Iterator[dict[str, Any]]:
    """Episodes under a kind: one release of it, or a draw for each."""
    place, stack = domains[domain], None
    cls = perturbations[kind]
    if cls.axis != "query" and cls.goal != "refuse":
        for seed in range(3):
            try:
                stack = evolve(place, {kind: severity}, 1, seed)[1].stack
                break
            except (CrosswindError, Unfair):
                continue
    for n, task in tasks(domain, start):
        try:
            if stack is not None:
                drawn = Drawn(place, task, stack, certify(place, task, stack, release=True))
            else:
                try:
                    drawn = draw(place, task, [(kind, severity)], n)
                except CannotPerturb:
                    drawn = Drawn(place, task, (), certify(place, task, ()))
            line = line_of(drawn, agent, f"{domain} {n}")
        except (Unfair, ValidationError):  # a scripted agent that has nothing to say
            continue
        yield {**line, "release": stack is not None}
        count -= 1
        if not count:
            return


def chained(domain: str, agent: str, seed: int, each: int, releases: int) -> Iterator[dict[str, Any]]:
    place = domains[domain]
    kinds = {text.partition(":")[0]: int(text.partition(":")[2]) for text in CHAIN}
    chain = evolve(place, kinds, releases, seed)
    every = tasks(domain, 2000 + 500 * seed)
    for release in chain:
        for _ in range(each):
            while True:
                n, task = next(every)
                try:
                    drawn = Drawn(place, task, release.stack, certify(place, task, release.stack, release=True))
                except Unfair:
                    continue
                break
            yield {**line_of(drawn, agent, f"{domain} {n}"), "version": release.version, "change": release.change}


def store(path: Path, lines: Iterator[dict[str, Any]]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        return 0
    n = 0
    part = path.with_suffix(".part")
    with part.open("w") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")
            n += 1
    part.rename(path)
    return n


def play_all(
    folder: Path, agents: Sequence[str], places: Sequence[str], kinds: Sequence[str], chains: int, n: int
) -> None:
    for agent in agents:
        for domain in places:
            begin = time.perf_counter()
            played = store(folder / agent / domain / "clean.jsonl", clean(domain, agent, 0, n))
            for kind in kinds if kinds != ["none"] else ():
                for severity in SEVERITIES:
                    path = folder / agent / domain / f"{kind}-{severity}.jsonl"
                    try:
                        played += store(path, shifted(domain, agent, kind, severity, 1000, AFTER))
                    except CrosswindError as error:
                        print(f"{domain} {kind}:{severity}: {error}", file=sys.stderr)
            for seed in range(chains):
                try:
                    played += store(
                        folder / agent / domain / f"chain-{seed}.jsonl", chained(domain, agent, seed, 50, 4)
                    )
                except CrosswindError as error:
                    print(f"{domain} chain {seed}: {error}", file=sys.stderr)
            print(f"{agent} {domain}: {played} episodes, {time.perf_counter() - begin:.0f} s", flush=True)


# ---------------------------------------------------------------- watching


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def bare(episode: ObservedEpisode) -> ObservedEpisode:
    """What is left of an episode in a log without content; the list of tools is fetched from the server."""
    calls = [ObservedCall(c.tool, error=c.error, seconds=c.seconds) for c in episode.calls]
    return ObservedEpisode(id=episode.id, agent=episode.agent, listing=episode.listing, calls=calls)


def observed(lines: Sequence[dict[str, Any]], content: bool) -> list[ObservedEpisode]:
    out = [episode_of(line, "bench") for line in lines]
    return out if content else [bare(one) for one in out]


def watched(reference: Sequence[ObservedEpisode], episodes: Sequence[ObservedEpisode], **options: Any) -> list[Alarm]:
    watcher = Watcher(reference, **options)
    out = [alarm for episode in episodes for alarm in watcher.add(episode)]
    return [*out, *watcher.end()]


def cusum(reference: Sequence[dict[str, Any]], lines: Sequence[dict[str, Any]], level: float = 4.6) -> int | None:
    """Where a Bernoulli CUSUM on outcomes alarms: for a doubled failure rate, at about one per 1,000 episodes."""
    p = max(0.02, sum(line["outcome"] != "pass" for line in reference) / len(reference))
    q = min(0.9, max(2 * p, p + 0.1))
    from math import log

    total = 0.0
    for n, line in enumerate(lines):
        bad = line["outcome"] != "pass"
        total = max(0.0, total + (log(q / p) if bad else log((1 - q) / (1 - p))))
        if total >= level:
            return n
    return None


def schema_diff(reference: Sequence[ObservedEpisode], episodes: Sequence[ObservedEpisode]) -> int | None:
    """Where the list of tools is first another."""
    known = {frozenset(tool.shape for tool in one.listing or ()) for one in reference}
    for n, one in enumerate(episodes):
        if frozenset(tool.shape for tool in one.listing or ()) not in known:
            return n
    return None


def detect(folder: Path, kinds: Sequence[str], *, verbose: bool) -> list[dict[str, Any]]:
    rows = []
    for where in sorted(path.parent for path in folder.glob("*/*/clean.jsonl")):
        lines = read(where / "clean.jsonl")
        before = {content: observed(lines, content) for content in (True, False)}
        for path in sorted(where.glob("*-[135].jsonl")):
            kind, _, severity = path.stem.rpartition("-")
            if kind not in kinds:
                continue
            after = read(path)
            row: dict[str, Any] = {
                "agent": where.parent.name, "domain": where.name, "kind": kind, "severity": int(severity),
                "met": sum(bool(line["layers"]) for line in after) / len(after),
                "lost": _rate(lines) - _rate(after),
            }  # fmt: skip
            for content in (True, False):
                reference, start = before[content][:REFERENCE], before[content][REFERENCE : REFERENCE + START]
                alarms = watched(reference, [*start, *observed(after, content)])
                name = "content" if content else "bare"
                row[name] = _outcome(alarms, kind, int(severity))
            start_lines = lines[REFERENCE : REFERENCE + START]
            found = cusum(lines[:REFERENCE], [*start_lines, *after])
            row["cusum"] = found - START if found is not None and START <= found < START + WITHIN else None
            found = schema_diff(before[True][:REFERENCE], observed(after, True))
            row["diff"] = found if found is not None and found < WITHIN else None
            rows.append(row)
            if verbose:
                one, two = row["content"], row["bare"]
                print(
                    f"{row['domain']:8} {kind + ':' + severity:28} met {row['met']:.2f} lost {row['lost']:+.2f} "
                    f"{one['delay']!s:>4} {one['channel']:14.14} {one['named']:24.24} {one['severity']!s:>4} "
                    f"{'ok' if one['named'] == kind else ''.ljust(2)} {one['second']:20.20} | "
                    f"{two['delay']!s:>4} {two['named']:20.20} {'ok' if two['named'] == kind else ''} "
                    f"| {row['cusum']} {row['diff']}",
                    flush=True,
                )
    return rows


def _rate(lines: Sequence[dict[str, Any]]) -> float:
    return sum(bool(line["outcome"] == "pass") for line in lines) / len(lines)


def _outcome(alarms: Sequence[Alarm], kind: str, severity: int) -> dict[str, Any]:
    """The first alarm after the change, and those that were false."""
    true = [a for a in alarms if START <= a.at < START + WITHIN]
    first = true[0] if true else None
    shift = first.shift if first else None
    return {
        "false": sum(a.at < START for a in alarms),
        "more": max(0, len(true) - 1),
        "delay": first.at - START if first else None,
        "channel": first.channel if first else "",
        "named": shift.kind if shift else "",
        "axis": shift.axis if shift else "",
        "severity": shift.severity if shift else None,
        "confidence": shift.confidence if shift else None,
        "second": shift.alternatives[0].kind if shift and shift.alternatives else "",
        "layer": shift is not None and shift.layer is not None,
        "among": kind in [shift.kind, *(a.kind for a in shift.alternatives)] if shift else False,
    }


# ---------------------------------------------------------------- unchanged logs and chains


def unchanged(folder: Path) -> list[dict[str, Any]]:
    """Alarms over episodes in which nothing changes, with content and without."""
    rows = []
    for path in sorted(folder.glob("*/*/clean.jsonl")):
        row: dict[str, Any] = {"agent": path.parent.parent.name, "domain": path.parent.name}
        with path.open() as file:
            found = [episode_of(json.loads(line), "bench") for line in file]
        row["episodes"] = len(found) - REFERENCE
        for content in (True, False):
            seen = found if content else [bare(one) for one in found]
            alarms = watched(seen[:REFERENCE], seen[REFERENCE:])
            row["content" if content else "bare"] = [(a.at, a.channel) for a in alarms]
        rows.append(row)
        print(row, flush=True)
    return rows


def chains(folder: Path) -> list[dict[str, Any]]:
    """Alarms over chains of releases; each release is 50 episodes long."""
    rows = []
    for path in sorted(folder.glob("*/*/chain-*.jsonl")):
        lines = read(path)
        reference = observed(read(path.parent / "clean.jsonl"), True)[:REFERENCE]
        alarms = watched(reference, observed(lines, True))
        starts = {line["version"]: n for n, line in reversed(list(enumerate(lines)))}
        for version, start in sorted(starts.items()):
            change = lines[start]["change"]
            mine = [a for a in alarms if start <= a.at < start + 50]
            first = mine[0] if mine else None
            named = first.shift.kind if first and first.shift else ""
            rows.append(
                {
                    "domain": path.parent.name, "chain": path.stem, "version": version, "change": change,
                    "delay": first.at - start if first else None, "named": named, "alarms": len(mine),
                    "right": named == change.split()[-1] if change else None,
                }
            )  # fmt: skip
            print(rows[-1], flush=True)
    return rows


# ---------------------------------------------------------------- tables


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} % ({part} of {whole})" if whole else "-"


def figures(rows: Sequence[dict[str, Any]], side: str) -> list[str]:
    """Detected, delay, axis, kind, among the alternatives, severity."""
    hits = [r for r in rows if r[side]["delay"] is not None]
    near = [r for r in hits if r[side]["named"] == r["kind"]]
    return [
        share(len(hits), len(rows)),
        f"{median(r[side]['delay'] for r in hits):.0f}" if hits else "-",
        share(sum(r[side]["axis"] == perturbations[r["kind"]].axis for r in hits), len(hits)),
        share(len(near), len(hits)),
        share(sum(r[side]["among"] for r in hits), len(hits)),
        share(sum(abs(r[side]["severity"] - r["severity"]) <= 1 for r in near), len(near)),
    ]


def tables(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    met = [r for r in rows if r["met"] > 0]
    yield f"{len(rows)} cells (kind, severity, domain); {len(met)} in which the kind was met at all.\n"
    heads = (
        "",
        "detected within 50",
        "median delay",
        "right axis",
        "right kind",
        "kind among five",
        "severity within 1",
    )
    yield "| " + " | ".join(heads) + " |\n|---|" + "---:|" * 6
    for side, name in (("content", "with content"), ("bare", "names, order, errors and tool lists alone")):
        yield f"| {name} | " + " | ".join(figures(met, side)) + " |"
    for severity in SEVERITIES:
        some = [r for r in met if r["severity"] == severity]
        yield f"| with content, severity {severity} | " + " | ".join(figures(some, "content")) + " |"
    for name in ("cusum", "diff"):
        found = [r[name] for r in met if r[name] is not None]
        label = {"cusum": "CUSUM on outcomes", "diff": "diff of schemas"}[name]
        delay = f"{median(found):.0f}" if found else "-"
        yield f"| {label} | {share(len(found), len(met))} | {delay} | - | - | - | - |"
    yield "\nPer kind, over severities and domains, with content:\n"
    heads = ("kind", "axis", "met by episodes", "detected", "median delay", "right kind", "taken for")
    yield "| " + " | ".join(heads) + " |\n|---|---|---:|---:|---:|---:|---|"
    for kind in sorted({r["kind"] for r in met}):
        some = [r for r in met if r["kind"] == kind]
        hits = [r for r in some if r["content"]["delay"] is not None]
        wrong = Counter(r["content"]["named"] or "(none)" for r in hits if r["content"]["named"] != kind)
        delay = f"{median(r['content']['delay'] for r in hits):.0f}" if hits else "-"
        exposed = sum(r["met"] for r in some) / len(some)
        right = sum(r["content"]["named"] == kind for r in hits)
        taken = ", ".join(f"{name} {n}" for name, n in wrong.most_common())
        axis = perturbations[kind].axis
        counts = f"{100 * exposed:.0f} % | {len(hits)}/{len(some)} | {delay} | {right}/{len(hits)}"
        yield f"| {kind} | {axis} | {counts} | {taken} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["play", "detect", "unchanged", "chains"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--agents", nargs="+", default=["by_description"])
    parser.add_argument("--domains", nargs="+", default=["poi", "banking"])
    parser.add_argument("--kinds", nargs="+", default=perturbations.names(), help="'none': clean episodes alone")
    parser.add_argument("--chains", type=int, default=0, help="chains of four releases per agent and domain")
    parser.add_argument("--episodes", type=int, default=REFERENCE + START, help="clean episodes")
    parser.add_argument("--write", type=Path, help="write rows as JSON, to go on from")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    if given.step == "play":
        play_all(given.folder, given.agents, given.domains, given.kinds, given.chains, given.episodes)
        return
    if given.step == "detect":
        rows = detect(given.folder, given.kinds, verbose=given.verbose)
        print("\n".join(tables(rows)))
        false = sum(r["content"]["false"] for r in rows)
        print(f"false alarms over {START} unchanged episodes before the change: {false}")
    else:
        rows = (unchanged if given.step == "unchanged" else chains)(given.folder)
    if given.write:
        given.write.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
