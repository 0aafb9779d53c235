"""Demonstrations and training from Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from crosswind.api.arguments import naming_arguments
from crosswind.base.errors import CrosswindError
from crosswind.base.extras import install
from crosswind.train import data
from crosswind.train.config import GrpoConfig, Method, TrainConfig, kind_of, load
from crosswind.train.rows import Demonstration

if TYPE_CHECKING:
    from crosswind.train.progress import Update
    from crosswind.train.sft import Result


def demonstrations(config: data.DataConfig | None = None, *, start: int = 0) -> Iterator[Demonstration]:
    """Yield demonstrations without end: the oracle's certified walks as conversations to train on.

    >>> import crosswind as cw
    >>> config = cw.DataConfig(domains={"poi": 1.0}, share=0.3, seed=7)
    >>> shown = next(cw.demonstrations(config, start=41))
    >>> [message.role for message in shown.chat][:3]
    ['system', 'user', 'assistant']

    The demonstration at an index depends only on the configuration and the index, so any part can be made anywhere.
    """
    return data.stream(config or data.DataConfig(), start)


@naming_arguments
def train(
    config: TrainConfig | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    *,
    method: Method = "paft",
    changes: Sequence[str] = (),
    progress: Callable[[Update], None] | None = None,
) -> Result:
    """Train a model by "sft", "paft" or "grpo" into a folder, or resume. Needs the extra `train`.

    >>> import crosswind as cw
    >>> cw.train("paft.yaml", "runs/paft-1", changes=["seed=1"], progress=print)  # doctest: +SKIP

    `config` is a file as `crosswind train` takes it (default: the defaults); `changes` are what --set takes.
    """
    if method not in get_args(Method):
        raise CrosswindError(f"method is {method!r}; expected one of {', '.join(get_args(Method))}")
    if not isinstance(config, TrainConfig):
        config = load(None if config is None else os.fspath(config), changes, kind_of(method))
    folder = None if out is None else Path(out)
    try:
        from crosswind.train.run import train as run

        return run(config, folder, method="grpo" if isinstance(config, GrpoConfig) else method, progress=progress)
    except ModuleNotFoundError as error:
        raise CrosswindError(f"training needs {error.name}, which is not installed; run: {install('train')}") from None
