"""Shops with products in stock lots, quotes, orders, payments, exchanges, returns and restocking.

A product belongs to one store. An order takes units from a stock lot, needs a quote that another tool issues and a
buyer whose account is active, and is unpaid until it is paid from a wallet. Units of a paid order can be sent back,
once per order. All names and numbers are made up from the world's seed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from datetime import date as Date
from datetime import timedelta
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from crosswind.base.errors import ToolFailure
from crosswind.core.domain import Detail, Gathering, edit, read_choice, read_counts, read_ids, shifted_number
from crosswind.core.flow import digest
from crosswind.core.names import Namer, Numbering, dates_from, made_of, unused
from crosswind.core.registry import domains
from crosswind.core.types import Brief, Changes, Refusal, Row, Solution, Split, Task, ToolCall, ToolResult
from crosswind.core.world import Derive, State, World, brief_of, tool
from crosswind.domains import graphs, notes
from crosswind.domains.graphs import Booking, Desk, Slot, Terms, Thing
from crosswind.text import values
from crosswind.text.answers import Expected

TYPES = ("kettle", "toaster", "blender", "lamp", "drill", "backpack", "jacket", "tent")
REASONS: dict[str, tuple[str, ...]] = {  # with other words for them
    "damaged": ("broken",),
    "defective": ("faulty",),
    "discoloured": ("discolored",),
    "incomplete": (),
    "mislabelled": ("mislabeled",),
}
PER_STORE, DAYS, LOTS, HELD, SHIPMENTS = 24, 10, 5, 5, 4
NEAREST, FURTHEST = 11, 63  # days after the first delivery date between which shipments arrive

STORE = Namer(
    (("mart", "bazaar", "depot", "kauf"), ("store", "trade", "outlet"), ("market", "arcade", "mall", "shop")), 11
)
PRODUCT = Namer((("ix", "plex", "ette", "ola"), ("ora", "max", "tek"), ("uno", "ista", "flex", "zon")), 29)
BUYER = Namer((("lund", "wright", "stein", "holt"), ("worth", "cliff", "brooke"), ("beck", "mont", "idze", "oglu")), 47)
PRODUCT_ID, BUYER_ID = Numbering("SKU", 6), Numbering("BUY", 6)
LOT_ID, ORDER_ID = Numbering("LOT", 8), Numbering("ORD", 7)


def calendar(seed: int) -> list[str]:
    """The dates on which a world delivers."""
    return dates_from(2033, 3, 7, seed * 17 % 290, DAYS)


def stores_of(size: int) -> int:
    return max(1, size // PER_STORE)


def rows(seed: int, size: int, split: Split) -> Derive:
    """Any row of a world, made from its seed alone."""
    stores = stores_of(size)
    dates = calendar(seed)

    def product(id: str) -> Row | None:
        n = PRODUCT_ID.number(split, seed, id)
        if n is None or n >= stores * PER_STORE:
            return None
        h = digest(split, seed, "product", n)
        return {
            "name": PRODUCT.name(split, seed, n),
            "store": STORE.name(split, seed, n // PER_STORE),
            "product_type": TYPES[h[0] % len(TYPES)],
            "review_score": round(1 + (h[1] * 256 + h[2]) % 401 / 100, 2),
            "unit_price": 6 + h[3] % 140,
            "warranty_months": 6 * (1 + h[4] % 6),
        }

    def lot(id: str) -> Row | None:
        n = LOT_ID.number(split, seed, id)
        if n is None or n >= stores * PER_STORE * DAYS * LOTS:
            return None
        n, j = divmod(n, LOTS)
        n, d = divmod(n, DAYS)
        h = digest(split, seed, "lot", n, d, j)
        return {
            "product_id": PRODUCT_ID.id(split, seed, n),
            "date": dates[d],
            "time": f"{7 + 2 * j + h[0] % 2:02d}:{10 * (h[1] % 6):02d}",
            "units": (0, 0, 1, 2, 3, 5, 8, 12)[h[2] % 8],
        }

    def buyer(id: str) -> Row | None:
        n = BUYER_ID.number(split, seed, id)
        if n is None or n >= size:
            return None
        h = digest(split, seed, "buyer", n)
        return {
            "name": BUYER.name(split, seed, n),
            "home_store": STORE.name(split, seed, int.from_bytes(h[:4], "big") % stores),
            "account": "active" if h[4] % 16 else "frozen",
        }

    def order(id: str) -> Row | None:
        n = ORDER_ID.number(split, seed, id)
        if n is None or n >= size * HELD:
            return None
        owner, k = divmod(n, HELD)
        h = digest(split, seed, "orders", owner)
        if k >= 2 + h[0] % (HELD - 1):
            return None
        g = digest(split, seed, "order", owner, k)
        at = int.from_bytes(g[:4], "big") % (stores * PER_STORE)
        number = (at * DAYS + (h[1] + 3 * k) % DAYS) * LOTS + g[4] % LOTS
        status = "cancelled" if k and g[6] % 9 == 0 else "paid" if g[6] % 3 else "placed"
        return {
            "buyer_id": BUYER_ID.id(split, seed, owner),
            "lot_id": LOT_ID.id(split, seed, number),
            "quantity": 1 + g[5] % 6,
            "status": status,
            "wallet": f"wallet-{int.from_bytes(g[6:8], 'big') % 100_000:05d}" if status == "paid" else "",
        }

    def sent_back(id: str) -> Row | None:
        row, h = order(id), digest(split, seed, "return", id)
        if row is None or row["status"] != "paid" or h[0] % 6:
            return None
        return {"quantity": 1 + h[1] % row["quantity"], "reason": tuple(REASONS)[h[2] % len(REASONS)]}

    def sale(id: str) -> Row | None:
        product_id, _, k = id.partition("#")
        if product(product_id) is None:
            return None
        h = digest(split, seed, "sale", product_id, k)
        return {"units": 1 + h[0] % 12, "date": (Date(2032, 1, 1) + timedelta(days=h[1])).isoformat()}

    def forecast(id: str) -> Row | None:
        h = digest(split, seed, "forecast", id)
        return {"late_percent": h[0] % 61, "parcels": 20 + h[1]}

    def style(id: str) -> Row | None:
        return {"style_gap": digest(split, seed, "style", id)[0] % 100}

    def shipment(id: str) -> Row | None:
        product_id, _, k = id.partition("#")
        if product(product_id) is None:
            return None
        first = digest(split, seed, "shipments", product_id)[0]
        days = NEAREST + (first + 13 * int(k)) % (FURTHEST - NEAREST + 1)  # no two of a product on one day
        arrives = Date.fromisoformat(dates[0]) + timedelta(days=days)
        return {"date": arrives.isoformat(), "units": 5 * (1 + digest(split, seed, "shipment", id)[0] % 12)}

    made = {
        "products": product,
        "lots": lot,
        "buyers": buyer,
        "orders": order,
        "returns": sent_back,
        "sales": sale,
        "forecasts": forecast,
        "styles": style,
        "shipments": shipment,
    }
    return lambda table, id: made[table](id) if table in made else None


def receipt_of(order_id: str, wallet: str) -> str:
    return made_of("TXN", 7, "receipt", order_id, wallet)


def quote_of(lot_id: str, buyer_id: str) -> str:
    return made_of("QUO", 6, "quote", lot_id, buyer_id)


def return_of(order_id: str, quantity: int, reason: str) -> str:
    return made_of("RMA", 6, "return", order_id, quantity, reason)


# ---------------------------------------------------------------- what belongs to what


def products_in(state: State, store: str) -> list[str] | None:
    """The products of a store, or None where there is no such store."""
    return _products_in(state.split, state.seed, state.size, store)


@lru_cache(maxsize=4096)
def _products_in(split: Split, seed: int, size: int, store: str) -> list[str] | None:
    n = STORE.number(split, seed, store)
    if n is None or n >= stores_of(size):
        return None
    return [PRODUCT_ID.id(split, seed, n * PER_STORE + k) for k in range(PER_STORE)]


def lots_of(state: State, product_id: str, date: str) -> list[str]:
    n, dates = PRODUCT_ID.number(state.split, state.seed, product_id), calendar(state.seed)
    if n is None or date not in dates:
        return []
    first = (n * DAYS + dates.index(date)) * LOTS
    return [LOT_ID.id(state.split, state.seed, first + j) for j in range(LOTS)]


def orders_of(state: State, buyer_id: str) -> list[str]:
    """What a buyer has ordered, first what the seed gives."""
    n = BUYER_ID.number(state.split, state.seed, buyer_id)
    ids = [] if n is None else [ORDER_ID.id(state.split, state.seed, n * HELD + k) for k in range(HELD)]
    ids = [id for id in ids if state.row("orders", id) is not None]
    new = (id for id, row in state.written("orders") if row["buyer_id"] == buyer_id)
    return [*ids, *(id for id in new if id not in ids)]


def sales_of(product_id: str) -> list[str]:
    return [f"{product_id}#{k}" for k in range(3 + digest("sales", product_id)[0] % 7)]


def shipments_of(product_id: str) -> list[str]:
    return [f"{product_id}#{k}" for k in range(SHIPMENTS)]


def new_id(state: State, lot_id: str, buyer_id: str) -> str:
    """An id made of what is ordered, and of how often it was before."""
    mine = (lot_id, buyer_id)
    times = sum((row["lot_id"], row["buyer_id"]) == mine for _, row in state.written("orders"))
    return unused(lambda id: state.row("orders", id) is not None, "ORD", 7, "order", *mine, times=times)


def style_between(one: str, two: str) -> str:
    return "|".join(sorted((one, two)))


def left(state: State, lot_id: str, units: int) -> int:
    """Units left: the lot's count is without what the seed ordered, so only what was written moves it."""
    for id, row in state.written("orders"):
        before = state.start("orders", id)
        if before is not None and before["lot_id"] == lot_id and before["status"] != "cancelled":
            units += before["quantity"]
        if row["lot_id"] == lot_id and row["status"] != "cancelled":
            units -= row["quantity"]
    return units


