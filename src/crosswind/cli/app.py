"""The command line. Thin: parse, call one function, print. Heavy modules are imported by the commands themselves."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from crosswind.base import terminal
from crosswind.base.version import __version__

if TYPE_CHECKING:
    from crosswind.core.draw import Drawn
    from crosswind.core.types import Trajectory, Verdict
    from crosswind.episodes.suite import Row


class Commands(TyperGroup):
    """The commands; of an option that is out of range it is told which value came, and a stop is told of."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            if isinstance(error.__cause__, ValidationError):
                from crosswind.base.files import complaint

                first = error.__cause__.errors()[0]
                low, high = getattr(error.param, "min", None), getattr(error.param, "max", None)
                error.message = complaint(first)
                if low is not None and high is not None:
                    error.message = f"got {first['input']!r}; expected a number from {low} to {high}"
            raise
        except KeyboardInterrupt as stop:  # typer would exit without a word
            print(f"stopped; {terminal.safe(str(stop))}" if stop.args else "stopped", file=sys.stderr)
            raise typer.Exit(130) from None


app = typer.Typer(
    name="crosswind",
    cls=Commands,
    help="Does a tool-use agent survive the open world? Perturbed tasks, proved fair, and what agents make of them.",
    epilog="Start with: crosswind demo. Then: crosswind run tiers --agent openai:MODEL@URL, crosswind report RUN",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Seed = Annotated[int, typer.Option(min=0, help="Equal seeds give equal tasks, stacks and episodes.")]
Severity = Annotated[int, typer.Option(min=1, max=5, help="How strong the perturbations are.")]


def main() -> None:
    """Run the command line; what a user can mend is one line on stderr, never a traceback."""
    from crosswind.base.errors import CrosswindError

    warnings.formatwarning = _warning
    try:
        app()
    except CrosswindError as error:
        print(f"error: {terminal.safe(str(error))}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)


def _warning(message: Warning | str, *_: object, **__: object) -> str:
    """A warning as one line, without the place in the code that gave it."""
    return f"warning: {terminal.safe(str(message))}\n"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"crosswind {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    plugin: Annotated[
        list[Path],
        typer.Option(help="A Python file or YAML domain to add (docs/plugins.md); may be given several times."),
    ] = [],  # noqa: B006
) -> None:
    """Options of every command."""
    if plugin:
        from crosswind.authoring import plugins

        plugins.share(plugin)


# ---------------------------------------------------------------- new


@app.command()
def new(
    sort: Annotated[str, typer.Argument(help="domain, perturbation or agent.")],
    name: Annotated[str, typer.Argument(help="What it is called, in snake_case.")],
    out: Annotated[Path, typer.Option(help="The folder to write into.")] = Path("."),
    force: Annotated[bool, typer.Option("--force", help="Write over files that exist.")] = False,
) -> None:
    """Write a commented starting point for something of your own, and a test of it that passes."""
    from crosswind.authoring.new import write

    module, test = write(sort, name, out, force=force)
    use = {
        "domain": f"play --domain {name}",
        "perturbation": f"play --domain poi --perturb {name}",
        "agent": f"play --domain poi --agent {name}",
    }[sort]
    print(f"wrote {module} and {test}\n  pytest {test}\n  crosswind --plugin {module} {use}")


# ---------------------------------------------------------------- certify


