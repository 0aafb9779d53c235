"""Write the reference from the code: python docs/make_reference.py [--check]

Each example is a draw that was really made and certified; nothing on these pages is written by hand. The same code and
banks give the same bytes. With --check nothing is written; files that are out of date are listed.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import statistics
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from crosswind.base.errors import CannotPerturb
from crosswind.core import oracle
from crosswind.core.domain import Domain, Family
from crosswind.core.draw import Drawn, draw
from crosswind.core.flow import digest, rng_for
from crosswind.core.perturbation import RANKS, Perturbation, dump_layers
from crosswind.core.registry import domains, perturbations
from crosswind.core.session import Session
from crosswind.core.types import ASK, AXES, SPLITS, TIERS, Param, Split, Step, ToolCall, ToolResult, ToolSpec
from crosswind.domains import graphs
from crosswind.domains.desk import Desk
from crosswind.domains.layout import Terms
from crosswind.words import banks, wording
from crosswind.words.held_out import HELD_OUT

HERE = Path(__file__).parent / "reference"
sys.path.insert(0, str(HERE.parents[1]))  # for docs.code_pages
SEVERITY = 3
SEEDS = range(2)  # of the tasks of each family among which an example is looked for
WIDTH = 116
LONG = 420  # characters of a result that are shown
NOTE = "<!-- Written by docs/make_reference.py; do not edit. -->"
TIER_OF = {
    "perception": "Reading the request and the interface.",
    "interaction": "Living with what comes back.",
    "reasoning": "Planning where order, preconditions or rules differ.",
    "internalization": "Knowing what can be done: carrying over to other surroundings, and refusing.",
}
AXIS_OF = {
    "query": "what is asked and how it is said",
    "action": "which tools there are, what they are called and what they want",
    "observation": "what comes back, and whether it does",
    "domain": "the world, its rules and its words",
}
GOAL_OF = {
    "kept": "kept: what is right stays what it was",
    "moved": "moved: something else is right",
    "refuse": "refuse: saying no is right, with a proof",
}


# ---------------------------------------------------------------- what there is


def ours() -> dict[str, type[Perturbation]]:
    """The kinds that the package brings; those of plugins and tests are not described here."""
    found = {kind: perturbations[kind] for kind in perturbations.names()}
    return {kind: cls for kind, cls in found.items() if cls.__module__.startswith("crosswind.perturbations.")}


def our_domains() -> list[Domain]:
    """The domains that the package brings."""
    return [domain for domain in domains if type(domain).__module__.startswith("crosswind.domains.")]


def in_order(kinds: Sequence[type[Perturbation]]) -> list[type[Perturbation]]:
    """By axis, then by name."""
    return sorted(kinds, key=lambda cls: (AXES.index(cls.axis), kind_of(cls)))


def first_line(thing: type) -> str:
    """What the docstring of a class says, on one line."""
    return " ".join((thing.__doc__ or "").split())


def kind_of(cls: type[Perturbation]) -> str:
    return str(cls.model_fields["kind"].default)


# ---------------------------------------------------------------- words and figures as text


def as_json(value: Any, width: int = WIDTH, indent: int = 0) -> str:
    """JSON that goes over several lines only where it must."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= width or not isinstance(value, (dict, list)) or not value:
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        parts = []
        for key, part in value.items():
            head = f"{json.dumps(key, ensure_ascii=False)}: "
            nested = as_json(part, width, indent + 2)
            if "\n" not in nested and len(head) + len(nested) + indent > width:
                nested = as_json(part, width - len(head), indent + 2)
            parts.append(head + nested)
        opening, closing = "{", "}"
    else:
        parts, opening, closing = [as_json(part, width, indent + 2) for part in value], "[", "]"
    if all("\n" not in part and len(part) < 48 for part in parts):
        parts = packed(parts, width - indent - 2)
    return f"{opening}\n{pad}" + f",\n{pad}".join(parts) + f"\n{' ' * indent}{closing}"


