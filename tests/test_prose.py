"""Files that documents and docstrings speak of are there."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLES = {  # names to make up
    *("my_agent.py", "slow_desk.py", "test_slow_desk.py", "sign_in.py", "status_frame.py"),
    *("NAME.py", "test_NAME.py", "studies/NAME/findings.py"),
}
KEPT = ("studies/fragility/report", "docs/results/")  # pages that say what was so at their commit


def test_python_files_named_in_prose_exist() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    files = listed or [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.*")]
    missing = []
    for name in files:
        if not name.endswith((".py", ".md")) or name.startswith(KEPT) or not (ROOT / name).is_file():
            continue
        for said in re.findall(r"`((?:[\w.-]+/)*\w+\.py)`", (ROOT / name).read_text(encoding="utf-8")):
            known = any(f"/{file}".endswith(f"/{said}") for file in files)
            if not known and said not in EXAMPLES and said.split("/")[-1] not in EXAMPLES:
                missing.append(f"{name}: {said}")
    assert not missing


def test_what_the_map_of_the_package_names_is_in_the_files_it_names() -> None:
    package = ROOT / "src" / "crosswind"
    text = " ".join((package / "README.md").read_text(encoding="utf-8").split())
    wrong, found = [], re.findall(r"((?:`[\w.]+`(?:,? and |, )?)+) in `([\w/]+\.py)`", text)
    for names, file in found:
        code = (package / file).read_text(encoding="utf-8")
        for name in re.findall(r"`(?:\w+\.)?(\w+)`", names):
            if not re.search(rf"^\s*(?:(?:async )?def |class )?{name}\b", code, re.MULTILINE):
                wrong.append(f"{name} in {file}")
    assert len(found) > 8
    assert not wrong


def test_every_module_is_named_in_the_docstring_of_its_folder() -> None:
    package = ROOT / "src" / "crosswind"
    wrong = []
    for path in sorted(package.rglob("*/*.py")):
        name = path.relative_to(package)
        own = name.parts[0] in ("agents", "cli", "perturbations") and not path.stem.startswith("_")  # named by its kind
        if path.stem != "__init__" and name.parts[0] != "data" and not own:
            doc = ast.get_docstring(ast.parse((path.parent / "__init__.py").read_text(encoding="utf-8"))) or ""
            if not re.search(rf"\b{path.stem}\b", doc):
                wrong.append(str(name))
    assert not wrong
