"""The same code in another process: tasks, rows, walks and draws of a plug-in must come out the same there.

`hash()` of a text and the order of a set differ from process to process, and the clock from day to day, so a stored
task may have another right end tomorrow. A process with other hashes and another date is asked once
for each plug-in file.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.core.domain import Domain
from crosswind.core.drawing import draw_unaudited
from crosswind.core.footprints import collect, fitting
from crosswind.core.oracle import Walk, walk
from crosswind.core.perturbation import SEVERITIES
from crosswind.core.registry import LOADERS, domains, perturbations, resolve
from crosswind.core.types import Step, Task, ToolCall

PATIENCE = 60  # seconds
DRAWS = 3  # of a kind in each domain


def differs(name: str, sort: str) -> str:
    """What of a plug-in's domain or kind is different in another process; empty: nothing, or nobody can tell."""
    origin = (domains if sort == "domain" else perturbations).origin(name)
    return _compared(origin, sort, name) if Path(origin).suffix == ".py" and Path(origin).is_file() else ""


@lru_cache(maxsize=256)
def _compared(origin: str, sort: str, name: str) -> str:
    code = f"from crosswind.core import processes; processes.tell({origin!r}, {sort!r}, {name!r})"
    env = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    env |= {"TZ": "Asia/Tokyo" if os.environ.get("TZ") == "Pacific/Honolulu" else "Pacific/Honolulu"}
    env |= dict.fromkeys(("USER", "LOGNAME"), "somebody") | dict.fromkeys(("LANG", "LC_ALL", "LC_TIME"), "C.UTF-8")
    try:
        there = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, env=env, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""  # a file that needs others to be loaded with it
    told: dict[str, list[str]] = {}
    for line in there.stdout.splitlines():
        made, _, what = line.partition(" ")
        told.setdefault(what, []).append(made)
    for here, what in _prints(sort, name):
        if what in told and told[what].pop(0) != here:
            return (
                f"{what} in another process, on another day: do not use hash(), id(), the order of a set, the clock or "
                "the times of files"
            )
    return ""


def tell(origin: str, sort: str, name: str) -> None:
    """Print what another process compares, where it is another day."""
    _another_day()
    resolve(LOADERS["plugin"])(origin)
    for made, what in _prints(sort, name):
        print(made, what)


def _another_day() -> None:
    """Let the clocks that code imports from here on, and the times of files, be ahead by some months."""
    ahead = datetime.timedelta(days=100, hours=5)
    real_time = time.time

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return super().now(tz) + ahead

        today = utcnow = now

    class LaterDate(datetime.date):
        @classmethod
        def today(cls) -> Any:
            return super().today() + ahead

    time.time = lambda: real_time() + ahead.total_seconds()
    time.time_ns = lambda: int(time.time() * 10**9)
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, partial(_at_that_time, getattr(time, name)))
    vars(datetime).update(datetime=Later, date=LaterDate)
    real_stat = os.stat

    def stat(*args: Any, **options: Any) -> os.stat_result:
        found = real_stat(*args, **options)
        later = {f"st_{kind}time": getattr(found, f"st_{kind}time") + ahead.total_seconds() for kind in "amc"}
        exact = {f"{name}_ns": int(seconds * 10**9) for name, seconds in later.items()}
        return os.stat_result((*found[:7], *map(int, later.values())), {**later, **exact})

    vars(os)["stat"] = stat


def _at_that_time(real: Callable[[float], Any], seconds: float | None = None) -> Any:
    return real(time.time() if seconds is None else seconds)


def _prints(sort: str, name: str) -> Iterator[tuple[str, str]]:
    for text, what in _domain(domains[name]) if sort == "domain" else _kind(name):
        yield hashlib.blake2b(text.encode(), digest_size=8).hexdigest(), what


def _domain(domain: Domain) -> Iterator[tuple[str, str]]:
    for family in domain.families:
        for seed in range(2):
            task = walked = ""
            try:
                drawn = domain.task(family, seed)
                task = drawn.model_dump_json()
                made = walk(domain, drawn)
                walked = repr([(step.call, step.result) for step in (*made.steps, *_off_the_way(domain, drawn, made))])
            except CrosswindError as error:
                walked = walked or str(error)
            yield task, f"{domain.name}/{family}: the task of a seed is another one"
            yield walked, f"{domain.name}/{family}: the records, or the way through them, are others"


def _off_the_way(domain: Domain, task: Task, made: Walk) -> Iterator[Step]:
    """Calls of all tools, with values from the walk."""
    pool: dict[str, dict[Any, None]] = {}
    collect(pool, task, made.steps)
    world = domain.world(task)
    for name, entry in domain.world_class.entries.items():
        args = {p: fitting(p, q.type, q.enum, pool)[0] for p, q in entry.spec.params.items()}
        call = ToolCall(name, args)
        yield Step(call, world.call(call))


def _kind(kind: str) -> Iterator[tuple[str, str]]:
    for domain in domains:
        if domains.origin(domain.name):
            continue
        made = []
        for n, family in enumerate(islice(domain.families, 4 * DRAWS)):
            try:
                made += [
                    layer.model_dump_json()
                    for layer in draw_unaudited(
                        domain, domain.task(family, n), [(kind, 1 + n % len(SEVERITIES))], n
                    ).layers
                ]
            except CrosswindError as error:
                made.append(type(error).__name__)
            if len(made) == DRAWS:
                break
        yield "\n".join(made), f"in {domain.name} the same seed gives another draw"
