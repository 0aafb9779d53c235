"""Points of interest: cities with places to visit, ticket slots, routes, weather, reviews and reservations.

A place belongs to one city; a reservation takes seats in a slot, needs a code that another tool issues, and is held
until it is paid. All names and numbers are made up from the world's seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date as Date
from datetime import timedelta
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from crosswind.base.errors import ToolFailure
from crosswind.core.domain import Detail, edit, read_choice, read_counts, read_ids, shifted_number
from crosswind.core.flow import digest
from crosswind.core.names import Namer, Numbering, dates_from, made_of, unused
from crosswind.core.registry import domains
from crosswind.core.types import Changes, Row, Split, Task
from crosswind.core.world import Derive, State, World, brief_of, tool
from crosswind.domains import graphs
from crosswind.domains.graphs import Booking, Desk, Slot, Terms, Thing
from crosswind.text import values

CATEGORIES = ("museum", "park", "gallery", "zoo", "castle", "aquarium", "theatre", "garden")
PER_CITY, DAYS, SLOTS, HELD = 24, 10, 5, 5

CITY = Namer((("ville", "ton", "burg", "stad"), ("port", "ford", "mouth"), ("dale", "haven", "wick", "mere")))
PLACE = Namer((("ria", "nis", "dor", "lux"), ("tam", "quay", "ros"), ("vane", "lith", "mar", "zel")), 17)
PERSON = Namer((("son", "berg", "ski", "man"), ("ley", "dez", "rup"), ("sen", "ova", "etti", "was")), 31)
PLACE_ID, CUSTOMER_ID = Numbering("P", 6), Numbering("C", 6)
SLOT_ID, RESERVATION_ID = Numbering("S", 8), Numbering("R", 7)


def calendar(seed: int) -> list[str]:
    """The dates on which a world sells tickets."""
    return dates_from(2031, 1, 6, seed * 11 % 340, DAYS)


def rows(seed: int, size: int, split: Split) -> Derive:
    """Any row of a world, made from its seed alone."""
    cities = max(1, size // PER_CITY)
    dates = calendar(seed)

    def city(n: int) -> str:
        return CITY.name(split, seed, n % cities)

    def place(id: str) -> Row | None:
        n = PLACE_ID.number(split, seed, id)
        if n is None or n >= cities * PER_CITY:
            return None
        h = digest(split, seed, "place", n)
        return {
            "name": PLACE.name(split, seed, n),
            "city": city(n // PER_CITY),
            "category": CATEGORIES[h[0] % len(CATEGORIES)],
            "rating": round(2 + (h[1] * 256 + h[2]) % 300 / 100, 2),
            "price": 4 + h[3] % 60,
            "opens": f"{7 + h[4] % 4:02d}:00",
            "closes": f"{17 + h[4] % 5:02d}:30",
        }

    def slot(id: str) -> Row | None:
        n = SLOT_ID.number(split, seed, id)
        if n is None or n >= cities * PER_CITY * DAYS * SLOTS:
            return None
        n, j = divmod(n, SLOTS)
        n, d = divmod(n, DAYS)
        h = digest(split, seed, "slot", n, d, j)
        return {
            "place_id": PLACE_ID.id(split, seed, n),
            "date": dates[d],
            "time": f"{8 + 2 * j + h[0] % 2:02d}:{15 * (h[1] % 4):02d}",
            "capacity": (0, 0, 1, 2, 4, 6, 9)[h[2] % 7],
        }

    def customer(id: str) -> Row | None:
        n = CUSTOMER_ID.number(split, seed, id)
        if n is None or n >= size:
            return None
        h = digest(split, seed, "customer", n)
        return {
            "name": PERSON.name(split, seed, n),
            "home_city": city(int.from_bytes(h[:4], "big")),
            "standing": "good",
        }

    def reservation(id: str) -> Row | None:
        n = RESERVATION_ID.number(split, seed, id)
        if n is None or n >= size * HELD:
            return None
        owner, k = divmod(n, HELD)
        h = digest(split, seed, "reservation", owner)
        if k >= 2 + h[0] % (HELD - 1):
            return None
        g = digest(split, seed, "reservation", owner, k)
        at = int.from_bytes(g[:4], "big") % (cities * PER_CITY)
        number = (at * DAYS + (h[1] + 3 * k) % DAYS) * SLOTS + g[4] % SLOTS
        return {
            "customer_id": CUSTOMER_ID.id(split, seed, owner),
            "slot_id": SLOT_ID.id(split, seed, number),
            "seats": 1 + g[5] % 4,
            "status": "cancelled" if k and g[6] % 8 == 0 else "paid" if g[6] % 2 else "held",
            "card": f"card-{int.from_bytes(g[6:8], 'big') % 10000:04d}" if g[6] % 2 else "",
        }

    def review(id: str) -> Row | None:
        place_id, _, k = id.partition("#")
        if place(place_id) is None:
            return None
        h = digest(split, seed, "review", place_id, k)
        return {"stars": 1 + h[0] % 5, "date": (Date(2030, 1, 1) + timedelta(days=h[1])).isoformat()}

    def weather(id: str) -> Row | None:
        h = digest(split, seed, "weather", id)
        return {"rain_percent": 5 * (h[0] % 20), "high": 2 + h[1] % 30}

    def route(id: str) -> Row | None:
        return {"minutes": 4 + digest(split, seed, "route", id)[0] % 87}

    made = {
        "places": place,
        "slots": slot,
        "customers": customer,
        "reservations": reservation,
        "reviews": review,
        "weather": weather,
        "routes": route,
    }
    return lambda table, id: made[table](id) if table in made else None


def receipt_of(reservation_id: str, card: str) -> str:
    return made_of("T", 7, "receipt", reservation_id, card)


def code_of(slot_id: str, customer_id: str) -> str:
    return made_of("K", 6, "code", slot_id, customer_id)


# ---------------------------------------------------------------- what belongs to what


def places_in(state: State, city: str) -> list[str] | None:
    """The places of a city, or None where there is no such city."""
    return _places_in(state.split, state.seed, state.size, city)


@lru_cache(maxsize=4096)
def _places_in(split: Split, seed: int, size: int, city: str) -> list[str] | None:
    n = CITY.number(split, seed, city)
    if n is None or n >= max(1, size // PER_CITY):
        return None
    return [PLACE_ID.id(split, seed, n * PER_CITY + k) for k in range(PER_CITY)]


def slots_of(state: State, place_id: str, date: str) -> list[str]:
    n, dates = PLACE_ID.number(state.split, state.seed, place_id), calendar(state.seed)
    if n is None or date not in dates:
        return []
    first = (n * DAYS + dates.index(date)) * SLOTS
    return [SLOT_ID.id(state.split, state.seed, first + j) for j in range(SLOTS)]


def reservations_of(state: State, customer_id: str) -> list[str]:
    """What a customer has reserved, first what the seed gives."""
    n = CUSTOMER_ID.number(state.split, state.seed, customer_id)
    ids = [] if n is None else [RESERVATION_ID.id(state.split, state.seed, n * HELD + k) for k in range(HELD)]
    ids = [id for id in ids if state.row("reservations", id) is not None]
    new = (id for id, row in state.written("reservations") if row["customer_id"] == customer_id)
    return [*ids, *(id for id in new if id not in ids)]


def reviews_of(place_id: str) -> list[str]:
    return [f"{place_id}#{k}" for k in range(2 + digest("reviews", place_id)[0] % 7)]


def new_id(state: State, slot_id: str, customer_id: str) -> str:
    """An id made of what is reserved, and of how often it was before."""
    mine = (slot_id, customer_id)
    times = sum((row["slot_id"], row["customer_id"]) == mine for _, row in state.written("reservations"))
    return unused(lambda id: state.row("reservations", id) is not None, "R", 7, "reserve", *mine, times=times)


def route_between(one: str, two: str) -> str:
    return "|".join(sorted((one, two)))


def left(state: State, slot_id: str, capacity: int) -> int:
    """Seats left: the capacity counts what the seed booked, so only what was written moves it."""
    for id, row in state.written("reservations"):
        before = state.start("reservations", id)
        if before is not None and before["slot_id"] == slot_id and before["status"] != "cancelled":
            capacity += before["seats"]
        if row["slot_id"] == slot_id and row["status"] != "cancelled":
            capacity -= row["seats"]
    return capacity


# ---------------------------------------------------------------- tools


class PoiWorld(World):
    invariants = (
        "reservations.slot_id",
        "reservations.customer_id",
        "reservations.seats",
        "reservations.status",
        "slots.capacity",
        "slots.place_id",
        "customers.standing",
        "codes.code",
    )

    def broken(self) -> str | None:
        state = self.state
        for id, row in state.written("reservations"):
            before = state.start("reservations", id)
            if row["status"] == "cancelled" or (before is not None and before["slot_id"] == row["slot_id"]):
                continue
            slot_id, customer_id = row["slot_id"], row["customer_id"]
            slot, customer = state.row("slots", slot_id), state.row("customers", customer_id)
            if slot is None or state.row("places", slot["place_id"]) is None:
                return f"there is no slot {slot_id}"
            if customer is None or customer["standing"] != "good":
                return f"customer {customer_id} may not make reservations"
            if state.row("codes", f"{slot_id}|{customer_id}") is None:
                return f"no code was issued to {customer_id} for {slot_id}"
            if left(state, slot_id, slot["capacity"]) < 0:
                return f"slot {slot_id} has not enough seats left"
        return None

    @tool(reads=["places.name,category,rating"], enums={"category": CATEGORIES})
    def find_places(self, city: str, category: str) -> list[Row]:
        """Places of one category in a city, with ratings."""
        ids = places_in(self.state, city)
        if ids is None:
            raise ToolFailure("not_found", f"There is no city {brief_of(city)}.")
        found = ((id, self.state.row("places", id)) for id in ids)
        return [
            {"place_id": id, "name": row["name"], "rating": row["rating"]}
            for id, row in found
            if row is not None and row["category"] == category
        ]

    @tool(reads=["places.name,city,category,opens,closes,price"])
    def place_details(self, place_id: str) -> Row:
        """City, category, opening hours and ticket price in euros of a place."""
        row = self.found("places", place_id, "place")
        return {c: row[c] for c in ("name", "city", "category", "opens", "closes", "price")}

    @tool(reads=["reviews.stars,date"])
    def list_reviews(self, place_id: str) -> list[Row]:
        """Reviews of a place: stars and date."""
        self.found("places", place_id, "place")
        found = (self.state.row("reviews", id) for id in reviews_of(place_id))
        return [{"stars": row["stars"], "date": row["date"]} for row in found if row is not None]

    @tool(reads=["weather.rain_percent,high"], docs={"date": "YYYY-MM-DD"})
    def weather(self, city: str, date: str) -> Row:
        """Forecast for a city and date: chance of rain in percent, highest temperature."""
        if places_in(self.state, city) is None:
            raise ToolFailure("not_found", f"There is no city {brief_of(city)}.")
        row = self.found("weather", f"{city}|{self.day(date)}", "forecast")
        return {"rain_percent": row["rain_percent"], "high": row["high"]}

    @tool(reads=["routes.minutes"])
    def travel_time(self, from_place: str, to_place: str) -> Row:
        """Minutes from one place to another, by place ids."""
        self.found("places", from_place, "place")
        self.found("places", to_place, "place")
        row = self.found("routes", route_between(from_place, to_place), "route")
        return {"minutes": row["minutes"]}

    @tool(
        reads=["slots.time,capacity", "reservations.slot_id,seats,status"],
        docs={"date": "YYYY-MM-DD"},
    )
    def list_slots(self, place_id: str, date: str) -> list[Row]:
        """Ticket slots of a place on a date: time and seats left."""
        self.found("places", place_id, "place")
        out: list[Row] = []
        for id in slots_of(self.state, place_id, self.day(date)):
            row = self.found("slots", id, "slot")
            out.append({"slot_id": id, "time": row["time"], "left": left(self.state, id, row["capacity"])})
        return out

    @tool(reads=["customers.name,home_city,standing"])
    def customer_record(self, customer_id: str) -> Row:
        """Name, home city and standing of a customer."""
        row = self.found("customers", customer_id, "customer")
        return {"name": row["name"], "home_city": row["home_city"], "standing": row["standing"]}

    @tool(reads=["reservations.slot_id,seats,status,customer_id", "slots.place_id,date,time"])
    def list_reservations(self, customer_id: str) -> list[Row]:
        """Reservations of a customer: place, date, time, seats and status."""
        self.found("customers", customer_id, "customer")
        return [self._shown(id) for id in reservations_of(self.state, customer_id)]

    @tool(reads=[], writes=["codes+"], lasting=False)
    def request_code(self, slot_id: str, customer_id: str) -> Row:
        """Issue the code that a customer needs for a slot."""
        self.found("slots", slot_id, "slot")
        self.found("customers", customer_id, "customer")
        code = code_of(slot_id, customer_id)
        self.state.put("codes", f"{slot_id}|{customer_id}", {"code": code})
        return {"code": code}

    @tool(
        reads=["codes.code", "reservations.slot_id,customer_id"],
        writes=["reservations+", "reservations.status=held"],
        undo=("cancel_reservation", "reservation_id"),
    )
    def reserve(self, slot_id: str, customer_id: str, seats: int, code: str) -> Row:
        """Hold seats in a slot; needs a code for it from {request_code}."""
        if not 1 <= seats <= 50:
            raise ToolFailure("bad_arguments", f"'seats' must be from 1 to 50, got {brief_of(str(seats))}")
        self.found("slots", slot_id, "slot")
        self._check(slot_id, customer_id, code)
        id = new_id(self.state, slot_id, customer_id)
        made = {"customer_id": customer_id, "slot_id": slot_id, "seats": seats, "status": "held", "card": ""}
        self.state.put("reservations", id, made)
        return {"reservation_id": id, "status": "held"}

    @tool(
        reads=["reservations.status,slot_id,customer_id,seats"],
        writes=["reservations.status=paid", "reservations.card"],
        undo=("cancel_reservation", "reservation_id"),
    )
    def pay(self, reservation_id: str, card: str) -> Row:
        """Pay for a held reservation."""
        row = self.found("reservations", reservation_id, "reservation")
        if row["status"] != "held":
            raise ToolFailure("conflict", f"Reservation {reservation_id} is {row['status']}, not held.")
        if not card.startswith("card-") or len(card) > 20:
            raise ToolFailure("bad_arguments", f"'card' must look like card-1234, got {brief_of(card)}")
        self.state.put("reservations", reservation_id, {**row, "status": "paid", "card": card})
        return {"reservation_id": reservation_id, "receipt": receipt_of(reservation_id, card), "status": "paid"}

    @tool(reads=["reservations.status"], writes=["reservations.status=cancelled", "reservations.card"])
    def cancel_reservation(self, reservation_id: str) -> Row:
        """Cancel a reservation; what was paid is returned."""
        row = self.found("reservations", reservation_id, "reservation")
        if row["status"] == "cancelled":
            raise ToolFailure("conflict", f"Reservation {reservation_id} is cancelled already.")
        self.state.put("reservations", reservation_id, {**row, "status": "cancelled", "card": ""})
        return {"reservation_id": reservation_id, "status": "cancelled"}

    @tool(
        reads=["reservations.status,slot_id,customer_id,seats", "codes.code", "slots.place_id"],
        writes=["reservations.slot_id"],
    )
    def move_reservation(self, reservation_id: str, slot_id: str, code: str) -> Row:
        """Move a reservation to another slot of the same place; needs a code from {request_code}."""
        row = self.found("reservations", reservation_id, "reservation")
        if row["status"] == "cancelled":
            raise ToolFailure("conflict", f"Reservation {reservation_id} is cancelled.")
        slot, old = self.found("slots", slot_id, "slot"), self.found("slots", row["slot_id"], "slot")
        if slot["place_id"] != old["place_id"]:
            raise ToolFailure("conflict", f"Slot {slot_id} belongs to another place.")
        self._check(slot_id, row["customer_id"], code)
        self.state.put("reservations", reservation_id, {**row, "slot_id": slot_id})
        return {"reservation_id": reservation_id, "slot_id": slot_id}

    # -- parts

    def _check(self, slot_id: str, customer_id: str, code: str) -> None:
        issued = self.state.row("codes", f"{slot_id}|{customer_id}")
        if issued is None or issued["code"] != code:
            raise ToolFailure("refused", f"This code is not valid for {slot_id}; {{request_code}} issues one.")

    def _shown(self, id: str) -> Row:
        row = self.found("reservations", id, "reservation")
        slot = self.found("slots", row["slot_id"], "slot")
        return {
            "reservation_id": id,
            "place_id": slot["place_id"],
            "date": slot["date"],
            "time": slot["time"],
            "seats": row["seats"],
            "status": row["status"],
        }


# ---------------------------------------------------------------- the domain

_CUSTOMER, _PLACE, _CARD = read_ids("C", 6), read_ids("P", 6), read_ids("card-", 4)
_CITY, _NAME = CITY.find, PLACE.find
_CATEGORY = read_choice(dict.fromkeys(CATEGORIES, ()) | {"gallery": ("galleries",), "theatre": ("theater",)})


class Poi(Desk):
    name = "poi"
    summary = "Cities, places, ticket slots, routes, weather, reviews and reservations."
    world_class = PoiWorld
    named = frozenset({"places.name"})
    namers: ClassVar[Mapping[str, Namer]] = {"group": CITY, "thing": PLACE, "person": PERSON}
    policy = (
        "You work at a ticket desk. Do what the user asks with the tools, and nothing else. Ask when a detail is missing. "
        "Tell the user what they asked for; for a reservation its number, for a payment the receipt number, for a move "
        "the new time. If it cannot be done, leave nothing changed and say so."
    )
    terms = Terms(
        search="find_places", details="place_details", entries="list_reviews", outlook="weather",
        distance="travel_time", slots="list_slots", bookings="list_reservations", permit="request_code",
        hold="reserve", settle="pay", cancel="cancel_reservation", move="move_reservation",
        group="city", kind="category", thing="place_id", date="date", who="customer_id", need="seats", slot="slot_id",
        booking="reservation_id", means="card", code="code", source="from_place", target="to_place",
        score="rating", fee="price", amount="stars", figure="rain_percent", far="minutes", room="left",
        receipt="receipt", status="status", settled="paid",
    )  # fmt: skip
    details: Mapping[str, Detail] = {
        "group": Detail(
            "city", "Which city?", _CITY, ("city", "town", "where", "location", "destination"), "a city I will name",
            record=("customer_record", "customer_id", "home_city"), column=("customers", "home_city"),
        ),
        "kind": Detail("category", "Which category of place?", _CATEGORY, ("category", "kind", "type", "sort", *CATEGORIES), "place of a certain kind"),
        "date": Detail("date", "On which date?", values.dates, ("date", "day", "when", "time"), "a day I have in mind"),
        "new_date": Detail("new date", "To which new date?", values.dates, ("new", "date", "day", "when"), "another day"),
        "other_date": Detail("other date", "Which other date?", values.dates, ("other", "date", "day"), "another day"),
        "need": Detail("number of seats", "How many seats?", read_counts, ("seat", "many", "people", "number", "party", "group", "size", "big", "large", "person", "ticket"), "a few"),
        "floor": Detail("least number of stars", "How many stars at least?", read_counts, ("star", "least", "many", "number", "minimum", "threshold", "rating"), "a few"),
        "who": Detail("customer id", "What is the customer id?", _CUSTOMER, ("customer", "id", "who", "whom", "whose", "account", "name"), "a customer"),
        "means": Detail("card", "Which card?", _CARD, ("card", "pay", "payment"), "a card of mine"),
        "source": Detail("place to start from", "Which place do you start from?", _PLACE, ("start", "from", "place"), "where I am"),
        "first": Detail("first place", "Which is the first place?", _NAME, ("first", "place"), "one place"),
        "second": Detail("second place", "Which is the second place?", _NAME, ("second", "place"), "another one"),
    }  # fmt: skip

    def __init__(self) -> None:
        made: list[graphs.Graph] = [family().bind(self) for family in FAMILIES]
        self.families = {family.name: family for family in made}

    def derive(self, seed: int, size: int, split: Split) -> Derive:
        return rows(seed, size, split)

    def normalise(self, state: State) -> Changes:
        out: Changes = {}
        for (table, id), row in state.changes().items():
            if table == "codes":
                continue
            if table == "reservations" and row is not None and state.start(table, id) is None:
                if row["status"] == "cancelled":
                    continue
                id = f"new {row['slot_id']} {row['customer_id']}"
                while (table, id) in out:
                    id += " again"
            out[table, id] = row
        return out

    def vary(self, task: Task, table: str, column: str, value: Any, salt: object) -> Any:
        if (table, column) == ("places", "name"):
            n = PLACE.number(task.split, task.seed, value) or 0
            return PLACE.name(task.split, task.seed, shifted_number(n, salt, 0, PLACE.capacity(task.split) - 1, 1))
        if (table, column) == ("slots", "time"):
            return f"{shifted_number(int(value[:2]), salt, 8, 17, 1):02d}{value[2:]}"
        if (table, column) == ("reservations", "slot_id"):  # the same hour of the same day at another place
            places = max(1, task.size // PER_CITY) * PER_CITY
            n = SLOT_ID.number(task.split, task.seed, value) or 0
            place, rest = divmod(n, DAYS * SLOTS)
            return SLOT_ID.id(
                task.split, task.seed, shifted_number(place, salt, 0, places - 1, 1) * DAYS * SLOTS + rest
            )
        moves = {
            "places.rating": (2.0, 5.0, 0.01),
            "places.price": (4, 63, 1),
            "reviews.stars": (1, 5, 1),
            "weather.rain_percent": (0, 95, 5),
            "routes.minutes": (4, 90, 1),
            "slots.capacity": (1, 9, 1),
            "reservations.seats": (1, 4, 1),
        }.get(f"{table}.{column}")
        if moves is None or (column == "capacity" and not value):
            return value
        return shifted_number(value, (table, column, salt), *moves)

    # -- rows for the graphs

    def things(self, state: State, group: str, kind: str) -> list[Thing]:
        found = ((id, state.row("places", id)) for id in places_in(state, group) or ())
        return [
            Thing(id, row["name"], row["rating"], row["price"]) for id, row in found if row and row["category"] == kind
        ]

    def thing(self, state: State, id: str) -> Thing | None:
        row = state.row("places", id)
        return Thing(id, row["name"], row["rating"], row["price"]) if row else None

    def amounts(self, state: State, thing: str) -> list[int]:
        return [row["stars"] for id in reviews_of(thing) if (row := state.row("reviews", id))]

    def figure(self, state: State, group: str, date: str) -> int:
        row = state.row("weather", f"{group}|{date}")
        return int(row["rain_percent"]) if row else 0

    def far(self, state: State, source: str, target: str) -> int:
        row = state.row("routes", route_between(source, target))
        return int(row["minutes"]) if row else 0

    def slots(self, state: State, thing: str, date: str) -> list[Slot]:
        found = ((id, state.row("slots", id)) for id in slots_of(state, thing, date))
        made = [Slot(id, row["time"], left(state, id, row["capacity"])) for id, row in found if row]
        return sorted(made, key=lambda s: s.time)

    def bookings(self, state: State, who: str) -> list[Booking]:
        out = []
        for id in reservations_of(state, who):
            row = state.row("reservations", id)
            slot = row and state.row("slots", row["slot_id"])
            if row and slot:
                out.append(
                    Booking(
                        id, row["slot_id"], slot["place_id"], slot["date"], row["seats"], row["status"] != "cancelled"
                    )
                )
        return out

    def made(self, state: State, slot: str, who: str, need: int, means: str | None) -> Changes:
        row = {
            "customer_id": who,
            "slot_id": slot,
            "seats": need,
            "status": "paid" if means else "held",
            "card": means or "",
        }
        code = {"code": code_of(slot, who)}
        return {("reservations", new_id(state, slot, who)): row, ("codes", f"{slot}|{who}"): code}

    def ended(self, state: State, booking: str) -> Changes:
        row = state.row("reservations", booking) or {}
        return {("reservations", booking): {**row, "status": "cancelled", "card": ""}}

    def moved(self, state: State, booking: str, slot: str) -> Changes:
        row = state.row("reservations", booking) or {}
        code = {"code": code_of(slot, row["customer_id"])}
        return {("reservations", booking): {**row, "slot_id": slot}, ("codes", f"{slot}|{row['customer_id']}"): code}

    def new_bookings(self, end: State) -> list[tuple[str, str | None]]:
        return [
            (id, receipt_of(id, row["card"]) if row["card"] else None)
            for id, row in end.written("reservations")
            if end.start("reservations", id) is None and row["status"] != "cancelled"
        ]

    def someone(self, rng: Random, state: State) -> tuple[str, str]:
        id = CUSTOMER_ID.id(state.split, state.seed, rng.randrange(state.size))
        row = state.row("customers", id)
        return id, row["home_city"] if row else ""

    def allowed(self, state: State, who: str) -> bool:
        row = state.row("customers", who)
        return row is not None and row["standing"] == "good"

    def kinds(self) -> tuple[str, ...]:
        return CATEGORIES

    def dates(self, state: State) -> list[str]:
        return calendar(state.seed)

    def means(self, rng: Random) -> str:
        return f"card-{rng.randrange(10000):04d}"

    def needs(self, rng: Random) -> int:
        return rng.randint(2, 5)

    def floors(self, rng: Random) -> int:
        return rng.randint(2, 5)

    def full(self, state: State, thing: str, date: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for id in slots_of(state, thing, date):
            out |= edit("slots", id, state.row("slots", id) or {}, capacity=0)
        return out

    def barred(self, state: State, who: str) -> dict[str, Any]:
        return edit("customers", who, state.row("customers", who) or {}, standing="barred")

    def emptied(self, state: State, group: str, kind: str) -> dict[str, Any]:
        other = CATEGORIES[(CATEGORIES.index(kind) + 1) % len(CATEGORIES)]
        out: dict[str, Any] = {}
        for thing in self.things(state, group, kind):
            out |= edit("places", thing.id, state.row("places", thing.id) or {}, category=other)
        return out

    def lost(self, state: State, booking: str) -> dict[str, Any]:
        return {f"reservations/{booking}": None}


# ---------------------------------------------------------------- families


class BestPrice(graphs.Fact):
    """The ticket price of the best-rated place."""

    name = "best_price"
    queries = (
        "What does the best-rated {category} in {city} cost?",
        "How much is a ticket to the {category} with the highest rating in {city}?",
        "I would like to see the top {category} of {city}. What is the price?",
        "In {city}, what do they charge at the best-rated {category}?",
        "Find the highest-rated {category} in {city} and tell me the ticket price.",
    )


class BestPriceAsked(graphs.FactAsked):
    """The ticket price of the best-rated place; the user leaves out the city or the category."""

    name = "best_price_asked"
    queries = (
        "What does the best-rated {category} in {city} cost?",
        "How much is a ticket to the highest-rated {category} in {city}?",
        "Please tell me the price of the best {category} in {city}.",
        "I need the ticket price of the top {category} in {city}.",
    )


class ReviewCount(graphs.Tally):
    """How many reviews of the best-rated place reach a number of stars."""

    name = "review_count"
    queries = (
        "How many reviews with at least {at_least} stars does the best-rated {category} in {city} have?",
        "Count the reviews of {at_least} stars or more for the highest-rated {category} in {city}.",
        "Look up the best {category} in {city}: how many of its reviews give {at_least} stars or better?",
        "For the top-rated {category} in {city}, tell me the number of reviews with {at_least} or more stars.",
    )


class CheaperOfTwo(graphs.Versus):
    """Which of two named places is cheaper."""

    name = "cheaper_of_two"
    queries = (
        "Which {category} in {city} is cheaper, {first} or {second}?",
        "I can't decide on a {category} in {city}: {first} or {second}. Which has the lower ticket price?",
        "Compare ticket prices for a {category} in {city}: is {first} or {second} the cheaper?",
        "We want to visit a {category} in {city}. Does {first} or {second} cost less?",
    )


class EarliestSlot(graphs.NextSlot):
    """The earliest slot at the best-rated place with enough seats."""

    name = "earliest_slot"
    queries = (
        "When is the earliest slot with {seats} seats left at the best-rated {category} in {city} on {date}?",
        "We are {seats} people. What is the first time on {date} that the top {category} in {city} can take us?",
        "On {date}, at what time does the highest-rated {category} in {city} first have {seats} seats?",
        "Find the earliest entry for {seats} at the best {category} in {city} on {date}.",
    )


class CancelReservation(graphs.Cancel):
    """Cancel the reservation on a date."""

    name = "cancel_visit"
    queries = (
        "Cancel the reservation of customer {customer_id} on {date}.",
        "Customer {customer_id} can't come on {date}. Please cancel that reservation.",
        "I am {customer_id}. Call off my visit on {date}.",
        "Please drop what {customer_id} has reserved for {date}.",
    )


class HoldVisit(graphs.Hold):
    """Hold seats at the best-rated place."""

    name = "hold_visit"
    queries = (
        "Hold {seats} seats at the best-rated {category} in {city} on {date} for customer {customer_id}, as early as possible.",
        "For {customer_id}: reserve {seats} seats, unpaid, in the earliest slot that has them on {date} at the top {category} in {city}.",
        "Please keep {seats} seats for {customer_id} in the first slot with room on {date} at the highest-rated {category} in {city}.",
        "On {date}, hold the earliest slot with {seats} seats at the best {category} in {city}. The customer is {customer_id}.",
    )


class HoldVisitAsked(graphs.HoldAsked):
    """Hold seats at the best-rated place; the user leaves out the date or the number of seats."""

    name = "hold_visit_asked"
    queries = (
        "Hold {seats} seats at the best-rated {category} in {city} on {date} for customer {customer_id}, as early as possible.",
        "For {customer_id}: reserve {seats} seats, unpaid, in the earliest slot with room on {date} at the top {category} in {city}.",
        "Please keep {seats} seats for {customer_id} at the highest-rated {category} in {city} on {date}, the first slot that fits.",
        "Customer {customer_id} wants {seats} seats at the best {category} in {city} on {date}. Hold the earliest slot.",
    )


class BookVisit(graphs.Book):
    """Reserve and pay seats at the best-rated place."""

    name = "book_visit"
    queries = (
        "Book {seats} seats at the best-rated {category} in {city} on {date} for {customer_id}, earliest slot, and pay with {card}.",
        "Customer {customer_id} wants the first slot with {seats} seats at the top {category} in {city} on {date}; charge {card}.",
        "Reserve and pay ({card}) {seats} seats for {customer_id} at the highest-rated {category} in {city}, {date}, as early as possible.",
        "Please get {customer_id} {seats} tickets to the best {category} in {city} on {date}, earliest time, paid by {card}.",
    )


class SoldOut(graphs.Full):
    """Reserve and pay seats on a day that is sold out: to be refused."""

    name = "sold_out"
    queries = BookVisit.queries


class BarredCustomer(graphs.Barred):
    """Reserve and pay seats for a customer who may not: to be refused."""

    name = "barred_customer"
    queries = BookVisit.queries


class CheapestVisit(graphs.Thrift):
    """Reserve and pay seats at the cheapest place."""

    name = "cheapest_visit"
    queries = (
        "Book {seats} seats at the cheapest {category} in {city} on {date} for {customer_id}, earliest slot, and pay with {card}.",
        "Customer {customer_id} wants the first slot with {seats} seats at the {category} with the lowest price in {city} on {date}; charge {card}.",
        "Find the least expensive {category} in {city}. Reserve {seats} seats on {date} for {customer_id} as early as possible and pay by {card}.",
        "Money is tight: {seats} tickets to the cheapest {category} in {city} on {date}, earliest time, for {customer_id}, paid by {card}.",
    )


class CheapestVisitBarred(graphs.ThriftBarred):
    """Reserve and pay seats at the cheapest place for a customer who may not: to be refused."""

    name = "cheapest_visit_barred"
    queries = CheapestVisit.queries


class DrierDay(graphs.Outing):
    """Reserve and pay seats on the day with less chance of rain."""

    name = "drier_day"
    queries = (
        "Book {seats} seats at the best-rated {category} in {city} on {date} or {other_date}, whichever is less likely to have rain, for {customer_id}; earliest slot, pay with {card}.",
        "Check the forecast for {city}: on the drier of {date} and {other_date}, get {customer_id} {seats} tickets to the top {category}, as early as possible, paid by {card}.",
        "{customer_id} can come on {date} or {other_date}. Take the day with the lower chance of rain in {city}, reserve {seats} seats at the highest-rated {category} in the earliest slot and charge {card}.",
    )


class MoveVisit(graphs.Shift):
    """Move a reservation to another date."""

    name = "move_visit"
    queries = (
        "Move the reservation of {customer_id} on {date} to {new_date}, earliest slot with enough seats.",
        "Customer {customer_id} can't make it on {date}. Please rebook that reservation to {new_date}, as early as possible.",
        "I am {customer_id}. Shift my visit from {date} to the first slot that fits on {new_date}.",
        "Change {customer_id}'s reservation from {date} to {new_date}; take the earliest time with room for all.",
    )


class TotalPrice(graphs.Total):
    """The sum of ticket prices over a customer's reservations."""

    name = "total_price"
    queries = (
        "Add up the ticket prices of all places that customer {customer_id} has reserved (leave out what is cancelled).",
        "What is the total of the single-ticket prices over {customer_id}'s live reservations?",
        "For {customer_id}: sum the ticket price of each place with a reservation that is not cancelled.",
        "How much do the places reserved by {customer_id} cost together, one ticket each, not counting cancelled reservations?",
    )


