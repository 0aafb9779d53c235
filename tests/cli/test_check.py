"""`crosswind check` and `certify`, as the author of a plug-in meets them."""

from __future__ import annotations

import io
import json
import sys
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from crosswind.authoring import checkup, plugins
from crosswind.authoring.new import write
from crosswind.cli import app as cli
from crosswind.core import audit
from crosswind.core.registry import domains, perturbations
from crosswind.episodes import builtin_suites, stream


@pytest.fixture(autouse=True)
def shed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a domain, a perturbation and an agent; two domains and two kinds, so that checks are quick."""
    assert {builtin_suites, stream}  # they name kinds as they are imported, which is before these are gone
    for registry in plugins.REGISTRIES:
        registry.names()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("CROSSWIND_PLUGINS", "")  # what --plugin adds to it is gone after a test
    monkeypatch.setenv("CROSSWIND_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(plugins, "_loaded", {})
    monkeypatch.setattr(audit, "_known", {})
    for registry, kept in ((domains, {"poi"}), (perturbations, {"transient_error", "semantic_rename", "rule_change"})):
        things, origins = registry._things, registry._origins
        monkeypatch.setattr(registry, "_things", {name: things[name] for name in kept})
        monkeypatch.setattr(registry, "_origins", {name: origins[name] for name in kept})
    agents = plugins.REGISTRIES[2]
    monkeypatch.setattr(agents, "_things", dict(agents._things))
    monkeypatch.setattr(agents, "_origins", dict(agents._origins))


def crosswind(*args: str, code: int = 0, coding: str = "utf-8") -> str:
    """What the command prints; warnings and progress on stderr are left out unless it exits with 2."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding=coding), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["crosswind", *args])
        patch.setattr(warnings, "formatwarning", warnings.formatwarning)
        patch.delenv("CROSSWIND_PLUGINS", raising=False)
        with pytest.raises(SystemExit) as ended:
            cli.main()
    out.seek(0)
    said = out.read()
    assert "Traceback" not in said + err.getvalue()
    assert (ended.value.code or 0) == code, said + err.getvalue()
    return said + (err.getvalue() if code == 2 else "")


def made(sort: str, name: str, old: str = "", new: str = "", **options: Any) -> str:
    """Write a starting point with one thing changed; its file."""
    path = write(sort, name, Path("."), **options)[0]
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return str(path)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_domain_that_is_right(tmp_path: Path) -> None:
    file = made("domain", "shed")
    text = crosswind("check", file)
    for words in (
        "domain shed (shed.py)",
        "✓ family best_fee 3 tasks by themselves: solved; no tie, leak or free choice",
        "✓ family barred_member 3 tasks by themselves: refused with a proof",
        "✓ tools 5 tools read and write only what they declare",
        "✓ word bank has actions,",
        "- rule_change does not apply: it needs a house rule",
        "✓ kinds 2 of 3 are fair here: semantic_rename, transient_error",
        "no fault found",
    ):
        assert words in flat(text)
    assert max(map(len, text.splitlines())) < 80
    plain = crosswind("check", "shed", coding="ascii")  # by its name, on a terminal without signs
    assert "ok family best_fee" in flat(plain)
    assert plain.isascii()


def test_a_kind_of_ours_that_does_not_fit_a_fair_domain_is_nobodys_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    right = audit.audit_kind

    def judged(kind: str, *rest: Any, **more: Any) -> list[audit.Complaint]:
        found = right(kind, *rest, **more)
        return [audit.Complaint("ties", kind, "the rows come otherwise")] if kind == "semantic_rename" else found

    monkeypatch.setattr(audit, "audit_kind", judged)
    text = flat(crosswind("check", made("domain", "shed")))
    said = "the domain shed and semantic_rename do not fit: ties: the rows come otherwise"
    assert f"- semantic_rename does not apply: {said}" in text
    assert "✓ kinds 1 of 3 are fair here: transient_error" in text


DOMAINS = [
    (
        '"rating": row["rating"]}',
        '"rating": row["stars"]}',
        "code: tool 'find_items' raised KeyError: 'stars' (shed.py:",
    ),
    (
        "details['fee']} euros a week.\"\n\n    def ends",
        "details['price']} euros\"\n\n    def ends",
        "raised KeyError: 'p",
    ),
    (
        'reads=["items.kind,rating"]',
        'reads=["items.kind"]',
        "tool 'find_items' shows items.rating, which its `reads` do",
    ),
    (
        'undo=("return_item", "loan_id")',
        'undo=("give_item", "loan_id")',
        "is undone by 'give_item', and there is no such",
    ),
    ("return f\"It costs {details['fee']} euros a week.\"", 'return "It costs 1 euro."', "the task itself is unfair"),
    (
        '    def ends(self, task: Task, start: State) -> list[Changes]:\n        """N',
        '    def end(self, task, start):\n        """N',
        "the family shed/best_fee has no `ends`; add it: the changes that meet the request",
    ),
    (
        "{shed} cost a week?",
        "{hut} cost a week?",
        "shed/best_fee has {hut} in a query, which is not one of its details (",
    ),
    ("kind = rng.choice(KINDS)", "kind = rng.choice(KIND)", "propose of the family shed/best_fee raised NameError"),
    ("    policy = (", "    rules = (", "the domain 'shed' has no `policy`; add it"),
    ("def member_record(self, member_id: str)", "def member_record(self, member_id)", "needs a type for 'member_id'"),
    ("moves = ranges.get(", "moves = ranges.__getitem__(", "`vary` raises KeyError"),
    ("class ShedWorld(World):", "class ShedWorld(World:", "shed.py:101: SyntaxError: invalid syntax"),
    ("from random import Random", "from random import Randomm", "ImportError: cannot import name 'Randomm'"),
    ('domains.add("shed", Shed())', "", "shed.py: registers nothing; use domains.add(name, domain)"),
    ('domains.add("shed", Shed())', 'domains.add("sheds", Shed())', "calls itself 'shed' is registered as 'sheds'"),
]


