"""A run as one table for pandas, DuckDB, Spark or a warehouse: a row for each episode.

What figures are made of are columns of their own. What was said and done are columns of JSON, so that nothing of an
episode is lost; texts that many episodes share, such as lists of tools, are stored once for each group of rows.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.base.extras import extra
from crosswind.episodes.brief import Brief
from crosswind.episodes.record import Record
from crosswind.export.output import complete_file

ROWS = 2000  # of a group, which is what is held in memory
TEXTS = (
    *("key", "pair", "task_id", "domain", "family", "condition", "draw", "agent", "outcome", "ended", "tier", "axis"),
    *("stage", "cause", "why", "judge", "query", "policy", "final"),
)
NUMBERS = (
    *("level", "seed", "trial", "severity", "length", "gold_steps", "budget", "input_tokens", "output_tokens"),
    *("requests", "retries"),
)
TRUTHS = ("clean", "refuse", "passed", "judged", "exposed")
FRACTIONS = ("seconds", "cost")
JSON = ("layers", "tools", "steps", "finish", "receipts", "checks", "mark")
SHARED = ["domain", "family", "condition", "agent", "outcome", "ended", "tier", "axis", "stage", "cause", "judge"]


def write_table(path: Path, records: Iterable[Record]) -> int:
    """Write episodes as a Parquet file; how many they are."""
    with extra("parquet", "a Parquet file"):
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    if path.suffix != ".parquet":
        raise CrosswindError(f"{path}: give a name that ends in .parquet")
    text, truth = arrow.string(), arrow.bool_()
    columns = [(name, text) for name in (*TEXTS, *JSON)] + [(name, truth) for name in TRUTHS]
    columns += [(name, arrow.int64()) for name in NUMBERS] + [(name, arrow.float64()) for name in FRACTIONS]
    schema = arrow.schema([*columns, ("kinds", arrow.list_(text))])
    count, rows = 0, map(_row, records)
    shared = [*SHARED, "policy", "tools"]
    with (
        complete_file(path) as file,
        parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=shared) as writer,
    ):
        while some := list(islice(rows, ROWS)):
            writer.write_table(arrow.Table.from_pylist(some, schema))
            count += len(some)
    return count


def _row(record: Record) -> dict[str, Any]:
    brief = Brief.of(record)
    out = {name: getattr(brief, name, None) for name in (*TEXTS, *NUMBERS, *TRUTHS, *FRACTIONS)}
    out |= {name: _sound(getattr(record, name)) for name in ("query", "policy", "final")}
    data = record.model_dump(mode="json", include=set(JSON))
    out |= {name: None if data[name] is None else json.dumps(data[name]) for name in JSON}
    return {**out, "why": _sound(record.why), "kinds": list(record.kinds)}


def _sound(text: str) -> str:
    """Text that UTF-8 can hold."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
