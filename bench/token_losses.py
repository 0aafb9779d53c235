"""Where a trained model is unsure: the loss of its turns by part, on demonstrations of worlds of a split.

    python bench/token_losses.py MODEL[+ADAPTER] --worlds generated:train-5000..5015 generated:dev-0..9 --count 16

Each token is predicted from the right tokens before it. "wrong" is the mean number of tokens of a part, in one
demonstration, for which the model's first choice is another token. An answer may be worded in many ways, so only the
other parts count. Reading 16 demonstrations takes a small model a minute or two on two cores.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator

import torch

from crosswind.base.errors import CannotDraw
from crosswind.core.draw import draw
from crosswind.core.registry import domains
from crosswind.core.types import SPLITS
from crosswind.models.hf import model_and_adapter
from crosswind.models.loading import load, with_adapter
from crosswind.models.native import script_for
from crosswind.train.rows import Demonstration, demonstration, rows, tokens
from crosswind.train.thoughts import Habits
from crosswind.train.worlds import worlds_of

PARTS = ("reading and comparing", "plan", "other thoughts", "name in a call", "arguments", "final words")


def demonstrations(names: str, habits: Habits) -> Iterator[Demonstration]:
    """Clean demonstrations from the worlds of a range in turn, each of another family."""
    worlds = worlds_of(names)
    split = next((split for split in SPLITS if f":{split}-" in names), SPLITS[0])
    count = 1 + (worlds.last or worlds.first) - worlds.first if worlds else 1
    for n in range(10**6):
        domain = domains[f"{worlds.start}{worlds.first + n % count}" if worlds else names]
        families = list(domain.families)
        task = domain.task(families[(n // count) % len(families)], n, split=split)
        try:
            yield demonstration(draw(domain, task, [], 0), habits=habits)
        except CannotDraw:
            continue


def part_of(turn: str) -> str:
    """The part of a turn that its last token belongs to."""
    if "<think>" in turn and "</think>" not in turn:
        if "plan " in turn:
            return "other thoughts" if ";" in turn.rpartition("plan ")[2] else "plan"
        return "reading and comparing" if "rules" not in turn else "other thoughts"
    if "<tool_call>" in turn:
        return "arguments" if '"arguments"' in turn else "name in a call"
    return "final words"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--worlds", nargs="+", required=True)
    parser.add_argument("--count", type=int, default=16, help="demonstrations of each range")
    parser.add_argument("--protocol", choices=["text", "quoted"], default="text")
    parser.add_argument("--longest", type=int, default=2600, help="tokens; longer ones are passed over")
    args = parser.parse_args()
    path, adapter = model_and_adapter(args.model)
    model, tokenizer = load(path, torch.float32)
    if adapter:
        model = with_adapter(model, adapter)
    model.eval()
    script = script_for(tokenizer, args.protocol)
    habits = Habits(names="quoted", errors="quoted") if args.protocol == "quoted" else Habits()
    for names in args.worlds:
        found: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0])
        read = 0
        for shown in demonstrations(names, habits):
            ids, mask = tokens(rows(shown)[0], script)
            if len(ids) > args.longest:
                continue
            with torch.no_grad():
                logs = torch.log_softmax(model(torch.tensor([ids])).logits[0].float(), -1)
            turn = ""
            for at in range(1, len(ids)):
                turn = turn + tokenizer.decode([ids[at]]) if mask[at] else ""
                if mask[at]:
                    counted = found[part_of(turn)]
                    counted[0] += 1
                    counted[1] -= float(logs[at - 1, ids[at]])
                    counted[2] += int(logs[at - 1].argmax()) != ids[at]
            read += 1
            if read == args.count:
                break
        print(
            f"\n{names}, {read} demonstrations, means of one\n\n| part | tokens | loss | wrong |\n|---|---:|---:|---:|"
        )
        for part in PARTS:
            n, loss, wrong = (value / read for value in found[part])
            print(f"| {part} | {n:.0f} | {loss:.2f} | {wrong:.2f} |", flush=True)


if __name__ == "__main__":
    main()
