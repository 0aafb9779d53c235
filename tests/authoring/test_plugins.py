"""Things from outside the package: files that are named, and distributions that are installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswind.authoring import plugins
from crosswind.base.errors import BadFile, CrosswindError, UnknownName
from crosswind.core.registry import agents, domains, perturbations

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "library.yaml"

LAYER = '''\
"""A perturbation, an agent and nothing else."""

from typing import Literal

from crosswind.agents.idle import Idle
from crosswind.core.perturbation import Perturbation, perturbation
from crosswind.core.registry import agents
from crosswind.core.types import ToolResult


@perturbation
class Boxed(Perturbation):
    """Results stand in a box."""

    kind: Literal["boxed"] = "boxed"
    axis, tier, rank = "observation", "interaction", "protocol"
    severities = "All alike."

    @classmethod
    def sample(cls, scene, rng, severity):
        return cls()

    def encode_result(self, call, result, memo):
        return result if result.error else ToolResult({"box": result.content})

    def decode_result(self, call, result, memo):
        return result if result.error else ToolResult(result.content["box"])


agents.add("silent", Idle)
'''
DOMAIN = '''\
"""The points of interest under another name."""

from crosswind.domains.poi import Poi
from crosswind.core.registry import domains


class Sights(Poi):
    name = "sights"


domains.add("sights", Sights())
'''


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test loads is gone after it."""
    before = [(r, set(r.names())) for r in plugins.REGISTRIES]
    monkeypatch.setattr(plugins, "_loaded", {})
    yield
    for registry, names in before:
        for name in set(registry.names()) - names:
            registry.remove(name)


def crosswind(*args: str, code: int = 0, **env: str) -> tuple[str, str]:
    """Run the command line; what it printed, and what it complained of."""
    command = [sys.executable, "-m", "crosswind.cli.app", *args]
    paths = os.pathsep.join(filter(None, (env.pop("path", ""), os.environ.get("PYTHONPATH", ""))))
    every = {**os.environ, "NO_COLOR": "1", **env, **({"PYTHONPATH": paths} if paths else {})}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=every)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout, done.stderr


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


# ---------------------------------------------------------------- files


@pytest.mark.usefixtures("clean")
def test_a_python_file_adds_what_it_registers(tmp_path: Path) -> None:
    path = write(tmp_path, "layer.py", LAYER)
    plugin = plugins.load(path)
    assert plugin.added == (("perturbation", "boxed"), ("agent", "silent"))
    assert plugins.load(tmp_path / "." / "layer.py") is plugin  # run once
    assert perturbations.origin("boxed") == agents.origin("silent") == str(path)
    assert perturbations.origin("transient_error") == ""
    assert perturbations["boxed"].__module__.startswith("crosswind_plugin_layer_")


@pytest.mark.usefixtures("clean")
def test_a_yaml_file_is_a_domain() -> None:
    assert plugins.load(EXAMPLE).added == (("domain", "library"),)
    assert domains["library"].task("best_pages", 0).domain == "library"
    assert domains.origin("library") == str(EXAMPLE)


@pytest.mark.usefixtures("clean")
def test_files_are_shared_with_processes_that_are_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.VARIABLE, "elsewhere.py")
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "layer.py", LAYER)
    plugins.share([Path("layer.py")])
    assert os.environ[plugins.VARIABLE] == os.pathsep.join(("elsewhere.py", str((tmp_path / "layer.py").resolve())))