class ClosestPlace(graphs.Closest):
    """The place of a category that is quickest to reach."""

    name = "closest_place"
    queries = (
        "Starting from {from_place}, which {category} in {city} is the quickest to reach?",
        "I am at {from_place}. Which {category} of {city} is nearest by travel time?",
        "Find the {category} in {city} with the shortest travel time from {from_place}.",
        "Which {category} in {city} do I get to fastest from {from_place}?",
    )


class SwapVisit(graphs.Rebook):
    """Replace a reservation by another visit, and say how many are left."""

    name = "swap_visit"
    queries = (
        "{customer_id} wants to swap: cancel the reservation on {date} and book the best-rated {category} in {city} on {new_date} instead, {seats} seats, earliest slot, paid with {card}. How many live reservations are there then?",
        "Instead of the visit on {date}, {customer_id} wants the top {category} in {city} on {new_date}: {seats} seats as early as possible, charge {card}, and cancel the old reservation. Then tell me the number of reservations that are not cancelled.",
        "For {customer_id}: replace what is reserved on {date} by the highest-rated {category} in {city} on {new_date} (first slot with {seats} seats, {card}). Afterwards, how many reservations are live?",
    )


FAMILIES: tuple[type[graphs.Graph], ...] = (
    BestPrice, BestPriceAsked, ReviewCount, CheaperOfTwo, EarliestSlot, CancelReservation, SoldOut,
    HoldVisit, HoldVisitAsked, BookVisit, MoveVisit, TotalPrice, ClosestPlace, BarredCustomer,
    CheapestVisit, DrierDay, SwapVisit, CheapestVisitBarred,
)  # fmt: skip

POI = Poi()
domains.add(POI.name, POI)
