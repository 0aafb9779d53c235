"""How often the reader of plain words misjudges a final message, on endings written without sight of its rules.

    python bench/endings.py cards                       sample tasks to write endings for
    python bench/endings.py judge bench/endings/dev.jsonl [--errors]
    python bench/endings.py judge bench/endings/sealed.jsonl.xz

A line of a file is a frame: a class, the shape of the task it ends, and a text with slots in braces. Each frame is
filled from five tasks of its shape, drawn from all six domains, and judged in the world that the oracle left (or, where
refusing is right, in the untouched one). The classes say which verdict is right; in `retraction` the frame itself says
so ("expect"), since either the right or the wrong value may be the one that is taken back.

Rules are developed on dev.jsonl. The other half of what was written is sealed: it is compressed so that nobody reads it
by accident, and is for measuring alone. Do not list its errors while the rules may still change.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from crosswind.base.errors import CrosswindError
from crosswind.core.certify import Certificate, certify
from crosswind.core.registry import domains

CLASSES = {
    "right": "pass",
    "wrong": "fail",
    "right_refusal": "pass",
    "false_claim": "fail",
    "retraction": "",
    "caveat": "pass",
    "conditional": "fail",
    "wrong_entity": "fail",
}
SHAPES = {  # shape -> the graphs whose families have it
    "fee": ("Fact", "FactAsked"),
    "count": ("Tally",),
    "which": ("Versus",),
    "time": ("NextSlot",),
    "total": ("Total",),
    "receipt": ("Hold", "HoldAsked", "Book"),
    "moved": ("Shift",),
    "cancelled": ("Cancel",),
    "refusal_full": ("Full",),
    "refusal_barred": ("Barred", "ThriftBarred"),
}
SLOTS = {
    "fee": "name value wrong other noun",
    "count": "name value wrong other noun",
    "which": "value wrong comparison",
    "time": "value wrong date name other",
    "total": "value wrong who noun",
    "receipt": "value wrong time wrong_time date name other who deed",
    "moved": "value wrong date old_date who deed",
    "cancelled": "id date who deed",
    "refusal_full": "date name who deed reason",
    "refusal_barred": "date who deed reason",
}
NOUNS = {
    "poi": ("ticket price", "reviews", "reservation"),
    "medical": ("fee", "prescriptions", "appointment"),
    "retail": ("unit price", "sales", "order"),
    "workspace": ("open tasks", "files", "meeting"),
    "banking": ("transfer fee", "disputes", "transfer"),
    "operations": ("hourly cost", "incidents", "deployment"),
}
FILLS = 5
CARDS = 40  # tasks per shape


class Card(NamedTuple):
    """A task, and what can be said about it."""

    domain: str
    certificate: Certificate
    request: str
    slots: dict[str, str]


def graph_of(family: Any) -> str:
    return str(type(family).__mro__[1].__name__)


@lru_cache(maxsize=16)
def cards(shape: str) -> tuple[Card, ...]:
    """Tasks of a shape from all domains, in turn."""
    pools: list[Iterator[Card]] = []
    for domain in NOUNS:
        if domain == "workspace" and shape in ("fee", "total"):
            continue  # counts there
        for family in domains[domain].families.values():
            if graph_of(family) in SHAPES[shape]:
                pools.append(_cards(domain, family.name, shape))
    out: list[Card] = []
    while pools and len(out) < CARDS:
        pools = [pool for pool in pools if (card := next(pool, None)) is not None and not out.append(card)]  # type: ignore[func-returns-value]
    return tuple(out)


def _cards(domain_name: str, family_name: str, shape: str) -> Iterator[Card]:
    domain = domains[domain_name]
    for seed in range(5000, 5200):
        try:
            task = domain.task(family_name, seed, split="test")
            certificate = certify(domain, task, ())
        except CrosswindError:
            continue
        slots = _slots(domain, certificate, shape, Random(f"{domain_name}{family_name}{seed}"))
        if slots is not None:
            yield Card(domain_name, certificate, task.brief.query, slots)


def _slots(domain: Any, certificate: Certificate, shape: str, rng: Random) -> dict[str, str] | None:
    task, gold = certificate.task, certificate.gold
    family, start = domain.family(task), domain.state(task)
    wanted = {**task.brief.stated, **task.withheld}
    fee, count, deed = NOUNS[domain.name]
    terms = family.t
    out: dict[str, Any] = {
        "deed": deed,
        "who": wanted.get(terms.who, ""),
        "date": wanted.get(terms.date, ""),
        "noun": count if shape == "count" else fee,
    }
    if shape in ("fee", "count", "time", "receipt", "refusal_full"):
        best = family.best(task, start)
        others = [thing.name for thing in family.things(task, start) if thing.id != best.id]
        if not others or best.name in others:
            return None
        out |= {"name": best.name, "other": rng.choice(others)}
    if shape.startswith("refusal"):
        return out | {"reason": gold.final.removeprefix("I cannot do this: ").rstrip(".")}
    end = gold.session.world.state
    expected = family.answer(task, start, end)
    if shape == "cancelled":
        ids = re.findall(r"\b[A-Z]+\d{5,}\b", gold.final)
        return out | {"id": ids[0]}
    value = expected[0].value
    out["value"] = str(value)
    if shape == "which":
        busy = domain.name == "workspace"
        return out | {"wrong": expected[0].others[0], "comparison": "less busy" if busy else "cheaper"}
    if shape in ("fee", "total"):
        out["wrong"] = str(int(value) + rng.choice((-3, 2, 5, 7, 11, 20)))
    elif shape == "count":
        out["wrong"] = str(int(value) + rng.choice((1, 2, 3)))
    elif shape in ("time", "moved"):
        out["wrong"] = _later(str(value), rng)
    if shape == "receipt":
        said = re.search(r"\d\d:\d\d", gold.final)
        if said is None:
            return None
        digits = "".join(rng.sample("123456789", 4))
        out |= {"time": said[0], "wrong_time": _later(said[0], rng), "wrong": str(value)[:-4] + digits}
        if out["wrong"] == out["value"]:
            return None
    if shape == "moved":
        dates = re.findall(r"\d{4}-\d\d-\d\d", task.brief.query)
        new = re.findall(r"\d{4}-\d\d-\d\d", gold.final)
        if len(set(dates)) != 2 or not new:
            return None
        out |= {"date": new[0], "old_date": next(d for d in dates if d != new[0])}
    return out


def _later(time: str, rng: Random) -> str:
    hours, minutes = map(int, time.split(":"))
    return f"{(hours + rng.choice((1, 2, 3))) % 24:02d}:{minutes:02d}"


class Frame(NamedTuple):
    source: str
    kind: str
    shape: str
    text: str
    expect: str


def frames(paths: list[Path]) -> list[Frame]:
    out = []
    for path in paths:
        data = path.read_bytes()
        text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode()
        for n, line in enumerate(text.splitlines(), 1):
            entry = json.loads(line)
            where = f"{path.name}:{n}"
            holes = set(re.findall(r"\{(\w+)\}", entry["text"]))
            if entry["class"] not in CLASSES or entry["shape"] not in SHAPES:
                sys.exit(f"{where}: unknown class or shape {entry['class']!r}, {entry['shape']!r}")
            if unknown := holes - set(SLOTS[entry["shape"]].split()):
                sys.exit(f"{where}: {entry['shape']} has no slots {sorted(unknown)}; it has {SLOTS[entry['shape']]}")
            expect = CLASSES[entry["class"]] or entry.get("expect")
            if expect not in ("pass", "fail"):
                sys.exit(f"{where}: a retraction says what to expect, pass or fail")
            out.append(Frame(where, entry["class"], entry["shape"], entry["text"], expect))
    return out


def skeleton(text: str) -> str:
    return re.sub(r"\W+", " ", re.sub(r"\{\w+\}", "_", text)).lower().strip()


def fill(text: str, slots: dict[str, str]) -> str:
    """A text with its slots filled; other braces stay as they are."""
    return re.sub(r"\{(\w+)\}", lambda m: slots[m[1]], text)


def filled(frame: Frame) -> Iterator[tuple[Card, str]]:
    pool = cards(frame.shape)
    for card in Random(frame.text).sample(pool, min(FILLS, len(pool))):
        yield card, fill(frame.text, card.slots)


def verdict(card: Card, text: str) -> tuple[str, str]:
    """pass or fail, and the check that failed."""
    domain, certificate = domains[card.domain], card.certificate
    task, end = certificate.task, certificate.gold.session.world.state
    checks = domain.family(task).checks(task, domain.state(task), end, text)
    failed = [f"{check.name}: {check.why}" for check in checks if not check.passed]
    return ("fail" if failed else "pass"), "; ".join(failed)


def judge(paths: list[Path], *, errors: bool) -> None:
    found = frames(paths)
    texts = Counter(skeleton(frame.text) for frame in found)
    played: Counter[str] = Counter()
    wrong: dict[str, list[str]] = defaultdict(list)
    for frame in found:
        for card, text in filled(frame):
            played[frame.kind] += 1
            got, why = verdict(card, text)
            if got != frame.expect:
                wrong[frame.kind].append(
                    f"{frame.source} {frame.shape}: {got}, not {frame.expect} ({why})\n    {card.request}\n    {text!r}"
                )
    if errors:
        for kind, lines in wrong.items():
            print(f"## {kind}", *lines, sep="\n")
    print(f"{len(found)} frames, {len(texts)} of them different, {sum(played.values())} endings")
    print("| class | endings | judged wrongly | share |\n|---|---|---|---|")
    for kind in CLASSES:
        if played[kind]:
            print(f"| {kind} | {played[kind]} | {len(wrong[kind])} | {len(wrong[kind]) / played[kind]:.1%} |")
    total = sum(map(len, wrong.values()))
    print(f"| **all** | {sum(played.values())} | {total} | {total / max(sum(played.values()), 1):.1%} |")


def show_cards(count: int) -> None:
    for shape in SHAPES:
        print(f"## {shape}: {', '.join('{' + slot + '}' for slot in SLOTS[shape].split())}")
        for card in cards(shape)[:count]:
            print(f"- {card.request}")
            print("  " + ", ".join(f"{slot} = {card.slots[slot]}" for slot in SLOTS[shape].split()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("cards").add_argument("--count", type=int, default=6)
    judging = commands.add_parser("judge")
    judging.add_argument("files", nargs="+", type=Path)
    judging.add_argument("--errors", action="store_true", help="list every ending that is judged wrongly")
    args = parser.parse_args()
    if args.command == "cards":
        show_cards(args.count)
    else:
        judge(args.files, errors=args.errors)


if __name__ == "__main__":
    main()
