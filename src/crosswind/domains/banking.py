"""Bank branches with payees, clearing windows, one-time codes, transfers, cards, disputes and daily limits.

A payee is on file at one branch. A transfer takes an amount out of what a clearing window can still carry and out of
the account's daily limit, needs a TAN that another tool sends, and is prepared until it is signed. A transfer that was
signed can be disputed, and an account's card can be frozen. All names and numbers are made up from the world's seed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from crosswind.base.errors import ToolFailure
from crosswind.core.domain import Gathering, Reader, read_choice, shifted_number
from crosswind.core.flow import digest
from crosswind.core.names import Numbering, made_of
from crosswind.core.registry import domains
from crosswind.core.state import State
from crosswind.core.types import Brief, Changes, Refusal, Row, Solution, Split, Task, ToolCall, ToolResult
from crosswind.core.world import tool
from crosswind.domains import graphs, layout, notes, tools
from crosswind.domains.desk import Desk
from crosswind.domains.layout import Booking, Seed
from crosswind.domains.records import Records
from crosswind.text.answers import Expected

REASONS = layout.choices("fraud duplicate/duplication overcharge/overcharging nondelivery/non-delivery")
CARD_ID = Numbering("CD", 6)


class BankingRecords(Records):
    def person(self, at: Seed, n: int, h: bytes) -> Row:
        card = CARD_ID.id(at.split, at.seed, n)
        return {**super().person(at, n, h), "card_id": card, **self.drawn("accounts", h)}

    def own_tables(self) -> dict[str, layout.Maker]:
        return {"cards": self.card}

    def card(self, at: Seed, id: str) -> Row | None:
        n = CARD_ID.number(at.split, at.seed, id)
        if n is None or n >= at.size:
            return None
        return {"status": "active" if digest(at.split, at.seed, "card", n)[0] % 9 else "frozen"}

    def vary_own(self, task: Task, spot: str, value: Any, salt: object) -> Any:
        if spot != "accounts.card_id":
            return value
        n = CARD_ID.number(task.split, task.seed, value) or 0
        return CARD_ID.id(task.split, task.seed, shifted_number(n, salt, 0, task.size - 1, 1))

    # -- limits, cards and disputes

    def spent(self, state: State, account: str, date: str) -> int:
        """Euros of an account's daily limit that its transfers on a date take up."""
        return sum(b.need for b in self.live(state, account) if b.date == date)

    def is_signed(self, state: State, transfer: str) -> bool:
        row = state.row("transfers", transfer)
        return row is not None and row["status"] == "signed"

    def disputed(self, state: State, transfer: str, reason: str) -> Changes:
        """What disputing a transfer leaves behind."""
        row = state.row("transfers", transfer) or {}
        return {("transfers", transfer): {**row, "status": "disputed"}, ("disputes", transfer): {"reason": reason}}

    def dispute_id(self, transfer: str, amount: int, reason: str) -> str:
        return made_of("DP", 7, "dispute", transfer, amount, reason)

    def unsigned(self, state: State, *transfers: str) -> dict[str, Any]:
        """Edits after which transfers are prepared and not signed."""
        return self.edited(state, "transfers", transfers, status="prepared", signing_key="")

    def frozen(self, state: State, account: str) -> Changes | None:
        """What freezing an account's card leaves behind; None where there is no card to freeze."""
        row = state.row("accounts", account)
        card = row and state.row("cards", row["card_id"])
        if not row or not card or card["status"] != "active":
            return None
        return {("cards", row["card_id"]): {**card, "status": "frozen"}}


