"""An agent that cancels all that the people of its requests hold, which makes later requests impossible."""

from __future__ import annotations

import json
import re

from crosswind.core.types import Message, Request, Tools


class Vandal:
    """Looks up the visits of every customer it reads of, and cancels them."""

    def __init__(self) -> None:
        self.calls = 0

    def reply(self, chat: list[Message], tools: Tools) -> Message:
        self.calls += 1
        if self.calls == 1:
            ids = list(dict.fromkeys(re.findall(r"\bC\d{6}\b", chat[1].content)))
            return self._message([("list_reservations", {"customer_id": id}) for id in ids])
        if self.calls == 2:
            rows = [row for m in chat if m.role == "tool" for row in _rows(m.content)]
            return self._message([("cancel_reservation", {"reservation_id": row["reservation_id"]}) for row in rows])
        return Message(role="assistant", content="Done.")

    def _message(self, calls: list[tuple[str, dict[str, str]]]) -> Message:
        requests = tuple(Request(id=f"{self.calls}.{i}", tool=tool, args=a) for i, (tool, a) in enumerate(calls))
        return Message(role="assistant", content="" if requests else "Done.", requests=requests)


def _rows(text: str) -> list[dict[str, str]]:
    found = json.loads(text)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
