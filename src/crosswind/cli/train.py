"""`crosswind train`: fine-tune a model on demonstrations, or by reinforcement, into a folder."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.base.extras import need_packages
from crosswind.cli.exits import FAILED
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json
from crosswind.cli.progress import Display

if TYPE_CHECKING:
    from crosswind.train.config import Method
    from crosswind.train.progress import Update
    from crosswind.train.sft import Result

# what safetensors and torch say of a full disk
FULL = {"SafetensorError": ("I/O error",), "RuntimeError": ("unexpected pos", "PytorchStreamWriter failed writing")}
AGAIN = "rerun the command to resume from the last checkpoint, or to start over if there is none yet"

NOTES = (
    "Rerun the command with the same --out to resume; the final weights are the same as without the interruption. "
    "docs/training.md explains every"
)
EPILOG = epilog(
    "crosswind train paft examples/train/paft.yaml --out runs/paft",
    "crosswind train queue sft:static.yaml paft:paft.yaml --out runs",
    notes=f"{NOTES} option of a configuration. Training needs an extra; in a checkout, run pip install '.[train]'.",
)


def method_epilog(method: str) -> str:
    """The end of the help of one method of training."""
    return epilog(
        f"crosswind train {method} examples/train/{method}.yaml --out runs/{method}",
        f"crosswind train {method} examples/train/{method}.yaml --set seed=1 --set steps=400 --out runs/{method}-1",
        f"accelerate launch -m crosswind.cli.app train {method} examples/train/{method}.yaml --out runs/{method}",
        notes=f"{NOTES} option of a configuration. Use accelerate to train on several GPUs.",
    )


Config = Annotated[
    Path | None, Argument(metavar="[CONFIG]", show_default="built-in values", help="YAML file with options.")
]
Out = Annotated[Path | None, Option(metavar="DIR", show_default="`out` in the file", help="Folder of the run.")]
Set = Annotated[
    list[str], Option("--set", metavar="KEY=VALUE", help="Override an option, such as data.share=0.2; repeatable.")
]
app = App(
    name="train",
    no_args_is_help=True,
    help="Train a model: fine-tune it on clean (SFT) or perturbed (PAFT) demonstrations, or reinforce it (GRPO).",
    epilog=EPILOG,
)


@app.command(epilog=method_epilog("sft"))
def sft(config: Config = None, out: Out = None, set_: Set = [], json_: Json = False) -> None:  # noqa: B006
    """Fine-tune on clean demonstrations."""
    show(one("sft", config, out, set_, quiet=json_), json_)


@app.command(epilog=method_epilog("paft"))
def paft(config: Config = None, out: Out = None, set_: Set = [], json_: Json = False) -> None:  # noqa: B006
    """Fine-tune on clean and perturbed demonstrations (perturbation-augmented fine-tuning)."""
    show(one("paft", config, out, set_, quiet=json_), json_)


@app.command(epilog=method_epilog("grpo"))
def grpo(config: Config = None, out: Out = None, set_: Set = [], json_: Json = False) -> None:  # noqa: B006
    """Train by reinforcement learning (GRPO); the reward is the verdict of an episode."""
    show(one("grpo", config, out, set_, quiet=json_), json_)


@app.command(
    epilog=epilog(
        "crosswind train queue sft:static.yaml paft:paft.yaml --out runs",
        "crosswind train queue paft:paft.yaml paft:longer.yaml --set seed=1 --out runs",
        exits={FAILED: "a configuration failed to train (the others ran)"},
    )
)
def queue(
    arms: Annotated[list[str], Argument(metavar="METHOD:CONFIG...", help="Methods and YAML files to train, in order.")],
    out: Annotated[
        Path, Option(metavar="DIR", help="Folder to write to; each run gets a subfolder named after its file.")
    ] = Path("runs"),
    set_: Set = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Train several configurations in one process. Finished ones are skipped; if one fails, the rest still run."""
    from crosswind.train.config import is_main_process

    results: list[dict[str, Any]] = []
    failed = False
    for method, path in map(parsed, arms):
        try:
            result = one(method, path, out / path.stem, set_, quiet=json_)
            results.append(result.model_dump(mode="json"))
            if not json_:
                show(result, False)
        except Exception as error:  # whatever it is, the others go on
            failed = True
            told = str(error) if isinstance(error, CrosswindError) else f"{type(error).__name__}: {error}"
            results.append({"method": method, "config": str(path), "error": told})
            if is_main_process():
                print(f"error: {method}:{path}: {terminal.safe(told)}", file=sys.stderr, flush=True)
    if json_ and is_main_process():
        terminal.print_json(results)
    if failed:
        raise Exit(FAILED)