@pytest.mark.parametrize(("old", "new", "words"), DOMAINS)
def test_each_mistake_in_a_domain_is_named(old: str, new: str, words: str) -> None:
    text = crosswind("check", made("domain", "shed", old, new), code=1)
    assert words in flat(text)
    assert "lower the severity" not in text
    assert "transient_error" not in text or "2 of 3" in text  # no kind is blamed for it
    assert max(map(len, text.splitlines())) < 80


def test_a_perturbation_is_tried_in_every_domain_and_its_mistakes_are_its_own() -> None:
    right = flat(crosswind("check", made("perturbation", "in_cents", values=True)))
    assert "✓ in poi 36 of 36 draws certified, severity 1 to 5; families: " in right
    raising = made("perturbation", "desk_a", "ticket = token(self.salt", "ticket = tokenn(self.salt")
    assert "code: handle of the perturbation 'desk_a' raised NameError" in flat(crosswind("check", raising, code=1))
    base = made("perturbation", "desk_b", "class DeskB(Perturbation)", "class DeskB(object)")
    assert "DeskB is not a perturbation; subclass crosswind.Perturbation" in flat(crosswind("check", base, code=1))
    never = made("perturbation", "desk_c", "if not reads or DESK in scene.tools:", "if True:")
    assert "✗ applies to no task of any domain" in flat(crosswind("check", never, code=1))


AGENTS = [
    ("last = chat[-1]", "last = chat[-1].contents", "my_agent.py:30: `reply` raises AttributeError"),
    ("    async def reply", "    def reply", "is a plain function; write async def reply(...)"),
    ('return Message(role="assistant", requests=(call,))', "return call", "returned Request; return a Message("),
    ("def __init__(self, drawn: Drawn)", "def __init__(self)", "it is called with the draw it plays in: take one"),
]


@pytest.mark.parametrize(("old", "new", "words"), AGENTS)
def test_what_an_agent_raises_is_shown_to_its_author(old: str, new: str, words: str) -> None:
    assert words in flat(crosswind("check", made("agent", "my_agent", old, new), code=1))


@pytest.mark.filterwarnings("ignore:python.wrong_end")
def test_a_wrong_ending_is_blamed_on_the_line_that_makes_it() -> None:
    Path("wrong_end.py").write_text(
        "import crosswind as cw\n\ndef agent(query, tools):\n    return cw.done(price=3)\n", encoding="utf-8"
    )
    text = flat(crosswind("check", "python:wrong_end:agent", code=1))
    assert "(wrong_end.py:4, in `agent`)" in text
    assert "done() has no keyword 'price'; there are: name, id" in text


def test_an_agent_that_plays(tmp_path: Path) -> None:
    data = json.loads(crosswind("check", made("agent", "my_agent"), "--json"))
    assert data["passed"]
    (one,) = data["checked"]
    assert (one["sort"], one["name"], one["origin"]) == ("agent", "my_agent", "my_agent.py")
    assert [line["mark"] for line in one["lines"]] == ["yes", "yes", "yes"]
    assert "no file, domain, perturbation or agent 'my_agnet'; did you mean my_agent" in crosswind(
        "check", "my_agnet", code=2
    )


def test_certify_judges_the_tasks_themselves_first_and_takes_a_plugin_after_its_name() -> None:
    file = made("domain", "shed", "return f\"It costs {details['fee']} euros a week.\"", 'return "It costs 1 euro."')
    common = ("certify", "--plugin", file, "--domain", "shed", "--count", "1")
    text = flat(crosswind(*common, code=1))
    assert "✗ best_fee the task itself is unfair, without any perturbation: goal: the oracle's end fails" in text
    assert "✓ transient_error 1 certified" in text  # on the families that are fair
    assert "- rule_change does not apply: it needs a house rule" in text
    one = crosswind(*common, "--family", "lend_best", "--clean")
    assert "1 of 1 families are fair without a perturbation; 0 certified" in one
    assert "no family 'lend_bst'; did you mean lend_best" in crosswind(*common, "--family", "lend_bst", code=2)
    data = json.loads(crosswind(*common, "--perturb", "rule_change", "--family", "lend_best", "--json"))
    assert data["fair"]
    assert list(data["rows"][0]["why_not"]) == [
        "rule_change does not apply: it needs a house rule that changes the right outcome of this request"
    ]


def test_an_exception_of_a_plugin_is_one_line_in_every_command() -> None:
    file = made("domain", "shed", "def normalise(self, state: State) -> Changes:\n", "def normalise(self, state):\n"
                "        return state.nothing\n")  # fmt: skip
    said = crosswind("play", "--plugin", file, "--domain", "shed", code=2)
    assert "shed.py:" in said
    assert "AttributeError" in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("way", ["await asyncio.sleep(9000)", "time.sleep(20)"])
def test_an_agent_that_never_answers_is_stopped(way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checkup, "EPISODE", 0.3)
    monkeypatch.setattr(checkup, "GRACE", 0.3)
    name = f"mute_{len(way)}"
    Path(f"{name}.py").write_text(
        f"import asyncio, time\nclass Mute:\n    async def reply(self, chat, tools):\n        {way}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    began = time.monotonic()
    assert "did not finish an episode within 0.3 s" in flat(crosswind("check", f"python:{name}:Mute", code=1))
    assert time.monotonic() - began < 15
