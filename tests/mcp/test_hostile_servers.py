"""Servers that mean harm: lists without end, floods, and headers that cannot be sent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crosswind.mcp import upstream, wire
from crosswind.mcp.upstream import ServerLink
from crosswind.mcp.wire import Message, WireError
from tests.mcp.test_proxy import run


class Pages:
    """A server that lists the same page again and again."""

    def __init__(self, page: list[Any]) -> None:
        self.page, self.asked = page, 0
        self.frames: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def read(self) -> bytes | None:
        return await self.frames.get()

    async def write(self, frame: bytes) -> None:
        self.asked += 1
        page = {"tools": self.page, "nextCursor": str(self.asked)}
        self.frames.put_nowait(wire.dump(wire.result(wire.parse(frame)["id"], page)))

    async def close(self) -> None:
        self.frames.put_nowait(None)


async def nobody(_: Message, __: bytes) -> None:
    """Nobody is there for what answers no request."""


@pytest.mark.parametrize(
    ("page", "says", "pages"),
    [([{}] * 8_000, "more than 20,000 tools", 3), (["x" * 2**20] * 12, "larger than 64 MiB", 6)],
)
def test_a_list_is_bounded_over_all_its_pages(page: list[Any], says: str, pages: int) -> None:
    async def work() -> None:
        channel = Pages(page)
        link = ServerLink(channel, nobody)
        reading = asyncio.create_task(link.run())
        with pytest.raises(WireError, match=says):
            await link.listing()
        assert channel.asked == pages
        await channel.close()
        await reading

    assert upstream.LISTED == 64 * 2**20
    run(work)
