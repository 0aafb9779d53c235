"""Inspect's logs of our tasks as runs: report, gate, compare and diagnose take them like any other run."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.extras import install
from crosswind.base.version import __version__
from crosswind.core.domain import JUDGE
from crosswind.episodes.record import Record
from crosswind.episodes.schedule import key_of, pair_of
from crosswind.runs.store import MANIFEST, Manifest, Store, now

RUN, RECORD = "crosswind", "crosswind:record"  # in a log's metadata, and in the store of a sample


@dataclass(frozen=True, slots=True)
class Imported:
    """What was taken out of a log."""

    folder: Path
    episodes: int
    without: int  # samples that have no record, such as those that an error ended


def import_log(path: Path | str, out: Path | str) -> Imported:
    """Write the episodes of an Inspect log into a new run folder."""
    path, out = Path(path), Path(out)
    if (out / MANIFEST).exists():
        raise CrosswindError(f"{out}: already holds a run; choose a new folder as --out")
    log = _read(path)
    told = (log.eval.metadata or {}).get(RUN)
    if not isinstance(told, dict):
        raise BadFile(
            f"{path}: is no log of a crosswind task (task {log.eval.task!r}); expected one of crosswind/SUITE"
        )
    samples = log.samples or ()
    epochs = max([log.eval.config.epochs or 1, *(sample.epoch for sample in samples)])
    whole = len(samples)
    manifest = _manifest(path, log, told, whole)
    records = [
        _in_epoch(_record(path, sample.id, sample.store.get(RECORD)), sample.epoch, manifest.trials)
        for sample in samples
        if RECORD in sample.store
    ]
    if epochs > 1:
        more = {"trials": epochs * manifest.trials, "limit": manifest.limit and epochs * manifest.limit}
        manifest = manifest.model_copy(update=more)
    with Store(out) as store:
        store.begin(manifest)
        store.resume(lambda _: None)
        for record in {record.key: record for record in records}.values():
            store.append(record)
        store.sync()
        lacking = len(records) < whole or log.status != "success"
        why = (
            f"Inspect ended with {log.status!r}, and {whole - len(records)} samples have no episode" if lacking else ""
        )
        store.write(manifest, state="stopped" if lacking else "finished", why=why)
    return Imported(out, len(records), whole - len(records))


def _read(path: Path) -> Any:
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise CrosswindError(
            f"reading an Inspect log needs the package inspect-ai; install it: {install('inspect')}"
        ) from None
    if not path.is_file():
        raise BadFile(f"{path}: no such file; expected an Inspect log, .eval or .json")
    try:
        return read_eval_log(str(path))
    except Exception as error:  # whatever a damaged archive raises in there
        raise BadFile(f"{path}: cannot be read as an Inspect log ({type(error).__name__}: {error})") from None


def _record(path: Path, sample: object, data: object) -> Record:
    try:
        return Record.model_validate_json(json.dumps(data))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise BadFile(f"{path}: the episode of sample {sample!r} is damaged ({place}: {first['msg']})") from None


def _in_epoch(record: Record, epoch: int, trials: int) -> Record:
    """Inspect's epochs are trials of the whole task: each has as many as the task asked for."""
    trial = (epoch - 1) * trials + record.trial
    key, pair = key_of(record.task_id, record.condition, trial), pair_of(record.task_id, trial)
    return record.model_copy(update={"trial": trial, "key": key, "pair": pair})


def _manifest(path: Path, log: Any, told: dict[str, Any], planned: int) -> Manifest:
    facts = {
        "created": log.eval.created,
        "updated": now(),
        "crosswind": log.eval.task_version or __version__,
        "judge": JUDGE,
        "python": platform.python_version(),
        "agent": f"inspect:{log.eval.model}",
        "settings": {"solver": log.eval.solver} if log.eval.solver else {},
        "planned": planned,
        **{name: told.get(name) for name in ("suite", "conditions", "seed", "trials", "limit", "ending")},
    }
    try:
        return Manifest.model_validate_json(json.dumps(facts, default=str))
    except ValidationError as error:
        raise BadFile(f"{path}: its metadata are damaged ({error.errors()[0]['msg']})") from None
