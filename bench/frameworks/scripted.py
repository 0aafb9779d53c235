"""A chat endpoint that says what scripted agents said in recorded episodes, to drive other people's loops."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import crosswind as cw
from crosswind.episodes.play import result_from, result_text

Reply = tuple[str, list[tuple[str, str, Any]]]  # words, and calls as (id, tool, arguments)
Talk = tuple[tuple[str, ...], ...]


def replies_of(record: cw.Record) -> list[Reply]:
    """What an agent said and called in an episode, message by message."""
    out: list[Reply] = []
    for i, step in enumerate(record.steps):
        tool, args = step["call"]["tool"], step["call"]["args"]
        out.append((args["text"], []) if tool == "say" else ("", [(f"call_{i}", tool, args)]))
    ends = [("call_end", "finish", record.finish.args())] if record.finish is not None else []
    return [*out, ("" if ends else record.final, ends)]


def turns_of(record: cw.Record) -> Iterator[tuple[Talk, Reply]]:
    """Every reply of an episode with the conversation before it."""
    talk: list[tuple[str, ...]] = [("system", record.policy)] if record.policy else []
    talk.append(("user", record.query))
    for reply, step in zip(replies_of(record), [*record.steps, None], strict=True):
        yield tuple(talk), reply
        if step is None:
            return
        words, calls = reply
        talk.append(("assistant", words, *(tool for _, tool, _ in calls)))
        if calls:
            talk.append(("tool", result_text(result_from(step["result"]))))
        else:
            talk.append(("user", step["result"]["content"]))
        talk += [("user", words) for words in step["heard"]]


def answering(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> ThreadingHTTPServer:
    """A server on a free port of this machine that answers every posted JSON with JSON."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = json.dumps(answer(body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class ScriptedEndpoint:
    """OpenAI's chat completions on a free port of this machine."""

    def __init__(self, records: Iterable[cw.Record]) -> None:
        self.replies: dict[Talk, Reply] = {}
        self.torn: set[str] = set()  # episodes that go on differently from the same conversation as another
        for record in records:
            for talk, reply in turns_of(record):
                if self.replies.setdefault(talk, reply) != reply:
                    self.torn.add(record.key)
        self.requests = self.unknown = 0
        self.server = answering(self.answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """The completion for a request; an empty one for a conversation that was not recorded."""
        messages = body["messages"]
        self.requests += 1
        found = self.replies.get(_talk(messages))
        self.unknown += found is None
        words, calls = found or ("", [])
        made = [
            {
                "id": f"{id}_{len(messages)}",
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(args)},
            }
            for id, tool, args in calls
        ]
        message = {"role": "assistant", "content": words, **({"tool_calls": made} if made else {})}
        return {
            "id": "chatcmpl-0",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", ""),
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }


def _talk(messages: list[dict[str, Any]]) -> Talk:
    """A conversation, however a framework writes it down."""
    return tuple(
        (m["role"], m.get("content") or "", *(call["function"]["name"] for call in m.get("tool_calls") or ()))
        for m in messages
    )
