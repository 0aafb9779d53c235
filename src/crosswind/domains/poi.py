"""Points of interest: cities with places to visit, ticket slots, routes, weather, reviews and reservations.

A place belongs to one city; a reservation takes seats in a slot, needs a code that another tool issues, and is held
until it is paid. All names and numbers are made up from the world's seed (`records.py`; `layout.py` has how many there
are of each).
"""

from __future__ import annotations

from crosswind.core.registry import domains
from crosswind.domains.desk import Desk
from crosswind.domains.records import Records
from crosswind.domains.tools import DeskWorld


class PoiWorld(DeskWorld):
    records = Records.packaged("poi")


class Poi(Desk):
    name = "poi"
    summary = "Cities, places, ticket slots, routes, weather, reviews and reservations."
    world_class = PoiWorld


POI = Poi()
domains.add(POI.name, POI)