class BankingWorld(tools.DeskWorld):
    records: ClassVar[BankingRecords] = BankingRecords.packaged("banking")

    @tool(
        reads=["transfers.status,amount"],
        writes=["transfers.status=disputed", "disputes+"],
        enums={"reason": tuple(REASONS)},
    )
    def open_dispute(self, transfer_id: str, reason: str) -> Row:
        """Open a dispute about a signed transfer, for a reason."""
        row = self.booking(transfer_id)
        if row["status"] != "signed":
            raise ToolFailure("conflict", f"Transfer {transfer_id} is {row['status']}, not signed.")
        self.put(self.records.disputed(self.state, transfer_id, reason))
        number = self.records.dispute_id(transfer_id, row["amount"], reason)
        return {"transfer_id": transfer_id, "dispute_no": number}

    @tool(reads=["cards.status"], writes=["cards.status=frozen"])
    def freeze_card(self, card_id: str) -> Row:
        """Freeze a card, so that nobody can pay with it."""
        row = self.found("cards", card_id, "card")
        if row["status"] == "frozen":
            raise ToolFailure("conflict", f"Card {card_id} is frozen already.")
        self.state.put("cards", card_id, {**row, "status": "frozen"})
        return {"card_id": card_id, "status": "frozen"}

    def broken(self) -> str | None:
        for id, _ in self.state.written("disputes"):
            before = self.state.start("transfers", id)
            if before is None or before["status"] != "signed":
                return f"transfer {id} has not been signed and cleared, so it cannot be disputed"
        return super().broken()

    def forbidden(self, row: Row, slot: Row, person: Row) -> str | None:
        if self.records.spent(self.state, row["account_id"], slot["date"]) > person["daily_limit"]:
            return f"account {row['account_id']} would exceed its daily limit"
        return None

    def live(self, id: str, already: str = "") -> Row:
        row = self.booking(id)
        if row["status"] in ("recalled", "disputed"):
            raise ToolFailure("conflict", f"Transfer {id} is {row['status']}.")
        return row


# ---------------------------------------------------------------- families of its own


class Account(graphs.Cancel):
    """A family about an account and its transfers."""

    records: BankingRecords

    # -- parts of solutions

    def record(self, account: str) -> Gathering:
        return (yield ToolCall("account_record", {"account_id": account})).content

    def dispute(self, transfer: str, reason: str) -> Gathering:
        made = yield ToolCall("open_dispute", {"transfer_id": transfer, "reason": reason})
        return made.content["dispute_no"]

    # -- parts of goals

    def told_dispute(self, end: State) -> Expected:
        """The number of the dispute that was opened."""
        made = [
            self.records.dispute_id(id, row["amount"], dispute["reason"])
            for id, dispute in end.written("disputes")
            if (row := end.row("transfers", id))
        ]
        return Expected("id", made[0] if made else "none")


class LimitLeft(Account):
    """What is left of an account's daily limit on a date."""

    name, level = "limit_left", 1
    stands = "record > bookings (subtract)"

    def candidates(self, state: State, who: str, pinned: Mapping[str, Any]) -> Sequence[Booking] | None:
        return None  # it is answered for every date

    def solve(self, brief: Brief) -> Solution:
        who, date = yield from self.gather(brief)
        limit = (yield from self.record(who))["daily_limit"]
        rows = yield from self.booked(who)
        amounts = [r["amount"] for r in rows if r["date"] == date and r["status"] != "recalled"]
        used = sum(amounts)
        if len(amounts) > 1:
            yield notes.total(amounts)
        yield notes.note(f"{limit}-{used}={limit - used}")
        return f"{limit - used} euros are left."

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if start.row("accounts", self.wanted(task, start)[0]) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        who, date = self.wanted(task, start)
        row = start.row("accounts", who)
        left = row and row["daily_limit"] - self.records.spent(start, who, date)
        return (Expected("money", left, about=(who, date)),) if row else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [{f"accounts/{self.wanted(task, state)[0]}": None}]


