"""Puts an adapter of a study into the package: the GGUF file, what it was made of, and a card with its scores.

    python studies/fragility/ship.py runs/study/arms/paft-wide/seed-0 paft

Run by maintainers, in a checkout. The card's figures come from the arm's stored outcomes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.core.types import TIERS
from crosswind.models import adapters, weights
from crosswind.models.adapters import ABOUT
from crosswind.models.lora_gguf import convert
from crosswind.study.definition import Study, load_study
from crosswind.study.results import ArmResults, Done, read_done, read_rows
from crosswind.study.tables import change, share

STUDY = Path(__file__).parent
METHODS = {"static": "Supervised fine-tuning", "paft": "Perturbation-augmented fine-tuning"}
LICENCE = "Apache-2.0, as the base model and this package"


def ship(folder: Path, name: str, into: Path = adapters.FOLDER, study: Study | None = None) -> Path:
    """Write the files of a shipped adapter from the folder of an arm and seed."""
    study = study or load_study(STUDY)
    if name not in adapters.SHIPPED:
        raise CrosswindError(f"{name!r} is no adapter that ships; expected {' or '.join(adapters.SHIPPED)}")
    path = folder / "test.json"
    if not path.is_file():
        raise CrosswindError(f"{folder}: the arm is not finished (no test.json)")
    done = read_done(path.absolute())
    rows = read_rows(path, done)
    made = folder / "train" / "adapter"
    target = into / name
    target.mkdir(parents=True, exist_ok=True)
    convert(made, weights.fetch(), target / adapters.FILE, name=name)
    about: dict[str, Any] = json.loads((made / ABOUT).read_text(encoding="utf-8"))
    (target / ABOUT).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    card = card_of(study, name, ArmResults(study.arm(done.arm), [done], rows), about)
    (target / "README.md").write_text(card, encoding="utf-8")
    return target


def card_of(study: Study, name: str, arm: ArmResults, about: dict[str, Any]) -> str:
    """The card of one seed of an arm, from what is stored."""
    done: Done = arm.done[0]
    train = done.train or {}
    lines = [
        f"# {name}: an adapter of {about['base']} for tool use",
        "",
        f"{METHODS[name]}: {arm.arm.about}. LoRA, half precision, as one GGUF file; `embedded:{name}` loads it "
        f"in llama.cpp, `hf:embedded+{name}` in transformers.",
        "",
        f"- Arm `{done.arm}`, seed {done.seed}, of the {done.study} study; commit `{done.commit or 'unknown'}`, "
        f"configuration `{done.config_hash}`.",
        f"- Command: `crosswind study run studies/{study.name} --arms {done.arm} --seeds {done.seed} "
        "--out runs/study`.",
        f"- Data: {train.get('demonstrations', 0):,} demonstrations drawn on the train split, "
        f"{train.get('perturbed', 0):,} of them in perturbed worlds; no test word, no held-out kind.",
        f"- Training: {train.get('steps', 0)} steps, {train.get('tokens', 0):,} tokens; all options in `{ABOUT}`.",
        f"- Licence: {LICENCE}.",
        "",
        f"Clean, % of solvable tasks passed: poi {share(arm.solved('poi'))}, medical {share(arm.solved('medical'))}. "
        "Changes under shifts on solvable tasks, in points with 95 % intervals:",
        "",
        f"| suite | {' | '.join(TIERS)} |",
        f"|---|{'---:|' * len(TIERS)}",
    ]
    for suite in study.suites:
        cells = " | ".join(change(arm.tier(suite, tier)) for tier in TIERS)
        lines.append(f"| {suite}: {study.report.suites.get(suite, '')} | {cells} |")
    lines += [
        "",
        "Refusals, in %: right ones of clean tasks that cannot be done and of shifted ones that a shift made "
        "impossible, false ones of those that can be solved.",
        "",
        "| where | right | false |",
        "|---|---:|---:|",
        "| always refusing | 100 | 100 |",
        *(
            f"| clean {domain} | {share(one.right)} | {share(one.false)} |"
            for domain in ("poi", "medical")
            for one in (arm.clean_refusals(domain),)
        ),
        *(f"| {suite} | {share(arm.refusals(suite))} | {share(arm.false_refusals(suite))} |" for suite in study.suites),
        "",
        "Made to study robustness in crosswind's own worlds. It knows the text protocol of this package and one small "
        "world; it is no assistant.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: python studies/fragility/ship.py ARM_FOLDER static|paft")
    try:
        print(ship(Path(sys.argv[1]), sys.argv[2]))
    except CrosswindError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
