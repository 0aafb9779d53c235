"""`crosswind study`: train and test the arms of a study, and tell what came out."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.base import terminal

if TYPE_CHECKING:
    from crosswind.study.definition import Part, Study

NEEDED = ("torch", "transformers", "peft", "accelerate", "trl", "datasets")

EPILOG = """Examples:

crosswind study fragility --arms base,static,paft --seeds 0 --out runs/study

crosswind study fragility --out runs/study --budget-minutes 25 (whatever fits)

crosswind study fragility --arms paft --dev --set data.share=0.4 --tag share-0.4 --out runs/study

crosswind study report runs/study --into docs/results

The same command goes on where it was stopped; finished arms are skipped. docs/study.md explains the study."""

Out = Annotated[Path, typer.Option(metavar="DIR", help="The folder of the study.")]
File = Annotated[Path | None, typer.Option(metavar="YAML", help="Another definition than the packaged one.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="Train and test the arms of a study.", epilog=EPILOG)
    for command in (fragility, arms, report, collect, pack, unpack):
        group.command()(command)
    app.add_typer(group, name="study")


def fragility(
    out: Out,
    arms: Annotated[str | None, typer.Option(metavar="A,B", help="Arms to run, with commas; all unless given.")] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="0,1", help="Seeds; those of each arm unless given. Arms that are named run any."),
    ] = None,
    budget_minutes: Annotated[
        float | None, typer.Option(min=0.1, help="Stop before so many minutes; nothing is begun that will not fit.")
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="With a budget, begin also what will not fit; run it again to go on.")
    ] = False,
    only_train: Annotated[
        bool, typer.Option("--only-train", help="Train and do not test; the same command without it tests.")
    ] = False,
    dev: Annotated[bool, typer.Option("--dev", help="Test on the dev suite, on which choices are made.")] = False,
    set_: Annotated[
        list[str], typer.Option("--set", metavar="KEY=VALUE", help="Change an option of the arms; needs --dev, --tag.")
    ] = [],  # noqa: B006
    tag: Annotated[str, typer.Option(help="Goes into the names of the arms that --set changes.")] = "",
    model: Annotated[str, typer.Option(help="Another model than the study's.")] = "",
    slots: Annotated[int | None, typer.Option(min=1, help="Conversations kept on the device.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Episodes played at a time.")] = None,
    commit: Annotated[str | None, typer.Option(help="The commit to note, where there is no repository.")] = None,
    file: File = None,
    json_: Json = False,
) -> None:
    """Train arms and test each of them, one after the other; every arm is stored as it ends.

    Exits with 1 if an arm failed; the others are run all the same.
    """
    from crosswind.base.errors import CrosswindError
    from crosswind.cli.train import Shown, goes_on

    for package in NEEDED:
        if importlib.util.find_spec(package) is None:
            raise CrosswindError(f"a study needs the package {package!r}; pip install 'crosswind[train]'")
    study = _study(file, model)
    names = [name for name in (arms or "").split(",") if name]
    if arms is not None and not names:
        known = ", ".join(name for name, arm in study.by_name.items() if not arm.at)
        raise CrosswindError(f"--arms {arms!r} names no arm; give some of {known}, or leave --arms out for all")
    part: Part = "dev" if dev else "test"
    if set_ or tag:
        if not (set_ and tag and dev and names):
            raise CrosswindError("--set is for choices: give --dev, --arms and a --tag with it; tests are as defined")
        study, names = _changed(study, names, set_, tag)
    from crosswind.study.runner import run

    with goes_on("the same command goes on; finished arms are skipped"), Shown(json_) as progress:
        done = run(
            study,
            out,
            arms=names,
            seeds=_numbers(seeds),
            part=part,
            minutes=budget_minutes,
            partial=partial,
            only_train=only_train,
            slots=slots,
            concurrency=concurrency,
            commit=commit,
            tell=lambda text: None if json_ else print(terminal.safe(text), file=sys.stderr, flush=True),
            progress=progress,
        )
    if json_:
        terminal.print_json(vars(done))
    else:
        for told, some in (("finished", done.finished), ("finished before", done.before)):
            if some:
                print(f"{told}: {', '.join(some)}")
        for what, reasons in (("failed", done.failed), ("left", done.left)):
            for name, why in reasons.items():
                print(f"{what}: {name}: {terminal.safe(why)}")
        if done.stopped:
            print(f"stopped: {done.stopped}")
    if done.failed:
        raise typer.Exit(1)


def arms(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="A study's folder, to see what is there.")
    ] = None,
    file: File = None,
    json_: Json = False,
) -> None:
    """List the arms of the study, and which of them are finished."""
    from crosswind.base.errors import CrosswindError

    study = _study(file, "")
    if folder and not folder.is_dir():
        raise CrosswindError(f"{folder}: there is no such folder; give that of a study, or none to see the arms alone")
    rows: list[dict[str, Any]] = []
    for arm, seed in study.queue():
        done = bool(folder and (folder / "arms" / arm.name / f"seed-{seed}" / "test.json").is_file())
        rows.append({"wave": arm.wave, "arm": arm.name, "seed": seed, "about": arm.about, "finished": done})
    if json_:
        terminal.print_json(rows)
        return
    table = terminal.table_of("wave", "arm", "seed", "about", "finished")
    for row in rows:
        table.add_row(row["wave"], row["arm"], str(row["seed"]), row["about"], "yes" if row["finished"] else "")
    terminal.console().print(table)


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A study's folder, or where results were collected.")],
    into: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where study.md and its plots go; the same folder unless given.")
    ] = None,
    file: File = None,
) -> None:
    """Make the tables and plots of a study from its stored episodes."""
    from crosswind.cli.train import written
    from crosswind.study.report import write

    with written(into or folder):
        for path in write(_study(file, ""), folder, into or folder):
            print(path)


def collect(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A study's folder.")],
    into: Annotated[Path, typer.Option(metavar="DIR", help="Where results are kept.")],
) -> None:
    """Copy the results of finished arms, without trajectories and weights, to where they are kept."""
    from crosswind.cli.train import written
    from crosswind.study.runner import collect

    _there(folder)
    with written(into):
        print(f"{collect(folder, into)} results are in {into}")


def pack(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A study's folder.")],
    into: Annotated[Path, typer.Option(metavar="DIR", help="Where the files go.")],
    adapters: Annotated[str, typer.Option(metavar="ARM/SEED,...", help="Adapters to take along.")] = "",
    runs: Annotated[str, typer.Option(metavar="ARM/SEED,...", help="Runs with all their trajectories.")] = "",
    trainings: Annotated[
        str, typer.Option(metavar="ARM/SEED,...", help="Trainings with their last checkpoint, to go on elsewhere.")
    ] = "",
) -> None:
    """Put results into few files, to carry them elsewhere; `unpack` puts them back."""
    from crosswind.cli.train import written
    from crosswind.study.runner import bundle

    _there(folder)
    named = {"adapters": adapters, "runs": runs, "trainings": trainings}
    some = {what: [name for name in text.split(",") if name] for what, text in named.items()}
    with written(into):
        for path in bundle(folder, into, **some):
            print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


def _there(folder: Path) -> None:
    from crosswind.base.errors import CrosswindError

    if not (folder / "arms").is_dir():
        raise CrosswindError(f"{folder}: no study lies here; expected a folder that `crosswind study fragility` wrote")


def unpack(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What `pack` made.")],
    out: Out,
) -> None:
    """Put packed results back into a study's folder."""
    from crosswind.study.runner import unbundle

    unbundle(files, out)
    print(f"unpacked into {out}")


