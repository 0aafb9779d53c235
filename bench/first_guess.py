"""Guess by words alone where a behaviour is to be changed, from the map of the package and the names of its files.

    python bench/first_guess.py --misses
    python bench/first_guess.py --src OTHER/src

A reader who knows no code sees a file's path, what `src/crosswind/README.md` says of it, and the docstring of its
folder. Files are ranked by how rare the words are that they share with a behaviour (BM25). That is no person: it knows
no synonym. Its use is in comparing two commits. bench/first_guess.tsv has the behaviours; the map was changed for those
of the list `map` until they were found, and for none of the list `fresh`.
"""

from __future__ import annotations

import argparse
import ast
import math
import re
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
COMMON = frozenset(
    "the of and for that what which how when are has have its with from into not one each this than they them their was"
    " were who whose where there other others file files".split()
)
ENDINGS = re.compile(r"(?<=\w{3})(?:ings?|ies|ed|es|s|e)$")


def words_of(text: str) -> list[str]:
    """The words of a text without their endings."""
    found = re.findall(r"[a-z]{3,}", text.lower().replace("_", " "))
    return [ENDINGS.sub("", word) for word in found if word not in COMMON]


def shown(root: Path) -> dict[str, Counter[str]]:
    """What a newcomer sees of each file, by its path."""
    lines = (root / "README.md").read_text(encoding="utf-8").splitlines()
    rooms = {found[1]: line for line in lines if (found := re.match(r"\| `(\w+)` \|", line))}
    rows = [(found[1], found[2]) for line in lines if (found := re.match(r"\| ([^`|][^|]*) \| (.*) \|$", line))]
    out = {}
    for path in (p for sort in ("py", "css", "js") for p in root.rglob(f"*/*.{sort}")):
        name = path.relative_to(root)
        if path.stem == "__init__" or name.parts[0] == "data":
            continue
        said = words_of(" ".join(name.with_suffix("").parts)) * 2
        doc = ast.get_docstring(ast.parse((path.parent / "__init__.py").read_text(encoding="utf-8"))) or ""
        said += words_of(" ".join(part for part in re.split(r"\n|;|\. ", doc) if re.search(rf"\b{path.stem}\b", part)))
        parts = re.split(r"[,;|]", rooms.get(name.parts[0], ""))
        said += words_of(" ".join(part for part in parts if re.search(rf"`{path.stem}\b", part))) * 2
        said += words_of(" ".join(to for to, where in rows if f"`{name}`" in where)) * 3
        out[name.as_posix()] = Counter(said)
    return out


def ranked(files: dict[str, Counter[str]], behaviour: str) -> list[str]:
    """The files, the likeliest first."""
    known = Counter(word for words in files.values() for word in words)
    mean = sum(words.total() for words in files.values()) / len(files)

    def score(words: Counter[str]) -> float:
        length = 1.2 * (0.25 + 0.75 * words.total() / mean)
        shared = set(words_of(behaviour)) & words.keys()
        rarity = {word: math.log(1 + (len(files) - known[word] + 0.5) / (known[word] + 0.5)) for word in shared}
        return sum(rarity[word] * words[word] * 2.2 / (words[word] + length) for word in sorted(shared))

    return sorted(files, key=lambda name: (-score(files[name]), name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", type=Path, default=HERE.parent / "src", help="folder that holds the package")
    parser.add_argument("--misses", action="store_true", help="list behaviours that are not found at the first guess")
    args = parser.parse_args()
    files = shown(args.src / "crosswind")
    first, three, all_ = Counter[str](), Counter[str](), Counter[str]()
    for line in (HERE / "first_guess.tsv").read_text(encoding="utf-8").splitlines():
        sort, behaviour, right = line.split("\t")
        order = ranked(files, behaviour)
        place = min((order.index(name) for name in right.split(",") if name in files), default=len(order))
        all_[sort] += 1
        first[sort] += place == 0
        three[sort] += place < 3
        if args.misses and place:
            print(f"{place + 1:4} {behaviour}: {right} (guessed {order[0]})")
    for sort, count in all_.items():
        print(f"{sort}: {first[sort]} of {count} at the first guess, {three[sort]} among the first three")


if __name__ == "__main__":
    main()
