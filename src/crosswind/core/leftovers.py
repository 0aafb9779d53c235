"""Law "value", of what stays behind: a layer keeps nothing from one episode to the next.

An episode is played three times, with wrong arguments at its end. What a plug-in keeps in its module or its classes may
fill up once, as a cache does; where it goes on changing, some later episode goes otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from random import Random
from types import FunctionType, ModuleType
from typing import Any

from crosswind.core.oracle import Walk
from crosswind.core.session import Session
from crosswind.core.types import ASK, SAY, ToolCall

WRONG: Mapping[str, Any] = {"string": "X0000000", "integer": -7, "number": -1.5, "boolean": False}
DATA = (list, dict, set, frozenset, tuple, bytearray, str, bytes, int, float)


def kept(gold: Walk, cls: type) -> str:
    """What a kind from outside keeps between episodes, by name; empty: nothing."""
    module = sys.modules.get(cls.__module__)
    if module is None or cls.__module__.startswith("crosswind."):
        return ""
    made = []
    for _ in range(3):
        _play(gold)
        made.append(_data(module, cls))
    first, second, third = made
    return next((name for name in third if first.get(name) != second.get(name) != third[name]), "")


def _play(gold: Walk) -> None:
    """The certified way as an agent goes it, and then each of its calls with a wrong argument."""
    session = Session.of(gold.session.domain, gold.session.task, gold.session.layers)
    for step in gold.steps:
        if step.call.tool == SAY:
            session.say(step.call.args["text"])
        else:
            session.call(step.call)
    for step in gold.steps:
        spec = session.specs.get(step.call.tool)
        if spec is None or step.call.tool in (ASK, SAY):
            continue
        for name in step.call.args:
            if name in spec.params and spec.params[name].type in WRONG and not spec.params[name].enum:
                session.call(step.call.with_args(**{name: WRONG[spec.params[name].type]}))
    for name in list(session.specs):
        if name not in (ASK, SAY):
            session.call(ToolCall(name))


def _data(module: ModuleType, cls: type) -> dict[str, str]:
    """The data in a module, in a class and in the defaults of its functions, each as text."""
    out: dict[str, str] = {}
    owners = {"": vars(module)} | {f"{c.__name__}.": vars(c) for c in cls.__mro__ if c.__module__ == module.__name__}
    for where, held in owners.items():
        for name, value in list(held.items()):
            if name.startswith(("__", "model_", "_abc")):
                continue
            if isinstance(value, Random):
                out[where + name] = repr(value.getstate())
            elif isinstance(value, DATA) or type(value).__module__ in ("itertools", "collections"):
                out[where + name] = repr(value)
            elif isinstance(value, FunctionType) and value.__module__ == module.__name__:
                out[f"{where}{name}()"] = repr((value.__defaults__, value.__kwdefaults__, value.__dict__))
    return out