@app.command()
def certify(
    domain: Annotated[str, typer.Option(help="A domain, or all.")] = "all",
    perturb: Annotated[str, typer.Option(help="A kind of perturbation, or all.")] = "all",
    count: Annotated[int, typer.Option(min=1, help="Certified draws wanted per kind and domain.")] = 20,
    seed: Seed = 0,
    severity: Severity = 3,
    deep: Annotated[bool, typer.Option(help="Check also the laws that do not depend on the draw.")] = False,
    json_: Json = False,
) -> None:
    """Draw perturbed tasks and certify each: solvable by replay, or refusable by proof.

    A draw that breaks a law is refused with the reason and drawn again; a kind that finds nothing to bite on in
    a task is counted apart. Exits with 1 if a kind has no certified draw in a domain where it applies.
    """
    from crosswind.core.registry import domains, perturbations
    from crosswind.episodes.survey import survey

    names = domains.names() if domain == "all" else [domains[domain].name]
    kinds = perturbations.names() if perturb == "all" else [perturb]
    for kind in kinds:
        perturbations[kind]
    began = time.perf_counter()
    with terminal.Status("certifying", json_) as status:
        rows = survey(names, kinds, count, seed, severity, deep=deep, progress=status)
    reasons: dict[str, int] = {}
    for row in rows:
        for reason, n in row["reasons"].items():
            reasons[reason] = reasons.get(reason, 0) + n
    data = {
        "certified": sum(r["certified"] for r in rows),
        "refused": sum(r["refused"] for r in rows),
        "not_applicable": sum(r["not_applicable"] for r in rows),
        "reasons": reasons,
        "rows": rows,
        "count": count,
        "seed": seed,
        "severity": severity,
        "seconds": round(time.perf_counter() - began, 3),
    }
    if json_:
        terminal.print_json(data)
    else:
        table = terminal.table_of("domain", "kind", "certified", "refused", "n/a", "most frequent reason")
        for row in rows:
            worst = max(row["reasons"], key=lambda r: row["reasons"][r], default="")
            table.add_row(
                row["domain"], row["kind"], *(str(row[k]) for k in ("certified", "refused", "not_applicable")), worst
            )
        console = terminal.console()
        console.print(table)
        console.print(
            f"{data['certified']} certified, {data['refused']} refused, {data['not_applicable']} not applicable "
            f"in {data['seconds']:.1f} s"
        )
    if any(r["certified"] == 0 and r["applies"] for r in rows):
        raise typer.Exit(1)


# ---------------------------------------------------------------- play


@app.command()
def play(
    domain: Annotated[str, typer.Option(help="The domain to play in.")],
    agent: Annotated[str, typer.Option(help="Who plays, as for `crosswind run --agent`.")] = "oracle",
    seed: Seed = 0,
    family: Annotated[str, typer.Option(help="The family of tasks; by default the seed chooses.")] = "",
    perturb: Annotated[list[str], typer.Option(help="kind or kind:severity; may be given several times.")] = [],  # noqa: B006
    stack: Annotated[
        Path | None, typer.Option(help="A JSON file with layers, as `layers` in the output of --json.")
    ] = None,
    split: Annotated[str, typer.Option(help="train, dev or test: which entities the world is made of.")] = "test",
    size: Annotated[int, typer.Option(min=100, max=300_000, help="Entities in the world.")] = 3000,
    json_: Json = False,
) -> None:
    """Play one episode and show it: what the agent saw beside what the world saw, with the obstacles it met."""
    import asyncio

    from crosswind.episodes.play import judge
    from crosswind.episodes.play import play as play_episode
    from crosswind.models.spec import open_agent

    drawn = _draw(domain, family, seed, perturb, stack, split, size)
    source = open_agent(agent)

    async def once() -> Trajectory:
        try:
            return await play_episode(drawn, source.make(drawn), source.name)
        finally:
            await source.aclose()

    trajectory = asyncio.run(once())
    verdict = judge(trajectory)
    if json_:
        data = trajectory.model_dump(mode="json")
        terminal.print_json(data | {"proof": drawn.certificate.proof, "verdict": verdict.model_dump(mode="json")})
    else:
        _show_episode(drawn, trajectory, verdict)


