"""`crosswind adapt`: from an alarm to a promoted version of an agent, and the registry of versions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.cli.exits import MISTAKE, STOPPED
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json, Seed, names_in
from crosswind.cli.progress import RunDisplay

if TYPE_CHECKING:
    from crosswind.adapt.loop import AdaptDone
    from crosswind.adapt.plan import AdaptPlan
    from crosswind.adapt.registry import AgentRegistry, Scores, Version

EPILOG = epilog(
    "crosswind adapt start embedded:static",
    "crosswind adapt run alarms.jsonl --domain poi --way wrapper --dry-run",
    "crosswind adapt run alarms.jsonl --domain poi --way train --out adaptations/first",
    "crosswind adapt rollback --reason 'complaints since Monday'",
    notes="docs/adapt.md explains the stages, the ways to adapt and the registry.",
)
RUN_EPILOG = epilog(
    "crosswind adapt run alarms.jsonl --domain poi --way wrapper",
    "crosswind adapt run alarms.jsonl --domain poi --way train --set steps=400 --out adaptations/first",
    "crosswind adapt run --new semantic_rename:3 --domain poi --way notes --dry-run",
    notes="Rerun the command with the same --out to resume.",
    exits={
        0: "promoted, or the shift does not hurt this agent",
        1: "rejected by the gate, or no candidate is better",
        STOPPED: "stopped by the provider, the disk or a failed training (nothing was promoted)",
        4: "inconclusive (nothing was promoted)",
    },
)
Registry = Annotated[
    Path, Option("--registry", metavar="DIR", help="Folder where the versions of the agent are registered.")
]
Reason = Annotated[str, Option(help="Reason to record in the registry.")]
REGISTRY = Path("registry")
app = App(
    name="adapt",
    no_args_is_help=True,
    help="Adapt an agent to a change in its tools, and track its versions.",
    epilog=EPILOG,
)


@app.command(epilog=RUN_EPILOG)
@terminal.reserve_stdout()
def run(
    alarms: Annotated[Path | None, Argument(metavar="[ALARMS]", help="JSON lines of `crosswind watch --json`.")] = None,
    domain: Annotated[
        list[str], Option(metavar="NAME,...", help="Simulated domains that resemble the agent's work.")
    ] = [],  # noqa: B006
    way: Annotated[
        str,
        Option(
            metavar="notes|wrapper|adapter|train",
            help="notes: give the agent notes on the change; wrapper: repair calls and results; adapter: take the "
            "best other version in the registry; train: fine-tune a new adapter.",
        ),
    ] = "wrapper",
    registry: Registry = REGISTRY,
    out: Annotated[Path, Option(metavar="DIR", help="Folder of this adaptation; reuse it to resume.")] = Path(
        "adaptations/next"
    ),
    alarm: Annotated[
        list[int], Option(metavar="N", help="Use only the Nth alarm of the file (the first is 1); repeatable.")
    ] = [],  # noqa: B006
    new: Annotated[
        list[str],
        Option(
            metavar="KIND[:SEVERITY]", help="Adapt to this perturbation too, in addition to the alarms; repeatable."
        ),
    ] = [],  # noqa: B006
    old: Annotated[
        list[str],
        Option(
            metavar="KIND[:SEVERITY]",
            help="Also limit the drop under this perturbation to --max-forget; repeatable. Clean tasks and the "
            "perturbations of earlier adaptations are always included.",
        ),
    ] = [],  # noqa: B006
    parts: Annotated[
        list[str],
        Option(
            metavar="PART,...",
            show_default="chosen on the dev split",
            help="For --way wrapper: parts to use (docs/agents.md).",
        ),
    ] = [],  # noqa: B006
    memory: Annotated[
        Path | None,
        Option(metavar="FILE", help="For --way wrapper: the interface that the agent knows, from `adapt learn`."),
    ] = None,
    train: Annotated[
        Path | None, Option(metavar="FILE", help="For --way train: configuration file, as for `crosswind train paft`.")
    ] = None,
    set_: Annotated[
        list[str], Option("--set", metavar="KEY=VALUE", help="For --way train: override an option; repeatable.")
    ] = [],  # noqa: B006
    tasks: Annotated[int, Option(min=1, help="Tasks per domain and world (clean, old or new) for the gate.")] = 90,
    dev_tasks: Annotated[int, Option(metavar="N", min=1, help="The same, for choosing between candidates.")] = 18,
    seed: Seed = 0,
    max_forget: Annotated[
        float,
        Option(
            metavar="SHARE",
            min=0,
            max=0.99,
            help="Largest allowed drop in success in each old world, clean tasks included.",
        ),
    ] = 0.05,
    min_gain: Annotated[
        float,
        Option(
            metavar="SHARE",
            min=0,
            max=0.99,
            help="Minimum required rise in success on each new world (the alarms, and --new).",
        ),
    ] = 0.05,
    max_refusal_drop: Annotated[
        float, Option(metavar="SHARE", min=0, max=0.99, help="Largest allowed drop in correct refusals.")
    ] = 0.15,
    deadline: Annotated[float, Option(min=0, help="Seconds after which each run stops; 0: no limit.")] = 0,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the stages and their cost; run nothing.")] = False,
    progress: Annotated[bool, Option(help="Show progress.")] = True,
    json_: Json = False,
) -> None:
    """Adapt the current version to the shifts in a file of alarms, and promote the result if it passes.

    The shift is reproduced in simulated domains, and a candidate is made. Candidate and current version then play the
    same tasks, both with the shift (new worlds) and without it (old worlds), and the gate compares them.
    """
    from crosswind.adapt.loop import EXITS, Loop, LoopStopped
    from crosswind.adapt.registry import AgentRegistry
    from crosswind.runs.runner import Limits

    store = AgentRegistry(registry)
    plan = _plan(
        store, alarms, alarm, new, old, names_in("--domain", domain), way, names_in("--parts", parts), memory,
        train, set_,
        tasks=tasks, dev_tasks=dev_tasks, seed=seed, max_forget=max_forget, min_gain=min_gain,
        max_refusal_drop=max_refusal_drop, out=out,
    )  # fmt: skip
    if dry_run:
        _forecast(plan, store, json_=json_)
        return
    watch = RunDisplay(quiet=json_ or not progress)
    loop = Loop(plan, store, out, tell=_say, watch=watch, limits=Limits(deadline=deadline or None))
    try:
        with watch:
            done = loop.run()
    except LoopStopped as stopped:
        print(f"error: {terminal.one_line(str(stopped))}; nothing was promoted. Rerun to resume", file=sys.stderr)
        raise Exit(STOPPED) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"rerun the command with --out {out} to resume") from None
    except (RuntimeError, OSError) as error:  # of the packages that train
        if way != "train":
            raise
        told = terminal.one_line(f"{type(error).__name__}: {error}")
        print(f"error: the training failed ({told}); nothing was promoted. Rerun to resume", file=sys.stderr)
        raise Exit(STOPPED) from None
    _show_done(done, out, json_=json_)
    raise Exit(EXITS[done.outcome])


def _say(text: str) -> None:
    print(terminal.safe(text), file=sys.stderr, flush=True)


def _plan(
    store: AgentRegistry,
    alarms: Path | None,
    chosen: list[int],
    new: list[str],
    old: list[str],
    names: list[str],
    way: str,
    parts: list[str],
    memory: Path | None,
    train: Path | None,
    changes: list[str],
    *,
    out: Path,
    **numbers: Any,
) -> AdaptPlan:
    """The options as a plan. A folder that has one keeps its parent, so that what was promoted is not adapted again."""
    from crosswind.adapt import ways
    from crosswind.adapt.alarms import chosen_alarms
    from crosswind.adapt.loop import parent_of
    from crosswind.adapt.plan import AdaptPlan, worlds
    from crosswind.adapt.registry import WAYS
    from crosswind.core.registry import domains
    from crosswind.episodes.recipe import named
    from crosswind.models.wrapping import PARTS

    if way not in WAYS:
        raise CrosswindError(f"--way is {way!r}; expected {', '.join(WAYS[:-1])} or {WAYS[-1]}")
    if unknown := [part for part in parts if part not in PARTS]:
        raise CrosswindError(f"--parts: no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    if alarms is None and not new:
        raise CrosswindError("nothing to adapt to; give a file of alarms, or --new KIND[:SEVERITY]")
    if not names:
        raise CrosswindError(
            f"give --domain, with simulated domains that resemble the agent's work: {', '.join(domains.names())}"
        )
    for name in names:
        domains[name]  # says which names there are
    if memory is not None and not memory.is_file():
        raise CrosswindError(f"--memory {memory}: file not found; write one with `crosswind adapt learn`")
    current = parent_of(out, store)
    spec = store.spec(current)
    options: dict[str, Any] = {}
    if way == "train":
        from crosswind.train.config import load

        ways.check_trainable(spec)
        options = load(train, changes).model_dump(mode="json", exclude_unset=True)
    elif train is not None or changes:
        raise CrosswindError("--train and --set are for --way train; leave them out")
    found = chosen_alarms(alarms, chosen) if alarms is not None else []
    besides = [named([text]) for text in new]
    new_worlds, old_worlds = worlds(found, besides, store, current, [named([text]) for text in old])
    return AdaptPlan(
        agent=spec,
        parent=current.number,
        way=way,  # type: ignore[arg-type]
        alarms=tuple(found),
        new=new_worlds,
        old=old_worlds,
        domains=tuple(dict.fromkeys(names)),
        parts=tuple(parts),
        memory=str(memory or ""),
        train=options,
        **numbers,
    )


def _forecast(plan: AdaptPlan, store: AgentRegistry, *, json_: bool) -> None:
    """What the stages would do and cost."""
    from crosswind.adapt import ways
    from crosswind.adapt.alarms import name_of
    from crosswind.cli.dry_run import forecast
    from crosswind.models.source import AgentSettings
    from crosswind.models.spec import open_agent

    others = sum(1 for one in store.versions() if one.number != plan.parent)
    choices = {"wrapper": 0 if plan.parts else 3, "adapter": others + 1 if others else 0}.get(plan.way, 0)
    each, dev = plan.episodes("test"), plan.episodes("dev")
    steps: list[dict[str, Any]] = [
        {"stage": "reproduce", "does": "play the current agent in old and new worlds", "episodes": each},
        {"stage": "candidate", "does": f"by {plan.way}", "episodes": choices * dev},
        {"stage": "retest", "does": "play the candidate over the same episodes", "episodes": each},
        {"stage": "gate", "does": "compare the two by the rules", "episodes": 0},
    ]
    data: dict[str, Any] = {
        "agent": plan.agent,
        "parent": plan.parent,
        "new": [name_of(recipe) for recipe in plan.new],
        "old": [name_of(recipe) for recipe in plan.old],
        "stages": steps,
        "episodes": 2 * each + choices * dev,
    }
    if plan.way == "train":
        from crosswind.train.config import fitted

        config = fitted(ways.training(plan, "embedded", ""), [], "paft")
        data["training"] = {
            "steps": config.steps,
            "demonstrations": config.steps * config.batch,
            "kinds": sorted(config.data.followed().kinds()),
        }
    if json_:
        terminal.print_json(data)
        return
    print(terminal.one_line(f"version {plan.parent}: {plan.agent}"), file=terminal.out())
    print(
        f"new worlds: {', '.join(data['new'])}; old worlds: clean{''.join(f', {name}' for name in data['old'])}",
        file=terminal.out(),
    )
    terminal.print_table(
        ["stage", "what it does", "episodes"], ([s["stage"], s["does"], str(s["episodes"])] for s in steps)
    )
    if told := data.get("training"):
        kinds = ", ".join(told["kinds"])
        print(
            f"training: {told['steps']} steps, {told['demonstrations']:,} demonstrations; perturbed by {kinds}",
            file=terminal.out(),
        )
    print("One pass of the current agent over the test episodes:", file=terminal.out())
    source = open_agent(plan.agent, AgentSettings(offline=True))
    forecast(
        plan.suite("test"), source, seed=plan.seed, trials=1, limit=None, concurrency=source.concurrency, json_=False
    )


def _show_done(done: AdaptDone, out: Path, *, json_: bool) -> None:
    if json_:
        terminal.print_json({"folder": str(out), **done.model_dump(mode="json")})
        return
    if done.scores:
        _show_scores(done.parent_scores, done.scores)
    print(terminal.safe(done.says), file=terminal.out())
    if done.outcome == "promoted":
        print(
            f"Promoted: version {done.version} is in use. `crosswind adapt rollback` returns to {done.parent}.",
            file=terminal.out(),
        )
    elif done.version is not None:
        print(f"Version {done.version} is kept in the registry, but is not in use.", file=terminal.out())


def _show_scores(before: Scores, after: Scores) -> None:
    rows = []
    for name, new in after.items():
        old = before.get(name)
        rows.append([name, str(new.n), f"{100 * old.rate:.0f} %" if old else "", f"{100 * new.rate:.0f} %"])
    terminal.print_table(["tasks of", "n", "before", "after"], rows)


# ---------------------------------------------------------------- the registry


@app.command(epilog=epilog("crosswind adapt learn runs/live --episodes 200 --out memory.json"))
def learn(
    folder: Annotated[Path, Argument(metavar="DIR", help="Folder of a run, or of a proxy's log.")],
    out: Annotated[Path, Option("--out", "-o", metavar="FILE", help="File to write.")] = Path("memory.json"),
    episodes: Annotated[
        int, Option(min=0, help="Read only the first N episodes (those before the change); 0: all.")
    ] = 0,
    json_: Json = False,
) -> None:
    """Learn the interface that an agent knows: its tools and the shapes of their results.

    Reads only what the agent saw and answered. Pass the file as --memory to `crosswind adapt run` or to `crosswind
    proxy --adapt`.
    """
    from crosswind.adapt.learn import interface_of
    from crosswind.base.files import replace_file
    from crosswind.runs.store import iter_records, load_manifest

    load_manifest(folder)
    found = interface_of(iter_records(folder), episodes or None)
    if not found:
        raise CrosswindError(f"{folder}: no episode shows a tool, so there is nothing to learn from")
    data = found.dump()
    try:
        replace_file(out, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())
    except OSError as error:
        raise CrosswindError(f"{out}: cannot be written ({error.strerror})") from None
    shaped = sum(1 for tool in found.tools.values() if tool.shape)
    if json_:
        terminal.print_json({"file": str(out), "tools": len(found.tools), "shapes": shaped})
    else:
        print(f"wrote {out}: {len(found.tools)} tools, the results of {shaped} of them")


@app.command(epilog=epilog("crosswind adapt start embedded:static", "crosswind adapt start openai:MODEL@URL"))
def start(
    spec: Annotated[str, Argument(help="Agent, as for `crosswind run --agent`.")],
    registry: Registry = REGISTRY,
    json_: Json = False,
) -> None:
    """Register the present agent as the first version, and make it current."""
    from crosswind.adapt.registry import AgentRegistry
    from crosswind.models.source import AgentSettings
    from crosswind.models.spec import open_agent

    open_agent(spec, AgentSettings(offline=True))  # says what is wrong with the spec
    _report(AgentRegistry(registry).start(spec), "is in use", json_)


@app.command(epilog=epilog("crosswind adapt add embedded:runs/other/adapter --reason 'trained on dates'"))
def add(
    spec: Annotated[str, Argument(help="Agent, as for `crosswind run --agent`.")],
    registry: Registry = REGISTRY,
    reason: Reason = "",
    json_: Json = False,
) -> None:
    """Register another version, such as a trained adapter, for `adapt run --way adapter` to choose."""
    from crosswind.adapt.registry import AgentRegistry
    from crosswind.models.source import AgentSettings
    from crosswind.models.spec import open_agent

    open_agent(spec, AgentSettings(offline=True))
    store = AgentRegistry(registry)
    current = store.current()
    parent = current.number if current else None
    _report(store.add(spec, parent=parent, reason=reason or "added by hand"), "is registered, but is not in use", json_)


@app.command(name="list", epilog=epilog("crosswind adapt list", "crosswind adapt list --json"))
def list_(registry: Registry = REGISTRY, json_: Json = False) -> None:
    """List the versions, with their parents, gate verdicts and history."""
    from crosswind.adapt.registry import AgentRegistry

    store = AgentRegistry(registry)
    damaged = store.damaged()
    current = store.current() if not damaged else None
    if json_:
        data = {
            "current": current.number if current else None,
            "versions": [one.model_dump(mode="json") for one in store.versions()],
            "damaged": damaged,
            "events": [] if damaged else [one.model_dump(mode="json") for one in store.events()],
        }
        terminal.print_json(data)
    else:
        rows = []
        for one in store.versions():
            mark = "*" if current and one.number == current.number else ""
            new = ", ".join(name for name in one.scores if name.startswith("new/"))
            cells = (
                f"{one.number}{mark}",
                str(one.parent or ""),
                one.way,
                one.verdict,
                new,
                one.created[:16],
                one.spec,
            )
            rows.append([terminal.one_line(cell) for cell in cells])
        terminal.print_table(["version", "parent", "way", "gate", "new worlds", "made", "agent"], rows)
        for event in () if damaged else store.events():
            before = f" (before: {event.before})" if event.before else ""
            line = f"{event.created[:16]} {event.sort}: {event.version}{before} {event.reason}"
            print(terminal.one_line(line).rstrip())
    if damaged:
        for line in damaged:
            print(f"error: {terminal.one_line(line)}", file=sys.stderr)
        raise Exit(MISTAKE)


@app.command(epilog=epilog('crosswind run quick --agent "$(crosswind adapt current)"'))
def current(registry: Registry = REGISTRY) -> None:
    """Print the spec of the current version, for --agent."""
    from crosswind.adapt.registry import AgentRegistry

    store = AgentRegistry(registry)
    found = store.current()
    if found is None:
        raise CrosswindError(
            f"{registry}: this registry has no current version; start with `crosswind adapt start SPEC`"
        )
    print(terminal.one_line(store.spec(found)))


@app.command(epilog=epilog("crosswind adapt promote 3"))
def promote(
    version: Annotated[int, Argument(help="Number of a version that passed the gate.")],
    registry: Registry = REGISTRY,
    reason: Reason = "",
    json_: Json = False,
) -> None:
    """Make a version current; it must have passed the gate against the current one."""
    from crosswind.adapt.registry import AgentRegistry

    _report(AgentRegistry(registry).promote(version, reason=reason), "is in use", json_)


@app.command(epilog=epilog("crosswind adapt rollback", "crosswind adapt rollback --to 1 --reason 'complaints'"))
def rollback(
    to: Annotated[
        int | None, Option(metavar="VERSION", show_default="the previous one", help="Version to go back to.")
    ] = None,
    registry: Registry = REGISTRY,
    reason: Reason = "",
    json_: Json = False,
) -> None:
    """Make the previous version current again."""
    from crosswind.adapt.registry import AgentRegistry

    _report(AgentRegistry(registry).rollback(to, reason), "is in use again", json_)


def _report(version: Version, state: str, json_: bool) -> None:
    if json_:
        terminal.print_json(version.model_dump(mode="json"))
    else:
        print(terminal.one_line(f"version {version.number} {state}: {version.spec}"))
