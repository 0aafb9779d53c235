"""What the package promises to those who install it: its extras, its pins, and that its core stays light.

Not here: what the package does once it is imported.
"""

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import crosswind
from crosswind.base import extras

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9.!+]+)")

CORE = {"numpy", "pydantic", "pyyaml", "rich", "typer"}
HEAVY = ("torch", "transformers", "openai", "anthropic", "starlette", "uvicorn", "httpx2", "jsonschema", "numpy")


def pins() -> dict[str, str]:
    """The exact version of every package that constraints.txt names."""
    found = [PIN.fullmatch(line) for line in CONSTRAINTS]
    return {canonicalize_name(pin["name"]): pin["version"] for pin in found if pin}


def test_the_core_depends_on_little() -> None:
    assert {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]} == CORE


def test_the_extras_have_the_names_that_users_type() -> None:
    names = set("openai anthropic local train http mcp bfcl agentdojo ray docs dev inspect openenv parquet".split())
    assert set(EXTRAS) == names


@pytest.mark.parametrize("line", [*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)])
def test_every_direct_dependency_has_a_pin_within_its_bounds(line: str) -> None:
    wanted = Requirement(line)
    pinned = pins().get(canonicalize_name(wanted.name))
    assert pinned is not None, f"constraints.txt has no exact pin for {wanted.name}"
    assert pinned in wanted.specifier, f"constraints.txt has {wanted.name}=={pinned}, pyproject.toml wants {line}"


def test_the_build_backend_is_pinned() -> None:
    assert {"hatchling", "editables"} <= pins().keys()


def test_constraints_hold_exact_pins_and_remarks_only() -> None:
    other = [line for line in CONSTRAINTS if line and not line.startswith("#") and not PIN.fullmatch(line)]
    assert other == []


def test_constraints_name_each_package_once() -> None:
    assert len(pins()) == sum(1 for line in CONSTRAINTS if PIN.fullmatch(line))


def test_constraints_point_at_no_place() -> None:
    """Neither an address nor a path nor a direct reference, in remarks either: the file must serve everywhere."""
    assert [line for line in CONSTRAINTS if re.search(r"://|[/\\]|(^|\s)[@~]", line)] == []


def test_no_extra_asks_for_what_cannot_be_installed_beside_us() -> None:
    """bfcl-eval pins numpy 1.26.4, so it comes with --no-deps (docs/benchmarks.md); the extra has what it needs."""
    assert {canonicalize_name(Requirement(line).name) for line in EXTRAS["bfcl"]} == {"filelock", "mpmath"}
    assert "bfcl-eval" in pins()


def test_the_documentation_installs_from_a_checkout() -> None:
    """The package is on no index: only where it is installed already does pip know what crosswind[extra] is."""
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"(uvx|pipx run|pip install|uv tool install) crosswind\b", text), page
        for found in re.finditer(r"crosswind\[", text):
            before = text[max(0, found.start() - 120) : found.start()]
            assert "installed already" in before, (page, text[found.start() :][:40])


@pytest.mark.parametrize(
    ("came", "says"),
    [
        ({"url": "file://{here}", "dir_info": {"editable": True}}, "pip install '.[mcp]'"),
        (
            {"url": "https://a.example/c", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'crosswind[mcp] @ git+https://a.example/c@abc'",
        ),
        ({"url": "https://a.example/c.whl"}, "pip install 'crosswind[mcp] @ https://a.example/c.whl'"),
        (
            {"url": "file://{here}/pyproject.toml", "archive_info": {}},
            "pip install 'crosswind[mcp] @ file://{here}/pyproject.toml'",
        ),
        (None, "pip install 'crosswind[mcp]'"),
    ],
)
def test_extras_are_installed_from_where_this_crosswind_came(
    came: dict[str, object] | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src" / "crosswind").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    told = json.dumps(came).replace("{here}", str(tmp_path)) if came else None
    monkeypatch.setattr(metadata, "distribution", lambda _: SimpleNamespace(read_text=lambda _: told))
    monkeypatch.setattr(extras, "__file__", "/nowhere/site-packages/crosswind/base/extras.py")
    monkeypatch.chdir(tmp_path)
    assert extras.install("mcp") == says.replace("{here}", str(tmp_path))


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    code = f"import sys, crosswind, crosswind.cli.app; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_the_citation_has_the_version_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == crosswind.__version__


def test_the_package_says_that_it_is_typed() -> None:
    assert resources.files("crosswind").joinpath("py.typed").is_file()
