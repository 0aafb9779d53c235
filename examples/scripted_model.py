"""A scripted model behind OpenAI's chat API, to try agents and frameworks without a provider. Standard library only.

    python examples/scripted_model.py --port 8765

It does what a well-drilled model does with requests at the ticket desk (domain poi, levels 1 and 2) that say things as
usual, with tools that are named and answer as usual. It has learnt that by heart: where a tool is missing, an answer
looks different or something fails, it gives up and says so. It has no state; every conversation is replayed with
every request, with the results that are in it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Asks = Generator[tuple[str, dict[str, Any]], Any, str]  # asks for calls, reads results, returns the final words
CATEGORIES = "museum|park|gallery|zoo|castle|aquarium|theatre|garden"


class GiveUp(Exception):
    """What came is not what was learnt."""


# ---------------------------------------------------------------- what it has learnt


class Wanted:
    """The details that a request gives, by their looks."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.category = self._one(rf"\b({CATEGORIES})\b")
        self.city = self._one(r"\b(?:in|of) ([A-Z][a-z]+)\b")
        self.customer = self._one(r"\b(C\d{6})\b")
        self.card = self._one(r"\b(card-\d{4})\b")
        self.place = self._one(r"\b(P\d{6})\b")
        self.seats = self._one(r"(?<![-\d])(\d+) (?:seats|tickets|people|at)\b")
        self.stars = self._one(r"\b(\d) (?:or more )?stars\b")
        self.dates = re.findall(r"\b\d{4}-\d\d-\d\d\b", query)

    def _one(self, pattern: str) -> str:
        found = re.search(pattern, self.query)
        return found[1] if found else ""

    def says(self, *words: str) -> bool:
        return any(word in self.query.lower() for word in words)


def solve(query: str) -> Asks:
    """The way through a request."""
    wanted = Wanted(query)
    if wanted.says("sum the", "add up", "the total", "cost together"):
        return (yield from total(wanted))
    if wanted.says("nearest", "shortest", "quickest", "fastest"):
        return (yield from closest(wanted))
    if len(wanted.dates) == 2 and wanted.customer:
        return (yield from move(wanted))
    if wanted.says("cancel", "drop", "call off"):
        return (yield from cancel(wanted))
    if wanted.says("cheaper", "cost less", "lower ticket price"):
        return (yield from cheaper(wanted))
    if wanted.says("stars"):
        return (yield from reviews(wanted))
    if wanted.says("time", "when", "slot", "entry", "hold", "keep", "reserve", "book"):
        return (yield from visit(wanted))
    best = yield from top(wanted)
    details = yield "place_details", {"place_id": best["place_id"]}
    return f"{best['name']} costs {details['price']} euros."


def ask(question: str, pattern: str) -> Generator[tuple[str, dict[str, Any]], Any, str]:
    """A detail that only the user knows."""
    found = re.search(pattern, str((yield "ask_user", {"question": question})))
    if not found:
        raise GiveUp("the user did not say")
    return found[0]


def places(wanted: Wanted) -> Generator[tuple[str, dict[str, Any]], Any, list[dict[str, Any]]]:
    city = wanted.city or (yield from ask("Which city?", r"(?<=is )\w+"))
    category = wanted.category or (yield from ask("Which category?", CATEGORIES))
    found = yield "find_places", {"city": city, "category": category}
    if not found:
        raise GiveUp("nothing was found")
    rows: list[dict[str, Any]] = found
    return rows


def top(wanted: Wanted) -> Generator[tuple[str, dict[str, Any]], Any, dict[str, Any]]:
    rows = yield from places(wanted)
    return max(rows, key=lambda row: float(row["rating"]))


def reviews(wanted: Wanted) -> Asks:
    best = yield from top(wanted)
    found = yield "list_reviews", {"place_id": best["place_id"]}
    count = sum(review["stars"] >= int(wanted.stars) for review in found)
    return f"{best['name']} has {count} such reviews."


def cheaper(wanted: Wanted) -> Asks:
    names = re.search(r"\b([A-Z][a-z]+) or ([A-Z][a-z]+)\b", wanted.query)
    if not names:
        raise GiveUp("two names were expected")
    prices = {}
    for row in (yield from places(wanted)):
        if row["name"] in names.groups():
            details = yield "place_details", {"place_id": row["place_id"]}
            prices[row["name"]] = details["price"]
    return f"{min(prices, key=lambda name: prices[name])} is cheaper."


def closest(wanted: Wanted) -> Asks:
    minutes = {}
    for row in (yield from places(wanted)):
        route = yield "travel_time", {"from_place": wanted.place, "to_place": row["place_id"]}
        minutes[row["name"]] = route["minutes"]
    return f"{min(minutes, key=lambda name: minutes[name])} is the closest."