def test_the_command_line_takes_plugins_before_every_command(tmp_path: Path) -> None:
    layer, sights = write(tmp_path, "layer.py", LAYER), write(tmp_path, "sights.py", DOMAIN)
    given = ("--plugin", str(layer), "--plugin", str(sights))
    data = json.loads(crosswind(*given, "catalog", "--json")[0])
    assert [d["origin"] for d in data["domains"] if d["name"] == "sights"] == [str(sights)]
    assert [d["origin"] for d in data["domains"] if d["name"] == "poi"] == [""]
    assert [k["origin"] for k in data["perturbations"] if k["kind"] == "boxed"] == [str(layer)]
    assert data["agent_origins"] == {"silent": str(layer)}
    text = re.sub(r"[\s│]+", "", crosswind(*given, "catalog")[0])
    assert f"sights(from{sights})" in text
    assert f"boxed(from{layer})" in text
    assert f"silent(from{layer})" in text
    assert f"box.(from{layer})" in re.sub(r"[\s│]+", "", crosswind(*given, "catalog", "kinds")[0])
    played = json.loads(crosswind(*given, "play", "--domain", "sights", "--perturb", "boxed", "--json")[0])
    assert played["verdict"]["outcome"] == "pass"
    assert played["layers"] == [{"kind": "boxed"}]
    rows = json.loads(crosswind(*given, "certify", "--perturb", "boxed", "--count", "2", "--json")[0])["rows"]
    assert {r["domain"]: r["certified"] for r in rows}["sights"] == 2
    assert "FAIL" in crosswind(*given, "play", "--domain", "sights", "--agent", "silent")[0]


def test_the_variable_names_files_too(tmp_path: Path) -> None:
    layer = write(tmp_path, "layer.py", LAYER)
    named = os.pathsep.join((str(layer), "", str(EXAMPLE)))
    done = crosswind("certify", "--domain", "library", "--perturb", "boxed", "--count", "1", CROSSWIND_PLUGINS=named)
    assert "1 certified" in done[0]
    wrong = crosswind("catalog", code=2, CROSSWIND_PLUGINS="nowhere.py")[1]
    assert wrong == ("error: nowhere.py: file not found; check the path of the plug-in (named by CROSSWIND_PLUGINS)\n")


WRONG = [
    ("x = 1\n", ": registers nothing; use domains.add(name, domain), @perturbation or agents.add(name, factory)"),
    ("x = 1\ny = (\n", ":2: SyntaxError: '(' was never closed; fix this line of the plugin"),
    ("\n\nimport nowhere_to_be_found\n", ":3: ModuleNotFoundError: No module named 'nowhere_to_be_found'; fix"),
    ("def f():\n    return 1 / 0\n\n\nf()\n", ":2: ZeroDivisionError: division by zero; fix"),
    ("import sys\nsys.exit(3)\n", ":2: SystemExit: 3; fix"),
    (
        "from crosswind.core.registry import agents\nagents.add('oracle', print)\n",
        ":2: two agents are named 'oracle', from crosswind itself and ",
    ),
    (
        "from crosswind.core.registry import agents, domains\nagents.add('a_1', print)\ndomains.add('d_1', 7)\n",
        ": the domain 'd_1' is int; expected an instance of a subclass of crosswind.Domain",
    ),
    (
        "from crosswind.core.registry import agents\nagents.add('a_2', 7)\n",
        ": the agent 'a_2' is int; expected a class or",
    ),
    (DOMAIN.replace('add("sights"', 'add("seen"'), ": a domain that calls itself 'sights' is registered as 'seen'"),
    (LAYER.replace('"protocol"', '"edge"'), ": TypeError: Boxed.rank is 'edge'; expected one of"),
    (
        LAYER.replace("    severities", "    counts = 'keys'\n    severities"),
        ": TypeError: Boxed.counts is 'keys'; expected",
    ),
]


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(("text", "words"), WRONG)
def test_what_is_wrong_with_a_file_is_told_with_its_line_and_nothing_stays(
    tmp_path: Path, text: str, words: str
) -> None:
    before = [r.names() for r in plugins.REGISTRIES]
    path = write(tmp_path, "wrong.py", text)
    with pytest.raises(CrosswindError) as raised:
        plugins.load(path)
    assert str(raised.value).startswith(str(path))
    assert words in str(raised.value)
    assert [r.names() for r in plugins.REGISTRIES] == before
    assert not [name for name in sys.modules if name.startswith("crosswind_plugin_wrong_")]


