"""Other words for the parts of tool names: what renamings are composed of."""

from __future__ import annotations

from random import Random

# word -> words that say the same in an interface
SYNONYMS: dict[str, tuple[str, ...]] = {
    "find": ("search", "lookup", "locate", "query", "discover"),
    "list": ("fetch", "enumerate", "get", "show", "retrieve"),
    "request": ("obtain", "issue", "create", "ask_for", "generate"),
    "reserve": ("secure", "set_aside", "block", "allocate", "earmark"),
    "book": ("schedule", "arrange", "register", "enter", "fix"),
    "pay": ("settle", "charge", "remit", "checkout", "clear"),
    "cancel": ("revoke", "withdraw", "drop", "annul", "abort"),
    "move": ("shift", "transfer", "relocate", "change", "reassign"),
    "order": ("commission", "place", "initiate", "submit", "raise"),
    "places": ("venues", "sites", "attractions", "spots", "locations"),
    "place": ("venue", "site", "attraction", "spot", "location"),
    "details": ("info", "profile", "facts", "data", "summary"),
    "reviews": ("ratings", "feedback", "opinions", "comments", "appraisals"),
    "weather": ("forecast", "climate", "meteo", "conditions", "outlook"),
    "travel": ("transit", "journey", "trip", "commute", "routing"),
    "time": ("duration", "minutes", "length", "span", "period"),
    "slots": ("openings", "sessions", "windows", "entries", "admissions"),
    "customer": ("client", "guest", "member", "visitor", "patron"),
    "record": ("file", "entry", "card", "account", "sheet"),
    "reservations": ("tickets", "allocations", "holds", "passes", "orders"),
    "reservation": ("ticket", "allocation", "pass", "order", "admission"),
    "code": ("pin", "token", "key", "passphrase", "clearance"),
    "clinicians": ("doctors", "providers", "physicians", "practitioners", "medics"),
    "clinician": ("doctor", "provider", "physician", "practitioner", "medic"),
    "profile": ("info", "facts", "data", "summary", "sheet"),
    "prescriptions": ("scripts", "medications", "drug_orders", "rx", "prescribed_items"),
    "ward": ("unit", "floor", "hospital", "bed", "station"),
    "load": ("occupancy", "pressure", "status", "usage", "strain"),
    "referral": ("handover", "consult", "transfer", "forwarding", "redirect"),
    "days": ("delay", "wait", "lead_time", "interval", "turnaround"),
    "openings": ("vacancies", "gaps", "free_times", "availability", "times"),
    "patient": ("person", "case", "client", "individual", "member"),
    "chart": ("file", "record", "sheet", "dossier", "notes"),
    "appointments": ("visits", "consultations", "meetings", "encounters", "bookings"),
    "appointment": ("visit", "consultation", "meeting", "encounter", "booking"),
    "approval": ("authorisation", "clearance", "consent", "sanction", "permit"),
    "lab": ("test", "diagnostics", "specimen", "analysis", "pathology"),
}
STYLES = ("{0}_{1}", "{0}{1}:camel", "{1}_{0}", "svc_{0}_{1}", "{0}_{1}_v2", "api_{0}_{1}")


def renamed(name: str, rng: Random, taken: set[str]) -> str:
    """Another name that says the same, different from all in `taken`."""
    parts = name.split("_")
    for _ in range(200):
        words = [rng.choice(SYNONYMS[p]) if p in SYNONYMS else p for p in parts]
        if words == parts:
            words = ["do", *parts]
        style = rng.choice(STYLES)
        head, rest = words[0], "_".join(words[1:]) or "entry"
        new = style.split(":")[0].format(head, rest)
        if style.endswith(":camel"):
            head, *more = "_".join(words if len(words) > 1 else [*words, "entry"]).split("_")
            new = head + "".join(w.capitalize() for w in more)
        if new not in taken and new != name:
            return new
    raise ValueError(f"no other name for {name!r} is left")
