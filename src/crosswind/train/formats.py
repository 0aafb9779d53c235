"""Rows in the formats of trainers: TRL, OpenAI's fine-tuning, ShareGPT as LLaMA-Factory reads it, and verl.

With the protocol "native" calls are calls and tools are schemas, and the trainer's own chat template writes them. With
"text" a row is plain turns, with the tools in the system's: what a local model is given by crosswind, word for word.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal, get_args

from pydantic_core import to_json

from crosswind.base.errors import CrosswindError
from crosswind.base.extras import install
from crosswind.core.flow import once_each
from crosswind.core.types import Message, ToolSpec
from crosswind.models.prompts import as_text, spoken, with_tools
from crosswind.train.rows import Demonstration, Row, rows

Format = Literal["trl", "openai", "sharegpt", "verl"]
Protocol = Literal["native", "text"]
Data = dict[str, Any]
FORMATS: tuple[Format, ...] = get_args(Format)
PARQUET = ".parquet"
GROUP = 500  # rows of a Parquet file that are written at a time
SAYS = ("openai", "verl")  # formats that can say which turns are learnt
_THOUGHT = re.compile(r"<think>(.*?)</think>\n?", re.S)


def written(shown: Demonstration, form: Format, protocol: Protocol = "native") -> Iterator[Data]:
    """A demonstration in a format: a row, or one for each menu of tools where the format can say what is learnt."""
    if shown.slipped and form not in SAYS:
        raise CrosswindError(f"{form} cannot mask turns, which slips need; use the format {' or '.join(SAYS)}")
    for nth, row in enumerate(rows(shown)):
        if nth == 0 or form in SAYS:  # the others learn every turn of the agent
            yield WRITERS[form](row, protocol)


def meta(row: Row) -> Data:
    """What is known of a row, flat: columns of one type each, whatever the draw."""
    about = row.meta
    kinds = about["kinds"]
    severities = about.get("severities", {})
    return {
        **{k: about[k] for k in ("task", "domain", "family", "level", "steps", "ended", "proof")},
        "kinds": " ".join(f"{kind}:{severities[kind]}" if kind in severities else kind for kind in kinds),
        "index": about.get("index", -1),
    }


def _plain(row: Row) -> list[Data]:
    return as_text(row.messages, row.tools)


_function = once_each()(ToolSpec.function)


def _functions(row: Row) -> list[Data]:
    return [_function(tool) for tool in row.tools]


def trl(row: Row, protocol: Protocol) -> Data:
    """A row of TRL's conversational format; SFT with `assistant_only_loss=True` learns the agent's turns."""
    if protocol == "text":
        return {"messages": _plain(row), "meta": meta(row)}
    names = {r.id: r.tool for m in row.messages for r in m.requests}
    messages: list[Data] = []
    for message in row.messages:
        one: Data = {"role": message.role, "content": message.content}
        if message.requests:
            calls = [{"name": r.tool, "arguments": r.args} for r in message.requests]
            one["tool_calls"] = [{"type": "function", "function": call} for call in calls]
        elif message.role == "tool":
            one["name"] = names.get(message.request_id, "")
        messages.append(one)
    return {"messages": messages, "tools": _functions(row), "meta": meta(row)}


def openai(row: Row, protocol: Protocol) -> Data:
    """A line of OpenAI's fine-tuning format; a turn that is not learnt has the weight 0."""
    messages = _plain(row) if protocol == "text" else [_openai(m) for m in row.messages]
    for turn, learnt in _turns(row, messages):
        if not learnt:
            turn["weight"] = 0
    if protocol == "text":
        return {"messages": messages}
    return {"messages": messages, "tools": _functions(row), "parallel_tool_calls": False}


def _openai(message: Message) -> Data:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.request_id, "content": message.content}
    if not message.requests:
        return {"role": message.role, "content": message.content}
    calls = [(r.id, {"name": r.tool, "arguments": _json(r.args)}) for r in message.requests]
    said = {"content": message.content} if message.content else {}
    made = [{"id": id, "type": "function", "function": f} for id, f in calls]
    return {"role": "assistant", **said, "tool_calls": made}


def _turns(row: Row, messages: list[Data]) -> Iterator[tuple[Data, bool]]:
    """The agent's turns among the messages of a row, and whether each is learnt."""
    learnt = (at in row.learn for at, message in enumerate(row.messages) if message.role == "assistant")
    return zip((m for m in messages if m["role"] == "assistant"), learnt, strict=True)


