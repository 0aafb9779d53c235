"""Prints a hundred perturbed requests of every family to docs/samples/, to be read by people.

python docs/make_samples.py            # writes docs/samples/<domain>.md
"""

from __future__ import annotations

import argparse
from pathlib import Path

from crosswind.base.errors import CannotPerturb
from crosswind.core import entity_names
from crosswind.core.domain import Domain
from crosswind.core.draw import draw
from crosswind.core.perturbation import SEVERITIES
from crosswind.core.registry import domains
from crosswind.core.types import SPLITS

OUT = Path(__file__).parent / "samples"
# what is done to a request, in turn; wording and noise come together as well
STACKS = (
    ("paraphrase",),
    ("paraphrase",),
    ("paraphrase", "typos"),
    ("terse_query",),
    ("verbose_query",),
    ("paraphrase", "verbose_query"),
    ("underspecified",),
    ("ambiguous",),
    ("underspecified", "paraphrase"),
    ("conflicting_information",),
    ("typos",),
    ("entity_reskin", "paraphrase"),
)
HEAD = """# Perturbed requests: {domain}

{count} of each family, all certified: kinds and severities in turn, the three splits in turn. Made by
`python docs/make_samples.py`; regenerated whenever a bank changes.
"""


def lines(domain: Domain, family: str, count: int) -> list[str]:
    """Perturbed requests of one family."""
    out: list[str] = []
    n = 0
    while len(out) < count and n < 12 * count:
        kinds, severity, split = STACKS[n % len(STACKS)], SEVERITIES[n % 5], SPLITS[n % 3]
        task = domain.task(family, n, split=split)
        n += 1
        try:
            drawn = draw(domain, task, [(kind, severity) for kind in kinds], n, strict=True)
        except CannotPerturb:
            continue
        shown = drawn.certificate.task
        out.append(f"- `{split} {severity} {'+'.join(kinds)}` {entity_names.shown(shown, shown.brief.query)}")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="requests per family (default: 100)")
    parser.add_argument("--domain", action="append", help="only this domain; may be repeated")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.domain or domains.names():
        domain = domains[name]
        parts = [HEAD.format(domain=name, count=args.count)]
        for family in domain.families:
            parts += [f"\n## {family}\n", *lines(domain, family, args.count)]
        (args.out / f"{name}.md").write_text("\n".join(parts) + "\n", encoding="utf-8")
        print(f"wrote {args.out / name}.md")


if __name__ == "__main__":
    main()
