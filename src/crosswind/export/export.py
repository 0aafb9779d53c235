"""Runs in the formats of other tools: Inspect AI's log, and Harbor's trajectory format (ATIF).

Both are written from the stored lines alone, one episode after the other, without the other tool. What the agent saw
is the conversation; what the world saw stands beside it as metadata. A message with several calls was stored as
several steps, and is exported as several turns.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

from crosswind.base.errors import CrosswindError
from crosswind.base.version import __version__
from crosswind.core.types import SAY
from crosswind.episodes.record import Record
from crosswind.runs.store import Manifest, iter_records, load_manifest

Format = Literal["inspect", "atif"]
Data = dict[str, Any]
ATIF = "ATIF-v1.7"  # the oldest version that has every field used here
INSPECT = 2  # version of Inspect's log
EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file in an archive, so that equal runs give equal bytes


def export(
    folder: Path | str, form: Format, out: Path | None = None, *, episode: str | None = None
) -> tuple[Path, int]:
    """Write a run in another format; gives the path and the number of episodes."""
    folder = Path(folder)
    manifest = load_manifest(folder)
    records = iter_records(folder)
    if episode is not None:
        records = _only(records, episode)
    if form == "inspect":
        path = out or folder / "inspect.eval"
        if path.suffix != ".eval":
            raise CrosswindError(f"{path}: Inspect opens logs by their ending; give a name that ends in .eval")
        return path, _inspect(path, manifest, records)
    path = out or folder / "atif"
    trajectories = (atif(record, manifest) for record in records)
    if path.suffix == ".json":
        return path, _one_file(path, trajectories, single=episode is not None)
    return path, _lines(path, trajectories) if path.suffix == ".jsonl" else _files(path, trajectories)


def _only(records: Iterator[Record], key: str) -> Iterator[Record]:
    for record in records:
        if record.key == key:
            yield record
            return
    raise CrosswindError(f"the run has no episode {key!r}; `crosswind show DIR` lists them")


def slug(key: str) -> str:
    """A name for a file: the key's harmless characters, and a digest that keeps different keys apart."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", key).strip("-.")[:80]
    return f"{plain}-{hashlib.sha256(key.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"


# ---------------------------------------------------------------- the conversation


class Turn:
    """A step as the agent lived it: words or a call, what came back, and what the user then said."""

    def __init__(self, step: Data, nth: int, kinds: tuple[str, ...]) -> None:
        call, result = step["call"], step["result"]
        self.id = f"call_{nth}"
        self.tool: str | None = None if call["tool"] == SAY else str(call["tool"])
        args = call["args"]
        self.args: Data = args if isinstance(args, dict) else {"(not an object)": args}
        self.error: Data | None = result.get("error")
        content = result.get("content")
        if self.error:
            content = {"error": self.error["code"], "message": self.error["text"]}
        self.result = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        self.words = str(self.args.get("text", "")) if self.tool is None else ""
        heard = [str(words) for words in step["heard"]]
        self.heard = heard if self.tool or content is None else [self.result, *heard]
        self.world: list[Data] = list(step["inner"])
        self.fired = [kinds[i] for i in step["fired"] if i < len(kinds)]

    @property
    def beneath(self) -> Data:
        """What the agent did not see."""
        return {"world": self.world, "obstacles": self.fired}


def turns(record: Record) -> list[Turn]:
    return [Turn(step, nth, record.kinds) for nth, step in enumerate(record.steps, 1)]


def _facts(record: Record) -> Data:
    """What is known of an episode beside its conversation."""
    fields = (
        *("key", "pair", "task_id", "domain", "family", "level", "condition", "severity", "trial", "layers", "outcome"),
        *("ended", "refuse", "receipts", "checks", "judge", "gold_steps", "budget", "stage", "cause", "why"),
    )
    return record.model_dump(mode="json", include=set(fields))


# ---------------------------------------------------------------- ATIF


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
        "total_prompt_tokens": usage.input_tokens,
        "total_completion_tokens": usage.output_tokens,
        "total_steps": len(steps),
        "extra": {"requests": usage.requests, "retries": usage.retries, "seconds": usage.seconds},
    }
    if usage.cost is not None:
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
        "extra": {"crosswind": _facts(record)},
    }


def _lines(path: Path, trajectories: Iterator[Data]) -> int:
    count = 0
    with _fresh(path) as file:
        for trajectory in trajectories:
            file.write(_json(trajectory) + b"\n")
            count += 1
    return count


def _one_file(path: Path, trajectories: Iterator[Data], *, single: bool) -> int:
    """A JSON file with one trajectory, or with a list of them."""
    count = 0
    with _fresh(path) as file:
        for trajectory in trajectories:
            file.write((b"" if single else b",\n" if count else b"[\n") + _json(trajectory))
            count += 1
        file.write(b"\n" if single else b"\n]\n" if count else b"[]\n")
    return count


def _files(folder: Path, trajectories: Iterator[Data]) -> int:
    """A folder with a file for each trajectory."""
    count = 0
    for trajectory in trajectories:
        with _fresh(folder / f"{trajectory['trajectory_id']}.json") as file:
            file.write(_json(trajectory) + b"\n")
        count += 1
    return count


# ---------------------------------------------------------------- Inspect


def _inspect(path: Path, manifest: Manifest, records: Iterator[Record]) -> int:
    """Write a log: an archive with a file for each sample, and at the end the summaries and the header."""
    summaries: list[Data] = []
    tally = _Tally()
    with _fresh(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:

        def put(name: str, data: Any) -> None:
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, _json(data))

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
        self.tokens = [0, 0]
        self.scored: dict[str, list[int]] = {"accuracy": [0, 0], "clean": [0, 0], "shifted": [0, 0]}

    def add(self, record: Record) -> None:
        self.samples += 1
        self.epochs = max(self.epochs, record.trial + 1)
        self.tokens[0] += record.usage.input_tokens
        self.tokens[1] += record.usage.output_tokens
        if record.outcome == "error":
            self.errors += 1
            return
        if not record.judged:
            return
        for name in ("accuracy", "clean" if record.clean else "shifted"):
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
    usage = {"input_tokens": tally.tokens[0], "output_tokens": tally.tokens[1], "total_tokens": sum(tally.tokens)}
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
            "model_usage": {spec["model"]: usage},
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
        "metadata": _facts(record),
        "store": {},
        "model_usage": {model: _usage(record)},
        "total_time": record.usage.seconds,
        "uuid": name,
    }
    if record.outcome == "error":
        out["error"] = {"message": record.why, "traceback": record.why, "traceback_ansi": record.why}
    elif record.judged:
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


def _usage(record: Record) -> Data:
    usage = record.usage
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


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


# ---------------------------------------------------------------- files


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


@contextmanager
def _fresh(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears under its name when it is whole."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            yield file
        os.replace(part, path)
    except OSError as error:
        raise CrosswindError(f"{path} cannot be written ({error.strerror}); choose another path with -o") from None
    finally:
        with suppress(OSError):
            part.unlink()
