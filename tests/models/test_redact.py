"""Keys are taken out of texts, in time that grows with their length and no faster."""

from __future__ import annotations

import re
import time

import pytest

from crosswind.models import redact
from crosswind.models.redact import Secrets
from crosswind.watch import watcher
from crosswind.watch.observed import ListedTool, ObservedEpisode
from crosswind.watch.watcher import Watcher

CANARY = "canary-4f1c9a72e0"
PATTERNS = [value for room in (redact, watcher) for value in vars(room).values() if isinstance(value, re.Pattern)]


def test_a_token_is_scrubbed_wherever_in_a_word_it_begins() -> None:
    token = "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.aaaa"
    hide = Secrets()
    assert hide.scrub(f"session-{token} {token}!") == "session-[hidden] [hidden]!"
    assert hide.scrub(f"eyJ-{token}") == "[hidden]"
    assert hide.scrub("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0") == "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0"


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda one: one.pattern[:16])
@pytest.mark.parametrize(
    "unit",
    ["eyJ-", "eyJa.", "eyJaaaaaaaaaa.", "a-", "sk-", "sk-a ", "AIza", "bearer ", "authorization: ", "api-key=", "://",
     " ", "_sk-", "\\u00", "x_key", "AKIAA"],
)  # fmt: skip
def test_text_is_searched_for_keys_in_time_that_grows_with_its_length(pattern: re.Pattern[str], unit: str) -> None:
    def seconds(length: int, lead: str) -> float:
        text = lead + unit * (length // len(unit))
        begin = time.process_time()
        pattern.sub("", text)
        return time.process_time() - begin

    for lead in ("", "authorization:", "bearer ", "://"):
        assert seconds(2**20, lead) < 8 * seconds(2**18, lead) + 0.2


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("SERVICE_KEY_2", "abcdefgh-0123", "abcdefgh-0123"), ("PGPASSWORD", "abcdefgh-0123", "abcdefgh-0123"),
        ("APIKEY", "abcdefgh-0123\n", "abcdefgh-0123"), ("GITHUB_PAT", "abcdefgh-0123", "abcdefgh-0123"),
        ("DATABASE_URL", "postgres://app:hunter2hunter@db/x?sslmode=require", "hunter2hunter"),
        ("PWD", "/home/somebody/work", ""), ("PLACE", "abcdefgh-0123", ""),
    ],
)  # fmt: skip
def test_variables_that_hold_secrets_are_known(
    name: str, value: str, hidden: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(redact.environment())
    monkeypatch.setenv(name, value)
    assert (hidden in redact.environment()) == bool(hidden)
    assert "require" not in redact.environment()
    assert bool(set(redact.environment()) - before) == bool(hidden)


@pytest.mark.parametrize(
    ("words", "shown", "found"),
    [
        (["env", "SERVICE_TOKEN=abc-123456", "npx", "x"], "env SERVICE_TOKEN=[hidden] npx x", "abc-123456"),
        (["server", "--api-key=abc-123456"], "server --api-key=[hidden]", "abc-123456"),
        (["server", "--api-key", "abc-123456", "--port", "1"], "server --api-key [hidden] --port 1", "abc-123456"),
        (
            ["server", "-H", "Authorization: Bearer abc-123456"],
            "server -H Authorization: Bearer [hidden]",
            "abc-123456",
        ),
        (["npx", "--url=http://bob:abc-123456@h/p"], "npx --url=http://h/p", "abc-123456"),
        (["npx", "http://h/p?token=abc-123456"], "npx http://h/p?token=[hidden]", "abc-123456"),
        (["python", "-m", "monkey", "--key-file"], "python -m monkey --key-file", ""),
    ],
)
def test_a_command_is_shown_without_its_secrets(words: list[str], shown: str, found: str) -> None:
    said, secrets = redact.shown_command(words)
    assert said == shown
    assert (found in secrets) == bool(found)


def test_an_excerpt_is_short_quick_and_holds_no_part_of_a_key() -> None:
    hide = Secrets(CANARY)
    assert hide.excerpt(f"one\n two {CANARY}", 300) == "one two [hidden]"
    assert hide.excerpt("a" * 400, 300) == "a" * 300 + "..."
    for ahead in range(redact.WINDOW - len(CANARY), redact.WINDOW):  # the key lies across the cut
        text = " " * ahead + CANARY * 2
        assert CANARY[:2] not in hide.excerpt(text, 300)
    begin = time.process_time()
    hide.excerpt("eyJ-" * 250_000, 300)
    assert time.process_time() - begin < 1


def test_an_alarm_repeats_only_the_beginning_of_an_endless_text() -> None:
    key = "sk-" + "a1B2c3D4" * 4
    one = ObservedEpisode(id="1", listing=(ListedTool("find", "Find.", {}),))
    clean = Watcher([one] * 20).clean
    assert clean({"a": [f"b {key}", 3]}) == {"a": [f"b {redact.HIDDEN}", 3]}
    begin = time.process_time()
    assert len(clean("_sk-" * 2**18)) < redact.WINDOW
    assert time.process_time() - begin < 2