def _draw(domain: str, family: str, seed: int, perturb: list[str], stack: Path | None, split: str, size: int) -> Drawn:
    from crosswind.base.errors import CannotPerturb, CrosswindError, UnknownName
    from crosswind.core.certify import certify as certify_stack
    from crosswind.core.draw import Drawn, draw, parse_kind
    from crosswind.core.perturbation import load_layers
    from crosswind.core.registry import domains, near
    from crosswind.core.types import SPLITS

    here = domains[domain]
    names = list(here.families)
    family = family or names[seed % len(names)]
    if family not in here.families:
        raise UnknownName(f"no family {family!r} in {domain}; {near(family, names)}")
    if split not in SPLITS:
        raise UnknownName(f"no split {split!r}; {near(split, list(SPLITS))}")
    kinds = [parse_kind(text) for text in perturb]
    task = here.task(family, seed, size=size, split=split)
    if stack is not None:
        if kinds:
            raise CrosswindError("--stack and --perturb both say which layers to use; give one of them")
        layers = load_layers(_read_json(stack), str(stack))
        return Drawn(here, task, layers, certify_stack(here, task, layers))
    try:
        return draw(here, task, kinds, seed)
    except CannotPerturb as cannot:
        raise CrosswindError(f"{cannot}; try another --seed or --family") from None


def _read_json(path: Path) -> object:
    from crosswind.base.errors import BadFile

    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadFile(
            f"{path}: cannot be read ({error.strerror}); expected a JSON file with a list of layers"
        ) from None
    except UnicodeDecodeError:
        raise BadFile(f"{path}: is not UTF-8 text; expected a JSON file with a list of layers") from None
    except json.JSONDecodeError as error:
        raise BadFile(
            f"{path}:{error.lineno}:{error.colno}: {error.msg}; expected JSON with a list of layers"
        ) from None
    except RecursionError:
        raise BadFile(f"{path}: is nested too deeply; expected JSON with a list of layers") from None


def _show_episode(drawn: Drawn, trajectory: Trajectory, verdict: Verdict) -> None:
    from rich.text import Text

    from crosswind.core import skin

    console = terminal.console()
    task = trajectory.task
    console.print(f"{task.id}, played by {trajectory.agent}", style="bold")
    console.print(Text(f"user: {terminal.safe(skin.shown(task, task.brief.query))}", style="cyan"))
    for layer in drawn.layers:
        fields = {k: v for k, v in layer.model_dump(mode="json").items() if k != "kind"}
        console.print(
            Text(
                f"obstacle: {layer.kind} ({layer.axis}, {layer.tier}) {terminal.short(json.dumps(fields), 160)}",
                style="yellow",
            )
        )
    if task.refuse:
        console.print(Text(f"to be refused; {drawn.certificate.proof}", style="yellow"))
    table = terminal.table_of("step", "what the agent saw", "what the world saw")
    for n, step in enumerate(trajectory.steps, 1):
        mark = "".join(f"\n[{drawn.layers[i].kind}]" for i in step["fired"])
        world = "\n".join(_call_text(inner) for inner in step["inner"]) or "-"
        said = "".join(f"\nuser: {terminal.safe(words)}" for words in step["heard"])
        table.add_row(Text(f"{n}{mark}", style="yellow" if mark else ""), _call_text(step) + said, world)
    console.print(table)
    console.print(Text(f"agent: {terminal.safe(trajectory.final) or '(says nothing)'}", style="cyan"))
    console.print(
        f"ended: {trajectory.ended} after {len(trajectory.steps)} steps "
        f"(certified way: {trajectory.gold_steps}, budget: {trajectory.budget})"
    )
    for receipt in trajectory.receipts:
        met = f"met at step {receipt.step}, {'seen' if receipt.seen else 'not seen'}" if receipt.fired else "never met"
        console.print(f"  {receipt.kind}: {met}")
    for check in verdict.checks:
        console.print(Text(f"  {'ok ' if check.passed else 'NOT'} {check.name}: {terminal.short(check.why, 300)}"))
    console.print(verdict.outcome.upper(), style="bold green" if verdict.outcome == "pass" else "bold red")


