"""Points of interest: cities with places to visit, ticket slots, routes, weather, reviews and reservations.

A place belongs to one city; a reservation takes seats in a slot, needs a code that another tool issues, and is held
until it is paid. All names and numbers are made up from the world's seed.
"""

from __future__ import annotations

from typing import ClassVar

from crosswind.core.names import Numbering
from crosswind.core.registry import domains
from crosswind.domains import layout, tools
from crosswind.domains.desk import Desk
from crosswind.domains.records import Records
from crosswind.domains.requests import Requests
from crosswind.domains.tools import DeskWorld, Refusals


class PoiRecords(Records):
    terms = layout.Terms(
        group="city", kind="category", thing="place_id", who="customer_id", need="seats", slot="slot_id",
        booking="reservation_id", means="card", code="code", source="from_place", target="to_place",
        score="rating", fee="price", amount="stars", figure="rain_percent", far="minutes", room="left",
        receipt="receipt", settled="paid",
    )  # fmt: skip
    tables = layout.Tables(
        things="places", slots="slots", people="customers", bookings="reservations", permits="codes",
        entries="reviews", outlook="weather", distance="routes",
        room="capacity", home="home_city", standing="standing", good="good", barred="barred",
    )  # fmt: skip
    names = layout.Names(
        group=layout.named("ville ton burg stad", "port ford mouth", "dale haven wick mere"),
        thing=layout.named("ria nis dor lux", "tam quay ros", "vane lith mar zel", 17),
        person=layout.named("son berg ski man", "ley dez rup", "sen ova etti was", 31),
    )
    ids = layout.Ids(
        thing=Numbering("P", 6), slot=Numbering("S", 8), person=Numbering("C", 6), booking=Numbering("R", 7)
    )
    kinds = layout.choices("museum park gallery/galleries zoo castle aquarium theatre/theater garden")
    means = layout.Token("card-", 4)
    needs, floors = range(2, 6), range(2, 6)
    calendar = (2031, 1, 6, 11, 340)
    clock = layout.Hours(8, 2, late=2, step=15)
    rooms = (0, 0, 1, 2, 4, 6, 9)
    permit_ids, receipt_ids = ("K", 6), ("T", 7, "receipt")
    verb, owned = "reserve", "reservation"
    lapse = 0
    columns: ClassVar[layout.Columns] = {
        "places": {
            "rating": layout.Score(2, 300, digits=2, most=5.0),
            "price": layout.Number(3, 4, 60),
            "opens": layout.Text(4, "%02d:00", 7, 4),
            "closes": layout.Text(4, "%02d:30", 17, 5),
        },
        "reservations": {"seats": layout.Number(5, 1, 4)},
        "reviews": {"stars": layout.Number(0, 1, 5), "date": layout.Text(1, after="2030-01-01")},
        "weather": {"rain_percent": layout.Number(0, 0, 20, 5), "high": layout.Number(1, 2, 30, fixed=True)},
        "routes": {"minutes": layout.Number(0, 4, 87)},
    }


class PoiWorld(DeskWorld):
    records = PoiRecords()
    refusals = Refusals(
        barred="customer {who} may not make reservations",
        permit="no code was issued to {who} for {slot}",
        full="slot {slot} has not enough seats left",
    )

    find_places = tools.SearchTool("Places of one category in a city, with ratings.")
    place_details = tools.DetailsTool(
        "City, category, opening hours and ticket price in euros of a place.",
        show="name city category opens closes price",
    )
    list_reviews = tools.EntriesTool("Reviews of a place: stars and date.", show="stars date")
    weather = tools.OutlookTool(
        "Forecast for a city and date: chance of rain in percent, highest temperature.",
        show="rain_percent high",
        noun="forecast",
    )
    travel_time = tools.DistanceTool("Minutes from one place to another, by place ids.", noun="route")
    list_slots = tools.SlotsTool("Ticket slots of a place on a date: time and seats left.")
    customer_record = tools.RecordTool("Name, home city and standing of a customer.", show="name home_city standing")
    list_reservations = tools.BookingsTool("Reservations of a customer: place, date, time, seats and status.")
    request_code = tools.PermitTool(
        "Issue the code that a customer needs for a slot.",
        invalid="This code is not valid for {slot}; {tool} issues one.",
    )
    reserve = tools.HoldTool("Hold seats in a slot; needs a code for it from {request_code}.", limits=(1, 50))
    pay = tools.SettleTool("Pay for a held reservation.", reads="slot_id customer_id seats")
    cancel_reservation = tools.CancelTool("Cancel a reservation; what was paid is returned.")
    move_reservation = tools.MoveTool(
        "Move a reservation to another slot of the same place; needs a code from {request_code}.", reads="seats"
    )


class Poi(Desk):
    name = "poi"
    summary = "Cities, places, ticket slots, routes, weather, reviews and reservations."
    world_class = PoiWorld
    requests = Requests.packaged("poi")


POI = Poi()
domains.add(POI.name, POI)