def packed(parts: Sequence[str], width: int) -> list[str]:
    """Short parts on lines that are as full as they can be."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines


def quoted(text: str) -> str:
    """A text of the episode as a quotation."""
    paragraphs = [textwrap.fill(p, WIDTH, break_long_words=False, break_on_hyphens=False) for p in text.split("\n")]
    return textwrap.indent("\n".join(paragraphs), "> ", lambda _: True)


def fenced(*lines: str, language: str = "text") -> str:
    return "\n".join((f"```{language}", *lines, "```"))


def cell(text: str) -> str:
    """A text inside a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(
        f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *([cell(c) for c in row] for row in rows))
    )


def hung(text: str, head: str) -> str:
    """Text behind a mark, wrapped under itself; lines of its own stay lines."""
    out = []
    for n, line in enumerate(text.split("\n")):
        together = line.replace('": ', '":\0')  # a key stays with its value
        wrapped = textwrap.wrap(together, WIDTH - len(head), break_long_words=False, break_on_hyphens=False) or [""]
        out += [(head if not n and not i else " " * len(head)) + part for i, part in enumerate(wrapped)]
    return "\n".join(line.rstrip() for line in out).replace("\0", " ")


def call_text(call: ToolCall) -> str:
    return f"{call.tool}({', '.join(f'{k}={json.dumps(v, ensure_ascii=False)}' for k, v in call.args.items())})"


def shortened(content: Any) -> Any:
    """Content without most of the rows of long lists."""
    if isinstance(content, list) and any(isinstance(row, (dict, list)) for row in content):
        rows = [shortened(row) for row in content[:2]]
        return [*rows, f"… {len(content) - 2} more"] if len(content) > 2 else rows
    return {k: shortened(v) for k, v in content.items()} if isinstance(content, dict) else content


def result_text(result: ToolResult) -> str:
    if result.error:
        again = ", may be repeated" if result.error.retryable else ""
        return f"error {result.error.code}{again}: {result.error.text}"
    content = result.content
    plain = isinstance(content, str) and not content.startswith(("{", "["))  # what looks like data is shown as text
    text = content if plain else json.dumps(shortened(content), ensure_ascii=False)
    return text if len(text) <= LONG else f"{text[:LONG].rstrip()} …"


def step_text(step: Step) -> list[str]:
    """A call and what came back, and what the user said of their own accord."""
    return [
        hung(call_text(step.call), "> "),
        hung(result_text(step.result), "  "),
        *(hung(words, "  the user says: ") for words in step.heard),
    ]


def param_text(name: str, param: Param) -> str:
    more = [param.doc, " | ".join(param.enum), json.dumps(dict(param.extra)) if param.extra else ""]
    said = "; ".join(filter(None, more))
    return f"{name}{'' if param.required else '?'}: {param.type}{f' ({said})' if said else ''}"


def tool_text(spec: ToolSpec, session: Session) -> list[str]:
    params = ", ".join(param_text(name, param) for name, param in spec.params.items())
    return [hung(f"{spec.name}({params})", "- "), hung(session.render(spec.doc), "  ")]


def tools_text(specs: Sequence[ToolSpec], session: Session) -> str:
    return fenced(*(line for spec in specs for line in tool_text(spec, session)))


