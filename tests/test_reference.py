"""The documentation that is made from the code: up to date, complete, and true where it can be tried out."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswind.core.draw import draw
from crosswind.core.perturbation import dump_layers, load_layers
from crosswind.core.registry import domains, perturbations
from crosswind.core.types import TIERS
from crosswind.episodes.recipe import load_recipe, recipes
from crosswind.episodes.schedule import tasks
from crosswind.episodes.suite import load_suite, suites

DOCS = Path(__file__).parents[1] / "docs"
KINDS = [kind for kind in perturbations.names() if perturbations[kind].__module__.startswith("crosswind.")]
WRITTEN = ("domains", "extending", "laws", "banks", "suites")


def code(page: str, language: str) -> list[str]:
    """The blocks of code on a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


# ---------------------------------------------------------------- the reference


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("make_reference", DOCS / "make_reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(script: Any) -> dict[str, str]:
    pages: dict[str, str] = script.pages()
    return pages


def test_the_reference_is_up_to_date(script: Any, made: dict[str, str], tmp_path: Path) -> None:
    assert not script.differing(made), "run python docs/make_reference.py"
    assert script.differing(made, tmp_path) == sorted(made)  # a check that would see what is missing
    (tmp_path / "left_over.md").write_text("x", encoding="utf-8")
    assert "left_over.md" in script.differing({}, tmp_path)


def test_every_kind_has_one_section_on_the_page_of_its_tier(made: dict[str, str]) -> None:
    for kind in KINDS:
        tier = perturbations[kind].tier
        for page in TIERS:
            assert made[f"{page}.md"].count(f"\n## `{kind}`\n") == (page == tier), (kind, page)
        assert made["README.md"].count(f"[{kind}]({tier}.md#{kind})") == 1
    assert sum(made[f"{tier}.md"].count("\n## `") for tier in TIERS) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_what_it_needs_and_the_way(kind: str) -> None:
    cls = perturbations[kind]
    for text in (cls.needs, cls.way):
        assert text
        assert text[0].islower()  # they complete a sentence
        assert not text.endswith((".", ";", ","))


def test_the_examples_are_what_their_commands_draw(made: dict[str, str]) -> None:
    for tier in TIERS:
        for part in made[f"{tier}.md"].split("\n## `")[1:]:
            kind = part.partition("`")[0]
            command = re.search(r"`(crosswind play [^`]*)`", part)
            layer = re.search(r"^```json\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
            assert command
            assert layer
            words = shlex.split(command[1])[2:]
            given = dict(zip(words[::2], words[1::2], strict=True))
            name, severity = given["--perturb"].split(":")
            assert name == kind
            domain, seed = domains[given["--domain"]], int(given["--seed"])
            drawn = draw(domain, domain.task(given["--family"], seed), [(kind, int(severity))], seed)
            stored = [json.loads(layer[1])]
            assert dump_layers(drawn.layers) == stored
            assert load_layers(stored) == drawn.layers


def test_every_domain_is_described(made: dict[str, str]) -> None:
    page = made["domains.md"]
    for domain in domains:
        if type(domain).__module__.startswith("crosswind."):
            own = page.partition(f"\n## {domain.name}\n")[2].partition("\n## ")[0]
            for name in (*(spec.name for spec in domain.world_class.specs), *domain.families):
                assert f"\n| `{name}` | " in own, name


# ---------------------------------------------------------------- what is in the other pages


@pytest.mark.parametrize("page", [*(f"{name}.md" for name in WRITTEN), "reference/README.md", "reference/domains.md"])
def test_links_lead_somewhere(page: str) -> None:
    here = DOCS / page
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", here.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (here.parent / target).exists(), target


def test_recipes_and_suites_in_the_docs_load(tmp_path: Path) -> None:
    blocks = code("suites.md", "yaml")
    assert len(blocks) >= 4
    for i, block in enumerate(blocks):
        path = tmp_path / f"{i}.yaml"
        path.write_text(block, encoding="utf-8")
        if re.search(r"^stack:", block, re.MULTILINE):
            assert load_recipe(str(path)).kinds()
        else:
            assert len(load_suite(str(path)).all_conditions()) > 1
    text = (DOCS / "suites.md").read_text(encoding="utf-8")
    for name in (*recipes.names(), *suites.names()):
        assert f"| `{name}` |" in text


@pytest.fixture
def as_modules() -> Iterator[list[types.ModuleType]]:
    """The perturbations of docs/extending.md, registered for a while."""
    made = []
    before = set(perturbations.names())
    for i, block in enumerate(block for block in code("extending.md", "python") if "\n@perturbation\n" in block):
        module = types.ModuleType(f"extending_{i}")
        sys.modules[module.__name__] = module
        exec(compile(block, module.__name__, "exec"), module.__dict__)
        made.append(module)
    yield made
    for module in made:
        del sys.modules[module.__name__]
    for kind in set(perturbations.names()) - before:
        perturbations.remove(kind)


def test_perturbations_in_the_docs_keep_the_laws(as_modules: list[types.ModuleType]) -> None:
    kinds = [kind for kind in perturbations.names() if perturbations[kind].__module__.startswith("extending_")]
    assert len(kinds) == len(as_modules) == 2
    for kind in kinds:
        for severity in (1, 3, 5):
            for task, _ in zip(tasks(domains["poi"], severity), range(6), strict=False):
                drawn = draw(domains["poi"], task, [(kind, severity)], 1)
                assert not drawn.refused


def test_python_in_the_docs_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Those blocks that stand for themselves; what needs names that are not there is a sketch."""
    for page in ("suites.md", "domains.md"):
        for block in code(page, "python"):
            if "islice" not in block:  # counts for a while
                exec(compile(block, page, "exec"), {})
    assert "poi/" in capsys.readouterr().out
