"""Harbor's trajectory format (ATIF)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crosswind.episodes.record import Record
from crosswind.export.output import complete_file, json_bytes
from crosswind.export.turns import Data, facts_of, slug, turns
from crosswind.runs.store import Manifest

ATIF = "ATIF-v1.7"  # the oldest version that has every field used here


def atif(record: Record, manifest: Manifest) -> Data:
    """An episode as a trajectory of Harbor's format."""
    steps: list[Data] = []

    def add(source: str, message: str, **more: Any) -> None:
        steps.append({"step_id": len(steps) + 1, "source": source, "message": message, **more})

    if record.policy:
        add("system", record.policy)
    add("user", record.query)
    for turn in turns(record):
        if turn.tool is None:
            add("agent", turn.words)
        else:
            call = {"tool_call_id": turn.id, "function_name": turn.tool, "arguments": turn.args}
            result = {"source_call_id": turn.id, "content": turn.result}
            add("agent", "", tool_calls=[call], observation={"results": [result]}, extra=turn.beneath)
        for words in turn.heard:
            add("user", words)
    if record.final or record.ended in ("answer", "refusal"):
        add("agent", record.final)
    usage = record.usage
    metrics: Data = {
        "total_steps": len(steps),
        "extra": {"requests": usage.requests, "retries": usage.retries, "seconds": usage.seconds},
    }
    if usage.tokens is not None:
        metrics |= {"total_prompt_tokens": usage.input_tokens, "total_completion_tokens": usage.output_tokens}
    if usage.cost is not None and usage.currency in ("", "USD"):
        metrics["total_cost_usd"] = usage.cost
    return {
        "schema_version": ATIF,
        "session_id": f"{manifest.name}-{manifest.seed}-{manifest.created}",
        "trajectory_id": slug(record.key),
        "agent": {
            "name": "crosswind",
            "version": manifest.crosswind,
            "model_name": record.agent,
            "tool_definitions": [dict(tool) for tool in record.tools],
        },
        "steps": steps,
        "notes": "Played by crosswind. Each step's extra holds what the world saw; the agent did not see it.",
        "final_metrics": metrics,
        "extra": {"crosswind": facts_of(record)},
    }


def write_trajectories(path: Path, trajectories: Iterator[Data], *, single: bool) -> int:
    """Write a .jsonl file, a .json file with one trajectory or a list, or else a folder with a file for each."""
    count = 0
    if path.suffix not in (".json", ".jsonl"):
        for trajectory in trajectories:
            with complete_file(path / f"{trajectory['trajectory_id']}.json") as file:
                file.write(json_bytes(trajectory) + b"\n")
            count += 1
        return count
    as_list = path.suffix == ".json" and not single
    with complete_file(path) as file:
        for count, trajectory in enumerate(trajectories, 1):
            before = (b"[\n" if count == 1 else b",\n") if as_list else b""
            file.write(before + json_bytes(trajectory) + (b"" if as_list else b"\n"))
        if as_list:
            file.write(b"\n]\n" if count else b"[]\n")
    return count