@pytest.mark.usefixtures("clean")
def test_two_plugins_of_one_name_are_both_named(tmp_path: Path) -> None:
    one, two = write(tmp_path, "one.py", LAYER), write(tmp_path, "two.py", LAYER)
    plugins.load(one)
    with pytest.raises(BadFile, match=f"two perturbations are named 'boxed', from {one} and {two}; rename"):
        plugins.load(two)


def test_other_paths_are_refused(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path / "none.py", "file not found"),
        (tmp_path, "this is a folder"),
        (write(tmp_path, "notes.txt", "x"), "expected a Python file"),
    ):
        with pytest.raises(BadFile, match=words):
            plugins.load(path)


def test_an_error_in_a_plugin_is_one_line_on_the_command_line(tmp_path: Path) -> None:
    path = write(tmp_path, "wrong.py", "\nraise ValueError('two\\nlines')\n")
    near = os.path.relpath(path)
    said = crosswind("--plugin", near, "catalog", code=2)[1]
    assert said == f"error: {near}:2: ValueError: two lines; fix this line of the plugin\n"


# ---------------------------------------------------------------- distributions


def distribution(folder: Path, name: str, points: dict[str, dict[str, str]], **modules: str) -> None:
    """What pip would leave behind."""
    info = folder / f"{name}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()) for group, entries in points.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)


def test_what_distributions_announce_is_found(tmp_path: Path) -> None:
    plain = DOMAIN.replace("domains.add", "print if False else (lambda *_: None)")
    distribution(
        tmp_path,
        "sightseeing",
        {
            "crosswind.domains": {"sights": "sights_module:Sights"},  # an object, added under its name
            "crosswind.perturbations": {"boxed": "layer_module"},  # a module, which registers
            "crosswind.agents": {"silent": "layer_module", "quiet": "layer_module:Idle"},
        },
        sights_module=plain,
        layer_module=LAYER,
    )
    out, err = crosswind("catalog", "--json", path=str(tmp_path))
    assert err == ""
    data: dict[str, Any] = json.loads(out)
    where = "distribution sightseeing 1.2"
    assert [d["origin"] for d in data["domains"] if d["name"] == "sights"] == [where]
    assert [k["origin"] for k in data["perturbations"] if k["kind"] == "boxed"] == [where]
    assert data["agent_origins"] == {"quiet": where, "silent": where}
    played = crosswind("play", "--domain", "sights", "--perturb", "boxed", path=str(tmp_path))
    assert "PASS" in played[0]


def test_a_broken_distribution_is_a_warning_and_an_error_for_who_asks(tmp_path: Path) -> None:
    distribution(
        tmp_path,
        "unlucky",
        {
            "crosswind.domains": {"gone": "no_such_module:x", "poi": "fine_module:number"},
            "crosswind.perturbations": {"odd": "fine_module:number"},
            "crosswind.agents": {"nothing": "fine_module", "half": "half_module"},
        },
        fine_module="number = 7\n",
        half_module="from crosswind.core.registry import agents\nagents.add('left_over', print)\nraise OSError('no')\n",
    )
    out, err = crosswind("play", "--domain", "poi", path=str(tmp_path))
    assert "PASS" in out
    warned = err.splitlines()
    assert len(warned) == 5
    assert all(line.startswith("warning: the ") and "distribution unlucky 1.2" in line for line in warned)
    assert "the domain 'gone' is left out" in err
    assert "ModuleNotFoundError: No module named 'no_such_module'; fix or uninstall" in err
    assert "two domains are named 'poi', from crosswind itself and distribution unlucky 1.2" in err
    assert "the module fine_module registers nothing" in err
    _, asked = crosswind("play", "--domain", "gone", code=2, path=str(tmp_path))
    assert asked.splitlines()[-1].startswith("error: the domain 'gone' could not be loaded: distribution unlucky 1.2")
    _, left = crosswind("play", "--domain", "poi", "--agent", "left_over", code=2, path=str(tmp_path))
    assert "no agent 'left_over'" in left


def test_an_unknown_name_is_still_an_unknown_name() -> None:
    with pytest.raises(UnknownName, match="did you mean"):
        domains["poy"]
