"""Inspect's logs of our tasks as runs: report, gate, compare and diagnose take them like any other run."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.version import __version__
from crosswind.core.domain import JUDGE
from crosswind.episodes.record import Record
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
        raise CrosswindError(f"{out}: already holds a run; import into a new folder")
    log = _read(path)
    told = (log.eval.metadata or {}).get(RUN)
    if not isinstance(told, dict):
        raise BadFile(
            f"{path}: is no log of a crosswind task (task {log.eval.task!r}); expected one of crosswind/SUITE"
        )
    records = [
        _record(path, sample.id, sample.store.get(RECORD)) for sample in log.samples or () if RECORD in sample.store
    ]
    whole = len(log.samples or ())
    manifest = _manifest(path, log, told, whole)
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
            "reading an Inspect log needs the package inspect-ai; install it: pip install 'crosswind[inspect]'"
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
