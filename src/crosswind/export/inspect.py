"""Inspect AI's log."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crosswind.base.version import __version__
from crosswind.episodes.record import Record, Usage
from crosswind.export.output import complete_file, json_bytes
from crosswind.export.turns import Data, Turn, facts_of, slug, turns
from crosswind.runs.store import Manifest

INSPECT = 2  # version of Inspect's log
EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file in an archive, so that equal runs give equal bytes


def write_log(path: Path, manifest: Manifest, records: Iterator[Record]) -> int:
    """Write a log: an archive with a file for each sample, and at the end the summaries and the header."""
    summaries: list[Data] = []
    tally = _Tally()
    with complete_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:

        def put(name: str, data: Any) -> None:
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, json_bytes(data))

        plan: Data = {"name": "plan", "steps": [{"solver": "crosswind", "params": {}}], "config": {}}
        put("_journal/start.json", {"version": INSPECT, "eval": _spec(manifest, [], 1), "plan": plan})
        for record in records:
            one = sample(record, manifest)
            put(f"samples/{one['id']}_epoch_{one['epoch']}.json", one)
            summaries.append(_summary(one))
            tally.add(record)
        put("_journal/summaries/1.json", summaries)
        put("summaries.json", summaries)
        ids = list(dict.fromkeys(s["id"] for s in summaries))
        put("header.json", _header(manifest, _spec(manifest, ids, tally.epochs), plan, tally))
    return len(summaries)


class _Tally:
    """What the header tells of all samples."""

    def __init__(self) -> None:
        self.samples = self.errors = self.epochs = 0
        self.usage = Usage()
        self.scored: dict[str, list[int]] = {
            name: [0, 0] for name in ("accuracy", "clean", "shifted", "right_refusals")
        }  # of solvable tasks, and of tasks to refuse

    def add(self, record: Record) -> None:
        self.samples += 1
        self.epochs = max(self.epochs, record.trial + 1)
        self.usage = self.usage.plus(record.usage)
        if record.outcome == "error":
            self.errors += 1
            return
        if not record.judged:
            return
        for name in ("right_refusals",) if record.refuse else ("accuracy", "clean" if record.clean else "shifted"):
            self.scored[name][0] += record.passed
            self.scored[name][1] += 1

    def metrics(self) -> Data:
        return {
            name: {"name": name, "value": passed / n, "params": {}} for name, (passed, n) in self.scored.items() if n
        }


def _spec(manifest: Manifest, ids: list[str], epochs: int) -> Data:
    stamp = hashlib.sha256(manifest.model_dump_json().encode()).hexdigest()
    return {
        "eval_id": stamp[:22],
        "run_id": stamp[22:44],
        "created": manifest.created,
        "task": f"crosswind/{manifest.name}",
        "task_id": stamp[42:64],
        "task_version": manifest.judge or 0,
        "task_args": {"seed": manifest.seed, "trials": manifest.trials, "limit": manifest.limit},
        "solver": "crosswind",
        "dataset": {"name": manifest.name, "samples": len(ids), "sample_ids": ids, "shuffled": False},
        "model": _model_name(manifest.agent),
        "model_args": {},
        "config": {"epochs": max(1, epochs)},
        "packages": {"crosswind": manifest.crosswind},
        "metadata": {"agent": manifest.agent, "settings": manifest.settings, "exported_by": f"crosswind {__version__}"},
        "scorers": [
            {"name": "crosswind", "options": {}, "metrics": [{"name": "accuracy", "options": {}}], "metadata": {}}
        ],
    }


def _model_name(agent: str) -> str:
    """Inspect writes models as provider/model."""
    return agent.replace(":", "/", 1) if ":" in agent else f"crosswind/{agent}"


def _header(manifest: Manifest, spec: Data, plan: Data, tally: _Tally) -> Data:
    score = {
        "name": "crosswind",
        "scorer": "crosswind",
        "scored_samples": tally.samples - tally.errors,
        "unscored_samples": tally.errors,
        "params": {},
        "metrics": tally.metrics(),
    }
    return {
        "version": INSPECT,
        "status": "success" if manifest.state == "finished" else "cancelled",
        "eval": spec,
        "plan": plan,
        "results": {
            "total_samples": tally.samples,
            "completed_samples": tally.samples - tally.errors,
            "scores": [score],
        },
        "stats": {
            "started_at": manifest.created,
            "completed_at": manifest.updated,
            "model_usage": _usage(spec["model"], tally.usage),
        },
    }


def sample(record: Record, manifest: Manifest) -> Data:
    """An episode as a sample of Inspect's log."""
    model, name = _model_name(manifest.agent), slug(record.key)
    writer = _Writer(name, model, manifest.updated)
    if record.policy:
        writer.say("system", record.policy)
    writer.say("user", record.query)
    writer.note({"condition": record.condition, "layers": list(record.layers)})
    for turn in turns(record):
        writer.turn(turn)
    output: Data = {"model": model, "choices": [], "completion": ""}
    if record.final or record.ended in ("answer", "refusal"):
        output = writer.reply(record.final, None)
    out: Data = {
        "id": slug(f"{record.task_id}|{record.condition}"),
        "epoch": record.trial + 1,
        "input": record.query,
        "target": "refuse" if record.refuse else "solve",
        "messages": writer.messages,
        "output": output,
        "metadata": facts_of(record),
        "store": {},
        "model_usage": _usage(model, record.usage),
        "total_time": record.usage.seconds,
        "uuid": name,
    }
    if record.ended in ("error", "exception"):
        out["error"] = {"message": record.why, "traceback": record.why, "traceback_ansi": record.why}
    if record.judged:
        score: Data = {
            "value": "C" if record.passed else "I",
            "answer": record.final,
            "explanation": "\n".join(f"{'ok ' if c.passed else 'NOT'} {c.name}: {c.why}" for c in record.checks),
            "metadata": {"stage": record.stage, "cause": record.cause},
        }
        out["scores"] = {"crosswind": score}
        writer.event("score", score=score, target=out["target"], scorer="crosswind")
    if record.ended == "budget":
        out["limit"] = {"type": "custom", "limit": record.budget, "reason": "the steps of the episode were used up"}
    out["events"] = writer.events
    return out


