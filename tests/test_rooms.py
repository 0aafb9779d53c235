"""The structure of the package: rooms import one way, no import runs in a circle, long files have a reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "crosswind"
MAP = re.findall(r"^\| `(\w+)` \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
ROOMS = (*MAP, "pytest_plugin", "__main__", "__init__")  # in order; the registry's loaders name later ones as data
EXCEPTIONS: dict[str, str] = {}  # "file imports module" -> the reason
LONG: dict[str, str] = {}  # a file over 600 lines -> the reason
FILES = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
MODULES = {".".join(("crosswind", *name.with_suffix("").parts)).removesuffix(".__init__"): name for name in FILES}


def imported(name: Path, *, typing: bool = True) -> Iterator[str]:
    """The modules of the package that a file imports, wherever in it, or names for importlib to import."""
    nodes = [ast.parse(FILES[name])]
    for node in nodes:
        if not typing and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        nodes += ast.iter_child_nodes(node)  # type: ignore[arg-type]
        found: list[str] = []
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: write imports in full"
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found = [str(arg.value) for arg in node.args if isinstance(arg, ast.Constant)]
        for full in found:
            if full.split(".")[0] == "crosswind":
                yield full if full in MODULES else full.rpartition(".")[0]


def test_rooms_import_only_from_rooms_before_them() -> None:
    wrong = []
    for name in FILES:
        before = ROOMS[: ROOMS.index(name.parts[0].removesuffix(".py")) + 1]
        wrong += [f"{name} imports {m}" for m in imported(name) if m.partition(".")[2].split(".")[0] not in before]
    assert sorted(wrong) == sorted(EXCEPTIONS)


def test_no_import_runs_in_a_circle() -> None:
    graph = {module: set(imported(name, typing=False)) - {module} for module, name in MODULES.items()}
    assert list(TopologicalSorter(graph).static_order())


def test_long_files_have_a_reason() -> None:
    assert {str(name) for name, text in FILES.items() if len(text.splitlines()) > 600} == set(LONG)
