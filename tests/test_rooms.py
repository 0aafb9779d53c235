"""The structure of the package: rooms import one way, files stay readable, and names mean one thing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "crosswind"
ROOMS = (  # a room imports only from those before it; pytest_plugin.py, __main__.py and __init__.py are outside
    *("base", "text", "core", "words", "domains", "perturbations", "agents", "benchmarks", "episodes", "models"),
    *("metrics", "runs", "gate", "report", "export", "mcp", "train", "study", "authoring", "api", "cli"),
)
LOADER = "core/registry.py"  # its table names modules of later rooms
EXCEPTIONS: dict[tuple[str, str], str] = {}  # (file, room it imports from) -> the reason
LONG = {  # files over 600 lines -> the reason
    "cli/run.py": "to be split",
    "domains/banking.py": "to be split",
    "domains/graphs.py": "to be split",
    "domains/medical.py": "to be split",
    "domains/operations.py": "to be split",
    "domains/poi.py": "to be split",
    "domains/retail.py": "to be split",
    "domains/workspace.py": "to be split",
    "study/report.py": "to be split",
    "study/runner.py": "to be split",
}


def imports(path: Path) -> Iterator[str]:
    """Every module of the package that a file imports, wherever in it, and every one that it names in a string."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative imports hide where a name comes from"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


def files() -> list[tuple[str, str, Path]]:
    """The name of each file in a room, its room, and its path."""
    paths = [(path.relative_to(ROOT), path) for path in sorted(ROOT.rglob("*.py"))]
    return [
        (str(name), name.parts[0].removesuffix(".py"), path) for name, path in paths if name.parts[0] not in OUTSIDE
    ]


OUTSIDE = ("__init__.py", "__main__.py", "pytest_plugin.py")


def test_imports_go_one_way() -> None:
    wrong = []
    for name, room, path in files():
        assert room in ROOMS, f"{name} is in no room"
        for module in imports(path):
            if module.partition(".")[0] != "crosswind":
                continue
            source = module.split(".")[1]
            early = source in ROOMS[: ROOMS.index(room) + 1]
            if not early and (name, source) not in EXCEPTIONS:
                wrong.append(f"{name} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_long_files_have_a_reason() -> None:
    long = {name for name, _, path in files() if len(path.read_text(encoding="utf-8").splitlines()) > 600}
    assert long == set(LONG)
