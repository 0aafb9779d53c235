"""Hostile text in what models, tools and configurations say: nothing runs, nothing leaves, no escape gets through."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crosswind.base.terminal import safe
from crosswind.episodes.record import Record
from crosswind.report import html, markdown, parts
from crosswind.report.compare import markdown as compare_markdown
from crosswind.report.compare import page as compare_page
from crosswind.report.content import content
from crosswind.runs.analysis import analyse
from crosswind.runs.comparison import compare
from crosswind.runs.reading import read
from crosswind.runs.store import StoredRun
from tests.report.test_report import Reader, crosswind, played, run_of

SCRIPTS = [
    "<script>document.title='PWNED';fetch('http://127.0.0.1:{port}/fetch')</script>",
    "\"><img src='http://127.0.0.1:{port}/img' onerror=\"document.title='PWNED'\">",
    "'><svg onload=document.title='PWNED'><animate onbegin=document.title='PWNED'>",
    "</style><style>@import url(http://127.0.0.1:{port}/css);body{{background:url(http://127.0.0.1:{port}/bg)}}",
    "</title></head></details></div><script>document.title='PWNED'</script>",
    "<iframe src='http://127.0.0.1:{port}/frame'></iframe><link rel=stylesheet href='http://127.0.0.1:{port}/link'>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:{port}/refresh'><base href='http://127.0.0.1:{port}/'>",
    "<!--><script>document.title='PWNED'</script>--> ]]> <![CDATA[ <?xml ?> &lt;script&gt; &#60;script&#62;",
    "<form action='http://127.0.0.1:{port}/form'><input autofocus onfocus=document.title='PWNED'>",
]
ODD = [
    "\x1b]0;PWNED\x07\x1b[2J\x1b[31mred\x1b[0m\x9b2J\x1bPq\x1b\\",
    "\x1b]8;;http://127.0.0.1/\x1b\\link\x1b]8;;\x1b\\ \x1b]52;c;UFdORUQ=\x07 \x08\x08\r over",
    "\u202egnp.exe\u2066\u2069\u200b\u200f",
    "nul \x00 here",
    "[bold red]markup[/] [link=http://127.0.0.1/]x[/link] :smile: {{7*7}} ${{x}} %s {0}",
    "| a | b |\n|---|---|\n# heading\n![x](http://127.0.0.1/x.png) `code` **bold** [l](javascript:alert(1))",
    "z\u0351\u0351\u0351" * 50 + "\ufeff" + "x" * 20_000,
]
ELEMENTS = frozenset(
    "html head meta title style body header main footer section nav a h1 h2 h3 p div span small b code pre dl dt dd ul "
    "li table thead tbody tr th td details summary svg line circle rect text "
    "ol noscript label input select option button script".split()  # a script of this package, and its data
)
HARMFUL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200f\u202a-\u202e\u2066-\u2069]")


def payload(port: int) -> str:
    return " ".join([*(text.format(port=port) for text in SCRIPTS), *ODD])


def poisoned(record: Record, text: str) -> Record:
    """The same episode with the text wherever a model, a tool, a suite or a plugin could have put it."""

    def through(value: Any) -> Any:
        if isinstance(value, str):
            return text
        if isinstance(value, dict):
            return {f"{key}{text}": through(one) for key, one in value.items()}
        return [through(one) for one in value] if isinstance(value, (list, tuple)) else value

    def call(data: dict[str, Any]) -> dict[str, Any]:
        result = data["result"]
        told = {"error": {"code": text, "text": text, "retryable": False}} if "error" in result else through(result)
        return {
            "call": {"tool": text, "args": through(data["call"]["args"])},
            "result": {"content": through(result["content"])} if "content" in result else told,
        }

    steps = [
        {**call(step), "inner": [call(one) for one in step["inner"]], "fired": step["fired"], "heard": [text]}
        for step in record.steps
    ]
    return record.model_copy(
        update={
            "key": f"{record.key}{text}",
            "condition": f"{record.condition}{text}",
            "agent": text,
            "query": text,
            "policy": text,
            "tools": tuple({"type": text, "function": {"name": text, "description": text}} for _ in range(2)),
            "steps": tuple(steps),
            "final": text,
            "why": text,
            "cause": text if record.cause else None,
            "stage": text if record.stage else None,
            "checks": tuple(check.model_copy(update={"name": text, "why": text}) for check in record.checks),
        }
    )


def hostile_run(folder: Path, port: int = 9) -> StoredRun:
    """A run that is poisoned in every place, its manifest and notes included."""
    text = payload(port)
    records = tuple(poisoned(r, text) for r in played("by_name"))
    broken = records[-1].model_copy(update={"outcome": "error", "ended": "error", "stage": None, "cause": None})
    run = run_of((*records[:-1], broken), folder, f"agent {text}", f"suite {text}")
    run.problems.append(text)
    return run


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("hostile")
    run, other = hostile_run(folder / "a"), run_of(played("oracle"), folder / "b")
    renamed = StoredRun(
        run.folder,
        run.manifest,
        [r.model_copy(update={"key": p.key}) for r, p in zip(run.records, other.records, strict=True)],
    )
    both = compare([renamed, other])
    lost = read(poisoned(played("by_name")[0], payload(9)).model_copy(update={"task_id": payload(9)}))
    assert lost.missing
    return {
        "report": html.page(content(analyse(run, opened=40))),
        "compare": compare_page(both),
        "episode": parts.episode(lost).html,
    }


@pytest.mark.parametrize("name", ["report", "compare", "episode"])
def test_hostile_text_stays_text(name: str, pages: dict[str, str]) -> None:
    page = pages[name]
    reader = Reader(page)
    assert set(reader.names()) <= ELEMENTS
    for element, attributes in reader.elements:
        for key, value in attributes.items():
            assert not key.startswith("on"), (element, key)
            assert key not in ("src", "srcset", "style", "action", "formaction", "xlink:href"), (element, key)
            assert key != "href" or re.fullmatch(r"#[a-z0-9]+", value or "")
            assert key != "http-equiv" or value == "Content-Security-Policy"
            assert key not in ("class", "id") or re.fullmatch(r"[a-z0-9 -]+", value or ""), (element, key, value)
    assert not HARMFUL.search(page)
    assert "<script>document.title" in " ".join(reader.texts)  # it is there to be read
    assert "\\u202e" in page
    assert len(page) < 10_000_000


def test_hostile_text_in_markdown_is_literal(tmp_path: Path) -> None:
    run = hostile_run(tmp_path)
    for text in (markdown.report(content(analyse(run, opened=0))), compare_markdown(compare([run, run], opened=0))):
        assert not HARMFUL.search(text)
        assert not re.search(r"(?<!\\)<", text)
        assert not re.search(r"(?<!\\)!\[|(?<!\\)\]\(", text)
        for line in text.splitlines():
            assert line == "" or line.startswith(
                (
                    "## crosswind",
                    "### ",
                    "| ",
                    "> Note",
                    "agent ",
                    "On the solvable ",
                    "This change ",
                    "A change ",
                    "19 ",
                    "1 ",
                    "The change is by pairs: ",
                )
            )


def test_no_line_of_untrusted_text_commands_a_ci_service(tmp_path: Path) -> None:
    orders = "Done.\n::error::owned\n  ::set-output name=x::y\n##vso[task.complete]done"
    records = tuple(r.model_copy(update={"final": orders, "query": orders, "why": orders}) for r in played("by_name"))
    run = run_of(records, tmp_path / "run")
    for args in (("show", str(run.folder)), ("show", str(run.folder), "1")):
        done = crosswind(*args)
        assert "owned" in done.output or args[-1] == str(run.folder)
        assert not re.search(r"^\s*(::|##)", done.output, re.MULTILINE), args


def test_no_folded_line_commands_a_ci_service(tmp_path: Path) -> None:
    orders = "".join(f"{'x' * n}::error::owned##[group]" for n in range(100, 160))
    records = tuple(r.model_copy(update={"final": orders, "query": orders, "why": orders}) for r in played("by_name"))
    run = run_of(records, tmp_path / "run")
    for args in (("show", str(run.folder)), ("show", str(run.folder), "1")):
        assert not re.search(r"::error|##\[", crosswind(*args).output), args


@pytest.mark.parametrize("width", range(1, 12))
def test_folding_takes_no_mark_away(width: int) -> None:
    for order in ("::error::a", "::Set-Output name=x::y", "##[group]a", "##vso[a]", "##teamcity[a]"):
        text = safe(f"xx{order}")
        lines = [text[at : at + width] for at in range(0, len(text), width)]
        assert not any(re.match(r"::(error|set-output)|##", line, re.I) for line in lines)
    for plain in ("std::vector<int>::size", "a :: b".replace(" ", ""), "# Title", "### Part", "PATH=/a::/b"):
        assert safe(plain) == plain


def test_no_escape_reaches_the_terminal(tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run")
    folder = str(run.folder)
    failed = next(n for n, r in enumerate(run.records, 1) if r.outcome == "fail")
    for args in (
        ("show", folder),
        ("show", folder, str(failed)),
        ("show", folder, "20"),
        ("show", folder, "1", "--json"),
        ("show", folder, "--json"),
        ("report", folder, "--baselines", "0", "--episodes", "3"),
        ("report", folder, "--baselines", "0", "--json"),
        ("report", folder, "--baselines", "0", "--markdown"),
        ("compare", folder, folder, "-o", str(tmp_path / "c.html")),
    ):
        done = crosswind(*args)
        assert done.exit_code == 0, (args, done.exception)
        assert not HARMFUL.search(done.output), args
        assert "PWNED" in done.output or "script" in done.output, args  # the text itself is shown


# ---------------------------------------------------------------- in a browser


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        pytest.skip("no Chromium here: that hostile text runs nothing is shown by parsing alone")
    return found


@contextmanager
def canary() -> Iterator[tuple[int, list[str]]]:
    """A server on loopback that takes note of whoever calls."""
    calls: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            calls.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1], calls
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def rendered(page: Path, profile: Path, fragment: str = "") -> str:
    """The document after a browser has run whatever there is to run."""
    command = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    command += [
        "--disable-background-networking",
        "--no-first-run",
        "--virtual-time-budget=2000",
        "--dump-dom",
        page.as_uri() + fragment,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def title_of(document: str) -> str:
    found = re.search(r"<title>(.*?)</title>", document, re.DOTALL)
    return found[1] if found else ""


def test_hostile_text_does_nothing_in_chromium(tmp_path: Path) -> None:
    chromium()
    with canary() as (port, calls):
        naked = tmp_path / "naked.html"
        naked.write_text(f"<title>safe</title><body>{SCRIPTS[0].format(port=port)}{SCRIPTS[1].format(port=port)}")
        assert title_of(rendered(naked, tmp_path / "profile")) == "PWNED"  # the canary can sing
        assert calls
        calls.clear()
        run = hostile_run(tmp_path / "run", port)
        for name, page in (
            ("report.html", html.page(content(analyse(run)))),
            ("compare.html", compare_page(compare([run, run]))),
        ):
            path = tmp_path / name
            path.write_text(page, encoding="utf-8")
            document = rendered(path, tmp_path / "profile")
            assert title_of(document).startswith("crosswind: ")
            assert "Tier by axis" in document
            assert document.count("<script") == (2 if name == "report.html" else 0)  # its data and its own script,
            assert ('id="find-list"><li>' in document) == (name == "report.html")  # which ran and listed episodes
            assert calls == []
