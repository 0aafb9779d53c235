"""A class name means one thing: no public class name is used twice in the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "crosswind"
REPEATED: dict[str, str] = {  # name -> the reason
    "Brief": "what a task tells an agent, and what figures need of an episode",
}


def test_each_public_class_name_is_used_once() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(ROOT)))
    repeated = {name: files for name, files in found.items() if len(files) > 1}
    unknown = {name: files for name, files in repeated.items() if name not in REPEATED}
    assert not unknown, f"rename one of each: {unknown}"
    assert set(REPEATED) == set(repeated), f"used once now, take it out: {sorted(set(REPEATED) - set(repeated))}"