class LostCard(Account):
    """Freeze the card of an account."""

    name, level = "lost_card", 1
    roles = ("who",)
    stands = "record > freeze"

    def is_hopeless(self, state: State, pinned: Mapping[str, Any]) -> bool:
        who = pinned.get(self.t.who)
        return who is not None and self.records.frozen(state, who) is None

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        return self.stated(self.records.someone(rng, state)[0])

    def solve(self, brief: Brief) -> Solution:
        (who,) = yield from self.gather(brief)
        card = (yield from self.record(who))["card_id"]
        yield ToolCall("freeze_card", {"card_id": card})
        return f"{card} is frozen."

    def ends(self, task: Task, start: State) -> list[Changes]:
        made = self.records.frozen(start, self.wanted(task, start)[0])
        return [made] if made else []

    def facts(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        account = start.row("accounts", self.wanted(task, start)[0])
        return (Expected("id", account["card_id"]),) if account else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        (who,) = self.wanted(task, state)
        account = state.row("accounts", who)
        return [{f"accounts/{who}": None}, {f"cards/{account['card_id']}": None}] if account else []


class DisputePayment(Account):
    """Dispute the transfer on a date."""

    name, level = "dispute_payment", 1
    roles = ("who", "date", "reason")
    stands = "bookings > dispute"

    def candidates(self, state: State, who: str, pinned: Mapping[str, Any]) -> Sequence[Booking] | None:
        return [held for held in self.records.live(state, who) if self.records.is_signed(state, held.id)]

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, live = self.live(rng, state)
        signed = [b for b in live if self.records.is_signed(state, b.id)]
        return self.stated(who, rng.choice(signed).date, rng.choice(tuple(REASONS))) if signed else None

    def solve(self, brief: Brief) -> Solution:
        who, date, reason = yield from self.gather(brief)
        held = yield from self.held_on(who, date)
        if held is None:
            return Refusal(f"no transfer from {who} is on {date}")
        if held["status"] != "signed":
            return Refusal(f"transfer {held['transfer_id']} was never signed, so it cannot be disputed")
        return f"The dispute is {(yield from self.dispute(held['transfer_id'], reason))}."

    def ends(self, task: Task, start: State) -> list[Changes]:
        held, reason = self.booking(task, start), self.wanted(task, start)[2]
        signed = held and self.records.is_signed(start, held.id)
        return [self.records.disputed(start, held.id, reason)] if held and signed else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (self.told_dispute(end),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        held = self.booking(task, state)
        return [self.records.lost(state, held.id), self.records.unsigned(state, held.id)] if held else []


class DubiousPayee(Account):
    """Dispute the transfer whose payee has lost the most in closed disputes."""

    name, level = "dubious_payee", 2
    roles = ("who", "reason")
    stands = "bookings > entries, for each (sum, most) > dispute"

    def candidates(self, state: State, who: str, pinned: Mapping[str, Any]) -> Sequence[Booking] | None:
        return [held for held in self.records.bookings(state, who) if self.records.is_signed(state, held.id)]

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, _ = self.records.someone(rng, state)
        totals = sorted(self.totals(state, who).values(), reverse=True)
        if not 2 <= len(totals) <= 4 or totals[0] == totals[1]:
            return None
        return self.stated(who, rng.choice(tuple(REASONS)))

    def totals(self, state: State, who: str) -> dict[str, int]:
        """By signed transfer: what the closed disputes against its payee add up to."""
        signed = (b for b in self.records.bookings(state, who) if self.records.is_signed(state, b.id))
        return {b.id: sum(self.records.amounts(state, b.thing)) for b in signed}

    def suspect(self, who: str) -> Generator[ToolCall, ToolResult, str | None]:
        """The transfer to dispute; None where nothing is signed."""
        totals = {}
        for row in (yield from self.booked(who)):
            if row["status"] == "signed":
                amounts = [case["amount"] for case in (yield from self.logged(row[self.t.thing]))]
                totals[row["transfer_id"]] = sum(amounts)
                yield notes.total(amounts)
        suspect = max(totals, key=lambda id: totals[id], default=None)
        if suspect is not None:
            yield notes.choice(totals, suspect, "most")
        return suspect

    def solve(self, brief: Brief) -> Solution:
        who, reason = yield from self.gather(brief)
        suspect = yield from self.suspect(who)
        if suspect is None:
            return Refusal(f"{who} has no signed transfer")
        return f"The dispute is {(yield from self.dispute(suspect, reason))}."

    def ends(self, task: Task, start: State) -> list[Changes]:
        who, reason = self.wanted(task, start)
        totals = self.totals(start, who)
        return [self.records.disputed(start, max(totals, key=lambda id: totals[id]), reason)] if totals else []

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        """Any signed transfer might have been the one."""
        who, reason = self.wanted(task, start)
        return [self.records.disputed(start, id, reason) for id in self.totals(start, who)]

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (self.told_dispute(end),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        signed = self.totals(state, self.wanted(task, state)[0])
        return [self.records.lost(state, *signed), self.records.unsigned(state, *signed)] if signed else []


class StolenCard(DubiousPayee):
    """Dispute the transfer whose payee has lost the most in disputes, freeze the card, and say how many stay signed."""

    name, level = "stolen_card", 3
    stands = "bookings > entries, for each (sum, most) > record > dispute > freeze > bookings (count)"

    def candidates(self, state: State, who: str, pinned: Mapping[str, Any]) -> Sequence[Booking] | None:
        return super().candidates(state, who, pinned) if self.records.frozen(state, who) else []

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        stated = super().propose(rng, state, split)
        return stated if stated and self.records.frozen(state, stated[self.t.who]) else None

    def solve(self, brief: Brief) -> Solution:
        who, reason = yield from self.gather(brief)
        suspect = yield from self.suspect(who)
        if suspect is None:
            return Refusal(f"{who} has no signed transfer")
        card = (yield from self.record(who))["card_id"]
        number = yield from self.dispute(suspect, reason)
        yield ToolCall("freeze_card", {"card_id": card})
        signed = [(r["status"], r["status"] == "signed") for r in (yield from self.booked(who))]
        yield notes.count(signed)
        return f"The dispute is {number}; {sum(counts for _, counts in signed)} transfers are signed now."

    def with_card(self, task: Task, start: State, ends: list[Changes]) -> list[Changes]:
        card = self.records.frozen(start, self.wanted(task, start)[0])
        return [{**end, **card} for end in ends] if card else []

    def ends(self, task: Task, start: State) -> list[Changes]:
        return self.with_card(task, start, super().ends(task, start))

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        return self.with_card(task, start, super().conceivable_ends(task, start))

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        held = self.records.bookings(end, self.wanted(task, start)[0])
        return self.told_dispute(end), Expected(
            "number", sum(self.records.is_signed(end, b.id) for b in held), unit="count"
        )


class OverLimit(graphs.Hold):
    """Prepare a transfer that the account's daily limit does not allow: to be refused."""

    name, level = "over_limit", 2
    records: BankingRecords
    refusal = True
    stands = "search > slots > permit > hold (refused) > refuse"

    def ends(self, task: Task, start: State) -> list[Changes]:
        at, (need, who, _) = self.target(task, start), self.party(task, start)
        account = start.row("accounts", who)
        if at is None or account is None or self.records.spent(start, who, at[1]) + need > account["daily_limit"]:
            return []
        return super().ends(task, start)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        at, (need, who, _) = self.target(task, state), self.party(task, state)
        if at is None:
            return []
        short = (self.records.spent(state, who, at[1]) + need - 1) // 50 * 50
        return [self.records.edited(state, "accounts", [who], daily_limit=short)]


# ---------------------------------------------------------------- the domain


class Banking(Desk):
    name = "banking"
    summary = "Branches, payees, clearing windows, TANs, transfers, cards, disputes and daily limits."
    world_class = BankingWorld
    own_details: ClassVar[Mapping[str, Reader]] = {"reason": read_choice(REASONS)}
    spares = (50, 100)
    own = (LimitLeft, LostCard, DisputePayment, DubiousPayee, StolenCard, OverLimit)


BANKING = Banking()
domains.add(BANKING.name, BANKING)
