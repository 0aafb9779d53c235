"""`crosswind catalog`: what there is to use, in short or in detail."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Annotated, Any

from typer import Argument, Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError, UnknownName
from crosswind.base.version import __version__
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json

Row = dict[str, Any]
TOPICS = ("domains", "families", "kinds", "suites", "streams", "agents", "recipes")
FILTERS = {
    "domain": ("families", "domains", "suites", "streams"),
    "tier": ("kinds",),
    "axis": ("kinds",),
}  # the first by default
COLUMNS = {  # keys of a row, and the heads of their columns
    "domains": {"name": "domain", "tools": "tools", "families": "families", "summary": "what it is"},
    "families": {"domain": "domain", "name": "family", "level": "level", "ends": "ends in", "summary": "task"},
    "kinds": {"kind": "kind", "axis": "axis", "tier": "tier", "training": "training", "summary": "what it does"},
    "suites": {"name": "suite", "domains": "domains", "kinds": "kinds", "episodes": "episodes", "summary": "what for"},
    "streams": {
        "name": "stream",
        "domains": "domains",
        "kinds": "kinds",
        "episodes": "episodes",
        "summary": "what for",
    },
    "agents": {"name": "agent", "summary": "what it does"},
    "recipes": {"name": "recipe", "kinds": "kinds", "summary": "stacks"},
}
WIDTH = 79  # of the overview

EPILOG = epilog(
    "crosswind catalog kinds --tier reasoning",
    "crosswind catalog families --domain poi",
    "crosswind catalog --search price",
)
app = App()


@app.command(epilog=EPILOG)
def catalog(
    topic: Annotated[
        str,
        Argument(metavar="[TOPIC]", show_default="an overview", help=f"{', '.join(TOPICS[:-1])} or {TOPICS[-1]}."),
    ] = "",
    domain: Annotated[str, Option(help="Only entries of this domain.")] = "",
    tier: Annotated[
        str, Option(help="Only perturbations of this tier: perception, interaction, reasoning or internalization.")
    ] = "",
    axis: Annotated[str, Option(help="Only perturbations on this axis: query, action, observation or domain.")] = "",
    search: Annotated[str, Option(metavar="TEXT", help="Only entries that contain this text.")] = "",
    json_: Json = False,
) -> None:
    """List domains, task families, perturbations, suites, streams, agents and recipes."""
    given = {name: value for name, value in (("domain", domain), ("tier", tier), ("axis", axis)) if value}
    topic = _checked(topic, given)
    rows = everything()
    if not (topic or search):
        if json_:
            terminal.print_json(document(rows))
        else:
            print("\n".join(overview(rows)))
        return
    some = {name: [row for row in rows[name] if _fits(row, given, search)] for name in TOPICS if topic in ("", name)}
    if json_:
        terminal.print_json({"version": __version__, **some})
        return
    for name, found in some.items():
        if found:
            _show(name, found, titled=not topic)
    if not any(some.values()):
        print(f"nothing in the catalog contains {terminal.safe(search)!r}" if search else "nothing fits these options")


def _checked(topic: str, given: dict[str, str]) -> str:
    """The topic, or the one that the filters are for; names that do not exist and filters that do not apply raise."""
    from crosswind.core.registry import did_you_mean, domains
    from crosswind.core.types import AXES, TIERS

    if topic and topic not in TOPICS:
        for name, rows in everything().items():
            if any(row["kind" if name == "kinds" else "name"] == topic for row in rows):
                raise UnknownName(
                    f"{topic!r} is not a topic but one of the {name}; use `crosswind catalog {name} --search {topic}`"
                )
        raise UnknownName(f"no topic {topic!r}; {did_you_mean(topic, list(TOPICS))}")
    known: dict[str, list[str]] = {"domain": domains.names(), "tier": [*TIERS], "axis": [*AXES]}
    for name, value in given.items():
        if value not in known[name]:
            raise UnknownName(f"no {name} {value!r}; {did_you_mean(value, known[name])}")
        topic = topic or FILTERS[name][0]
        if topic not in FILTERS[name]:
            raise CrosswindError(f"--{name} does not apply to {topic}; use it with {' or '.join(FILTERS[name])}")
    return topic


def _fits(row: Row, given: dict[str, str], search: str) -> bool:
    for name, value in given.items():
        own = row["domains"] if name == "domain" and "domains" in row else row[name]
        if value != own and not (isinstance(own, list) and value in own):
            return False
    return search.lower() in " ".join(map(str, row.values())).lower()


# ---------------------------------------------------------------- rows


def everything() -> dict[str, list[Row]]:
    """Every entry of the catalog, by topic."""
    from crosswind.core.registry import agents, domains, perturbations
    from crosswind.episodes.recipe import recipes
    from crosswind.episodes.stream import plans
    from crosswind.episodes.suite import suites
    from crosswind.models.spec import SPECS
    from crosswind.words.held_out import HELD_OUT

    scripted = [
        {"name": name, "summary": _first_line(agents[name]), "origin": agents.origin(name)} for name in agents.names()
    ]
    return {
        "domains": [
            {
                "name": d.name,
                "domain": d.name,
                "summary": d.summary,
                "origin": domains.origin(d.name),
                "tools": [t.name for t in d.world_class.specs],
                "families": list(d.families),
            }
            for d in domains
        ],
        "families": [
            {
                "domain": d.name,
                "name": f.name,
                "level": f.level,
                "ends": "a refusal" if f.refusal else "an answer",
                "graph": getattr(f, "stands", ""),
                "summary": _first_line(type(f)),
            }
            for d in domains
            for f in d.families.values()
        ],
        "kinds": [
            {
                "kind": kind,
                "axis": perturbations[kind].axis,
                "tier": perturbations[kind].tier,
                "training": "held out" if kind in HELD_OUT else "yes",
                "summary": _first_line(perturbations[kind]),
                "severities": perturbations[kind].severities,
                "origin": perturbations.origin(kind),
            }
            for kind in perturbations.names()
        ],
        "suites": [_suite(suites[name]) for name in suites.names()],
        "streams": [_stream(plan) for plan in plans],
        "agents": [*scripted, *({"name": spec, "summary": about, "origin": ""} for spec, about in SPECS.items())],
        "recipes": [
            {"name": name, "summary": recipes[name].summary, "kinds": recipes[name].kinds()} for name in recipes.names()
        ],
    }


def _suite(suite: Any) -> Row:
    conditions = suite.all_conditions()
    return {
        "name": suite.name,
        "version": suite.version,
        "summary": suite.summary,
        "domains": list(dict.fromkeys(name for c in conditions for name in suite.where(c))),
        "kinds": list(dict.fromkeys(kind for c in conditions for kind in c.recipe.kinds())),
        "episodes": sum((c.tasks or suite.tasks) * len(suite.where(c)) for c in conditions),  # where all kinds apply
    }


def _stream(plan: Any) -> Row:
    return {
        "name": plan.name,
        "summary": plan.summary,
        "domains": plan.where(),
        "kinds": [text.partition(":")[0] for text in (*getattr(plan, "kinds", ()), *getattr(plan, "drift", ()))],
        "episodes": plan.episodes,  # of one stream
    }


def document(rows: dict[str, list[Row]]) -> dict[str, Any]:
    """Everything as one document, with the schemas of tools."""
    from crosswind.core.registry import domains
    from crosswind.models.spec import SPECS

    families: dict[str, list[Row]] = {row["name"]: [] for row in rows["domains"]}
    for row in rows["families"]:
        families[row["domain"]].append({**row, "refusal": row["ends"] == "a refusal"})
    scripted = [row for row in rows["agents"] if row["name"] not in SPECS]
    return {
        "version": __version__,
        "domains": [
            {
                **row,
                "functions": [t.function() for t in domains[row["name"]].world_class.specs],
                "families": families[row["name"]],
            }
            for row in rows["domains"]
        ],
        "perturbations": rows["kinds"],
        "agents": [row["name"] for row in scripted],
        "agent_origins": {row["name"]: row["origin"] for row in scripted if row["origin"]},
        "agent_specs": SPECS,
        "suites": [row["name"] for row in rows["suites"]],
        "suite_details": rows["suites"],
        "streams": rows["streams"],
        "recipes": rows["recipes"],
    }


def _first_line(thing: type) -> str:
    return (thing.__doc__ or "").strip().split("\n")[0]


# ---------------------------------------------------------------- text


def overview(rows: dict[str, list[Row]]) -> list[str]:
    """The names of all entries on one screen; families only by their number."""
    from crosswind.core.types import TIERS
    from crosswind.models.spec import SPECS

    out = [f"domains ({len(rows['domains'])}, with {len(rows['families'])} families of tasks)"]
    out += _names(f"{row['name']}{_from(row)}" for row in rows["domains"])
    out.append(f"kinds of perturbations ({len(rows['kinds'])}; * held out from training)")
    for tier in TIERS:
        some = [row for row in rows["kinds"] if row["tier"] == tier]
        out += _names(
            (f"{row['kind']}{'*' if row['training'] == 'held out' else ''}{_from(row)}" for row in some), f"{tier}: "
        )
    out.append(f"suites ({len(rows['suites'])})")
    out += ["  " + terminal.short(f"{row['name']:<10} {row['summary']}", WIDTH - 2) for row in rows["suites"]]
    out.append(f"streams and careers ({len(rows['streams'])}), for crosswind stream")
    out += _names(row["name"] for row in rows["streams"])
    out.append(f"agents ({len(rows['agents']) - len(SPECS)} baselines, {len(SPECS)} forms of specs)")
    out += _names(f"{row['name']}{_from(row)}" for row in rows["agents"])
    out.append(f"recipes ({len(rows['recipes'])})")
    out += _names(row["name"] for row in rows["recipes"])
    out.append(f"\nDetails: crosswind catalog {'|'.join(TOPICS)}")
    return out


def _names(names: Any, label: str = "") -> list[str]:
    return textwrap.wrap(
        label + ", ".join(map(terminal.safe, names)),
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )


def _from(row: Row) -> str:
    """Where an entry of a plugin comes from; empty for ours."""
    return f" (from {terminal.safe(row['origin'])})" if row.get("origin") else ""


def _show(topic: str, rows: Sequence[Row], *, titled: bool) -> None:
    table = terminal.table_of(*COLUMNS[topic].values())
    if titled:
        table.title = topic
    for row in rows:
        cells = [str(len(v)) if isinstance(v := row[key], list) and key != "domains" else v for key in COLUMNS[topic]]
        cells = [", ".join(cell) if isinstance(cell, list) else str(cell) for cell in cells]
        table.add_row(*(terminal.safe(cell) for cell in [*cells[:-1], cells[-1] + _from(row)]))
    terminal.console().print(table)
