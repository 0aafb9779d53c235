"""`crosswind data` writes demonstrations to train on: the oracle's certified walks, clean and perturbed."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from typer import Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.base.extras import need_packages
from crosswind.base.version import __version__
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Address, Executor
from crosswind.cli.progress import Display

if TYPE_CHECKING:
    from crosswind.train.data import DataConfig, Measure
    from crosswind.train.formats import Format, Protocol
    from crosswind.train.rows import Demonstration, Row

EPILOG = epilog(
    "crosswind data --count 1000 --share 0 --out static.jsonl",
    "crosswind data --count 5000 --recipe mixed --share 0.3 --out paft.jsonl",
    "crosswind data --domain poi --domain medical:0.5 --group symbols --format openai --out symbols.jsonl",
    "crosswind data --format verl --protocol text --tokenizer embedded --out paft.parquet",
    "crosswind data --count 1 --recipe my_recipe.yaml --share 1 | python -m json.tool",
    notes="The same options give the same rows, and each row depends only on its index: use --start to continue a file "
    "or to write shards. `crosswind train` needs no file; it generates the same rows as it trains. docs/data.md shows "
    "a row of every format.",
)
PART = 20  # demonstrations that a process of a cluster writes at a time
app = App()


@app.command(epilog=EPILOG)
def data(
    count: Annotated[int, Option(min=1, help="Demonstrations to write.")] = 1000,
    out: Annotated[
        Path | None, Option(metavar="FILE", show_default="stdout", help="File to write; - is stdout.")
    ] = None,
    format: Annotated[
        Literal["trl", "openai", "sharegpt", "verl"],
        Option(help="Row format: TRL, OpenAI fine-tuning, ShareGPT (LLaMA-Factory) or verl."),
    ] = "trl",
    protocol: Annotated[
        Literal["native", "text"] | None,
        Option(
            help="native: structured tool calls and schemas, for chat templates with tool support; text: tools "
            "described in the system message, the way crosswind prompts local models.",
            show_default="native; verl: text",
        ),
    ] = None,
    domain: Annotated[
        list[str],
        Option(metavar="DOMAIN[:WEIGHT]", show_default="poi", help="Domain, with an optional weight; repeatable."),
    ] = [],  # noqa: B006
    recipe: Annotated[
        str, Option(help="Recipe for perturbed rows: mild, mixed, wide, hard or a YAML file (docs/suites.md).")
    ] = "mixed",
    share: Annotated[
        float, Option(min=0, max=1, help="Fraction of rows that are perturbed; 0: clean rows only.")
    ] = 0.3,
    group: Annotated[
        list[str],
        Option(
            show_default="all",
            help="Only this group of perturbations: error_feedback, symbols, semantics, structure or refusal; "
            "repeatable.",
        ),
    ] = [],  # noqa: B006
    severity: Annotated[
        str, Option(metavar="N[-N]", show_default="the recipe's", help="Severity, such as 2 or 1-3.")
    ] = "",
    level: Annotated[list[int], Option(help="Only task families of this level, 1 to 3; repeatable.")] = [],  # noqa: B006
    family: Annotated[list[str], Option(help="Only this task family; repeatable.")] = [],  # noqa: B006
    seed: Annotated[int, Option(min=0, help="Random seed; the same seed gives the same rows.")] = 0,
    start: Annotated[int, Option(min=0, help="Index of the first row.")] = 0,
    max_tokens: Annotated[
        int, Option(min=0, help="Skip rows longer than this and sample another; 0: no limit.")
    ] = 2048,
    reasons: Annotated[
        bool,
        Option(
            "--reasons/--no-reasons",
            help="Include the oracle's reasoning in <think> tags, before the turns that have any.",
        ),
    ] = True,
    slips: Annotated[
        float,
        Option(
            min=0,
            max=1,
            help="Fraction of perturbed rows with an injected mistake and its correction; the mistake is masked from "
            "the loss; --format openai or verl only.",
        ),
    ] = 0.0,
    from_: Annotated[
        list[Path],
        Option(
            "--from",
            metavar="RUN",
            show_default="none",
            help="Instead of sampling tasks, continue the failed episodes of this run (train split) as the oracle "
            "would. "
            "Only the continuation is learned; the rest is masked from the loss. Repeatable; --format openai or verl "
            "only.",
        ),
    ] = [],  # noqa: B006
    tokenizer: Annotated[
        str,
        Option(
            metavar="NAME",
            show_default="an estimate for a small model",
            help="Tokenizer that counts tokens: embedded, or a model's folder or name (needs the extra train).",
        ),
    ] = "",
    executor: Executor = "local",
    address: Address = "",
    force: Annotated[bool, Option("--force", help="Overwrite existing files.")] = False,
    json_: Annotated[bool, Option("--json", help="Print a summary as one JSON document.")] = False,
) -> None:
    """Write certified demonstrations for training.

    Demonstrations include recoveries, questions to the user and refusals. They use only the train split, and none of
    the perturbations held out for testing. FILE.info.json records the options, the recipe, and how many tasks were
    sampled and skipped.
    """
    from crosswind.runs.ray_map import mapper
    from crosswind.train.corrections import balanced, corrections
    from crosswind.train.formats import SAYS, piped, writing
    from crosswind.words.held_out import check_kinds

    mapped = mapper(executor, address)

    if out and str(out) == "-":
        out = None
    if out is None and json_:
        raise CrosswindError("--json prints a document on stdout, where the rows would go; give a file as --out")
    how = protocol or ("text" if format == "verl" else "native")
    if format == "verl" and how == "native":
        raise CrosswindError(
            "verl reads Parquet, where a column has one type, so rows cannot hold native calls; use --protocol text"
        )
    config = _config(
        domains=dict(_weighted(text) for text in domain or ["poi"]),
        recipe=recipe,
        share=share,
        groups=tuple(group),
        severity=severity or None,
        levels=tuple(level),
        families=tuple(family),
        seed=seed,
        max_tokens=max_tokens,
        reasons=reasons,
        slips=slips,
    )
    if config.slips and format not in SAYS:
        raise CrosswindError(
            f"--slips needs a format that can mask turns from the loss, and {format} cannot; use --format "
            f"{' or '.join(SAYS)}"
        )
    if from_ and format not in SAYS:
        raise CrosswindError(
            f"--from needs a format that can mask turns from the loss, and {format} cannot; use --format "
            f"{' or '.join(SAYS)}"
        )
    check_kinds(config.followed().kinds())  # also where none is perturbed: FILE.info.json names the recipe
    resolved = config.resolved().model_dump(mode="json")
    ruler = _ruler(tokenizer)
    counts: Counter[str] = Counter()
    lengths: Counter[int] = Counter()
    kinds: Counter[str] = Counter()
    display = Display(quiet=json_)
    found = balanced([c for run in from_ for c in corrections(run, counts, reasons=reasons)], counts) if from_ else []
    if from_ and not found:
        raise CrosswindError(
            f"{', '.join(map(str, from_))}: no failed episode has a correction after a call that succeeded, and one in "
            f"three corrections must be of this kind ({', '.join(f'{why}: {n}' for why, n in counts.items())}); play "
            "more episodes"
        )
    count = min(count, len(found) - start) if from_ else count
    with display, writing(out, format, force=force) if out else piped() as put:
        if from_:
            chosen = (one.shown for one in found[start : start + count])
            made = (_made(shown, ruler, format, how) for shown in chosen if _fits(shown, ruler, max_tokens, counts))
        else:
            text, end = config.model_dump_json(), start + count
            size = 1 if executor == "local" else PART
            parts = ((text, at, min(size, end - at), format, how, tokenizer) for at in range(start, end, size))
            made = (one for some in mapped(_demonstrate, parts) for one in some)
        for done, one in enumerate(made, 1):
            for row in one.rows:
                put(row)
            counts.update(one.counts)
            lengths.update(one.lengths)
            kinds.update(one.kinds)
            rate = done / max(display.seconds, 1e-9)
            display.say(
                f"{done}/{count} demonstrations, {rate:.0f}/s, {(count - done) / rate:.0f} s left; "
                f"{counts['left out: too long']} too long"
            )
    about = {
        "crosswind": __version__,
        "format": format,
        "protocol": how,
        "start": start,
        "demonstrations": count,
        **{name: counts[name] for name in ("rows", "perturbed", "refusals", "slips", "drawn")},
        "tokens": {"by": tokenizer or "estimate", **spread(lengths)},
        "left_out": {why: n for why, n in counts.items() if ": " in why and not why.startswith("corrections: ")},
        "corrections": {why.removeprefix("corrections: "): n for why, n in counts.items() if "corrections: " in why},
        "kinds": dict(kinds.most_common()),
        "config": resolved,
        "seconds": round(display.seconds, 1),
    }
    if out is not None:
        Path(f"{out}.info.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    if json_:
        terminal.print_json({"file": str(out), **about})
    else:
        print(summary(about, out), file=sys.stderr)


class WrittenDemonstration(NamedTuple):
    """What is written of a demonstration."""

    rows: list[dict[str, Any]]
    lengths: list[int]  # in tokens
    kinds: list[str]
    counts: Counter[str]


def _made(shown: Demonstration, ruler: Ruler, form: Format, protocol: Protocol) -> WrittenDemonstration:
    from crosswind.train.formats import written
    from crosswind.train.rows import rows

    some, out = rows(shown), list(written(shown, form, protocol))
    counts = Counter(
        rows=len(out),
        perturbed=bool(shown.meta["kinds"]),
        refusals=shown.meta["ended"] == "refusal",
        slips=bool(shown.slipped),
    )
    if len(some) > 1 and form in ("trl", "sharegpt"):
        counts["left out: turns after a change of tools, which the format cannot tell apart"] = len(some) - 1
    return WrittenDemonstration(out, [ruler.of(row) for row in some], list(shown.meta["kinds"]), counts)


def _demonstrate(part: tuple[str, int, int, Format, Protocol, str]) -> list[WrittenDemonstration]:
    """Some demonstrations from an index on, from values that another process can be given."""
    from crosswind.train.data import DataConfig, demonstration_at

    config, start, count, form, protocol, tokenizer = part
    ruler, out = _ruler(tokenizer), []
    for index in range(start, start + count):
        counts: Counter[str] = Counter()
        shown = demonstration_at(DataConfig.model_validate_json(config), index, measure=ruler, counts=counts)
        made = _made(shown, ruler, form, protocol)
        made.counts.update(counts)
        out.append(made)
    return out


def _fits(shown: Demonstration, ruler: Ruler, most: int, counts: Counter[str]) -> bool:
    """May a correction be written? The reason is counted where it may not."""
    from crosswind.train.data import ILLEGIBLE
    from crosswind.train.rows import legible, rows

    if legible(shown) and not (most and max(map(ruler, rows(shown))) > most):
        return True
    counts["left out: too long" if legible(shown) else ILLEGIBLE] += 1
    return False


@lru_cache(maxsize=2)
def _ruler(tokenizer: str) -> Ruler:
    from crosswind.train.data import estimate

    return Ruler(_measure(tokenizer) if tokenizer else estimate)


def _config(groups: tuple[str, ...], **options: Any) -> DataConfig:
    from pydantic import ValidationError

    from crosswind.base.yaml_files import complaint
    from crosswind.core.registry import did_you_mean
    from crosswind.train.components import COMPONENTS
    from crosswind.train.data import DataConfig

    if unknown := [name for name in groups if name not in COMPONENTS]:
        raise CrosswindError(f"no group {unknown[0]!r}; {did_you_mean(unknown[0], list(COMPONENTS))}")
    try:
        return DataConfig.model_validate({**options, "groups": groups or COMPONENTS}, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        spot = ".".join(str(part) for part in first["loc"] if isinstance(part, str) and "[" not in part)
        raise CrosswindError(f"{f'--{spot}: ' if spot else ''}{complaint(first)}") from None


def _weighted(text: str) -> tuple[str, float]:
    from crosswind.episodes.recipe import LARGE
    from crosswind.train.worlds import unknown

    name, colon, weight = text.rpartition(":") if ":" in text and unknown(text) else (text, "", "")
    try:
        found = float(weight) if colon else 1.0
    except ValueError:
        found = math.nan
    if not 0 < found <= LARGE:
        raise CrosswindError(
            f"--domain {text!r}: the weight is {weight!r}; "
            f"expected domain or domain:weight, with a number above 0 and up to {LARGE:g}"
        )
    return name, found


def _measure(name: str) -> Measure:
    """Counts in the tokens of a model."""
    from crosswind.models.loading import WANTED, place_of, told
    from crosswind.models.prompts import script_of
    from crosswind.train.rows import tokens

    try:
        where = place_of(name)
    except CrosswindError as error:
        raise CrosswindError(f"--tokenizer {name}: {str(error).removeprefix(f'{name}: ')}") from None
    need_packages("--tokenizer", "transformers", *(["gguf"] if where.gguf else []))
    from transformers import AutoTokenizer

    try:
        script = script_of(AutoTokenizer.from_pretrained(where.path, **where.options))
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise CrosswindError(f"--tokenizer {name}: cannot be loaded: {told(error)}; {WANTED}") from None
    return lambda row: len(tokens(row, script).ids)


class Ruler:
    """A measure that remembers what it measured last, so that no row is measured twice."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.last: list[tuple[Row, int]] = []

    def __call__(self, row: Row) -> int:
        length = self.measure(row)
        self.last = [*self.last[-7:], (row, length)]
        return length

    def of(self, row: Row) -> int:
        known = next((length for other, length in self.last if other.messages == row.messages), None)
        return self(row) if known is None else known


def spread(lengths: Counter[int]) -> dict[str, int]:
    """Mean, 95th percentile and greatest of counted lengths."""
    total, seen, p95 = lengths.total(), 0, 0
    for length in sorted(lengths):
        seen += lengths[length]
        p95 = length
        if seen >= 0.95 * total:
            break
    return {
        "mean": round(sum(length * n for length, n in lengths.items()) / total) if total else 0,
        "p95": p95,
        "longest": max(lengths, default=0),
    }


def summary(about: dict[str, Any], out: Path | None) -> str:
    """What was written, in a few lines."""
    tokens = about["tokens"]
    sort = "estimated tokens" if tokens["by"] == "estimate" else f"tokens of {tokens['by']}"
    long = about["left_out"].get("left out: too long", 0)
    return (
        f"{about['demonstrations']} demonstrations, {about['perturbed']} perturbed, {about['refusals']} end in a "
        f"refusal; {about['demonstrations'] / max(about['seconds'], 0.1):.0f}/s"
        f"\n{sort}: mean {tokens['mean']}, 95th percentile {tokens['p95']}, longest {tokens['longest']}; "
        f"{long} of {about['drawn']} draws were too long and left out"
        + (f"\nwrote {out} and {out}.info.json" if out else "")
    )
