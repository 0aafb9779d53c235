"""Work in parts on a Ray cluster: results come back in order, and a part whose process died is done again.

Where episodes are played with one agent, `cluster.py` keeps the agent open in actors; here every part is a task of its
own, such as certifying one kind in one domain, or writing some demonstrations.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from crosswind.base.errors import CrosswindError, InfrastructureError
from crosswind.base.extras import install

PLUGINS = "CROSSWIND_PLUGINS"  # as in `authoring/plugins.py`, which reads it when registries are first used
ATTEMPTS = 5  # processes that may die under one part of the work, or under one episode
AHEAD = 2  # parts for each CPU that are handed out at a time
Job = TypeVar("Job")
Result = TypeVar("Result")


@contextmanager
def cluster_at(address: str) -> Iterator[Any]:
    """Ray, connected to a cluster; without an address to one on this machine, which ends with the context."""
    ray, own = connect(address)
    try:
        yield ray
    finally:
        if own:
            ray.shutdown()


def connect(address: str) -> tuple[Any, bool]:
    """Ray, and whether it was connected here and now."""
    try:
        import ray
    except ImportError:
        raise CrosswindError(f"--executor ray needs Ray; install it: {install('ray')}") from None
    if ray.is_initialized():
        return ray, False
    try:
        at = address or os.environ.get("RAY_ADDRESS") or "local"  # never a cluster that happens to run on this machine
        ray.init(address=at, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise CrosswindError(f"no Ray cluster at {address!r} ({error}); start one, or leave out --address") from None
    return ray, True


def ray_map(
    work: Callable[[Job], Result], jobs: Iterable[Job], *, address: str = "", workers: int = 0
) -> Iterator[Result]:
    """What a function of crosswind gives for each job, in their order. Never many more are handed out than are done.

    `workers` is how many may be under way at a time, two for each CPU of the cluster unless given.
    """
    with cluster_at(address) as ray:
        ahead = workers or AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        remote = ray.remote(_done).options(num_cpus=1, max_retries=ATTEMPTS)
        path, plugins = [os.getcwd(), *sys.path], os.environ.get(PLUGINS, "")
        left, under_way = iter(jobs), deque[Any]()
        while True:
            under_way += (remote.remote(path, plugins, work, job) for job in islice(left, ahead - len(under_way)))
            if not under_way:
                return
            try:
                found, error = ray.get(under_way.popleft())
            except ray.exceptions.RayError as lost:
                told = str(lost).strip().splitlines()[-1]
                raise InfrastructureError(
                    f"a part of the work failed {ATTEMPTS + 1} times on the cluster: {told}"
                ) from None
            if error:
                raise CrosswindError(error)
            yield found


def find_modules(path: Sequence[str], plugins: str) -> None:
    """Make a process of the cluster find the modules and plug-ins of the driver, as far as its node has them."""
    sys.path += [folder for folder in path if folder not in sys.path and Path(folder).is_dir()]
    if plugins:
        os.environ[PLUGINS] = plugins


def _done(path: Sequence[str], plugins: str, work: Callable[[Job], Result], job: Job) -> tuple[Result | None, str]:
    """What came of a job, or the words of an error of ours: not every exception survives the way back."""
    find_modules(path, plugins)
    try:
        return work(job), ""
    except CrosswindError as error:
        return None, str(error)


def mapper(executor: str, address: str) -> Callable[[Callable[[Job], Result], Iterable[Job]], Iterator[Result]]:
    """How parts of a work are done: here, one after the other, or on a cluster."""
    if executor not in ("local", "ray"):
        raise CrosswindError(f"--executor is {executor!r}; expected local or ray")
    return map if executor == "local" else partial(ray_map, address=address)
