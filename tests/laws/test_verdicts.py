"""Verdicts of audits are kept by the code that they judge, and never believed if the file is damaged."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from crosswind.base.errors import CannotPerturb
from crosswind.core import audit
from crosswind.core.draw import draw
from crosswind.core.perturbation import Perturbation
from tests.toys import poi, registered, task

CODE = """
from typing import ClassVar, Literal
from crosswind.core.perturbation import Perturbation
from crosswind.core.types import ToolResult

class Priced(Perturbation):
    kind: Literal["priced"] = "priced"
    axis, tier, rank = "observation", "perception", "form"

    @classmethod
    def sample(cls, scene, rng, severity):
        return cls()

    def encode_result(self, call, result, memo):
        return result if result.error else ToolResult({"of": _by(result.content, FACTOR)})

    def decode_result(self, call, result, memo):
        return result if result.error else ToolResult(_by(result.content["of"], 1 / FACTOR))

def _by(content, n):
    return {**content, "price": round(content["price"] * n)} if "price" in content else content
"""


def priced(folder: Path, factor: int) -> type[Perturbation]:
    """A kind in a file of its own."""
    file = folder / "priced.py"
    file.write_text(f"FACTOR = {factor}\n{CODE}")
    spec = importlib.util.spec_from_file_location("priced", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["priced"] = module
    spec.loader.exec_module(module)
    made: type[Perturbation] = module.Priced
    return made


def test_verdicts_follow_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSWIND_CACHE", str(tmp_path / "cache"))
    judged: list[str] = []
    right = audit.audit_kind

    def counted(kind: str, *rest: object) -> list[audit.Complaint]:
        judged.append(kind)
        return right(kind, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(audit, "audit_kind", counted)
    given = task("best_price")

    def use(factor: int) -> None:
        audit._known.clear()  # as in a new process
        with registered(priced(tmp_path, factor)):
            draw(poi(), given, ["priced"], 1)

    use(1)
    use(1)
    assert judged == ["priced"]  # the second time from the disk
    for file in (tmp_path / "cache/audits").glob("*.json"):
        file.write_text(file.read_text().replace("[]", "[[") if "[]" in file.read_text() else "x")
    use(1)
    assert judged == ["priced"] * 2  # a damaged file is made again
    with pytest.raises(CannotPerturb, match="secrets"):
        use(100)  # other code, and not under the old verdict
    assert judged == ["priced"] * 3
