"""Sequential tests: how rarely they are wrong, and how soon they are right."""

from __future__ import annotations

from random import Random
from statistics import mean

import pytest

from crosswind.watch.sequential import ConformalStream

PER = 200.0


def first_alarm(rng: Random, shift: float, longest: int, *, discrete: bool = False, name: str = "x") -> int:
    def draw(more: float) -> float:
        value = rng.gauss(more, 1)
        return float(value > 1.5) if discrete else value

    stream = ConformalStream(name, [draw(0) for _ in range(60)])
    for n in range(1, longest + 1):
        if stream.add(draw(shift)) >= PER:
            return n
    return longest


@pytest.mark.parametrize("discrete", [False, True])
def test_a_false_alarm_takes_the_promised_number_of_episodes_on_average(discrete: bool) -> None:
    rng = Random(4)
    lengths = [first_alarm(rng, 0, 1000, discrete=discrete, name=str(n)) for n in range(60)]
    assert mean(lengths) >= PER  # cut off at 1000, which only shortens them


def test_a_shift_is_seen_within_a_few_episodes() -> None:
    rng = Random(5)
    assert mean(first_alarm(rng, 4, 100, name=str(n)) for n in range(30)) < 8


def test_the_start_of_a_run_is_estimated() -> None:
    rng = Random(6)
    stream = ConformalStream("x", [rng.gauss(0, 1) for _ in range(200)])
    for _ in range(30):
        stream.add(rng.gauss(0, 1))
    n = 0
    while stream.add(rng.gauss(5, 1)) < 20_000:
        n += 1
    assert abs(stream.since - (n + 1)) <= 2


def test_equal_scores_say_nothing() -> None:
    stream = ConformalStream("x", [0.0] * 100)
    assert max(stream.add(0.0) for _ in range(300)) < 20_000