def parsed(arm: str) -> tuple[Method, Path]:
    """A method and a file out of `METHOD:CONFIG`."""
    method, colon, path = arm.partition(":")
    if not colon or method not in ("sft", "paft", "grpo") or not path:
        raise CrosswindError(f"{arm!r}: expected METHOD:CONFIG with sft, paft or grpo, such as paft:paft.yaml")
    return method, Path(path)  # type: ignore[return-value]


def one(method: Method, path: Path | None, out: Path | None, changes: list[str], *, quiet: bool) -> Result:
    """Train one configuration. Mistakes in the file are reported before the heavy packages are loaded."""
    from crosswind.train.config import for_method, kind_of, load

    need_packages("training")
    config = for_method(load(path, changes, kind_of(method)), method, str(path or ""))
    if out is None and not config.out:
        raise CrosswindError("no folder to write to; give --out DIR, or `out: DIR` in the file")
    with goes_on(AGAIN), Shown(quiet=quiet) as progress, written(out or Path(config.out)):
        from crosswind.train.run import train

        return train(config, out, method=method, progress=progress)


@contextmanager
def goes_on(how: str) -> Iterator[None]:
    """On Ctrl-C, say how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(how) from None


@contextmanager
def written(folder: Path) -> Iterator[None]:
    """Report a folder that cannot be written to in one line; libraries that write weights raise errors of their own."""
    try:
        yield
    except Exception as error:
        why = str(error)
        ours = any(sign in why for sign in FULL.get(type(error).__name__, ()))
        if isinstance(error, OSError):
            ours, why = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES), str(error.strerror)
        if not ours:
            raise
        raise CrosswindError(
            f"{folder}: cannot be written to ({why}); make room, and give the same command again: it goes on"
        ) from None


class Shown(Display):
    """Shows how far a training is."""

    def __call__(self, update: Update) -> None:
        told = f"{update.step}/{update.steps}"
        if update.loss is not None:
            told += f", loss {update.loss:.4f}"
        if update.reward is not None:
            told += f", reward {update.reward:.3f}"
        if update.tokens_per_second:
            told += f", {update.tokens_per_second:,.0f} tokens/s"
        if update.left:
            told += f", about {update.left:.0f} s left"
        changed, self.doing = self.doing != f"{update.doing}:", f"{update.doing}:"
        self.say(told, at_once=changed or update.step >= update.steps)


def _show_rewards(extra: dict[str, Any]) -> None:
    """How reinforcement went, and why it stopped if it did."""
    if extra.get("reward_first") is not None and extra.get("reward_last") is not None:
        print(f"  reward {extra['reward_first']:.3f} in the first step, {extra['reward_last']:.3f} in the last ones")
    for name, after in extra.get("greedy_after", {}).items():
        print(f"  greedy, {name}: {extra['greedy_before'][name]:.3f} before, {after:.3f} after")
    if not extra.get("signal"):
        print("  no group carried a signal: all episodes of each had the same reward, so nothing was learned")
    if extra.get("stopped"):
        print(f"  stopped early: {extra['stopped']}")


def show(result: Result, json_: bool) -> None:
    """What came of a run; of several processes of one, the first one tells."""
    from crosswind.train.config import is_main_process

    if not is_main_process():
        return
    if json_:
        terminal.print_json(result.model_dump(mode="json"))
        return
    what = "episodes" if result.method == "grpo" else "demonstrations"
    print(
        f"{result.method}: {result.steps} steps on {result.demonstrations:,} {what} ({result.perturbed:,} "
        f"perturbed), {result.tokens:,} tokens in {result.seconds:.0f} s ({result.tokens_per_second:,.0f}/s)"
    )
    if result.loss is not None:
        print(f"  loss {result.loss:.4f}")
    if result.method == "grpo":
        _show_rewards(result.extra)
    print(f"  {result.adapter}")
    for name, found in result.extra.get("transfer", {}).items():
        figures = ((key, found.get(key)) for key in ("forgetting", "backward", "forward", "carried"))
        told = ", ".join(f"{key} {100 * value:+.1f}" for key, value in figures if value is not None)
        print(f"  {name}, points: {told or 'nothing to compare'}")
    if "best_round" in result.extra:
        print(f"  round {result.extra['best_round']} was the best; {result.extra['stopped']}")