# ---------------------------------------------------------------- tools


class RetailWorld(World):
    invariants = (
        "orders.lot_id",
        "orders.buyer_id",
        "orders.quantity",
        "orders.status",
        "lots.units",
        "lots.product_id",
        "buyers.account",
        "quotes.quote",
        "returns.quantity",
    )

    def broken(self) -> str | None:
        state = self.state
        for id, row in state.written("orders"):
            before = state.start("orders", id)
            if row["status"] == "cancelled" or (before is not None and before["lot_id"] == row["lot_id"]):
                continue
            lot_id, buyer_id = row["lot_id"], row["buyer_id"]
            lot, buyer = state.row("lots", lot_id), state.row("buyers", buyer_id)
            if lot is None or state.row("products", lot["product_id"]) is None:
                return f"there is no lot {lot_id}"
            if buyer is None or buyer["account"] != "active":
                return f"the account of buyer {buyer_id} is not active"
            if state.row("quotes", f"{lot_id}|{buyer_id}") is None:
                return f"no quote was issued to {buyer_id} for {lot_id}"
            if left(state, lot_id, lot["units"]) < 0:
                return f"lot {lot_id} has not enough units left"
        for id, row in state.written("returns"):
            order = state.row("orders", id)
            if order is None or order["status"] != "paid":
                return f"order {id} is not paid, so nothing of it can be sent back"
            if row["quantity"] > order["quantity"]:
                return f"order {id} has fewer units than that"
        return None

    @tool(reads=["products.name,product_type,review_score"], enums={"product_type": TYPES})
    def find_products(self, store: str, product_type: str) -> list[Row]:
        """Products of one type in a store, with review scores."""
        ids = products_in(self.state, store)
        if ids is None:
            raise ToolFailure("not_found", f"There is no store {brief_of(store)}.")
        found = ((id, self.state.row("products", id)) for id in ids)
        return [
            {"product_id": id, "name": row["name"], "review_score": row["review_score"]}
            for id, row in found
            if row is not None and row["product_type"] == product_type
        ]

    @tool(reads=["products.name,store,product_type,unit_price,warranty_months"])
    def product_details(self, product_id: str) -> Row:
        """Store, type, unit price in euros and warranty of a product."""
        row = self.found("products", product_id, "product")
        return {c: row[c] for c in ("name", "store", "product_type", "unit_price", "warranty_months")}

    @tool(reads=["sales.units,date"])
    def recent_sales(self, product_id: str) -> list[Row]:
        """Latest sales of a product: date and units sold."""
        self.found("products", product_id, "product")
        found = (self.state.row("sales", id) for id in sales_of(product_id))
        return [{"date": row["date"], "units_sold": row["units"]} for row in found if row is not None]

    @tool(reads=["forecasts.late_percent,parcels"], docs={"date": "YYYY-MM-DD"})
    def delay_forecast(self, store: str, date: str) -> Row:
        """Percentage of a store's parcels expected to be late on a date."""
        if products_in(self.state, store) is None:
            raise ToolFailure("not_found", f"There is no store {brief_of(store)}.")
        row = self.found("forecasts", f"{store}|{self.day(date)}", "forecast")
        return {"late_percent": row["late_percent"], "parcels": row["parcels"]}

    @tool(reads=["styles.style_gap"])
    def compare_style(self, product_a: str, product_b: str) -> Row:
        """Style gap between two products, by ids: the lower, the better they match."""
        self.found("products", product_a, "product")
        self.found("products", product_b, "product")
        row = self.found("styles", style_between(product_a, product_b), "comparison")
        return {"style_gap": row["style_gap"]}

    @tool(
        reads=["lots.time,units", "orders.lot_id,quantity,status"],
        docs={"date": "YYYY-MM-DD"},
    )
    def list_lots(self, product_id: str, date: str) -> list[Row]:
        """Stock lots of a product for a delivery date: time and units left."""
        self.found("products", product_id, "product")
        out: list[Row] = []
        for id in lots_of(self.state, product_id, self.day(date)):
            row = self.found("lots", id, "lot")
            out.append({"lot_id": id, "time": row["time"], "units_left": left(self.state, id, row["units"])})
        return out

    @tool(reads=["shipments.date,units"])
    def restock_plan(self, product_id: str) -> list[Row]:
        """Shipments that will restock a product: arrival and units."""
        self.found("products", product_id, "product")
        found = (self.state.row("shipments", id) for id in shipments_of(product_id))
        return [{"arrives": row["date"], "units": row["units"]} for row in found if row is not None]

    @tool(reads=["buyers.name,home_store,account"])
    def buyer_record(self, buyer_id: str) -> Row:
        """Name, home store and account state of a buyer."""
        row = self.found("buyers", buyer_id, "buyer")
        return {"name": row["name"], "home_store": row["home_store"], "account": row["account"]}

    @tool(
        reads=["orders.lot_id,quantity,status,buyer_id", "lots.product_id,date,time", "returns.quantity"],
    )
    def list_orders(self, buyer_id: str) -> list[Row]:
        """Orders of a buyer: product, delivery, quantity, status, units sent back."""
        self.found("buyers", buyer_id, "buyer")
        return [self._shown(id) for id in orders_of(self.state, buyer_id)]

    @tool(reads=[], writes=["quotes+"], lasting=False)
    def request_quote(self, lot_id: str, buyer_id: str) -> Row:
        """Issue the quote that a buyer needs for a lot."""
        self.found("lots", lot_id, "lot")
        self.found("buyers", buyer_id, "buyer")
        quote = quote_of(lot_id, buyer_id)
        self.state.put("quotes", f"{lot_id}|{buyer_id}", {"quote": quote})
        return {"quote": quote}

    @tool(
        reads=["quotes.quote", "orders.lot_id,buyer_id"],
        writes=["orders+", "orders.status=placed"],
        undo=("cancel_order", "order_id"),
    )
    def place_order(self, lot_id: str, buyer_id: str, quantity: int, quote: str) -> Row:
        """Order units from a lot, unpaid; needs a quote from {request_quote}."""
        self._count(quantity)
        self.found("lots", lot_id, "lot")
        self._check(lot_id, buyer_id, quote)
        id = new_id(self.state, lot_id, buyer_id)
        made = {"buyer_id": buyer_id, "lot_id": lot_id, "quantity": quantity, "status": "placed", "wallet": ""}
        self.state.put("orders", id, made)
        return {"order_id": id, "status": "placed"}

    @tool(
        reads=["orders.status,lot_id,buyer_id,quantity"],
        writes=["orders.status=paid", "orders.wallet"],
        undo=("cancel_order", "order_id"),
    )
    def pay_order(self, order_id: str, wallet: str) -> Row:
        """Pay for a placed order from a wallet."""
        row = self.found("orders", order_id, "order")
        if row["status"] != "placed":
            raise ToolFailure("conflict", f"Order {order_id} is {row['status']}, not placed.")
        if not wallet.startswith("wallet-") or len(wallet) > 20:
            raise ToolFailure("bad_arguments", f"'wallet' must look like wallet-12345, got {brief_of(wallet)}")
        self.state.put("orders", order_id, {**row, "status": "paid", "wallet": wallet})
        return {"order_id": order_id, "receipt_no": receipt_of(order_id, wallet), "status": "paid"}

    @tool(
        reads=["orders.status"],
        writes=["orders.status=cancelled", "orders.wallet", "returns-"],
    )
    def cancel_order(self, order_id: str) -> Row:
        """Cancel an order with its return; money paid is refunded."""
        row = self.found("orders", order_id, "order")
        if row["status"] == "cancelled":
            raise ToolFailure("conflict", f"Order {order_id} is cancelled already.")
        self.state.put("orders", order_id, {**row, "status": "cancelled", "wallet": ""})
        if self.state.row("returns", order_id) is not None:
            self.state.put("returns", order_id, None)
        return {"order_id": order_id, "status": "cancelled"}

    @tool(
        reads=["orders.status,lot_id,buyer_id,quantity", "quotes.quote", "lots.product_id"],
        writes=["orders.lot_id"],
    )
    def exchange_order(self, order_id: str, lot_id: str, quote: str) -> Row:
        """Exchange an order for another lot of the same product; needs a quote from {request_quote}."""
        row = self.found("orders", order_id, "order")
        if row["status"] == "cancelled":
            raise ToolFailure("conflict", f"Order {order_id} is cancelled.")
        lot, old = self.found("lots", lot_id, "lot"), self.found("lots", row["lot_id"], "lot")
        if lot["product_id"] != old["product_id"]:
            raise ToolFailure("conflict", f"Lot {lot_id} is of another product.")
        self._check(lot_id, row["buyer_id"], quote)
        self.state.put("orders", order_id, {**row, "lot_id": lot_id})
        return {"order_id": order_id, "lot_id": lot_id}

    @tool(reads=[], writes=["returns+"], enums={"reason": tuple(REASONS)})
    def open_return(self, order_id: str, quantity: int, reason: str) -> Row:
        """Open the return of units of a paid order, once per order."""
        self._count(quantity)
        self.found("orders", order_id, "order")
        if self.state.row("returns", order_id) is not None:
            raise ToolFailure("conflict", f"A return of order {order_id} is open already.")
        self.state.put("returns", order_id, {"quantity": quantity, "reason": reason})
        return {"order_id": order_id, "return_no": return_of(order_id, quantity, reason)}

    # -- parts

    def _count(self, quantity: int) -> None:
        if not 1 <= quantity <= 50:
            raise ToolFailure("bad_arguments", f"'quantity' must be from 1 to 50, got {brief_of(str(quantity))}")

    def _check(self, lot_id: str, buyer_id: str, quote: str) -> None:
        issued = self.state.row("quotes", f"{lot_id}|{buyer_id}")
        if issued is None or issued["quote"] != quote:
            raise ToolFailure("refused", f"This is no quote for {lot_id}; {{request_quote}} issues one.")

    def _shown(self, id: str) -> Row:
        row = self.found("orders", id, "order")
        lot, back = self.found("lots", row["lot_id"], "lot"), self.state.row("returns", id)
        return {
            "order_id": id,
            "product_id": lot["product_id"],
            "date": lot["date"],
            "time": lot["time"],
            "quantity": row["quantity"],
            "status": row["status"],
            "sent_back": back["quantity"] if back else 0,
        }


