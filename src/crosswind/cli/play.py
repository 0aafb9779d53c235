"""`crosswind play`: one episode, played and shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.base import terminal
from crosswind.cli.options import Json, Seed

if TYPE_CHECKING:
    from crosswind.core.draw import Drawn
    from crosswind.core.types import Trajectory


def register(app: typer.Typer) -> None:
    app.command()(play)


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
    """Play one episode and show it: what the agent saw, what the world saw, and the certified way."""
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
    if json_:
        verdict = judge(trajectory, drawn.domain)
        data = trajectory.model_dump(mode="json")
        terminal.print_json(data | {"proof": drawn.certificate.proof, "verdict": verdict.model_dump(mode="json")})
    else:
        _show(drawn, trajectory, seed)


def _show(drawn: Drawn, trajectory: Trajectory, seed: int) -> None:
    from crosswind.episodes.record import Usage, recorded
    from crosswind.episodes.schedule import Episode
    from crosswind.episodes.suite import CLEAN
    from crosswind.report.show import episode as show_episode
    from crosswind.runs.reading import beside

    condition = " + ".join(layer.kind for layer in drawn.layers) or CLEAN
    record = recorded(Episode(condition, drawn.base.id, drawn), trajectory, seed=seed, usage=Usage())
    show_episode(terminal.console(), beside(record, drawn))


def _draw(domain: str, family: str, seed: int, perturb: list[str], stack: Path | None, split: str, size: int) -> Drawn:
    from crosswind.api.episode import draw, task_of
    from crosswind.base.errors import CannotPerturb, CrosswindError
    from crosswind.core.certify import certify
    from crosswind.core.draw import Drawn
    from crosswind.core.perturbation import load_layers
    from crosswind.core.registry import domains

    here = domains[domain]
    task = task_of(here, family, seed, split, size)
    if stack is not None:
        if perturb:
            raise CrosswindError("--stack and --perturb both say which layers to use; give one of them")
        layers = load_layers(_read_json(stack), str(stack))
        return Drawn(here, task, layers, certify(here, task, layers))
    try:
        return draw(here, task, perturb, seed=seed)
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
