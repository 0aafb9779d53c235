"""What tests of runs share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.cli import app as cli


@pytest.fixture
def crosswind(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The command line, in this process: what goes to stdout, or to stderr if it fails."""

    def call(*args: str | Path, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["crosswind", *map(str, args)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        out, err = capsys.readouterr()
        assert (left.value.code or 0) == code, out + err
        return out if code == 0 else err

    return call