# ---------------------------------------------------------------- the domain

_BUYER, _PRODUCT, _WALLET = read_ids("BUY", 6), read_ids("SKU", 6), read_ids("wallet-", 5)
_STORE, _NAME = STORE.find, PRODUCT.find
_TYPE = read_choice(dict.fromkeys(TYPES, ()) | {"backpack": ("rucksack",)})
_REASON = read_choice(REASONS)


class Retail(Desk):
    name = "retail"
    summary = "Stores, products, stock lots, quotes, orders, payments, exchanges, returns and restocking."
    world_class = RetailWorld
    named = frozenset({"products.name"})
    namers: ClassVar[Mapping[str, Namer]] = {"group": STORE, "thing": PRODUCT, "person": BUYER}
    said: ClassVar[Mapping[str, str]] = {
        "held": "Ordered for {time}: {booking}.",
        "left": "Done; {count} orders are live now.",
        "none": "nothing is ordered for {date}",
    }
    policy = (
        "You work at the service desk of a chain of stores. Do what the user asks with the tools, and nothing else. Ask "
        "when a detail is missing. Tell the user what they asked for; for an order its number, for a payment the receipt "
        "number, for an exchange the new delivery time, for a return its number. If it cannot be done, leave nothing "
        "changed and say so."
    )
    terms = Terms(
        search="find_products", details="product_details", entries="recent_sales", outlook="delay_forecast",
        distance="compare_style", slots="list_lots", bookings="list_orders", permit="request_quote",
        hold="place_order", settle="pay_order", cancel="cancel_order", move="exchange_order",
        group="store", kind="product_type", thing="product_id", date="date", who="buyer_id", need="quantity",
        slot="lot_id", booking="order_id", means="wallet", code="quote", source="product_a", target="product_b",
        score="review_score", fee="unit_price", amount="units_sold", figure="late_percent", far="style_gap",
        room="units_left", receipt="receipt_no", status="status", floor="min_units", held="placed", settled="paid",
    )  # fmt: skip
    details: Mapping[str, Detail] = {
        "group": Detail(
            "store", "Which store?", _STORE, ("store", "shop", "branch", "outlet", "where", "location"), "a store I will name",
            record=("buyer_record", "buyer_id", "home_store"), column=("buyers", "home_store"),
        ),
        "kind": Detail(
            "product type", "Which type of product?", _TYPE,
            ("product", "type", "kind", "category", "article", "item", "sort", *TYPES), "product of a certain type",
        ),
        "date": Detail("delivery date", "Which delivery date?", values.dates, ("date", "day", "when", "delivery", "delivered", "time"), "a day I have in mind"),
        "new_date": Detail("new delivery date", "Which new delivery date?", values.dates, ("new", "date", "day", "when"), "another day"),
        "other_date": Detail("other delivery date", "Which other delivery date?", values.dates, ("other", "date", "day"), "some other day"),
        "need": Detail(
            "number of units", "How many units?", read_counts,
            ("quantity", "unit", "many", "number", "amount", "piece", "item", "copies"), "a few",
        ),
        "floor": Detail(
            "least number of units", "How many units at least?", read_counts,
            ("unit", "least", "many", "number", "minimum", "threshold", "quantity"), "a fair number of",
        ),
        "who": Detail(
            "buyer id", "What is the buyer id?", _BUYER,
            ("buyer", "customer", "shopper", "id", "who", "whom", "whose", "account", "name"), "a buyer",
        ),
        "means": Detail("wallet", "Which wallet?", _WALLET, ("wallet", "pay", "payment", "charge", "card"), "a wallet of mine"),
        "source": Detail(
            "product to match", "Which product should it match?", _PRODUCT,
            ("match", "product", "compare", "reference", "against"), "what I have at home",
        ),
        "first": Detail("first product", "Which is the first product?", _NAME, ("first", "product"), "one thing"),
        "second": Detail("second product", "Which is the second product?", _NAME, ("second", "product"), "another one"),
        "reason": Detail(
            "return reason", "What is the reason for the return?", _REASON,
            ("reason", "why", "wrong", "problem", "fault", "condition", "state", "defect"), "not as they should be",
        ),
    }  # fmt: skip

    def __init__(self) -> None:
        made: list[graphs.Graph] = [family().bind(self) for family in FAMILIES]
        self.families = {family.name: family for family in made}

    def derive(self, seed: int, size: int, split: Split) -> Derive:
        return rows(seed, size, split)

    def normalise(self, state: State) -> Changes:
        changes = state.changes()
        names: dict[str, str] = {}  # of orders made in the episode, by their content
        for (table, id), row in changes.items():
            if table == "orders" and row is not None and state.start(table, id) is None:
                name = f"new {row['lot_id']} {row['buyer_id']}"
                if row["status"] != "cancelled":
                    while name in names.values():
                        name += " again"
                    names[id] = name
                else:
                    names[id] = ""
        out: Changes = {}
        for (table, id), row in changes.items():
            name = names.get(id, id) if table in ("orders", "returns") else id
            if table != "quotes" and name:
                out[table, name] = row
        return out

    def vary(self, task: Task, table: str, column: str, value: Any, salt: object) -> Any:
        if (table, column) == ("products", "name"):
            n = PRODUCT.number(task.split, task.seed, value) or 0
            last = PRODUCT.capacity(task.split) - 1
            return PRODUCT.name(task.split, task.seed, shifted_number(n, salt, 0, last, 1))
        if (table, column) == ("lots", "time"):
            return f"{shifted_number(int(value[:2]), salt, 7, 16, 1):02d}{value[2:]}"
        if (table, column) == ("shipments", "date"):
            first = Date.fromisoformat(calendar(task.seed)[0])
            days = (Date.fromisoformat(value) - first).days
            return (first + timedelta(days=shifted_number(days, salt, NEAREST, FURTHEST, 1))).isoformat()
        if (table, column) == ("orders", "lot_id"):  # the same hour of the same day, of another product
            products = stores_of(task.size) * PER_STORE
            n, rest = divmod(LOT_ID.number(task.split, task.seed, value) or 0, DAYS * LOTS)
            return LOT_ID.id(task.split, task.seed, shifted_number(n, salt, 0, products - 1, 1) * DAYS * LOTS + rest)
        moves = {
            "products.review_score": (1.0, 5.0, 0.01),
            "products.unit_price": (6, 145, 1),
            "sales.units": (1, 12, 1),
            "forecasts.late_percent": (0, 60, 1),
            "styles.style_gap": (0, 99, 1),
            "lots.units": (1, 12, 1),
            "orders.quantity": (1, 6, 1),
            "shipments.units": (5, 60, 5),
        }.get(f"{table}.{column}")
        if moves is None or (table == "lots" and not value):
            return value
        return shifted_number(value, (table, column, salt), *moves)

    # -- rows for the graphs

    def things(self, state: State, group: str, kind: str) -> list[Thing]:
        found = ((id, state.row("products", id)) for id in products_in(state, group) or ())
        return [
            Thing(id, row["name"], row["review_score"], row["unit_price"])
            for id, row in found
            if row and row["product_type"] == kind
        ]

    def thing(self, state: State, id: str) -> Thing | None:
        row = state.row("products", id)
        return Thing(id, row["name"], row["review_score"], row["unit_price"]) if row else None

    def amounts(self, state: State, thing: str) -> list[int]:
        return [row["units"] for id in sales_of(thing) if (row := state.row("sales", id))]

    def figure(self, state: State, group: str, date: str) -> int:
        row = state.row("forecasts", f"{group}|{date}")
        return int(row["late_percent"]) if row else 0

    def far(self, state: State, source: str, target: str) -> int:
        row = state.row("styles", style_between(source, target))
        return int(row["style_gap"]) if row else 0

    def slots(self, state: State, thing: str, date: str) -> list[Slot]:
        found = ((id, state.row("lots", id)) for id in lots_of(state, thing, date))
        made = [Slot(id, row["time"], left(state, id, row["units"])) for id, row in found if row]
        return sorted(made, key=lambda s: s.time)

    def bookings(self, state: State, who: str) -> list[Booking]:
        out = []
        for id in orders_of(state, who):
            row = state.row("orders", id)
            lot = row and state.row("lots", row["lot_id"])
            if row and lot:
                live = row["status"] != "cancelled"
                out.append(Booking(id, row["lot_id"], lot["product_id"], lot["date"], row["quantity"], live))
        return out

    def made(self, state: State, slot: str, who: str, need: int, means: str | None) -> Changes:
        row = {
            "buyer_id": who,
            "lot_id": slot,
            "quantity": need,
            "status": "paid" if means else "placed",
            "wallet": means or "",
        }
        quote = {"quote": quote_of(slot, who)}
        return {("orders", new_id(state, slot, who)): row, ("quotes", f"{slot}|{who}"): quote}

    def ended(self, state: State, booking: str) -> Changes:
        row = state.row("orders", booking) or {}
        out: Changes = {("orders", booking): {**row, "status": "cancelled", "wallet": ""}}
        return {**out, ("returns", booking): None} if state.row("returns", booking) else out

    def moved(self, state: State, booking: str, slot: str) -> Changes:
        row = state.row("orders", booking) or {}
        quote = {"quote": quote_of(slot, row["buyer_id"])}
        return {("orders", booking): {**row, "lot_id": slot}, ("quotes", f"{slot}|{row['buyer_id']}"): quote}

    def new_bookings(self, end: State) -> list[tuple[str, str | None]]:
        return [
            (id, receipt_of(id, row["wallet"]) if row["wallet"] else None)
            for id, row in end.written("orders")
            if end.start("orders", id) is None and row["status"] != "cancelled"
        ]

    def someone(self, rng: Random, state: State) -> tuple[str, str]:
        n = rng.randrange(state.size)
        for step in range(state.size):  # the next one whose account is active
            id = BUYER_ID.id(state.split, state.seed, (n + step) % state.size)
            row = state.row("buyers", id)
            if row and row["account"] == "active":
                return id, row["home_store"]
        return BUYER_ID.id(state.split, state.seed, n), STORE.name(state.split, state.seed, 0)

    def allowed(self, state: State, who: str) -> bool:
        row = state.row("buyers", who)
        return row is not None and row["account"] == "active"

    def kinds(self) -> tuple[str, ...]:
        return TYPES

    def dates(self, state: State) -> list[str]:
        return calendar(state.seed)

    def means(self, rng: Random) -> str:
        return f"wallet-{rng.randrange(100_000):05d}"

    def needs(self, rng: Random) -> int:
        return rng.randint(2, 6)

    def floors(self, rng: Random) -> int:
        return rng.randint(3, 10)

    def full(self, state: State, thing: str, date: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for id in lots_of(state, thing, date):
            out |= edit("lots", id, state.row("lots", id) or {}, units=0)
        return out

    def barred(self, state: State, who: str) -> dict[str, Any]:
        return edit("buyers", who, state.row("buyers", who) or {}, account="frozen")

    def emptied(self, state: State, group: str, kind: str) -> dict[str, Any]:
        other = TYPES[(TYPES.index(kind) + 1) % len(TYPES)]
        out: dict[str, Any] = {}
        for thing in self.things(state, group, kind):
            out |= edit("products", thing.id, state.row("products", thing.id) or {}, product_type=other)
        return out

    def lost(self, state: State, booking: str) -> dict[str, Any]:
        back: dict[str, Any] = {f"returns/{booking}": None} if state.row("returns", booking) else {}
        return {f"orders/{booking}": None, **back}


# ---------------------------------------------------------------- families


class BestUnitPrice(graphs.Fact):
    """The unit price of the best-reviewed product."""

    name = "best_unit_price"
    queries = (
        "What does the best-reviewed {product_type} at {store} cost?",
        "How much do they ask at {store} for the {product_type} with the highest review score?",
        "I want the top-reviewed {product_type} that {store} sells. What is the price?",
        "At {store}, which price is on the {product_type} that shoppers review best?",
        "Look for the {product_type} with the best review score at {store} and tell me its unit price.",
    )


class BestUnitPriceAsked(graphs.FactAsked):
    """The unit price of the best-reviewed product; the user leaves out the store or the product type."""

    name = "best_unit_price_asked"
    queries = (
        "What does the best-reviewed {product_type} at {store} cost?",
        "Please give me the unit price of the top-reviewed {product_type} at {store}.",
        "I am after the {product_type} with the highest review score at {store}. How much is it?",
        "Could you check the price of the {product_type} with the best reviews at {store}?",
    )


class BulkSales(graphs.Tally):
    """How many recent sales of the best-reviewed product reach a number of units."""

    name = "bulk_sales"
    queries = (
        "How many recent sales of the best-reviewed {product_type} at {store} were of at least {min_units} units?",
        "Count the latest sales of {min_units} units or more for the {product_type} with the top review score at {store}.",
        "We are planning stock for {store}. How often did the best-reviewed {product_type} sell {min_units} units or "
        "more at a time lately?",
        "For the {product_type} with the highest review score at {store}, tell me the number of recent sales that "
        "reach {min_units} units.",
    )


class CheaperProduct(graphs.Versus):
    """Which of two named products is cheaper."""

    name = "cheaper_product"
    queries = (
        "Which {product_type} at {store} is cheaper, {first} or {second}?",
        "I need a {product_type} from {store} and hesitate between {first} and {second}. Which has the lower unit price?",
        "Compare prices at {store}: for a {product_type}, do they ask less for {first} or for {second}?",
        "A friend told me about {first} and {second}, each a {product_type} at {store}. Which of them costs less?",
    )


class EarliestDelivery(graphs.NextSlot):
    """The earliest delivery of the best-reviewed product with enough units."""

    name = "earliest_delivery"
    queries = (
        "When on {date} is the earliest delivery of {quantity} units of the best-reviewed {product_type} from {store}?",
        "I need {quantity} of the {product_type} with the top review score at {store}. At what time on {date} would "
        "the earliest lot with that many arrive?",
        "On {date}, what is the first delivery time for which {store} has a lot with {quantity} units left of its "
        "best-reviewed {product_type}?",
        "Find the earliest lot for {date} that still holds {quantity} units of the {product_type} reviewed best at "
        "{store}, and tell me the time.",
    )


class CancelPurchase(graphs.Cancel):
    """Cancel the order that is due on a date."""

    name = "cancel_purchase"
    queries = (
        "Cancel the order of buyer {buyer_id} that is due on {date}.",
        "{buyer_id} no longer wants the delivery of {date}. Please cancel that order.",
        "I am {buyer_id}. Call off what I ordered for {date}.",
        "Please withdraw the order that {buyer_id} has coming on {date}; it was a mistake.",
    )


class OrderBest(graphs.Hold):
    """Order the best-reviewed product without paying yet."""

    name = "order_best"
    queries = (
        "Order {quantity} units of the best-reviewed {product_type} at {store} for delivery on {date} to buyer "
        "{buyer_id}, as early as possible. Do not pay yet.",
        "For {buyer_id}: put in an unpaid order for {quantity} of the top-reviewed {product_type} at {store}, "
        "earliest delivery on {date} with enough units.",
        "{buyer_id} would like {quantity} units of the {product_type} with the highest review score at {store} on "
        "{date}, from the first lot that has them; payment comes later.",
        "On {date}, {quantity} units of whichever {product_type} is reviewed best at {store} should go to "
        "{buyer_id}. Place the order for the earliest time that works and leave it unpaid.",
    )


class OrderBestAsked(graphs.HoldAsked):
    """Order the best-reviewed product without paying yet; the user leaves out the date or the quantity."""

    name = "order_best_asked"
    queries = (
        "Order {quantity} units of the best-reviewed {product_type} at {store} for delivery on {date} to buyer "
        "{buyer_id}, as early as possible. Do not pay yet.",
        "Please place an order for {buyer_id}, without paying: {quantity} units of the top-reviewed {product_type} "
        "from {store}, to arrive on {date} at the earliest time there is.",
        "Buyer {buyer_id} wants {quantity} units of the {product_type} with the best review score at {store} on "
        "{date}. Take the first lot with enough of them; they will pay later.",
        "I would like to have {quantity} units of the best-reviewed {product_type} from {store} sent to {buyer_id} "
        "on {date}, earliest lot that fits, unpaid for now.",
    )


class BuyBest(graphs.Book):
    """Order the best-reviewed product and pay."""

    name = "buy_best"
    queries = (
        "Buy {quantity} units of the best-reviewed {product_type} at {store} for {buyer_id}, delivered on {date} as "
        "early as possible, and pay from {wallet}.",
        "{buyer_id} wants {quantity} of the top-reviewed {product_type} from {store} on {date}, first lot with enough "
        "units; charge {wallet}.",
        "Please order and pay ({wallet}) {quantity} units of the {product_type} with the highest review score at "
        "{store} for {buyer_id}, earliest delivery on {date}.",
        "Get buyer {buyer_id} {quantity} units of whichever {product_type} is reviewed best at {store}. It should "
        "come on {date} by the earliest lot that holds them, paid with {wallet}.",
    )


class OutOfStock(graphs.Full):
    """Order and pay a product that is out of stock on the day: to be refused."""

    name = "out_of_stock"
    queries = BuyBest.queries


class FrozenAccount(graphs.Barred):
    """Order and pay for a buyer whose account is frozen: to be refused."""

    name = "frozen_account"
    queries = BuyBest.queries


class BuyCheapest(graphs.Thrift):
    """Order the cheapest product and pay."""

    name = "buy_cheapest"
    queries = (
        "Buy {quantity} units of the cheapest {product_type} at {store} for {buyer_id}, delivered on {date} as early "
        "as possible, and pay from {wallet}.",
        "Whatever {product_type} has the lowest unit price at {store}: {buyer_id} takes {quantity} of it on {date}, "
        "from the first lot with enough units. Charge {wallet}.",
        "{buyer_id} is on a budget. Find the least expensive {product_type} at {store}, order {quantity} units for "
        "the earliest delivery on {date} and pay with {wallet}.",
        "Please order and pay ({wallet}) {quantity} units for {buyer_id}: the {product_type} that costs least at "
        "{store}, earliest lot on {date} that holds them.",
    )


class BuyCheapestFrozen(graphs.ThriftBarred):
    """Order the cheapest product and pay for a buyer whose account is frozen: to be refused."""

    name = "buy_cheapest_frozen"
    queries = BuyCheapest.queries


class PunctualDay(graphs.Outing):
    """Order and pay on the day with fewer late deliveries."""

    name = "punctual_day"
    queries = (
        "Buy {quantity} units of the best-reviewed {product_type} at {store} for {buyer_id}, delivered on {date} or "
        "{other_date}, whichever has the lower forecast of delays; earliest lot, pay from {wallet}.",
        "{buyer_id} can receive parcels on {date} or {other_date}. Take the day on which fewer deliveries of {store} "
        "are expected to run late, order {quantity} of its top-reviewed {product_type} as early as possible and charge "
        "{wallet}.",
        "Check the delay forecast of {store}: on the more punctual of {date} and {other_date}, {buyer_id} should get "
        "{quantity} units of the {product_type} with the highest review score, by the first lot that holds them, paid "
        "with {wallet}.",
        "Please order and pay ({wallet}) {quantity} units of the {product_type} reviewed best at {store} for "
        "{buyer_id}. Choose {date} or {other_date} by the smaller share of late parcels, and the earliest delivery "
        "that day.",
    )


class ExchangeDelivery(graphs.Shift):
    """Exchange an order for a lot of the same product on another date."""

    name = "exchange_delivery"
    queries = (
        "Exchange the order of {buyer_id} due on {date} for a lot of the same product on {new_date}, earliest one "
        "with enough units.",
        "{buyer_id} is not at home on {date}. Please change that order to a delivery on {new_date}, as early as "
        "possible.",
        "I am {buyer_id}. Swap my order for {date} to the first lot that fits on {new_date}.",
        "The order that buyer {buyer_id} has coming on {date} should be delivered on {new_date} instead, same product "
        "and quantity, at the earliest time with enough stock.",
    )


class BasketPrice(graphs.Total):
    """The sum of unit prices over a buyer's orders."""

    name = "basket_price"
    queries = (
        "Add up the unit prices of all products that buyer {buyer_id} has on order (leave out what is cancelled).",
        "What is the total of the unit prices over {buyer_id}'s orders, not counting cancelled ones or quantities?",
        "For {buyer_id}: sum the unit price of the product in every order that is not cancelled, whatever the quantity.",
        "{buyer_id} asks what a single unit from each live order would cost together. Leave cancelled orders out.",
    )


class StyleMatch(graphs.Closest):
    """The product of a type whose style is nearest to that of another product."""

    name = "style_match"
    queries = (
        "Which {product_type} at {store} matches {product_a} best in style?",
        "I own {product_a}. Which {product_type} from {store} has the smallest style gap to it?",
        "Find the {product_type} at {store} that comes closest in style to {product_a}.",
        "I want a {product_type} from {store} to go with {product_a}. Which of theirs differs from it least in style?",
    )


class SwapPurchase(graphs.Rebook):
    """Replace an order by another product, paid, and say how many orders are left."""

    name = "swap_purchase"
    queries = (
        "{buyer_id} wants something else: cancel the order due on {date} and buy the best-reviewed {product_type} at "
        "{store} for {new_date} instead, {quantity} units, earliest lot, paid from {wallet}. How many orders are not "
        "cancelled then?",
        "Instead of what is coming on {date}, {buyer_id} would like the top-reviewed {product_type} from {store} on "
        "{new_date}: {quantity} units as early as possible, charge {wallet}, and cancel the old order. Then tell me "
        "the number of orders that still stand.",
        "For {buyer_id}: replace the order of {date} by the {product_type} with the highest review score at {store} on "
        "{new_date} (first lot with {quantity} units, {wallet}). Afterwards, how many live orders are there?",
        "Please drop the order {buyer_id} has for {date}. In its place comes, on {new_date}, the {product_type} "
        "reviewed best at {store}, {quantity} units by the earliest lot that holds them, paid with {wallet}. How many "
        "orders does that leave that are not cancelled?",
    )


# ---------------------------------------------------------------- families of its own


def returnable(state: State, order: Booking, quantity: int) -> bool:
    """May so many units of an order be sent back?"""
    row = state.row("orders", order.id)
    paid = row is not None and row["status"] == "paid"
    return paid and quantity <= order.need and state.row("returns", order.id) is None


def returned(order_id: str, quantity: int, reason: str) -> Changes:
    """What opening a return leaves behind."""
    return {("returns", order_id): {"quantity": quantity, "reason": reason}}


def return_number(end: State) -> Expected:
    """The number of the return that was opened in the episode."""
    opened = [(id, row) for id, row in end.written("returns") if end.start("returns", id) is None]
    return Expected("id", return_of(opened[0][0], **opened[0][1]) if opened else "none")


def hindrances(state: State, order_id: str, reason: str) -> list[dict[str, Any]]:
    """Edits after which nothing of an order can be sent back: it is not paid, or a return is open already."""
    unpaid = edit("orders", order_id, state.row("orders", order_id) or {}, status="placed", wallet="")
    other = next(other for other in REASONS if other != reason)
    return [unpaid, {f"returns/{order_id}": {"quantity": 1, "reason": other}}]


def arrivals(state: State, product_id: str) -> list[tuple[str, int]]:
    """The shipments that restock a product, earliest first: date and units."""
    found = (state.row("shipments", id) for id in shipments_of(product_id))
    return sorted((row["date"], row["units"]) for row in found if row)


class ShopGraph(graphs.Graph):
    """A family that no other domain mirrors."""

    def send_back(self, order_id: str, quantity: int, reason: str) -> Gathering:
        call = ToolCall("open_return", {"order_id": order_id, "quantity": quantity, "reason": reason})
        return (yield call).content["return_no"]

    def plan(self, product_id: str) -> Generator[ToolCall, ToolResult, list[tuple[str, int]]]:
        """The shipments of a product, earliest first."""
        rows = (yield ToolCall("restock_plan", {"product_id": product_id})).content
        return sorted((str(row["arrives"]), int(row["units"])) for row in rows)


class ReturnLargest(ShopGraph):
    """Send back units of a buyer's largest order."""

    name, level = "return_largest", 1
    roles: ClassVar[tuple[str, ...]] = ("who", "need", "reason")
    stands = "bookings (most units) > return"
    queries = (
        "In the largest order of {buyer_id} that is not cancelled, by quantity, {quantity} units are {reason}. Please "
        "open a return for them.",
        "Buyer {buyer_id} sends back {quantity} units of the order with the most units (leave cancelled orders aside): "
        "they turned out to be {reason}.",
        "I am {buyer_id}. Of my biggest order that is not cancelled, counted in units, {quantity} units were {reason} "
        "on arrival. Set up the return.",
        "Open a return for {buyer_id}: {quantity} units are {reason}, from whichever live order has the highest "
        "quantity.",
    )

    def weigh(self, live: list[Row]) -> Generator[ToolCall, ToolResult, list[int]]:
        """By what the order to send back from is chosen."""
        yield from ()
        return [int(row[self.t.need]) for row in live]

    def weight(self, state: State, order: Booking) -> int:
        """The same, from the rows."""
        return order.need

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, _ = self.domain.someone(rng, state)
        live = self.live(state, who)
        weights = sorted((self.weight(state, order) for order in live), reverse=True)
        if len(live) < 2 or weights[0] == weights[1]:
            return None
        order = max(live, key=lambda order: self.weight(state, order))
        quantity = rng.randint(2, max(2, order.need))
        reason = rng.choice(tuple(REASONS))
        return self.stated(who, quantity, reason) if returnable(state, order, quantity) else None

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        who, quantity, reason = yield from self.gather(brief)
        rows = (yield ToolCall(t.bookings, {t.who: who})).content
        live = [row for row in rows if row[t.status] != t.cancelled]
        if not live:
            return Refusal(f"{who} has no order")
        weights = yield from self.weigh(live)
        order = live[weights.index(max(weights))]
        yield notes.choice(dict(zip((row[t.booking] for row in live), weights, strict=True)), order[t.booking], "most")
        number = yield from self.send_back(order[t.booking], quantity, reason)
        return f"The return of {quantity} units of {order[t.booking]} has the number {number}."

    def live(self, state: State, who: str) -> list[Booking]:
        return [order for order in self.domain.bookings(state, who) if order.live]

    def order(self, task: Task, start: State) -> Booking | None:
        live = self.live(start, self.wanted(task, start)[0])
        return max(live, key=lambda order: self.weight(start, order), default=None)

    def ends(self, task: Task, start: State) -> list[Changes]:
        _, quantity, reason = self.wanted(task, start)
        order = self.order(task, start)
        return [returned(order.id, quantity, reason)] if order and returnable(start, order, quantity) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (return_number(end),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        who, _, reason = self.wanted(task, state)
        order = self.order(task, state)
        if order is None:
            return []
        gone = {k: row for order in self.live(state, who) for k, row in self.domain.lost(state, order.id).items()}
        return [*hindrances(state, order.id, reason), gone]


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
    queries = (
        "{buyer_id} wants to send back {quantity} units of the product with the highest unit price among their orders "
        "(cancelled ones aside). They are {reason}; please open the return.",
        "Open a return for {buyer_id}: {quantity} units of whatever they have on order that costs most per unit turned "
        "out to be {reason}. Ignore cancelled orders.",
        "I am {buyer_id}. The most expensive product I ordered, by unit price, is the trouble: {quantity} units are "
        "{reason}. Arrange the return, and do not look at orders that are cancelled.",
        "Of the live orders of buyer {buyer_id}, take the product with the top unit price. Register a return of "
        "{quantity} units from that order because they are {reason}.",
    )

    def weigh(self, live: list[Row]) -> Generator[ToolCall, ToolResult, list[int]]:
        fees = []
        for row in live:
            fees.append((yield from self.fee(row[self.t.thing])))
        return fees

    def weight(self, state: State, order: Booking) -> int:
        product = self.domain.thing(state, order.thing)
        return product.fee if product else 0

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        stated = super().propose(rng, state, split)
        return stated if stated and 2 <= len(self.live(state, stated[self.t.who])) <= 4 else None


class RestockDate(ShopGraph):
    """The day on which the best-reviewed product is restocked with enough units."""

    name, level = "restock_date", 1
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "floor")
    stands = "search > restock (earliest that suffices)"
    queries = (
        "On which date does {store} first get a shipment of at least {min_units} units of its best-reviewed "
        "{product_type}?",
        "When will the {product_type} with the top review score at {store} be restocked with {min_units} units or more "
        "in a single shipment?",
        "I am waiting for the best-reviewed {product_type} at {store}. What day does the earliest shipment that brings "
        "{min_units} units or more arrive?",
        "Check the restocking of {store}: for the {product_type} reviewed best there, tell me the date of the soonest "
        "shipment with at least {min_units} units.",
    )

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

    def product(self, task: Task, start: State) -> Thing | None:
        kind, group, _ = self.wanted(task, start)
        return graphs.best(self.domain.things(start, group, kind))

    def date(self, task: Task, start: State) -> str | None:
        product, floor = self.product(task, start), self.wanted(task, start)[2]
        plan = arrivals(start, product.id) if product else []
        return next((date for date, units in plan if units >= floor), None)

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.date(task, start) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        date = self.date(task, start)
        return (Expected("date", date),) if date else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        product = self.product(task, state)
        small: dict[str, Any] = {}
        for id in shipments_of(product.id) if product else ():
            small |= edit("shipments", id, state.row("shipments", id) or {}, units=5)
        return [self.no_thing(task, state), small]


class RestockSoonest(ShopGraph):
    """The product of a type that is restocked first."""

    name, level = "restock_soonest", 2
    roles: ClassVar[tuple[str, ...]] = ("kind", "group")
    stands = "search > restock, for each (soonest)"
    queries = (
        "Which {product_type} at {store} gets new stock soonest?",
        "Every {product_type} at {store} is due for a refill. Which of them is restocked first?",
        "Look through the restock plans of {store}: which {product_type} has the earliest shipment coming in?",
        "I will take any {product_type} from {store}, whichever arrives there first with the next shipments. Which is it?",
    )

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state, 3, 5)
        if at is None:
            return None
        first = sorted(arrivals(state, product.id)[0][0] for product in at[2])
        return None if first[0] == first[1] else self.stated(at[1], at[0])

    def solve(self, brief: Brief) -> Solution:
        kind, group = yield from self.gather(brief)
        rows = yield from self.found(group, kind)
        if not rows:
            return self.nothing(group, kind)
        first = {}
        for row in rows:
            plan = yield from self.plan(row[self.t.thing])
            first[row[self.t.name]] = plan[0][0]
        name = min(first, key=lambda name: first[name])
        yield notes.choice(first, name, "earliest")
        return f"{name} is restocked first."

    def ranked(self, task: Task, start: State) -> list[str]:
        kind, group = self.wanted(task, start)
        products = self.domain.things(start, group, kind)
        return [p.name for p in sorted(products, key=lambda p: arrivals(start, p.id)[0][0])]

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.ranked(task, start) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        ranked = self.ranked(task, start)
        return (Expected("name", ranked[0], others=tuple(ranked[1:])),) if ranked else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.no_thing(task, state)]