def sharegpt(row: Row, protocol: Protocol) -> Data:
    """A row of the ShareGPT format with LLaMA-Factory's roles, in which two sides take turns strictly."""
    system, *rest = row.messages
    turns: list[Data] = []
    for message in rest:
        role, value = _side(message, protocol)
        if turns and message.role != "assistant" and turns[-1]["from"] in ("human", "observation"):
            turns[-1]["value"] += f"\n{value}"
        else:
            turns.append({"from": role, "value": value})
    if protocol == "text":
        return {"conversations": turns, "system": with_tools(system.content, row.tools), "meta": meta(row)}
    tools = _json([tool["function"] for tool in _functions(row)])
    return {"conversations": turns, "system": system.content, "tools": tools, "meta": meta(row)}


def _side(message: Message, protocol: Protocol) -> tuple[str, str]:
    if protocol == "text":
        return "gpt" if message.role == "assistant" else "human", spoken(message)
    if message.role != "assistant":
        return "observation" if message.role == "tool" else "human", message.content
    said = _THOUGHT.sub(r"<think>\n\1\n</think>\n\n", message.content)  # as LLaMA-Factory cuts a thought off
    if message.requests:
        calls = [{"name": r.tool, "arguments": r.args} for r in message.requests]
        return "function_call", said + _json(calls[0] if len(calls) == 1 else calls)
    return "gpt", said


def verl(row: Row, protocol: Protocol) -> Data:
    """A row of verl's multi-turn SFT format, as text: in its Parquet files all tools of all rows would be one type."""
    if protocol == "native":
        raise CrosswindError("verl takes rows from Parquet, whose columns have one type: use --protocol text")
    messages = [{**message, "trainable": False} for message in _plain(row)]
    for turn, learnt in _turns(row, messages):
        turn["trainable"] = learnt
    return {"messages": messages, "meta": meta(row)}


WRITERS: dict[Format, Callable[[Row, Protocol], Data]] = {
    "trl": trl,
    "openai": openai,
    "sharegpt": sharegpt,
    "verl": verl,
}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# ---------------------------------------------------------------- files

Put = Callable[[Data], None]


@contextmanager
def writing(path: Path, form: Format, *, force: bool = False) -> Iterator[Put]:
    """A file that rows are put into one by one; it gets its name when it is whole."""
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "no plain file"
        raise CrosswindError(f"{path}: this is {what}; give a file name, or leave --out out to write to stdout")
    if path.exists() and not force:
        raise CrosswindError(f"{path} already exists; choose another --out, or pass --force to overwrite it")
    if path.suffix == PARQUET and form != "verl":
        raise CrosswindError(f"{path}: only the format verl is written as Parquet; give a name that ends in .jsonl")
    fresh = path.with_name(path.name + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _parquet(fresh) if path.suffix == PARQUET else _lines(fresh) as put:
            yield put
        fresh.replace(path)
    except OSError as error:
        room = "; make room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "; choose another file as --out"
        raise CrosswindError(f"{path}: cannot be written to ({error.strerror}){room}") from None
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


@contextmanager
def piped() -> Iterator[Put]:
    """Standard output as lines of JSON."""
    try:
        yield lines(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # the reader has had enough
    except OSError as error:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or it is tried again at the end
        raise CrosswindError(f"stdout cannot be written ({error.strerror}); free some space, or give --out") from None


@contextmanager
def _lines(path: Path) -> Iterator[Put]:
    with path.open("wb") as file:
        yield lines(file)


def lines(file: IO[bytes]) -> Put:
    """Rows as lines of JSON."""

    def put(row: Data) -> None:
        file.write(line(row))

    return put


def line(row: Data) -> bytes:
    """A row as a line of JSON; several times faster than the module json."""
    return to_json(row, fallback=str) + b"\n"


@contextmanager
def _parquet(path: Path) -> Iterator[Put]:
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise CrosswindError(
            f"a Parquet file needs the package 'pyarrow'; {install('train')}, or end --out in .jsonl"
        ) from None
    text = arrow.string()
    message = arrow.struct([("role", text), ("content", text), ("trainable", arrow.bool_())])
    whole, texts = arrow.int64(), ("task", "domain", "family", "ended", "proof", "kinds")
    about = arrow.struct([*((name, text) for name in texts), *((name, whole) for name in ("level", "steps", "index"))])
    schema = arrow.schema([("messages", arrow.list_(message)), ("meta", about)])
    held: list[Data] = []
    with parquet.ParquetWriter(path, schema) as writer:

        def put(row: Data) -> None:
            held.append(row)
            if len(held) == GROUP:
                flush()

        def flush() -> None:
            if held:
                writer.write_table(arrow.Table.from_pylist(held, schema=schema))
                held.clear()

        yield put
        flush()
