"""Starting points: what `crosswind new` writes works, is tested by what it writes next to it, and harms nothing."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from crosswind.authoring.new import SORTS, write
from crosswind.base.errors import CrosswindError


def run(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    src = Path(__file__).resolve().parents[2] / "src"
    paths = os.pathsep.join(filter(None, (str(src), os.environ.get("PYTHONPATH", ""))))
    env = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": paths}
    return subprocess.run([sys.executable, *args], cwd=cwd, env=env, capture_output=True, text=True, timeout=300)


def test_what_is_written_passes_its_own_tests(tmp_path: Path) -> None:
    """All three in one run, as three runs would import everything three times."""
    written = [path for sort in SORTS for path in write(sort, f"my_own_{sort}", tmp_path)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in written)
    done = run("-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


BREAKS = [
    ("domain", "return f\"It costs {details['fee']} euros a week.\"", 'return "It costs 1 euro a week."'),
    ("domain", '@tool(reads=["items.kind,rating"]', '@tool(reads=["items.kind"]'),
    ("domain", "return f\"member {row['member_id']} may not borrow\"", "continue"),
    ("perturbation", "return (yield ToolCall(DESK, {TICKET: given.content[TICKET]}))", "return given"),
    ("agent", 'return Message(role="assistant", content=GIVES_UP)', 'return Message(role="assistant")'),
]


def test_the_written_tests_fail_where_something_is_broken(tmp_path: Path) -> None:
    """All in one run; a file of tests beside each broken one must fail."""
    tests = []
    for n, (sort, old, new) in enumerate(BREAKS):
        path, test, *_ = write(sort, f"broken_{n}", tmp_path)
        text = path.read_text()
        assert old in text, old
        path.write_text(text.replace(old, new))
        tests.append(test.name)
    done = run("-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", *tests, cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    for name, (_, old, _) in zip(tests, BREAKS, strict=True):
        assert f"FAILED {name}::" in done.stdout, (old, done.stdout)


def test_the_command_says_what_to_do_next(tmp_path: Path) -> None:
    done = run("-m", "crosswind.cli.app", "new", "domain", "tool_shed", "--out", "deep/down", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    (tests,) = [line for line in lines if line.endswith("-m pytest deep/down/test_tool_shed.py")]
    python = shlex.split(tests)[0]
    has = subprocess.run([python, "-c", "import crosswind, pytest"], capture_output=True, text=True, check=False)
    assert has.returncode == 0, has.stderr
    shown = done.stdout.splitlines()[-1].split()
    assert shown[0] == "crosswind"
    played = run("-m", "crosswind.cli.app", *shown[1:], cwd=tmp_path)
    assert "PASS" in played.stdout
    again = run("-m", "crosswind.cli.app", "new", "domain", "tool_shed", "--out", "deep/down", cwd=tmp_path)
    assert again.returncode == 2
    assert "deep/down/tool_shed.py already exists; choose another --out, or pass --force to overwrite" in again.stderr


def test_force_writes_over_files(tmp_path: Path) -> None:
    path, test = write("agent", "my_agent", tmp_path)
    test.unlink()
    path.write_text("mine")
    with pytest.raises(CrosswindError, match="exists"):
        write("agent", "my_agent", tmp_path)
    assert path.read_text() == "mine"
    assert not test.exists()
    write("agent", "my_agent", tmp_path, force=True)
    assert "class MyAgent" in path.read_text()
    assert test.exists()


NAMES = [
    ("domains", "x", "there is no template for a 'domains'; did you mean domain?"),
    ("domain", "My Shed", "use lower-case letters, digits and _, as in my_domain"),
    ("domain", "shed-1", "use lower-case letters"),
    ("domain", "../shed", "use lower-case letters"),
    ("domain", "_shed", "use lower-case letters"),
    ("domain", "2shed", "use lower-case letters"),
    ("domain", "", "use lower-case letters"),
    ("domain", "s" * 41, "40 at most"),
    ("domain", "class", "the name 'class' is reserved; choose another, such as my_class"),
    ("domain", "all", "reserved"),
    ("perturbation", "clean", "reserved"),
    ("domain", "json", "reserved"),
    ("domain", "crosswind", "reserved"),
    ("agent", "test_agent", "reserved"),
    ("domain", "poi", "the domain 'poi' exists already, from crosswind itself; choose another name"),
    ("perturbation", "transient_error", "the perturbation 'transient_error' exists already"),
    ("agent", "oracle", "the agent 'oracle' exists already"),
]


@pytest.mark.parametrize(("sort", "name", "words"), NAMES)
def test_other_names_are_refused_with_what_to_do(tmp_path: Path, sort: str, name: str, words: str) -> None:
    with pytest.raises(CrosswindError) as raised:
        write(sort, name, tmp_path)
    assert words in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CrosswindError, match="cannot be written"):
        write("agent", "my_agent", tmp_path / "file")