def reservations(wanted: Wanted) -> Generator[tuple[str, dict[str, Any]], Any, list[dict[str, Any]]]:
    rows = yield "list_reservations", {"customer_id": wanted.customer}
    return [row for row in rows if row["status"] != "cancelled"]


def total(wanted: Wanted) -> Asks:
    euros = 0
    for row in (yield from reservations(wanted)):
        euros += (yield "place_details", {"place_id": row["place_id"]})["price"]
    return f"The total is {euros} euros."


def cancel(wanted: Wanted) -> Asks:
    row = next(row for row in (yield from reservations(wanted)) if row["date"] == wanted.dates[0])
    yield "cancel_reservation", {"reservation_id": row["reservation_id"]}
    return f"Reservation {row['reservation_id']} is cancelled."


def move(wanted: Wanted) -> Asks:
    row = next(row for row in (yield from reservations(wanted)) if row["date"] == wanted.dates[0])
    slot = yield from free(row["place_id"], wanted.dates[1], row["seats"])
    code = yield "request_code", {"slot_id": slot["slot_id"], "customer_id": wanted.customer}
    yield (
        "move_reservation",
        {"reservation_id": row["reservation_id"], "slot_id": slot["slot_id"], "code": code["code"]},
    )
    return f"Moved to {wanted.dates[1]} at {slot['time']}."


def free(place: str, date: str, seats: int) -> Generator[tuple[str, dict[str, Any]], Any, dict[str, Any]]:
    """The first slot with room."""
    slots = yield "list_slots", {"place_id": place, "date": date}
    fits = [slot for slot in slots if slot["left"] >= seats]
    if not fits:
        raise GiveUp("there is no slot with enough seats left")
    return min(fits, key=lambda slot: str(slot["time"]))


def visit(wanted: Wanted) -> Asks:
    """The first time at the best place; for a customer held, and paid if there is a card."""
    date = wanted.dates[0] if wanted.dates else (yield from ask("Which date?", r"\d{4}-\d\d-\d\d"))
    seats = int(wanted.seats or (yield from ask("How many seats?", r"\d+")))
    best = yield from top(wanted)
    slot = yield from free(best["place_id"], date, seats)
    if not wanted.customer:
        return f"The first slot is at {slot['time']}."
    who = {"slot_id": slot["slot_id"], "customer_id": wanted.customer}
    code = yield "request_code", who
    held = yield "reserve", {**who, "seats": seats, "code": code["code"]}
    if not wanted.card:
        return f"Held for {slot['time']}: reservation {held['reservation_id']}."
    paid = yield "pay", {"reservation_id": held["reservation_id"], "card": wanted.card}
    return f"Done for {slot['time']}: receipt {paid['receipt']}."


# ---------------------------------------------------------------- the conversation


def data(content: Any) -> Any:
    """The result in a tool's message, however a framework wraps it."""
    if isinstance(content, list) and content and all(isinstance(c, dict) and c.get("type") == "text" for c in content):
        return data(content[0]["text"])
    if isinstance(content, dict) and content.get("type") == "text":
        return data(content["text"])
    if not isinstance(content, str):
        return content
    try:
        return data(json.loads(content))
    except ValueError:
        return content


def next_words(messages: list[dict[str, Any]], tools: set[str]) -> tuple[str, dict[str, Any]] | str:
    """The next call, or the final words."""
    query = next(text_of(m) for m in reversed(messages) if m["role"] == "user" and text_of(m))
    results = [data(m["content"]) for m in messages if m["role"] == "tool"]
    way = solve(query)
    try:
        call = next(way)
        for result in results:
            if isinstance(result, dict) and "error" in result:
                raise GiveUp(str(result.get("message")))
            call = way.send(result)
    except StopIteration as stop:
        return str(stop.value)
    except GiveUp as reason:
        return f"I cannot do this: {reason}."
    except (LookupError, TypeError, ValueError, RuntimeError, AttributeError):
        return "I cannot do this: the tools do not answer as I know them."
    return call if call[0] in tools else f"I cannot do this: I have no tool {call[0]}."


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


class Handler(BaseHTTPRequestHandler):
    """POST /v1/chat/completions."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tools = {tool["function"]["name"] for tool in asked.get("tools", [])}
        said = next_words(asked["messages"], tools)
        message: dict[str, Any] = {"role": "assistant", "content": said if isinstance(said, str) else None}
        if not isinstance(said, str):
            function = {"name": said[0], "arguments": json.dumps(said[1])}
            message["tool_calls"] = [{"id": f"call_{len(asked['messages'])}", "type": "function", "function": function}]
        reason = "stop" if isinstance(said, str) else "tool_calls"
        body = json.dumps(
            {
                "id": "chatcmpl-scripted",
                "object": "chat.completion",
                "created": 0,
                "model": asked.get("model", "scripted"),
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8765, help="0: any that is free")
    server = Server(("127.0.0.1", parser.parse_args().port), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
