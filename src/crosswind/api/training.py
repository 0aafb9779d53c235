"""Demonstrations and training from Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosswind.base.errors import CrosswindError
from crosswind.train import data
from crosswind.train.config import TrainConfig, kind_of, load
from crosswind.train.rows import Demonstration

if TYPE_CHECKING:
    from crosswind.train.sft import Result, Update

INSTALL = "pip install 'crosswind[train]'"


def demonstrations(config: data.DataConfig | None = None, *, start: int = 0) -> Iterator[Demonstration]:
    """Yield demonstrations without end: the oracle's certified walks as conversations to train on.

    >>> import crosswind as cw
    >>> config = cw.DataConfig(domains={"poi": 1.0}, share=0.3, seed=7)
    >>> shown = next(cw.demonstrations(config, start=41))
    >>> [message.role for message in shown.chat][:3]
    ['system', 'user', 'assistant']

    What stands at an index depends on the configuration and the index alone, so any part can be made anywhere.
    """
    return data.stream(config or data.DataConfig(), start)


def train(
    config: TrainConfig | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    *,
    method: Literal["sft", "paft"] = "paft",
    changes: Sequence[str] = (),
    progress: Callable[[Update], None] | None = None,
) -> Result:
    """Fine-tune a model into a folder, or resume a training that stopped. Needs the extra `train`.

    >>> import crosswind as cw
    >>> cw.train("paft.yaml", "runs/paft-1", changes=["seed=1"], progress=print)  # doctest: +SKIP

    `config` is a file as `crosswind train` takes it (default: the defaults); `changes` are what --set takes.
    """
    try:
        from crosswind.train.run import train as run
    except ImportError as error:
        raise CrosswindError(f"training needs {error.name}; where crosswind is installed already: {INSTALL}") from None
    if not isinstance(config, TrainConfig):
        config = load(None if config is None else os.fspath(config), changes, kind_of(method))
    return run(config, None if out is None else Path(out), method=method, progress=progress)