# ---------------------------------------------------------------- options as the study takes them


def _study(file: Path | None, model: str) -> Study:
    from crosswind.study.definition import load_study

    study = load_study(file)
    return study.model_copy(update={"model": model}) if model else study


def _numbers(text: str | None) -> list[int] | None:
    from crosswind.base.errors import CrosswindError
    from crosswind.train.config import SEEDS

    if text is None:
        return None
    numbers = text.split(",")
    if not all(one.strip().isdecimal() and len(one) < 20 and int(one) <= SEEDS for one in numbers):
        raise CrosswindError(f"--seeds {text!r}: expected numbers from 0 to {SEEDS}, with commas, such as 0,1")
    return [int(one) for one in numbers]


def _changed(study: Study, names: list[str], changes: list[str], tag: str) -> tuple[Study, list[str]]:
    """The study with changed copies of some arms, under names of their own."""
    from pydantic import ValidationError

    from crosswind.base.errors import CrosswindError
    from crosswind.base.files import complaint
    from crosswind.study.definition import STUDYS, Arm, Study
    from crosswind.train.config import assigned, fitted, merged

    options: dict[str, Any] = {}
    for text in changes:
        place, found = assigned(text)
        if place[0] in STUDYS:
            raise CrosswindError(f"--set {text!r}: {place[0]} is the study's to say; use --model, --seeds or --file")
        for step in reversed(place):
            found = {step: found}
        options = merged(options, found)
    copies: list[Arm] = []
    try:
        for name in names:
            arm = study.arm(name)
            named = {"name": f"{name}-{tag}", "train": merged(arm.train, options), "like": ""}
            copies.append(Arm.model_validate({**arm.model_dump(), **named}))
        flat = [arm.model_copy(update={"like": ""}) for arm in study.by_name.values()]
        changed = Study.model_validate({**study.model_dump(), "arms": (*flat, *copies)})
    except ValidationError as error:
        raise CrosswindError(f"--tag {tag!r}: {complaint(error.errors()[0])}; give another tag") from None
    for arm in copies:
        if arm.method:
            fitted(arm.train, changes, arm.method)
    return changed, [arm.name for arm in copies]
