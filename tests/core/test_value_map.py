"""Perturbations that only map values: what is refused, and that the rest keeps every law in every domain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Literal

import pytest

from crosswind import CannotPerturb, Scene, ValueMap, audit_kind, domains, draw, perturbation, perturbations


class Cents(ValueMap):
    """Amounts are in cents."""

    kind: Literal["cents_x"] = "cents_x"
    outdated = ("in euros",)

    @classmethod
    def maps(cls, key: str, value: Any) -> bool:
        return key in ("fee", "price", "amount") and isinstance(value, (int, float))

    def write(self, key: str, value: Any) -> Any:
        return round(value * 100)

    def read(self, key: str, shown: Any) -> Any:
        return shown / 100

    def legend(self, key: str) -> str:
        return "in cents of a euro"


class Slashed(ValueMap):
    """Dates stand the other way round."""

    kind: Literal["slashed_x"] = "slashed_x"

    @classmethod
    def maps(cls, key: str, value: Any) -> bool:
        return isinstance(value, str) and len(value) == 10 and value[4] == value[7] == "-"

    def write(self, key: str, value: Any) -> Any:
        return "/".join(reversed(value.split("-")))

    def read(self, key: str, shown: Any) -> Any:
        day, month, year = shown.split("/")
        return f"{year}-{month}-{day}"

    def legend(self, key: str) -> str:
        return "written as DD/MM/YYYY"


class Coded(ValueMap):
    """Kinds of things are codes that differ from draw to draw."""

    kind: Literal["coded_x"] = "coded_x"
    codes: dict[str, str]

    @classmethod
    def maps(cls, key: str, value: Any) -> bool:
        return key in ("category", "payee_type", "status", "standing") and isinstance(value, str)

    @classmethod
    def drawn(cls, scene: Scene, rng: Random, severity: int) -> dict[str, Any] | None:
        words = cls.values(scene)
        numbers = rng.sample(range(100, 1000), len(words))
        return {"codes": {w: f"Q{n}" for w, n in zip(words, numbers, strict=True)}} if words else None

    def table(self, key: str) -> Mapping[Any, Any]:
        return self.codes


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    for cls in (Cents, Slashed, Coded):
        perturbation(cls)
    yield
    for cls in (Cents, Slashed, Coded):
        perturbations.remove(cls.model_fields["kind"].default)


@pytest.mark.parametrize("name", domains.names())
def test_maps_keep_every_law_in_every_domain(name: str) -> None:
    for kind in ("cents_x", "slashed_x", "coded_x"):
        assert [c for c in audit_kind(kind, domains[name]) if c.law != "applies"] == []


def test_the_legend_is_shown_where_the_value_is_and_what_it_replaces_is_not() -> None:
    in_results = draw("poi", "best_price", ["cents_x:4"], seed=1).certificate.gold.session
    (doc,) = [tool.doc for tool in in_results.tools() if tool.name == "place_details"]
    assert "In its results, price is in cents of a euro (1200 stands for 12)." in doc
    assert "in euros" not in doc
    params = draw("poi", "book_visit", ["slashed_x:4"], seed=1).certificate.gold.session
    (slots,) = [tool for tool in params.tools() if tool.name == "list_slots"]
    assert slots.params["date"].doc == "written as DD/MM/YYYY (24/11/2030 stands for 2030-11-24)"
    policy = draw("poi", "book_visit", ["slashed_x:5"], seed=1).certificate.gold.session.policy()
    assert "For list_slots, date is written as DD/MM/YYYY (24/11/2030 stands for 2030-11-24)" in policy


def test_a_value_that_is_not_written_by_the_legend_is_refused() -> None:
    session = draw("poi", "book_visit", ["slashed_x:4"], seed=1).certificate.gold
    gold = next(step.call for step in session.calls if step.call.tool == "list_slots")
    answer = session.session.call(gold.with_args(date="2031-01-26"))
    assert answer.error is not None
    assert answer.error.text == "'date' is written as DD/MM/YYYY; got '2031-01-26'"


def test_a_map_without_a_legend_is_refused_when_it_is_defined() -> None:
    with pytest.raises(TypeError, match="Half has read and write without legend"):

        class Half(ValueMap):
            @classmethod
            def maps(cls, key: str, value: Any) -> bool:
                return True

            def write(self, key: str, value: Any) -> Any:
                return value

            def read(self, key: str, shown: Any) -> Any:
                return shown

    with pytest.raises(TypeError, match="Nothing maps nothing"):

        class Nothing(ValueMap):
            @classmethod
            def maps(cls, key: str, value: Any) -> bool:
                return True


BAD: list[tuple[str, Any, str]] = [
    ("legend", lambda self, key: "...", "has no legend for price: got '...'"),
    ("write", lambda self, key, value: value // 100, "writes price = 46 as 0, which it reads as 0.0"),
    ("legend", lambda self, key: "in euros, raised by 7", "the numbers of its legend do not lead there"),
    ("legend", lambda self, key: "scaled by a number", "no text shown for it says how to read it"),
]


@pytest.mark.parametrize(("hook", "instead", "why"), BAD)
def test_a_map_that_cannot_be_undone_or_understood_is_refused_at_the_draw(
    hook: str, instead: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cents, hook, instead)
    if "scaled" in str(instead(None, "price") if hook == "legend" else ""):
        monkeypatch.setattr(Cents, "write", lambda self, key, value: round(value * 137))
        monkeypatch.setattr(Cents, "read", lambda self, key, shown: shown / 137)
    with pytest.raises(CannotPerturb) as raised:
        draw("poi", "best_price", ["cents_x"], seed=1)
    assert why in str(raised.value)