def _usage(model: str, usage: Usage) -> Data:
    """The tokens by model; nothing where they are unknown."""
    if usage.tokens is None:
        return {}
    counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "total_tokens": usage.tokens}
    return {model: counts}


class _Writer:
    """Messages and events of a sample, with ids that follow from its name."""

    def __init__(self, name: str, model: str, when: str) -> None:
        self.name, self.model, self.when = name, model, when
        self.messages: list[Data] = []
        self.events: list[Data] = []

    def say(self, role: str, content: str, **more: Any) -> Data:
        message = {"id": f"{self.name}-{len(self.messages)}", "content": content, "role": role, **more}
        self.messages.append(message)
        return message

    def event(self, kind: str, **fields: Any) -> None:
        self.events.append(
            {
                "uuid": f"{self.name}-e{len(self.events)}",
                "timestamp": self.when,
                "working_start": 0.0,
                "event": kind,
                **fields,
            }
        )

    def note(self, data: Data) -> None:
        self.event("info", source="crosswind", data=data)

    def reply(self, words: str, call: Data | None) -> Data:
        """A turn of the model: a message and the event that made it."""
        more: Data = {"tool_calls": [call]} if call else {}
        message = self.say("assistant", words, source="generate", model=self.model, **more)
        output: Data = {
            "model": self.model,
            "choices": [{"message": message, "stop_reason": "tool_calls" if call else "stop"}],
            "completion": words,
        }
        self.event(
            "model", model=self.model, input=[], tools=[], tool_choice="auto", config={}, output=output
        )  # without the input, which would repeat the conversation at every turn
        return output

    def turn(self, turn: Turn) -> None:
        if turn.tool is None:
            self.reply(turn.words, None)
        else:
            call = {"id": turn.id, "function": turn.tool, "arguments": turn.args, "type": "function"}
            self.reply("", call)
            failed: Data = (
                {"error": {"type": "unknown", "message": turn.error["text"] or turn.error["code"]}}
                if turn.error
                else {}
            )
            told = self.say("tool", turn.result, tool_call_id=turn.id, function=turn.tool, **failed)
            self.event("tool", **call, result=turn.result, events=[], message_id=told["id"], **failed)
            self.note(turn.beneath)
        for words in turn.heard:
            self.say("user", words)
            self.note({"user": words})


def _summary(one: Data) -> Data:
    """A sample as the list of samples shows it."""
    keep = ("id", "epoch", "input", "target", "scores", "model_usage", "total_time", "uuid")
    out = {name: one[name] for name in keep if name in one}
    facts = one["metadata"]
    out["metadata"] = {k: facts[k] for k in ("condition", "domain", "family", "stage", "cause")}
    if "error" in one:
        out["error"] = one["error"]["message"]
    if "limit" in one:
        out["limit"] = one["limit"]["type"]
    return {**out, "completed": True, "message_count": len(one["messages"])}