class ReplaceUnits(ShopGraph):
    """Order units of a bad delivery again for the more punctual of two days, pay, and send the bad ones back."""

    name, level = "replace_units", 3
    house = (graphs.LATEST, graphs.SPARE)
    roles: ClassVar[tuple[str, ...]] = ("who", "date", "new_date", "other_date", "need", "means", "reason")
    stands = "bookings > details > outlook > outlook > slots > permit > hold > settle > return"
    queries = (
        "Of the order that {buyer_id} had on {date}, some units are bad. On {new_date} or {other_date}, whichever has the "
        "lower forecast of delays at its store, have {quantity} units of the same product delivered by the earliest lot, "
        "paid from {wallet}, and open a return for as many of the old ones, which are {reason}.",
        "{buyer_id} found {quantity} units {reason} in the delivery of {date}. Get them replaced: buy that quantity of "
        "the product once more, on the more punctual of {new_date} and {other_date} by the store's delay forecast, as "
        "early as possible and charged to {wallet}; send the old units back.",
        "I am {buyer_id}. My delivery of {date} had {quantity} units that were {reason}. Please reorder the same "
        "number, to come on {new_date} or {other_date} depending on when the store expects fewer late parcels, by the "
        "first lot that holds them, paid with {wallet}, and set up a return for the bad ones.",
        "Replace what was wrong with the order of {buyer_id} for {date}. On {new_date} or {other_date}, by the smaller "
        "share of late deliveries of that store, {quantity} units of the product should come again at the earliest "
        "time, paid ({wallet}); the same number from the old order goes back as {reason}.",
    )

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, _ = self.domain.someone(rng, state)
        live = [order for order in self.domain.bookings(state, who) if order.live]
        if not live:
            return None
        order = rng.choice(live)
        later = [date for date in self.domain.dates(state) if date > order.date]
        quantity = rng.randint(2, max(2, order.need))
        if len(later) < 2 or not returnable(state, order, quantity):
            return None
        one, two = rng.sample(later, 2)
        store = self.store(state, order)
        if self.domain.figure(state, store, one) == self.domain.figure(state, store, two):
            return None
        reason = rng.choice(tuple(REASONS))
        return self.stated(who, order.date, one, two, quantity, self.domain.means(rng), reason)

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
        old = next((o for o in self.domain.bookings(start, who) if o.live and o.date == date), None)
        if old is None:
            return None
        store = self.store(start, old)
        return old, min((one, two), key=lambda day: self.domain.figure(start, store, day))

    def both(self, task: Task, start: State, old: Booking, lots: list[Slot]) -> list[Changes]:
        """The new order from each of the lots, and the return."""
        who, *_, quantity, wallet, reason = self.wanted(task, start)
        back = returned(old.id, quantity, reason)
        return [{**self.domain.made(start, lot.id, who, quantity, wallet), **back} for lot in lots]

    def ends(self, task: Task, start: State) -> list[Changes]:
        at, settled = self.target(task, start), self.settled(task, start)
        quantity = settled[self.t.need]
        if at is None or not returnable(start, at[0], quantity):
            return []
        lot = self.fitting(start, at[0].thing, at[1], quantity, task.brief.rules)
        if lot is None or not self.domain.allowed(start, settled[self.t.who]):
            return []
        return self.both(task, start, at[0], [lot])

    def hopes(self, task: Task, start: State) -> list[Changes]:
        """Any lot of the day might have been the earliest that fits."""
        at = self.target(task, start)
        return self.both(task, start, at[0], self.domain.slots(start, at[0].thing, at[1])) if at else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (*self.receipt(end), return_number(end))

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        at = self.target(task, state)
        if at is None:
            return []
        who, *_, reason = self.wanted(task, state)
        old, day = at
        dry = self.domain.full(state, old.thing, day)
        barred, lost = self.domain.barred(state, who), self.domain.lost(state, old.id)
        return [*hindrances(state, old.id, reason), dry, barred, lost]


FAMILIES: tuple[type[graphs.Graph], ...] = (
    BestUnitPrice, BestUnitPriceAsked, BulkSales, CheaperProduct, EarliestDelivery, CancelPurchase, OutOfStock,
    OrderBest, OrderBestAsked, BuyBest, ExchangeDelivery, BasketPrice, StyleMatch, FrozenAccount,
    BuyCheapest, PunctualDay, SwapPurchase, BuyCheapestFrozen,
    ReturnLargest, ReturnUnpaid, RestockDate, ReturnDearest, RestockSoonest, ReplaceUnits,
)  # fmt: skip

RETAIL = Retail()
domains.add(RETAIL.name, RETAIL)
