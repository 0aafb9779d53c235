"""Replays the clean way on the clean interface."""

from __future__ import annotations

from collections.abc import Sequence

from crosswind.agents._learning import said
from crosswind.agents._scripted import Reciter, agent, lines_of
from crosswind.core.draw import Drawn
from crosswind.core.memory import Belief
from crosswind.core.types import SAY, Message, Tools


@agent("memoriser")
class Memoriser(Reciter):
    """Replays the calls that were right in the clean world; says the remembered end, or "Done" if a call failed."""

    def __init__(self, drawn: Drawn) -> None:
        clean = drawn.certificate.clean
        if drawn.recall and drawn.recall.need:
            super().__init__(*said(drawn, Belief()))
        else:
            super().__init__(lines_of(clean), clean)
        self.failed = sum(s.result.error is not None for s in clean.steps if s.call.tool != SAY)

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        message = await super().reply(chat, tools)
        failed = sum(m.role == "tool" and m.content.startswith('{"error"') for m in chat)
        if not self.last.requests and failed > self.failed:
            return self.closing("Done.", tools)
        return message