def prose(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


# ---------------------------------------------------------------- examples


def candidates(kind: str, domain: Domain) -> Iterator[Drawn]:
    """Certified draws of a kind over tasks of every family that can be done and asks for nothing by itself."""
    for family in domain.families.values():
        for seed in SEEDS:
            task = domain.task(family.name, seed)
            if not family.refusal and not task.withheld:
                try:
                    yield draw(domain, task, [kind], seed, severity=SEVERITY)
                except CannotPerturb:
                    continue


def example(kind: str) -> tuple[Drawn, str]:
    """The draw that shows a kind best, as text: of those with ordinary difficulty the one in which most sorts of things
    differ, and of these the shortest.

    Kinds are shown in different domains; which one is decided by the kind's name.
    """
    for domain in sorted(our_domains(), key=lambda d: digest("example", kind, d.name)):
        drawn = list(candidates(kind, domain))
        if drawn:
            usual = statistics.median_low(map(difficulty, drawn))
            shows = [(one, shown(one)) for one in drawn if difficulty(one) >= usual]
            best, parts = min(shows, key=lambda pair: (-len(pair[1]), sum(map(len, pair[1])), pair[0].base.id))
            return best, "\n\n".join(parts)
    raise SystemExit(f"{kind} could not be drawn at severity {SEVERITY} in any domain; see crosswind certify")


def difficulty(drawn: Drawn) -> int:
    return drawn.layers[0].difficulty(drawn.certificate.gold.steps, 0)


def shown(drawn: Drawn) -> list[str]:
    """Everything that a layer changed, part by part: the request, the policy, rows, tools, calls and the end."""
    parts = (request_parts, row_parts, tool_parts, call_parts, end_parts)
    return [text for part in parts for text in part(drawn)]


def plural(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def request_parts(drawn: Drawn) -> Iterator[str]:
    clean, gold = drawn.certificate.clean.session, drawn.certificate.gold.session
    if clean.query() != gold.query():
        yield f"The request before:\n\n{quoted(clean.query())}"
        yield f"After:\n\n{quoted(gold.query())}"
    else:
        yield f"The request:\n\n{quoted(gold.query())}"
    if clean.policy() != gold.policy():
        more = gold.policy().removeprefix(clean.policy()).strip()
        yield f"The policy also says:\n\n{quoted(more)}"


def row_parts(drawn: Drawn) -> Iterator[str]:
    """Rows that a layer applied to the world; the same change of many rows is told once."""
    task, start = drawn.certificate.task, drawn.domain.state(drawn.base)
    lines = []
    for key, row in {**task.edits, **task.obstacle}.items():
        table_, _, id = key.partition("/")
        was = start.start(table_, id) or {}
        new = {c: v for c, v in row.items() if was.get(c) != v} if row is not None else None
        old = {c: was[c] for c in new if c in was} if new is not None else dict(was)
        lines.append(hung(f"{key}: {json.dumps(old)} becomes {json.dumps(new) if new is not None else 'nothing'}", ""))
    if lines:
        rest = [f"and {plural(len(lines) - 2, 'row')} more"] if len(lines) > 2 else []
        yield f"Rows of the world that differ:\n\n{fenced(*lines[:2], *rest)}"


def tool_parts(drawn: Drawn) -> Iterator[str]:
    """One tool that changed, before and after, and what was added or is gone."""
    certificate = drawn.certificate
    clean, then, when = certificate.clean.session, Session.of(drawn.domain, certificate.task, drawn.layers), ""
    if listed(then) == listed(clean):
        then, when = certificate.gold.session, f", from call {1 + min(drawn.layers[0].turns(), default=0)} on"
    before, after = listed(clean), listed(then)
    used = list(dict.fromkeys(step.call.tool for step in certificate.gold.calls))
    known = {id: spec for spec in before for id in spec.ids}
    new = sorted((t for t in after if t not in before), key=lambda t: used.index(t.name) if t.name in used else 999)
    made = [t for t in new if t.ids & known.keys() or t.name in known]
    added = [t for t in new if t not in made]
    gone = [t for t in before if not any(t.ids & o.ids or o.name == t.name for o in after)]
    if made:
        of = {known[id].name for id in made[0].ids if id in known} | {made[0].name} & known.keys()
        here = [t for t in made if any(id in of for id in t.ids) or t.name in of]
        rest = len(made) - len(here)
        likewise = f" ({plural(rest, 'other')} likewise)" if rest else ""
        yield f"{'A tool' if len(of) == 1 else 'Tools'} before:\n\n{tools_text([known[n] for n in sorted(of)], clean)}"
        yield f"After{when}{likewise}:\n\n{tools_text(here, then)}"
    if added:
        names = ", ".join(f"`{t.name}`" for t in added[2:])
        yield f"Added{f'; also {names}' if names else ''}:\n\n{tools_text(added[:2], then)}"
    if gone:
        yield f"Gone:\n\n{tools_text(gone, clean)}"


def listed(session: Session) -> list[ToolSpec]:
    """The tools shown, with ids in the place of names in their descriptions."""
    return [spec for spec in session.specs.values() if spec.listed]


def call_parts(drawn: Drawn) -> Iterator[str]:
    """The first call that met the layer: clean, made as before, and as the oracle went on."""
    clean, gold = drawn.certificate.clean, drawn.certificate.gold
    asked = [step for step in gold.steps if step.call.tool == ASK]
    met = [i for i, step in enumerate(gold.steps) if 0 in step.fired or step.heard] or astray(clean, gold)
    if asked and len(asked) > sum(step.call.tool == ASK for step in clean.steps):
        yield f"The oracle asks:\n\n{fenced(*(line for step in asked for line in step_text(step)))}"
    if not met:
        return
    at = told(drawn, met)
    steps = [gold.steps[i] for i in at]
    done = sum(len(step.inner) for step in gold.steps[: met[0]])
    inner = [call for step in steps for call, _ in step.inner]
    same = [step for step in clean.calls[done:] if step.call in inner] or clean.calls[done : done + 1]
    if same and (len(same) != len(steps) or any(a != b for a, b in zip(same, steps, strict=True))):
        yield f"Without the layer:\n\n{fenced(*(line for step in same for line in step_text(step)))}"
        again = naive(drawn, met[0], same[0].call)
        if again.result not in (same[0].result, steps[0].result):
            yield f"The same call now:\n\n{fenced(*step_text(again))}"
    lines: list[str] = []
    for i, step in zip(at, steps, strict=True):
        skipped = lines and i - 1 not in at
        lines += [*(["…"] if skipped else []), *step_text(step)]
    if rest := len(gold.steps) - at[-1] - 1:
        lines.append(f"… {plural(rest, 'call')} more")
    yield f"How the oracle goes on:\n\n{fenced(*lines)}"


def told(drawn: Drawn, met: Sequence[int]) -> list[int]:
    """The steps that are shown: the first that met the layer, and what came of it."""
    layer, steps = drawn.layers[0], drawn.certificate.gold.steps
    if layer.receipt_source == "change":
        return list(range(len(steps)))[met[0] : met[0] + 4]
    if type(layer).handle is not Perturbation.handle:
        return list(range(met[0], min(len(steps), max(met) + 2, met[0] + 4)))
    if layer.axis != "observation" or len(met) == 1:
        return [met[0]]

    def shape(i: int) -> list[type]:
        return [type(result.content) for _, result in steps[i].inner]

    other = [i for i in met if shape(i) != shape(met[0])]  # a list looks different from a record
    return [met[0], *(other or met[1:])[:1]]


def astray(clean: oracle.Walk, gold: oracle.Walk) -> list[int]:
    """The step at which the oracle does something else than on the clean task, if it does."""
    calls = [step.call for step in clean.calls]
    other = next((step for i, step in enumerate(gold.calls) if i >= len(calls) or step.call != calls[i]), None)
    return [] if other is None else [gold.steps.index(other)]


def naive(drawn: Drawn, at: int, call: ToolCall) -> Step:
    """A call as it was before the layer came, made where the oracle met the layer."""
    session = Session.of(drawn.domain, drawn.certificate.task, drawn.layers)
    for step in drawn.certificate.gold.steps[:at]:
        session.call(step.call)
    session.call(call)
    return session.steps[-1]


def end_parts(drawn: Drawn) -> Iterator[str]:
    certificate = drawn.certificate
    clean, gold = certificate.clean, certificate.gold
    if gold.final != clean.final:
        yield f"The end before:\n\n{quoted(clean.final)}"
        yield f"After:\n\n{quoted(gold.final)}"
    if certificate.proof != "replay":
        yield f"Why refusing is right: {certificate.proof}."


# ---------------------------------------------------------------- pages of perturbations


def split_of(kind: str) -> str:
    return "held out" if kind in HELD_OUT else "train"


def section(cls: type[Perturbation]) -> str:
    kind = kind_of(cls)
    module = inspect.cleandoc(sys.modules[cls.__module__].__doc__ or "").split("\n\n")[0]
    drawn, text = example(kind)
    layer = drawn.layers[0]
    count = difficulty(drawn)
    facts = [
        ("axis", f"{cls.axis}: {AXIS_OF[cls.axis]}"),
        ("rank", cls.rank + (f", group {cls.group!r}" if cls.group else "")),
        ("goal", GOAL_OF[cls.goal]),
        ("severities", cls.severities),
        ("it needs", cls.needs),
        ("the agent must", cls.way),
        ("training", "held out: no training data is made with it" if kind in HELD_OUT else "may be used"),
    ]
    base = drawn.base
    command = f"crosswind play --domain {base.domain} --family {base.family} --seed {base.seed}"
    return "\n\n".join(
        (
            f"## `{kind}`",
            prose(f"{module} {cls.__doc__}"),
            table(("", ""), facts),
            f"**Example**, severity {SEVERITY}, {plural(count, 'single obstacle')}: "
            f"`{command} --perturb {kind}:{SEVERITY}`",
            text,
            f"The layer:\n\n{fenced(as_json(dump_layers([layer])[0]), language='json')}",
        )
    )


def tier_page(tier: str) -> str:
    kinds = in_order([cls for cls in ours().values() if cls.tier == tier])
    parts = [f"# {tier.capitalize()}", NOTE, f"{TIER_OF[tier]} {len(kinds)} kinds; [all kinds](README.md)."]
    for axis in AXES:
        of_axis = [cls for cls in kinds if cls.axis == axis]
        if of_axis:
            links = ", ".join(f"[{kind_of(cls)}](#{kind_of(cls)})" for cls in of_axis)
            parts.append(f"- {axis}: {links}")
    parts += [section(cls) for cls in kinds]
    return "\n\n".join(parts).replace(")\n\n- ", ")\n- ") + "\n"


def index() -> str:
    kinds = in_order(list(ours().values()))
    kinds.sort(key=lambda cls: TIERS.index(cls.tier))
    rows = [
        [
            f"[{kind_of(cls)}]({cls.tier}.md#{kind_of(cls)})",
            *(cls.axis, cls.tier, cls.rank, cls.group, cls.goal, split_of(kind_of(cls))),
            first_line(cls),
        ]
        for cls in kinds
    ]
    crossed = [
        [tier, *(str(sum(cls.tier == tier and cls.axis == axis for cls in kinds)) for axis in AXES)] for tier in TIERS
    ]
    held = sum(kind_of(cls) in HELD_OUT for cls in kinds)
    return "\n\n".join(
        (
            "# Reference",
            NOTE,
            prose(
                """For anyone who looks something up: [commands](cli.md), [Python names](python.md),
                [suites and recipes](suites.md), [file formats](formats.md), [domains](domains.md), [word
                counts](banks.md), and every kind of perturbation, on one page per tier. All pages are generated from
                the code by `python docs/make_reference.py`; `--check` tells whether they are up to date."""
            ),
            prose(
                """Each kind has an example that was drawn and certified: what the layer changed, the first call that
                meets it, the same call without the layer, and how the oracle continues. Lists in results show two
                rows, and … marks shortened text. In a tool, `name?` is an optional parameter."""
            ),
            f"## All {len(kinds)} kinds",
            prose(
                f"""{len(kinds) - held} may be used for training, {held} are held out. Ranks run from the world
                outwards: {", ".join(RANKS)}. Two kinds of one group do not stack."""
            ),
            table(("kind", "axis", "tier", "rank", "group", "goal", "training", "what it does"), rows),
            "## How many there are",
            table(("", *AXES), crossed),
        )
    ) + "\n"  # fmt: skip


# ---------------------------------------------------------------- the page of domains


def graph_of(family: Family) -> type[Family] | None:
    """The graph that a family shares with those of other domains; None for one of its own."""
    return family.graph if isinstance(family, graphs.Graph) else None


def withheld(family: Family) -> list[str]:
    """Details that the user may keep back."""
    found = {key for n in range(40) for key in family.withhold(rng_for("reference", n))}
    return [key for key in family.details if key in found]


def ends_in(family: Family, domain: Domain) -> str:
    if family.refusal:
        return "refusal"
    task = domain.task(family.name, 0)
    return "write" if any(family.ends(task, domain.state(task))) else "answer"


def calls_of(family: Family, domain: Domain) -> str:
    """How many tools the oracle calls on clean tasks."""
    counts = [len(oracle.walk(domain, domain.task(family.name, seed)).calls) for seed in range(5)]
    return f"{min(counts)}-{max(counts)}" if min(counts) < max(counts) else str(counts[0])


def rows_of(domain: Domain) -> list[list[str]]:
    """The tables that clean solutions look into or write, with an id and the columns of a row."""
    found: dict[str, tuple[str, list[str]]] = {}
    for family in domain.families.values():
        seen: set[tuple[str, str]] = set()
        walked = oracle.walk(domain, domain.task(family.name, 0), seen=seen)
        state = walked.session.world.state
        for name, id in sorted({*seen, *state.overlay}):
            row = state.row(name, id)
            if row is not None:
                found.setdefault(name, (id, list(row)))
    return [[f"`{name}`", f"`{id}`", ", ".join(columns)] for name, (id, columns) in sorted(found.items())]


def roles(here: Sequence[Domain]) -> list[list[str]]:
    """What each domain calls the tools of which the graphs speak."""
    terms = {d.name: d.terms for d in here if isinstance(d, Desk)}
    names = {d.name: {spec.name for spec in d.world_class.specs} for d in here}
    parts = [f.name for f in fields(Terms) if all(getattr(t, f.name) in names[d] for d, t in terms.items())]
    return [[part, *(f"`{getattr(terms[d.name], part)}`" if d.name in terms else "" for d in here)] for part in parts]


def domain_section(domain: Domain) -> str:
    session = Session.of(domain, domain.task(next(iter(domain.families)), 0))
    tools = []
    for spec in domain.world_class.specs:
        kept = f"undone by `{spec.undo[0]}`" if spec.undo else "final" if spec.lasting else "nothing of consequence"
        params = ", ".join(f"`{name}{'' if p.required else '?'}`" for name, p in spec.params.items())
        tools.append([f"`{spec.name}`", params, session.render(spec.doc), kept if spec.writes else ""])
    families = [
        [
            f"`{family.name}`",
            str(family.level),
            calls_of(family, domain),
            f"`{graph.__name__}`" if (graph := graph_of(family)) else "",
            ends_in(family, domain),
            ", ".join(f"`{key}`" for key in withheld(family)),
            ", ".join(family.house_rules),
            first_line(type(family)),
        ]
        for family in domain.families.values()
    ]
    heads = ("family", "level", "calls", "graph", "ends in", "may withhold", "house rules", "what is asked")
    return "\n\n".join(
        (
            f"## {domain.name}",
            f"{domain.summary} {len(tools)} tools, {len(families)} families.",
            f"The policy:\n\n{quoted(domain.policy)}",
            table(("table", "an id", "columns"), rows_of(domain)),
            table(("tool", "parameters", "description", "writes"), tools),
            table(heads, families),
        )
    )


def domain_page() -> str:
    here = our_domains()
    mirrors: dict[type[Family], dict[str, str]] = {}
    own: list[list[str]] = []
    for domain in here:
        for family in domain.families.values():
            graph = graph_of(family)
            if graph is None:
                way = str(getattr(family, "stands", ""))
                facts = (str(family.level), ends_in(family, domain), way, first_line(type(family)))
                own.append([domain.name, f"`{family.name}`", *facts])
            else:
                cells = mirrors.setdefault(graph, {})
                cells[domain.name] = ", ".join(filter(None, (cells.get(domain.name, ""), f"`{family.name}`")))
    rows = [
        [
            f"`{graph.__name__}`",
            str(graph.level),
            str(getattr(graph, "stands", "")),
            *(cells.get(domain.name, "") for domain in here),
        ]
        for graph, cells in sorted(mirrors.items(), key=lambda item: item[0].level)
    ]
    return "\n\n".join(
        (
            "# Domains",
            NOTE,
            prose(
                """What [domains.md](../domains.md) explains, as tables. *Calls* are the oracle's on the clean tasks of
                seeds 0 to 4, questions to the user not counted. *House rules* are those that the family's solution
                knows how to follow (`rule_change`). A write is *final* where no tool takes it back."""
            ),
            "## Mirrors",
            f"{len(rows)} graphs; the families of a row are made of one graph each, with other tools, words and rules.",
            table(("graph", "level", "the way", *(domain.name for domain in here)), rows),
            "The tools behind the words of the third column:",
            table(("in the graphs", *(domain.name for domain in here)), roles(here)),
            "## Families of one domain alone",
            table(("domain", "family", "level", "ends in", "the way", "what is asked"), own),
            *map(domain_section, here),
        )
    ) + "\n"  # fmt: skip


# ---------------------------------------------------------------- the page of banks


def counted(name: str, count: Callable[[Split], Sequence[int]]) -> list[str]:
    """A row with the numbers of each split: the least and the usual one, or one alone."""
    cells = []
    for split in SPLITS:
        found = count(split)
        cells.append(f"{min(found)} / {statistics.median_low(found)}" if len(found) > 1 else str(found[0]))
    return [name, *cells]


def common_counts() -> list[list[str]]:
    common = banks.data("common")
    flat = ("openers", "closers", "asides", "extras", "endings", "distractors", "homophones")
    ways = [(register, way) for register in banks.REGISTERS for way in ("do", "ask")]
    return [
        *([name, *(str(len(common[name][split])) for split in SPLITS)] for name in flat),
        counted("lookalikes that read", lambda split: [len(common["lookalikes"]["reads"][split])]),
        counted("lookalikes that write", lambda split: [len(common["lookalikes"]["writes"][split])]),
        counted(
            "forms of a request, in each register", lambda split: [len(common["forms"][r][w][split]) for r, w in ways]
        ),
        counted(
            "wordings of each kind of text",
            lambda split: [
                math.prod(map(len, banks.wordings(kind, split))) for kind in banks.data("common")["phrases"]
            ],
        ),
    ]


def domain_counts(domain: Domain) -> list[list[str]]:
    name, bank, specs = domain.name, banks.data(domain.name), domain.world_class.specs

    def pairs(found: Iterable[tuple[str, str]]) -> int:
        return len({(banks.lemma(a), banks.lemma(b)) for a, b in found})

    return [
        counted("names of a tool", lambda split: [pairs(banks.tool_names(name, spec, split)) for spec in specs]),
        counted("names of a key", lambda split: [pairs(banks.key_names(name, key, split)) for key in bank["keys"]]),
        counted("descriptions of a tool", lambda split: [len(bank["descriptions"][s.name][split]) for s in specs]),
        counted("cores of a request", lambda split: [len(bank["families"][f][split]) for f in domain.families]),
        counted(
            "sentences around them", lambda split: [len(wording.skeletons(name, f, split)) for f in domain.families]
        ),
        counted("nouns of tools that nobody needs", lambda split: [len(bank["distractors"][split])]),
        counted("other fields of life", lambda split: [len(bank["fields"][split])]),
    ]


def bank_page() -> str:
    here = [domain for domain in our_domains() if banks.known(domain.name)]
    return "\n\n".join(
        (
            "# Banks",
            NOTE,
            prose(
                """What [banks.md](../banks.md) explains, counted: entries per split, after stripping case, separators
                and plural endings where names are counted. Two numbers are the least and the median over tools, keys,
                families, registers or kinds of text. Names of tools are pairs of an action and a word, names of keys
                pairs of a word and a qualifier, each in two orders and several styles, which are not counted."""
            ),
            "## Common",
            f"{len(banks.data('common')['phrases'])} kinds of text, {len(banks.REGISTERS)} registers.",
            table(("", *SPLITS), common_counts()),
            *(f"## {domain.name}\n\n{table(('', *SPLITS), domain_counts(domain))}" for domain in here),
        )
    ) + "\n"  # fmt: skip


# ---------------------------------------------------------------- writing


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    from docs import code_pages

    tiers = {f"{tier}.md": tier_page(tier) for tier in TIERS}
    return {
        "README.md": index(),
        "domains.md": domain_page(),
        "banks.md": bank_page(),
        **code_pages.pages(NOTE),
        **tiers,
    }


def differing(made: dict[str, str], where: Path = HERE) -> list[str]:
    """Files that are not what they should be: missing, changed, or left over."""
    there = {path.name: path.read_text(encoding="utf-8") for path in where.glob("*.md")}
    return sorted(name for name in {*made, *there} if made.get(name) != there.get(name))


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/reference from what is registered.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file differs")
    given = parser.parse_args()
    made = pages()
    if given.check:
        found = differing(made)
        for name in found:
            print(f"docs/reference/{name} is out of date; run python docs/make_reference.py", file=sys.stderr)
        return 1 if found else 0
    HERE.mkdir(exist_ok=True)
    for name in differing(made):
        if name in made:
            (HERE / name).write_text(made[name], encoding="utf-8")
        else:
            (HERE / name).unlink()
    print(f"wrote {len(made)} pages to {HERE.relative_to(HERE.parent.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
