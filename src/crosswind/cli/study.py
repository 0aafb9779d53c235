"""`crosswind study`: train and test the arms of a study, and report the results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.base.extras import need_packages
from crosswind.cli.exits import FAILED
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json
from crosswind.cli.train import Shown, goes_on, written

if TYPE_CHECKING:
    from crosswind.study.definition import Part, Study

EPILOG = epilog(
    "crosswind study run studies/mine --arms base,plain --seeds 0 --out runs/mine",
    "crosswind study collect runs/mine --into studies/mine/results",
    "crosswind study report studies/mine",
    notes="docs/study.md explains how to write a study.",
)
RUN_EPILOG = epilog(
    "crosswind study run studies/mine --arms base,plain --seeds 0 --out runs/mine",
    "crosswind study run studies/mine --out runs/mine --budget-minutes 25",
    "crosswind study run studies/mine --arms plain --dev --set data.share=0.4 --tag share-0.4 --out runs/mine",
    notes="Rerun the command to resume; finished arms are skipped.",
    exits={FAILED: "an arm failed (the others ran)"},
)

StudyPath = Annotated[Path, Argument(metavar="STUDY", help="Folder with a definition.yaml, or that file.")]
Folder = Annotated[Path, Argument(metavar="DIR", help="Folder of `study run` (its --out).")]
Results = Annotated[
    Path | None, Argument(metavar="[DIR]", show_default="the study's own results", help="Folder with results.")
]
Out = Annotated[Path, Option(metavar="DIR", help="Folder to write to.")]
app = App(name="study", no_args_is_help=True, help="Train and test the variants (arms) of a study.", epilog=EPILOG)


@app.command(epilog=RUN_EPILOG)
def run(
    study: StudyPath,
    out: Out,
    arms: Annotated[str | None, Option(metavar="A,B", show_default="all", help="Arms to run.")] = None,
    seeds: Annotated[
        str | None,
        Option(
            metavar="0,1",
            show_default="those of each arm",
            help="Seeds to run; seeds that the study does not list need --arms.",
        ),
    ] = None,
    budget_minutes: Annotated[
        float | None,
        Option(min=0.1, help="Stop after this many minutes; do not start arms that would not finish in time."),
    ] = None,
    partial: Annotated[
        bool,
        Option(
            "--partial",
            help="With --budget-minutes: also start arms that would not finish in time; rerun to resume them.",
        ),
    ] = False,
    only_train: Annotated[
        bool, Option("--only-train", help="Train without testing; rerun without this option to test.")
    ] = False,
    dev: Annotated[
        bool, Option("--dev", help="Test on the dev suite instead of the test suite, to compare settings.")
    ] = False,
    set_: Annotated[
        list[str], Option("--set", metavar="KEY=VALUE", help="Override an option of the arms; needs --dev and --tag.")
    ] = [],  # noqa: B006
    tag: Annotated[str, Option(help="Suffix for the names of arms that --set changes.")] = "",
    model: Annotated[str, Option(show_default="the study's", help="Model to train and test.")] = "",
    slots: Annotated[int | None, Option(min=1, help="Number of conversations kept in device memory at once.")] = None,
    concurrency: Annotated[int | None, Option(min=1, help="Number of episodes played at the same time.")] = None,
    commit: Annotated[
        str | None, Option(help="Commit to record with the results if this is not a Git checkout.")
    ] = None,
    json_: Json = False,
) -> None:
    """Train and test arms one after another. If an arm fails, the others still run."""
    need_packages("a study")
    defined = _load(study, model)
    names = [name for name in (arms or "").split(",") if name]
    if arms is not None and not names:
        known = ", ".join(name for name, arm in defined.by_name.items() if not arm.at)
        raise CrosswindError(f"--arms {arms!r} names no arm; give some of {known}, or leave --arms out for all")
    part: Part = "dev" if dev else "test"
    if set_ or tag:
        if not (set_ and tag and dev and names):
            raise CrosswindError("--set needs --dev, --arms and --tag: options may be tried on the dev suite only")
        defined, names = _changed(defined, names, set_, tag)
    from crosswind.study import runner

    with goes_on("run the same command to resume; finished arms are skipped"), Shown(quiet=json_) as progress:
        done = runner.run(
            defined,
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
            tell=progress.note,
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
        raise Exit(FAILED)


@app.command(epilog=epilog("crosswind study arms studies/mine", "crosswind study arms studies/mine runs/mine --json"))
def arms(
    study: StudyPath,
    folder: Results = None,
    json_: Json = False,
) -> None:
    """List the arms of a study and which are finished."""
    defined, folder = _load(study), _results(study, folder)
    rows: list[dict[str, Any]] = []
    for arm, seed in defined.queue():
        done = (folder / "arms" / arm.name / f"seed-{seed}" / "test.json").is_file()
        rows.append({"wave": arm.wave, "arm": arm.name, "seed": seed, "about": arm.about, "finished": done})
    if json_:
        terminal.print_json(rows)
        return
    cells = ({**row, "seed": str(row["seed"]), "finished": "yes" if row["finished"] else ""} for row in rows)
    terminal.print_table(["wave", "arm", "seed", "about", "finished"], (row.values() for row in cells))


@app.command(epilog=epilog("crosswind study report studies/mine", "crosswind study report studies/mine runs/mine"))
def report(
    study: StudyPath,
    folder: Results = None,
    into: Annotated[
        Path | None,
        Option(metavar="DIR", show_default="DIR, or the study's folder", help="Folder for report.md and its plots."),
    ] = None,
) -> None:
    """Write the tables and plots of a study from its stored episodes. Run its findings.py, if it has one."""
    from crosswind.study.findings import load_findings
    from crosswind.study.report import write

    home = _home(study)
    into = into or folder or home
    with written(into):
        for path in write(_load(study), _results(study, folder), into, load_findings(home)):
            print(path)


@app.command(epilog=epilog("crosswind study collect runs/mine --into studies/mine/results"))
def collect(
    folder: Folder,
    into: Annotated[Path, Option(metavar="DIR", help="Folder to copy the results to, such as STUDY/results.")],
) -> None:
    """Copy the results of finished arms into a folder you keep, such as one under version control.

    Trajectories and weights are left out.
    """
    from crosswind.study.bundle import collect

    _has_arms(folder)
    with written(into):
        print(f"{collect(folder, into)} results are in {into}")


@app.command(
    epilog=epilog(
        "crosswind study pack runs/mine --into packed",
        "crosswind study pack runs/mine --into packed --adapters paft/0,paft/1",
    )
)
def pack(
    folder: Folder,
    into: Annotated[Path, Option(metavar="DIR", help="Folder to write to.")],
    adapters: Annotated[str, Option(metavar="ARM/SEED,...", help="Adapters to include.")] = "",
    runs: Annotated[str, Option(metavar="ARM/SEED,...", help="Runs to include, with all trajectories.")] = "",
    trainings: Annotated[
        str,
        Option(
            metavar="ARM/SEED,...", help="Training runs to include with their checkpoints, to resume them elsewhere."
        ),
    ] = "",
) -> None:
    """Pack results into a few files to move them to another machine."""
    from crosswind.study.bundle import bundle

    _has_arms(folder)
    named = {"adapters": adapters, "runs": runs, "trainings": trainings}
    some = {what: [name for name in text.split(",") if name] for what, text in named.items()}
    with written(into):
        for path in bundle(folder, into, **some):
            print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


@app.command(epilog=epilog("crosswind study unpack packed/*.tar --out runs/mine"))
def unpack(
    files: Annotated[list[Path], Argument(metavar="FILE...", help="Files that `crosswind study pack` wrote.")], out: Out
) -> None:
    """Unpack results that `crosswind study pack` wrote."""
    from crosswind.study.bundle import unbundle

    unbundle(files, out)
    print(f"unpacked into {out}")


# ---------------------------------------------------------------- arguments


def _load(path: Path, model: str = "") -> Study:
    from crosswind.study.definition import load_study

    study = load_study(path)
    return study.model_copy(update={"model": model}) if model else study


def _home(study: Path) -> Path:
    """The folder of a study, of which the folder or the definition was given."""
    return study if study.is_dir() else study.parent


def _results(study: Path, folder: Path | None) -> Path:
    from crosswind.study.definition import RESULTS

    if folder and not folder.is_dir():
        raise CrosswindError(f"{folder}: no such folder; give one that `crosswind study run` wrote, or none")
    return folder or _home(study) / RESULTS


def _has_arms(folder: Path) -> None:
    if not (folder / "arms").is_dir():
        raise CrosswindError(f"{folder}: has no results; expected a folder that `crosswind study run` wrote")


def _numbers(text: str | None) -> list[int] | None:
    from crosswind.train.config import SEEDS

    if text is None:
        return None
    numbers = text.split(",")
    if not all(one.strip().isdecimal() and len(one) < 20 and int(one) <= SEEDS for one in numbers):
        raise CrosswindError(f"--seeds {text!r}: expected numbers from 0 to {SEEDS}, with commas, such as 0,1")
    return [int(one) for one in numbers]


def _changed(study: Study, names: list[str], changes: list[str], tag: str) -> tuple[Study, list[str]]:
    """The study with changed copies of some arms, under new names."""
    from pydantic import ValidationError

    from crosswind.base.yaml_files import complaint
    from crosswind.study.definition import RESERVED, Arm, Study
    from crosswind.train.config import assigned, fitted, merged

    options: dict[str, Any] = {}
    for text in changes:
        place, found = assigned(text)
        if place[0] in RESERVED:
            raise CrosswindError(f"--set {text!r}: {place[0]} is set by the study; use --model or --seeds")
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
