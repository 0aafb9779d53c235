"""Shops with products in stock lots, quotes, orders, payments, exchanges, returns and restocking.

A product belongs to one store. An order takes units from a stock lot, needs a quote that another tool issues and a
buyer whose account is active, and is unpaid until it is paid from a wallet. Units of a paid order can be sent back,
once per order. All names and numbers are made up from the world's seed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import date as Date
from random import Random
from typing import Any, ClassVar

from crosswind.base.errors import ToolFailure
from crosswind.core.domain import Gathering, Reader, read_choice, shifted_number
from crosswind.core.flow import digest
from crosswind.core.names import made_of
from crosswind.core.registry import domains
from crosswind.core.state import State
from crosswind.core.types import Brief, Changes, Refusal, Row, Solution, Split, Task, ToolCall, ToolResult
from crosswind.core.world import tool
from crosswind.domains import graphs, layout, notes, tools
from crosswind.domains.desk import Desk
from crosswind.domains.layout import Booking, Seed, Slot
from crosswind.domains.records import Records
from crosswind.text.answers import Expected

REASONS = layout.choices("damaged/broken defective/faulty discoloured/discolored incomplete mislabelled/mislabeled")
FEWEST = 2  # units that a request sends back
SHIPMENTS = 4  # that will restock a product
NEAREST, FURTHEST = 11, 63  # days after the first delivery date between which shipments arrive


class RetailRecords(Records):
    def own_tables(self) -> dict[str, layout.Maker]:
        return {"returns": self.sent_back, "shipments": self.shipment}

    def sent_back(self, at: Seed, id: str) -> Row | None:
        row, h = self.booking_row(at, id), digest(at.split, at.seed, "return", id)
        if row is None or row["status"] != "paid" or h[0] % 6:
            return None
        return {"quantity": 1 + h[1] % row["quantity"], "reason": tuple(REASONS)[h[2] % len(REASONS)]}

    def shipment(self, at: Seed, id: str) -> Row | None:
        product, _, k = id.partition("#")
        if self.thing_number(at, product) is None:
            return None
        first = digest(at.split, at.seed, "shipments", product)[0]
        days = NEAREST + (first + 13 * int(k)) % (FURTHEST - NEAREST + 1)  # no two of a product on one day
        units = self.drawn("shipments", digest(at.split, at.seed, "shipment", id))
        return {"date": layout.days_after(at.dates[0], days), **units}

    def vary_own(self, task: Task, spot: str, value: Any, salt: object) -> Any:
        if spot != "shipments.date":
            return value
        first = self.dates(task)[0]
        days = (Date.fromisoformat(value) - Date.fromisoformat(first)).days
        return layout.days_after(first, shifted_number(days, salt, NEAREST, FURTHEST, 1))

    # -- returns and shipments

    def returnable(self, state: State, order: Booking, quantity: int) -> bool:
        """May this many units of an order be sent back?"""
        row = state.row("orders", order.id)
        paid = row is not None and row["status"] == "paid"
        return paid and quantity <= order.need and state.row("returns", order.id) is None

    def returned(self, order: str, quantity: int, reason: str) -> Changes:
        """What opening a return leaves behind."""
        return {("returns", order): {"quantity": quantity, "reason": reason}}

    def return_id(self, order: str, quantity: int, reason: str) -> str:
        return made_of("RMA", 6, "return", order, quantity, reason)

    def hindrances(self, state: State, order: str, reason: str) -> list[dict[str, Any]]:
        """Edits after which nothing of an order can be sent back: it is not paid, or a return is open already."""
        unpaid = self.edited(state, "orders", [order], status="placed", wallet="")
        other = next(other for other in REASONS if other != reason)
        return [unpaid, {f"returns/{order}": {"quantity": 1, "reason": other}}]

    def shipments_of(self, product: str) -> list[str]:
        return [f"{product}#{k}" for k in range(SHIPMENTS)]

    def arrivals(self, state: State, product: str) -> list[tuple[str, int]]:
        """The shipments that restock a product, earliest first: date and units."""
        found = (state.row("shipments", id) for id in self.shipments_of(product))
        return sorted((row["date"], row["units"]) for row in found if row)


class RetailWorld(tools.DeskWorld):
    records: ClassVar[RetailRecords] = RetailRecords.packaged("retail")

    @tool(reads=["shipments.date,units"])
    def restock_plan(self, product_id: str) -> list[Row]:
        """Shipments that will restock a product: arrival and units."""
        self.thing(product_id)
        found = (self.state.row("shipments", id) for id in self.records.shipments_of(product_id))
        return [{"arrives": row["date"], "units": row["units"]} for row in found if row is not None]

    @tool(reads=[], writes=["returns+"], enums={"reason": tuple(REASONS)})
    def open_return(self, order_id: str, quantity: int, reason: str) -> Row:
        """Open the return of units of a paid order, once per order."""
        self.within("quantity", quantity, 1, 50)
        self.booking(order_id)
        if self.state.row("returns", order_id) is not None:
            raise ToolFailure("conflict", f"A return of order {order_id} is open already.")
        self.put(self.records.returned(order_id, quantity, reason))
        return {"order_id": order_id, "return_no": self.records.return_id(order_id, quantity, reason)}

    def shown(self, id: str) -> Row:
        back = self.state.row("returns", id)
        return {**super().shown(id), "sent_back": back["quantity"] if back else 0}

    def broken(self) -> str | None:
        if why := super().broken():
            return why
        for id, row in self.state.written("returns"):
            order = self.state.row("orders", id)
            if order is None or order["status"] != "paid":
                return f"order {id} is not paid, so nothing of it can be sent back"
            if row["quantity"] > order["quantity"]:
                return f"order {id} has fewer units than that"
        return None


# ---------------------------------------------------------------- families of its own


class Shop(graphs.Graph):
    """A family that no other domain mirrors."""

    records: RetailRecords

    def send_back(self, order: str, quantity: int, reason: str) -> Gathering:
        call = ToolCall("open_return", {"order_id": order, "quantity": quantity, "reason": reason})
        return (yield call).content["return_no"]

    def plan(self, product: str) -> Generator[ToolCall, ToolResult, list[tuple[str, int]]]:
        """The shipments of a product, earliest first."""
        rows = (yield ToolCall("restock_plan", {"product_id": product})).content
        return sorted((str(row["arrives"]), int(row["units"])) for row in rows)

    def return_number(self, end: State) -> Expected:
        """The number of the return that was opened in the episode."""
        opened = [(id, row) for id, row in end.written("returns") if end.start("returns", id) is None]
        return Expected("id", self.records.return_id(opened[0][0], **opened[0][1]) if opened else "none")


class ReturnLargest(Shop):
    """Send back units of a buyer's largest order."""

    name, level = "return_largest", 1
    roles = ("who", "need", "reason")
    stands = "bookings (most units) > return"

    def weigh(self, live: list[Row]) -> Generator[ToolCall, ToolResult, list[int]]:
        """By what the order to send back from is chosen."""
        yield from ()
        return [int(row[self.t.need]) for row in live]

    def weight(self, state: State, order: Booking) -> int:
        """The same, from the rows."""
        return order.need

    def candidates(self, state: State, who: str, pinned: Mapping[str, Any]) -> Sequence[Booking] | None:
        order, quantity = self.heaviest(state, who), pinned.get(self.t.need, FEWEST)
        return [order] if order and self.records.returnable(state, order, quantity) else []

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, _ = self.records.someone(rng, state)
        live = self.records.live(state, who)
        weights = sorted((self.weight(state, order) for order in live), reverse=True)
        if len(live) < 2 or weights[0] == weights[1]:
            return None
        order = max(live, key=lambda order: self.weight(state, order))
        quantity = rng.randint(FEWEST, max(FEWEST, order.need))
        reason = rng.choice(tuple(REASONS))
        return self.stated(who, quantity, reason) if self.records.returnable(state, order, quantity) else None

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        who, quantity, reason = yield from self.gather(brief)
        rows = yield from self.booked(who)
        live = [row for row in rows if row[t.status] != t.cancelled]
        if not live:
            return Refusal(f"{who} has no order")
        weights = yield from self.weigh(live)
        order = live[weights.index(max(weights))]
        yield notes.choice(dict(zip((row[t.booking] for row in live), weights, strict=True)), order[t.booking], "most")
        number = yield from self.send_back(order[t.booking], quantity, reason)
        return f"The return of {quantity} units of {order[t.booking]} has the number {number}."

    def order(self, task: Task, start: State) -> Booking | None:
        return self.heaviest(start, self.wanted(task, start)[0])

    def heaviest(self, state: State, who: str) -> Booking | None:
        """The order of a buyer that weighs most."""
        return max(self.records.live(state, who), key=lambda order: self.weight(state, order), default=None)

    def ends(self, task: Task, start: State) -> list[Changes]:
        _, quantity, reason = self.wanted(task, start)
        order = self.order(task, start)
        if order is None or not self.records.returnable(start, order, quantity):
            return []
        return [self.records.returned(order.id, quantity, reason)]

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (self.return_number(end),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        who, _, reason = self.wanted(task, state)
        order = self.order(task, state)
        if order is None:
            return []
        gone = self.records.lost(state, *(order.id for order in self.records.live(state, who)))
        return [*self.records.hindrances(state, order.id, reason), gone]


class ReturnUnpaid(ReturnLargest):
    """Send back units of an order that is not paid: to be refused."""

    name, level = "return_unpaid", 1
    refusal = True
    stands = "bookings (most units) > return (refused) > refuse"

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return super().obstacles(task, state, rng)[:1]


class ReturnDearest(ReturnLargest):
    """Send back units of the dearest product that a buyer has ordered."""

    name, level = "return_dearest", 2
    stands = "bookings > details, for each (dearest) > return"

    def weigh(self, live: list[Row]) -> Generator[ToolCall, ToolResult, list[int]]:
        fees = []
        for row in live:
            fees.append((yield from self.fee(row[self.t.thing])))
        return fees

    def weight(self, state: State, order: Booking) -> int:
        product = self.records.one(state, order.thing)
        return product.fee if product else 0

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        stated = super().propose(rng, state, split)
        return stated if stated and 2 <= len(self.records.live(state, stated[self.t.who])) <= 4 else None


class RestockDate(Shop, graphs.Lookup):
    """The day on which the best-reviewed product is restocked with enough units."""

    name, level = "restock_date", 1
    roles = ("kind", "group", "floor")
    stands = "search > restock (earliest that suffices)"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        return at and self.stated(at[1], at[0], rng.randint(6, 45))

    def solve(self, brief: Brief) -> Solution:
        kind, group, floor = yield from self.gather(brief)
        product = yield from self.top(group, kind)
        if product is None:
            return self.nothing(group, kind)
        plan = yield from self.plan(product[self.t.thing])
        date = next((date for date, units in plan if units >= floor), None)
        yield notes.first_fit(plan, floor, last=date)
        if date is None:
            return Refusal(f"no shipment of {floor} units is planned")
        return f"{product[self.t.name]} is restocked on {date}."

    def date(self, task: Task, start: State) -> str | None:
        product, floor = self.best(task, start), self.wanted(task, start)[2]
        plan = self.records.arrivals(start, product.id) if product else []
        return next((date for date, units in plan if units >= floor), None)

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        date = self.date(task, start)
        return (self.of_best(task, start, "date", date),) if date else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        product = self.best(task, state)
        ids = self.records.shipments_of(product.id) if product else ()
        return [self.no_thing(task, state), self.records.edited(state, "shipments", ids, units=5)]


class RestockSoonest(Shop, graphs.Ranked):
    """The product of a type that is restocked first."""

    name = "restock_soonest"
    stands = "search > restock, for each (soonest)"
    order, reply = "earliest", "{name} is restocked first."

    def worth(self, state: State, thing: str, *more: Any) -> Any:
        return self.records.arrivals(state, thing)[0][0]

    def measure(self, thing: str, *more: Any) -> Gathering:
        return (yield from self.plan(thing))[0][0]


class ReplaceUnits(Shop):
    """Order units of a bad delivery again for the more punctual of two days, pay, and send the bad ones back."""

    name, level = "replace_units", 3
    house_rules = (graphs.LATEST, graphs.SPARE)
    roles = ("who", "date", "new_date", "other_date", "need", "means", "reason")
    stands = "bookings > details > outlook > outlook > slots > permit > hold > settle > return"

    def candidates(self, state: State, who: str, pinned: Mapping[str, Any]) -> Sequence[Booking] | None:
        live, quantity = self.records.live(state, who), pinned.get(self.t.need, FEWEST)
        first = {order.date: order for order in reversed(live)}  # a request means the first order of a day
        return [order for order in first.values() if self.is_replaceable(state, order, quantity)]

    def is_replaceable(self, state: State, order: Booking, quantity: int) -> bool:
        """May units of an order go back, and is there a lot for them on some later day, of two to choose from?"""
        days = self.later(state, order)
        if len(days) < 2 or not self.records.returnable(state, order, quantity):
            return False
        return any(self.fitting(state, order.thing, day, quantity) for day in days)

    def later(self, state: State, order: Booking) -> list[str]:
        return [date for date in self.records.dates(state) if date > order.date]

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, _ = self.records.someone(rng, state)
        live = self.records.live(state, who)
        if not live:
            return None
        order = rng.choice(live)
        later = self.later(state, order)
        quantity = rng.randint(FEWEST, max(FEWEST, order.need))
        if len(later) < 2 or not self.records.returnable(state, order, quantity):
            return None
        one, two = rng.sample(later, 2)
        store = self.store(state, order)
        if self.records.figure(state, store, one) == self.records.figure(state, store, two):
            return None
        reason = rng.choice(tuple(REASONS))
        return self.stated(who, order.date, one, two, quantity, self.records.some_means(rng), reason)

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        who, date, one, two, quantity, wallet, reason = yield from self.gather(brief)
        order = yield from self.held_on(who, date)
        if order is None:
            return Refusal(f"nothing was ordered for {date}")
        store = (yield ToolCall(t.details, {t.thing: order[t.thing]})).content[t.group]
        day = yield from self.calmer(store, (one, two))
        lot = yield from self.earliest(order[t.thing], day, quantity, brief.rules)
        if lot is None:
            return self.no_room(day)
        again = yield from self.hold(lot[t.slot], who, quantity)
        receipt = yield from self.settle(again, wallet)
        number = yield from self.send_back(order[t.booking], quantity, reason)
        return f"Ordered again for {day}, with the receipt {receipt}; the return has the number {number}."

    def store(self, state: State, order: Booking) -> str:
        row = state.row("products", order.thing)
        return str(row["store"]) if row else ""

    def target(self, task: Task, start: State) -> tuple[Booking, str] | None:
        """The order to send back from, and the day for which to order again."""
        who, date, one, two, *_ = self.wanted(task, start)
        old = self.records.live_on(start, who, date)
        if old is None:
            return None
        store = self.store(start, old)
        return old, min((one, two), key=lambda day: self.records.figure(start, store, day))

    def both(self, task: Task, start: State, old: Booking, lots: list[Slot]) -> list[Changes]:
        """The new order from each of the lots, and the return."""
        who, *_, quantity, wallet, reason = self.wanted(task, start)
        back = self.records.returned(old.id, quantity, reason)
        return [{**self.records.made(start, lot.id, who, quantity, wallet), **back} for lot in lots]

    def ends(self, task: Task, start: State) -> list[Changes]:
        at, settled = self.target(task, start), self.settled(task, start)
        quantity = settled[self.t.need]
        if at is None or not self.records.returnable(start, at[0], quantity):
            return []
        lot = self.fitting(start, at[0].thing, at[1], quantity, task.brief.rules)
        if lot is None or not self.records.allowed(start, settled[self.t.who]):
            return []
        return self.both(task, start, at[0], [lot])

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        """Any lot of the day might have been the earliest that fits."""
        at = self.target(task, start)
        return self.both(task, start, at[0], self.records.slots(start, at[0].thing, at[1])) if at else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (*self.receipt(end), self.return_number(end))

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        at = self.target(task, state)
        if at is None:
            return []
        (old, day), records = at, self.records
        who, *_, reason = self.wanted(task, state)
        gone = [records.full(state, old.thing, day), records.barred(state, who), records.lost(state, old.id)]
        return [*records.hindrances(state, old.id, reason), *gone]


# ---------------------------------------------------------------- the domain


class Retail(Desk):
    name = "retail"
    summary = "Stores, products, stock lots, quotes, orders, payments, exchanges, returns and restocking."
    world_class = RetailWorld
    own_details: ClassVar[Mapping[str, Reader]] = {"reason": read_choice(REASONS)}
    own = (ReturnLargest, ReturnUnpaid, RestockDate, ReturnDearest, RestockSoonest, ReplaceUnits)


RETAIL = Retail()
domains.add(RETAIL.name, RETAIL)