def _call_text(step: dict[str, Any]) -> str:
    call, result = step["call"], step["result"]
    args = call["args"] if isinstance(call["args"], dict) else {"": call["args"]}
    sent = f"{call['tool']}({', '.join(f'{k}={v!r}' if k else repr(v) for k, v in args.items())})"
    if "error" in result:
        return (
            f"{terminal.short(sent, 200)}\n! {terminal.short(result['error']['text'] or result['error']['code'], 200)}"
        )
    content = result["content"]
    told = content if isinstance(content, str) else json.dumps(content)
    return f"{terminal.short(sent, 200)}\n= {terminal.short(told, 240)}"


# ---------------------------------------------------------------- baselines


@app.command()
def baselines(
    suite: Annotated[str, typer.Option(help="A suite (see `crosswind catalog`) or a YAML file with one.")] = "tiers",
    tasks: Annotated[
        int | None, typer.Option(min=1, help="Tasks per domain and perturbation; the suite's own unless given.")
    ] = None,
    seed: Seed = 0,
    domain: Annotated[str, typer.Option(help="A domain, or all that the suite has.")] = "all",
    markdown: Annotated[bool, typer.Option(help="Print the table as Markdown.")] = False,
    json_: Json = False,
) -> None:
    """Play the scripted agents over a suite, and print how they fare under each perturbation."""
    from dataclasses import asdict

    from crosswind.core.registry import agents, domains
    from crosswind.episodes.suite import load_suite, over_domains, sweep

    names = ["oracle", "retrier", "memoriser", "refuser", "idle"]
    for name in names:
        agents[name]
    chosen = load_suite(suite)
    if tasks:
        chosen = chosen.model_copy(update={"tasks": tasks})
    if domain != "all":
        chosen = chosen.model_copy(update={"domains": (domains[domain].name,)})
    began = time.perf_counter()
    with terminal.Status("playing", json_) as status:
        rows = sweep(chosen, names, seed, status)
    seconds = time.perf_counter() - began
    if json_:
        terminal.print_json({"rows": [asdict(r) for r in rows], "suite": chosen.name, "seed": seed})
    elif markdown:
        print(_markdown(over_domains(rows), names))
    else:
        _show_sweep(over_domains(rows), names, seconds)


def _cells(row: Row, names: list[str]) -> list[str]:
    shares = [f"{100 * row.passed[name] / row.n:.0f}" for name in names]
    return [row.domain, row.condition, str(row.n), f"{100 * row.refusals / row.n:.0f}", *shares]


HEADS = ["domain", "condition", "tasks", "to refuse %"]


def _show_sweep(rows: list[Row], names: list[str], seconds: float) -> None:
    console = terminal.console()
    table = terminal.table_of(*HEADS, *names)
    for row in rows:
        table.add_row(*_cells(row, names))
    console.print(table)
    episodes = sum(r.n for r in rows) * len(names)
    console.print(
        "Success in % of the tasks. oracle: walks the certified way; retrier: solves, repeating failed calls;\n"
        "memoriser: replays the clean run; refuser: refuses; idle: does nothing.\n"
        f"{episodes} episodes in {seconds:.1f} s. Look at one:\n"
        "  crosswind play --domain poi --seed 9 --perturb semantic_rename --agent memoriser"
    )


def _markdown(rows: list[Row], names: list[str]) -> str:
    heads = [*HEADS, *names]
    lines = [heads, ["---"] * len(heads), *(_cells(row, names) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


COMMANDS = (
    *("catalog", "data", "demo", "diagnose", "doctor", "gate", "learn", "proxy", "report", "run", "serve", "study"),
    "train",
)  # modules beside this one; each has `register(app)` and imports what is heavy inside its commands
for _name in COMMANDS:
    importlib.import_module(f"crosswind.cli.{_name}").register(app)


if __name__ == "__main__":
    main()
