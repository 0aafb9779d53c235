"""`crosswind play`: one episode, played and shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from crosswind.base import terminal
from crosswind.base.errors import CannotPerturb, CrosswindError
from crosswind.cli.help import App, epilog
from crosswind.cli.options import DomainName, Ending, Family, Json, Perturb, Seed, Stack, read_stack

if TYPE_CHECKING:
    from crosswind.core.draw import Drawn
    from crosswind.core.types import Trajectory, Verdict

app = App()


@app.command(
    epilog=epilog(
        "crosswind play --domain poi --perturb semantic_rename:4 --perturb transient_error",
        "crosswind play --domain medical --agent retrier --seed 3 --json",
    )
)
@terminal.reserve_stdout()
def play(
    domain: DomainName,
    agent: Annotated[str, Option(help="Agent, as for `crosswind run --agent`.")] = "oracle",
    seed: Seed = 0,
    family: Family = "",
    perturb: Perturb = [],  # noqa: B006
    stack: Stack = None,
    split: Annotated[str, Option(metavar="train|dev|test", help="Split that the world's entities come from.")] = "test",
    size: Annotated[int, Option(min=100, max=300_000, help="Number of entities in the world.")] = 3000,
    ending: Ending = "",
    json_: Json = False,
) -> None:
    """Play one episode and show it step by step.

    Each step is shown twice: as the agent saw it, and as it reached the simulated world. The certified solution
    follows.
    """
    import asyncio

    from crosswind.episodes.play import judge
    from crosswind.episodes.play import play as play_episode
    from crosswind.models.spec import open_agent

    drawn = _draw(domain, family, seed, perturb, stack, split, size)
    source = open_agent(agent, ending=ending)

    async def once() -> Trajectory:
        try:
            return await play_episode(drawn, source.make(drawn), source.name, ending=source.ending)
        finally:
            await source.aclose()

    trajectory = asyncio.run(once())
    verdict = judge(trajectory, drawn.domain)
    if json_:
        data = trajectory.model_dump(mode="json")
        terminal.print_json(data | {"proof": drawn.certificate.proof, "verdict": verdict.model_dump(mode="json")})
    else:
        _show(drawn, trajectory, verdict, seed)


def _show(drawn: Drawn, trajectory: Trajectory, verdict: Verdict, seed: int) -> None:
    from crosswind.episodes.record import Usage, recorded
    from crosswind.episodes.schedule import Episode
    from crosswind.episodes.suite import CLEAN
    from crosswind.report.show import episode as show_episode
    from crosswind.runs.reading import beside

    condition = " + ".join(layer.kind for layer in drawn.layers) or CLEAN
    record = recorded(Episode(condition, drawn.base.id, drawn), trajectory, verdict, seed=seed, usage=Usage())
    show_episode(terminal.console(), beside(record, drawn))


def _draw(domain: str, family: str, seed: int, perturb: list[str], stack: Path | None, split: str, size: int) -> Drawn:
    from crosswind.api.episode import draw, task_of
    from crosswind.core.certify import certify
    from crosswind.core.draw import Drawn
    from crosswind.core.registry import domains

    here = domains[domain]
    task = task_of(here, family, seed, split, size)
    if stack is not None:
        if perturb:
            raise CrosswindError("--stack and --perturb both say which layers to use; give one of them")
        layers = read_stack(stack)
        return Drawn(here, task, layers, certify(here, task, layers))
    try:
        return draw(here, task, perturb, seed=seed)
    except CannotPerturb as cannot:
        raise CrosswindError(f"{cannot}; try another --seed or --family") from None
