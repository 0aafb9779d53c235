"""Bank branches with payees, clearing windows, one-time codes, transfers, cards, disputes and daily limits.

A payee is on file at one branch. A transfer takes an amount out of what a clearing window can still carry and out of
the account's daily limit, needs a TAN that another tool sends, and is prepared until it is signed. A transfer that was
signed can be disputed, and an account's card can be frozen. All names and numbers are made up from the world's seed.
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

PAYEE_TYPES: dict[str, tuple[str, ...]] = {  # with other words for them
    "landlord": (),
    "notary": ("notaries",),
    "utility": ("utilities",),
    "charity": ("charities",),
    "broker": (),
    "contractor": (),
    "lender": (),
    "school": (),
}
REASONS: dict[str, tuple[str, ...]] = {
    "fraud": (),
    "duplicate": ("duplication",),
    "overcharge": ("overcharging",),
    "nondelivery": ("non-delivery",),
}
LIMITS = (0, 0, 100, 200, 350, 500, 700, 900)  # of windows, in euros; 0: nothing more goes through
SEVEN, APART = 450, 120  # minutes: when windows begin, and from one to the next
PER_BRANCH, DAYS, WINDOWS, HELD = 24, 10, 5, 5

BRANCH = Namer((("bank", "giro", "thrift", "kasse"), ("vault", "coin", "mint"), ("fund", "spar", "purse", "ducat")), 11)
PAYEE = Namer(
    (
        ("agency", "mutual", "estate", "combine"),
        ("chamber", "society", "syndic"),
        ("holding", "consort", "league", "concern"),
    ),
    29,
)
HOLDER = Namer((("feld", "strom", "bach", "wald"), ("sson", "kov", "dottir"), ("adze", "poulos", "iou", "wijk")), 53)
PAYEE_ID, ACCOUNT_ID, CARD_ID = Numbering("PY", 6), Numbering("AC", 6), Numbering("CD", 6)
WINDOW_ID, TRANSFER_ID = Numbering("CW", 8), Numbering("TF", 7)


def calendar(seed: int) -> list[str]:
    """The dates on which a world clears transfers."""
    return dates_from(2033, 3, 7, seed * 17 % 290, DAYS)


def clock(j: int, late: int) -> str:
    """The time of the j-th window of a day, some tens of minutes late."""
    hour, minute = divmod(SEVEN + APART * j + 10 * late, 60)
    return f"{hour:02d}:{minute:02d}"


def rows(seed: int, size: int, split: Split) -> Derive:
    """Any row of a world, made from its seed alone."""
    branches = max(1, size // PER_BRANCH)
    dates = calendar(seed)

    def branch(n: int) -> str:
        return BRANCH.name(split, seed, n % branches)

    def payee(id: str) -> Row | None:
        n = PAYEE_ID.number(split, seed, id)
        if n is None or n >= branches * PER_BRANCH:
            return None
        h = digest(split, seed, "payee", n)
        return {
            "name": PAYEE.name(split, seed, n),
            "branch": branch(n // PER_BRANCH),
            "payee_type": tuple(PAYEE_TYPES)[h[0] % len(PAYEE_TYPES)],
            "trust_score": round(30 + (h[1] * 256 + h[2]) % 700 / 10, 1),
            "fee": 1 + h[3] % 45,
            "cut_off": f"{17 + h[4] % 4}:30",
        }

    def window(id: str) -> Row | None:
        n = WINDOW_ID.number(split, seed, id)
        if n is None or n >= branches * PER_BRANCH * DAYS * WINDOWS:
            return None
        n, j = divmod(n, WINDOWS)
        n, d = divmod(n, DAYS)
        h = digest(split, seed, "window", n, d, j)
        return {
            "payee_id": PAYEE_ID.id(split, seed, n),
            "date": dates[d],
            "time": clock(j, h[0] % 6),
            "limit": LIMITS[h[1] % len(LIMITS)],
        }

    def account(id: str) -> Row | None:
        n = ACCOUNT_ID.number(split, seed, id)
        if n is None or n >= size:
            return None
        h = digest(split, seed, "account", n)
        return {
            "holder": HOLDER.name(split, seed, n),
            "home_branch": branch(int.from_bytes(h[:4], "big")),
            "standing": "good" if h[4] % 14 else "blocked",
            "card_id": CARD_ID.id(split, seed, n),
            "daily_limit": 2000 + 250 * (h[5] % 17),
        }

    def card(id: str) -> Row | None:
        n = CARD_ID.number(split, seed, id)
        if n is None or n >= size:
            return None
        return {"status": "active" if digest(split, seed, "card", n)[0] % 9 else "frozen"}

    def transfer(id: str) -> Row | None:
        n = TRANSFER_ID.number(split, seed, id)
        if n is None or n >= size * HELD:
            return None
        owner, k = divmod(n, HELD)
        h = digest(split, seed, "transfer", owner)
        if k >= 2 + h[0] % (HELD - 1):
            return None
        g = digest(split, seed, "transfer", owner, k)
        at = int.from_bytes(g[:4], "big") % (branches * PER_BRANCH)
        number = (at * DAYS + (h[1] + 3 * k) % DAYS) * WINDOWS + g[4] % WINDOWS
        signed = g[6] % 2 == 1
        return {
            "account_id": ACCOUNT_ID.id(split, seed, owner),
            "window_id": WINDOW_ID.id(split, seed, number),
            "amount": 50 + 10 * (g[5] % 46),
            "status": "recalled" if k and g[6] % 8 == 0 else "signed" if signed else "prepared",
            "signing_key": f"key-{int.from_bytes(g[6:8], 'big') % 10000:04d}" if signed else "",
        }

    def case(id: str) -> Row | None:
        payee_id, _, k = id.partition("#")
        if payee(payee_id) is None:
            return None
        h = digest(split, seed, "case", payee_id, k)
        closed = Date(2032, 1, 1) + timedelta(days=h[1])
        return {"amount": 20 + 10 * (h[0] % 80), "closed": closed.isoformat()}

    def queue(id: str) -> Row | None:
        h = digest(split, seed, "queue", id)
        return {"waiting": h[0] % 190, "clerks": 1 + h[1] % 9}

    def clearing(id: str) -> Row | None:
        return {"minutes": 5 + digest(split, seed, "clearing", id)[0] % 236}

    made = {
        "payees": payee,
        "windows": window,
        "accounts": account,
        "cards": card,
        "transfers": transfer,
        "cases": case,
        "queues": queue,
        "clearings": clearing,
    }
    return lambda table, id: made[table](id) if table in made else None


def tan_of(window_id: str, account_id: str) -> str:
    return made_of("TN", 6, "tan", window_id, account_id)


def receipt_of(transfer_id: str, signing_key: str) -> str:
    return made_of("SR", 7, "receipt", transfer_id, signing_key)


def dispute_of(transfer_id: str, amount: int, reason: str) -> str:
    return made_of("DP", 7, "dispute", transfer_id, amount, reason)


# ---------------------------------------------------------------- what belongs to what


def payees_in(state: State, branch: str) -> list[str] | None:
    """The payees on file at a branch, or None where there is no such branch."""
    return _payees_in(state.split, state.seed, state.size, branch)


@lru_cache(maxsize=4096)
def _payees_in(split: Split, seed: int, size: int, branch: str) -> list[str] | None:
    n = BRANCH.number(split, seed, branch)
    if n is None or n >= max(1, size // PER_BRANCH):
        return None
    return [PAYEE_ID.id(split, seed, n * PER_BRANCH + k) for k in range(PER_BRANCH)]


def windows_of(state: State, payee_id: str, date: str) -> list[str]:
    n, dates = PAYEE_ID.number(state.split, state.seed, payee_id), calendar(state.seed)
    if n is None or date not in dates:
        return []
    first = (n * DAYS + dates.index(date)) * WINDOWS
    return [WINDOW_ID.id(state.split, state.seed, first + j) for j in range(WINDOWS)]


def transfers_of(state: State, account_id: str) -> list[str]:
    """The transfers of an account, first what the seed gives."""
    n = ACCOUNT_ID.number(state.split, state.seed, account_id)
    ids = [] if n is None else [TRANSFER_ID.id(state.split, state.seed, n * HELD + k) for k in range(HELD)]
    ids = [id for id in ids if state.row("transfers", id) is not None]
    new = (id for id, row in state.written("transfers") if row["account_id"] == account_id)
    return [*ids, *(id for id in new if id not in ids)]


def cases_of(payee_id: str) -> list[str]:
    return [f"{payee_id}#{k}" for k in range(2 + digest("cases", payee_id)[0] % 7)]


def new_id(state: State, window_id: str, account_id: str) -> str:
    """An id made of what is transferred, and of how often it was before."""
    mine = (window_id, account_id)
    times = sum((row["window_id"], row["account_id"]) == mine for _, row in state.written("transfers"))
    return unused(lambda id: state.row("transfers", id) is not None, "TF", 7, "prepare", *mine, times=times)


def left(state: State, window_id: str, limit: int) -> int:
    """Euros that a window can still carry: its limit counts what the seed sent, so only what was written moves it."""
    for id, row in state.written("transfers"):
        before = state.start("transfers", id)
        if before is not None and before["window_id"] == window_id and before["status"] != "recalled":
            limit += before["amount"]
        if row["window_id"] == window_id and row["status"] != "recalled":
            limit -= row["amount"]
    return limit


def spent(state: State, account_id: str, date: str) -> int:
    """Euros of an account's daily limit that its transfers on a date take up."""
    total = 0
    for id in transfers_of(state, account_id):
        row = state.row("transfers", id)
        window = row and state.row("windows", row["window_id"])
        if row and window and row["status"] != "recalled" and window["date"] == date:
            total += row["amount"]
    return total


# ---------------------------------------------------------------- tools


class BankingWorld(World):
    invariants = (
        "transfers.window_id",
        "transfers.account_id",
        "transfers.amount",
        "transfers.status",
        "windows.limit",
        "windows.payee_id",
        "windows.date",
        "accounts.standing",
        "accounts.daily_limit",
        "tans.tan",
    )

    def broken(self) -> str | None:
        state = self.state
        for id, _ in state.written("disputes"):
            before = state.start("transfers", id)
            if before is None or before["status"] != "signed":
                return f"transfer {id} has not been signed and cleared, so it cannot be disputed"
        for id, row in state.written("transfers"):
            before = state.start("transfers", id)
            if row["status"] == "recalled" or (before is not None and before["window_id"] == row["window_id"]):
                continue
            window_id, account_id = row["window_id"], row["account_id"]
            window, account = state.row("windows", window_id), state.row("accounts", account_id)
            if window is None or state.row("payees", window["payee_id"]) is None:
                return f"there is no window {window_id}"
            if account is None or account["standing"] != "good":
                return f"account {account_id} is blocked for transfers"
            if state.row("tans", f"{window_id}|{account_id}") is None:
                return f"no TAN was sent to {account_id} for {window_id}"
            if left(state, window_id, window["limit"]) < 0:
                return f"window {window_id} cannot carry that much any more"
            if spent(state, account_id, window["date"]) > account["daily_limit"]:
                return f"account {account_id} would exceed its daily limit"
        return None

    @tool(reads=["payees.name,payee_type,trust_score"], enums={"payee_type": tuple(PAYEE_TYPES)})
    def search_payees(self, branch: str, payee_type: str) -> list[Row]:
        """Payees of one type on file at a branch, with trust scores."""
        ids = payees_in(self.state, branch)
        if ids is None:
            raise ToolFailure("not_found", f"There is no branch {brief_of(branch)}.")
        found = ((id, self.state.row("payees", id)) for id in ids)
        return [
            {"payee_id": id, "name": row["name"], "trust_score": row["trust_score"]}
            for id, row in found
            if row is not None and row["payee_type"] == payee_type
        ]

    @tool(reads=["payees.name,branch,payee_type,cut_off,fee"])
    def payee_profile(self, payee_id: str) -> Row:
        """A payee's branch, type, cut-off hour and transfer fee in euros."""
        row = self.found("payees", payee_id, "payee")
        return {c: row[c] for c in ("name", "branch", "payee_type", "cut_off", "fee")}

    @tool(reads=["cases.amount,closed"])
    def dispute_history(self, payee_id: str) -> list[Row]:
        """Closed disputes against a payee: amount in euros and day."""
        self.found("payees", payee_id, "payee")
        found = (self.state.row("cases", id) for id in cases_of(payee_id))
        return [{"amount": row["amount"], "closed": row["closed"]} for row in found if row is not None]

    @tool(reads=["queues.waiting,clerks"], docs={"date": "YYYY-MM-DD"})
    def branch_queue(self, branch: str, date: str) -> Row:
        """Orders waiting and clerks on duty at a branch on a date."""
        if payees_in(self.state, branch) is None:
            raise ToolFailure("not_found", f"There is no branch {brief_of(branch)}.")
        row = self.found("queues", f"{branch}|{self.day(date)}", "queue")
        return {"waiting": row["waiting"], "clerks": row["clerks"]}

    @tool(reads=["clearings.minutes"])
    def clearing_time(self, from_payee: str, to_payee: str) -> Row:
        """Minutes for money to clear from one payee to another, by their ids."""
        self.found("payees", from_payee, "payee")
        self.found("payees", to_payee, "payee")
        row = self.found("clearings", f"{from_payee}|{to_payee}", "clearing")
        return {"minutes": row["minutes"]}

    @tool(
        reads=["windows.time,limit", "transfers.window_id,amount,status"],
        docs={"date": "YYYY-MM-DD"},
    )
    def clearing_windows(self, payee_id: str, date: str) -> list[Row]:
        """Clearing windows of a payee on a date: time and limit left in euros."""
        self.found("payees", payee_id, "payee")
        out: list[Row] = []
        for id in windows_of(self.state, payee_id, self.day(date)):
            row = self.found("windows", id, "window")
            out.append({"window_id": id, "time": row["time"], "limit_left": left(self.state, id, row["limit"])})
        return out

    @tool(reads=["accounts.holder,home_branch,standing,card_id,daily_limit"])
    def account_record(self, account_id: str) -> Row:
        """Holder, home branch, standing, card and daily limit of an account."""
        row = self.found("accounts", account_id, "account")
        return {c: row[c] for c in ("holder", "home_branch", "standing", "card_id", "daily_limit")}

    @tool(reads=["transfers.window_id,account_id,amount,status", "windows.payee_id,date,time"])
    def list_transfers(self, account_id: str) -> list[Row]:
        """Transfers of an account: payee, date, time, amount, status."""
        self.found("accounts", account_id, "account")
        return [self._shown(id) for id in transfers_of(self.state, account_id)]

    @tool(
        reads=["transfers.status,amount"],
        writes=["transfers.status=disputed", "disputes+"],
        enums={"reason": tuple(REASONS)},
    )
    def open_dispute(self, transfer_id: str, reason: str) -> Row:
        """Open a dispute about a signed transfer, for a reason."""
        row = self.found("transfers", transfer_id, "transfer")
        if row["status"] != "signed":
            raise ToolFailure("conflict", f"Transfer {transfer_id} is {row['status']}, not signed.")
        self.state.put("transfers", transfer_id, {**row, "status": "disputed"})
        self.state.put("disputes", transfer_id, {"reason": reason})
        return {"transfer_id": transfer_id, "dispute_no": dispute_of(transfer_id, row["amount"], reason)}

    @tool(reads=["cards.status"], writes=["cards.status=frozen"])
    def freeze_card(self, card_id: str) -> Row:
        """Freeze a card, so that nobody can pay with it."""
        row = self.found("cards", card_id, "card")
        if row["status"] == "frozen":
            raise ToolFailure("conflict", f"Card {card_id} is frozen already.")
        self.state.put("cards", card_id, {**row, "status": "frozen"})
        return {"card_id": card_id, "status": "frozen"}

    @tool(reads=[], writes=["tans+"], lasting=False)
    def request_tan(self, window_id: str, account_id: str) -> Row:
        """Send the TAN that an account needs for a window."""
        self.found("windows", window_id, "window")
        self.found("accounts", account_id, "account")
        tan = tan_of(window_id, account_id)
        self.state.put("tans", f"{window_id}|{account_id}", {"tan": tan})
        return {"tan": tan}

    @tool(
        reads=["tans.tan", "transfers.window_id,account_id"],
        writes=["transfers+", "transfers.status=prepared"],
        undo=("recall_transfer", "transfer_id"),
    )
    def prepare_transfer(self, window_id: str, account_id: str, amount: int, tan: str) -> Row:
        """Prepare a transfer in a window, not yet signed; needs a TAN from {request_tan}."""
        if not 1 <= amount <= 100_000:
            raise ToolFailure("bad_arguments", f"'amount' must be from 1 to 100000, got {brief_of(str(amount))}")
        self.found("windows", window_id, "window")
        self._check(window_id, account_id, tan)
        id = new_id(self.state, window_id, account_id)
        made = {"account_id": account_id, "window_id": window_id, "amount": amount}
        self.state.put("transfers", id, {**made, "status": "prepared", "signing_key": ""})
        return {"transfer_id": id, "status": "prepared"}

    @tool(
        reads=["transfers.status"],
        writes=["transfers.status=signed", "transfers.signing_key"],
        undo=("recall_transfer", "transfer_id"),
    )
    def sign_transfer(self, transfer_id: str, signing_key: str) -> Row:
        """Sign a prepared transfer with a key; gives the receipt."""
        row = self.found("transfers", transfer_id, "transfer")
        if row["status"] != "prepared":
            raise ToolFailure("conflict", f"Transfer {transfer_id} is {row['status']}, not prepared.")
        if not signing_key.startswith("key-") or len(signing_key) > 20:
            raise ToolFailure("bad_arguments", f"'signing_key' must look like key-1234, got {brief_of(signing_key)}")
        self.state.put("transfers", transfer_id, {**row, "status": "signed", "signing_key": signing_key})
        return {"transfer_id": transfer_id, "receipt": receipt_of(transfer_id, signing_key), "status": "signed"}

    @tool(reads=["transfers.status"], writes=["transfers.status=recalled", "transfers.signing_key"])
    def recall_transfer(self, transfer_id: str) -> Row:
        """Recall a transfer; the money goes back."""
        row = self._open(transfer_id)
        self.state.put("transfers", transfer_id, {**row, "status": "recalled", "signing_key": ""})
        return {"transfer_id": transfer_id, "status": "recalled"}

    @tool(
        reads=["transfers.status,window_id,account_id", "tans.tan", "windows.payee_id"],
        writes=["transfers.window_id"],
    )
    def reschedule_transfer(self, transfer_id: str, window_id: str, tan: str) -> Row:
        """Put a transfer into another window of the same payee; needs a TAN from {request_tan}."""
        row = self._open(transfer_id)
        window, old = self.found("windows", window_id, "window"), self.found("windows", row["window_id"], "window")
        if window["payee_id"] != old["payee_id"]:
            raise ToolFailure("conflict", f"Window {window_id} belongs to another payee.")
        self._check(window_id, row["account_id"], tan)
        self.state.put("transfers", transfer_id, {**row, "window_id": window_id})
        return {"transfer_id": transfer_id, "window_id": window_id}

    # -- parts

    def _open(self, transfer_id: str) -> Row:
        """A transfer that can still be recalled or rescheduled."""
        row = self.found("transfers", transfer_id, "transfer")
        if row["status"] in ("recalled", "disputed"):
            raise ToolFailure("conflict", f"Transfer {transfer_id} is {row['status']}.")
        return row

    def _check(self, window_id: str, account_id: str, tan: str) -> None:
        sent = self.state.row("tans", f"{window_id}|{account_id}")
        if sent is None or sent["tan"] != tan:
            raise ToolFailure("refused", f"This TAN is not valid for {window_id}; {{request_tan}} sends one.")

    def _shown(self, id: str) -> Row:
        row = self.found("transfers", id, "transfer")
        window = self.found("windows", row["window_id"], "window")
        return {
            "transfer_id": id,
            "payee_id": window["payee_id"],
            "date": window["date"],
            "time": window["time"],
            "amount": row["amount"],
            "status": row["status"],
        }


# ---------------------------------------------------------------- the domain

_ACCOUNT, _PAYEE, _KEY = read_ids("AC", 6), read_ids("PY", 6), read_ids("key-", 4)
_BRANCH, _NAME = BRANCH.find, PAYEE.find
_TYPE, _REASON = read_choice(PAYEE_TYPES), read_choice(REASONS)


class Banking(Desk):
    name = "banking"
    summary = "Branches, payees, clearing windows, TANs, transfers, cards, disputes and daily limits."
    world_class = BankingWorld
    named = frozenset({"payees.name"})
    namers: ClassVar[Mapping[str, Namer]] = {"group": BRANCH, "thing": PAYEE, "person": HOLDER}
    said: ClassVar[Mapping[str, str]] = {
        "held": "Prepared for {time}: {booking}.",
        "done": "Signed for {time}: {receipt}.",
        "cancelled": "{booking} is recalled.",
        "left": "Done; {count} transfers are live now.",
        "none": "no transfer stands on {date}",
    }
    spares = (50, 100)
    policy = (
        "You work at the payments desk of a bank. Do what the user asks with the tools, and nothing else. Ask when a "
        "detail is missing. Tell the user what they asked for; for a prepared transfer its number, for a signed one the "
        "receipt number, for a rescheduled one the new time, for a dispute its number; of a daily limit name no amount "
        "but what is left. If it cannot be done, leave nothing changed and say so."
    )
    terms = Terms(
        search="search_payees", details="payee_profile", entries="dispute_history", outlook="branch_queue",
        distance="clearing_time", slots="clearing_windows", bookings="list_transfers", permit="request_tan",
        hold="prepare_transfer", settle="sign_transfer", cancel="recall_transfer", move="reschedule_transfer",
        group="branch", kind="payee_type", thing="payee_id", date="date", who="account_id", need="amount",
        slot="window_id", booking="transfer_id", means="signing_key", code="tan",
        source="from_payee", target="to_payee",
        score="trust_score", fee="fee", amount="amount", figure="waiting", far="minutes", room="limit_left",
        receipt="receipt", status="status", held="prepared", settled="signed", cancelled="recalled",
    )  # fmt: skip
    details: Mapping[str, Detail] = {
        "group": Detail(
            "branch", "Which branch?", _BRANCH, ("branch", "office", "where", "location", "bank"), "a branch I will name",
            record=("account_record", "account_id", "home_branch"), column=("accounts", "home_branch"),
        ),
        "kind": Detail(
            "type of payee", "What type of payee?", _TYPE,
            ("type", "kind", "sort", "category", "sector", *PAYEE_TYPES), "payee of a certain type",
        ),
        "date": Detail("date", "On which date?", values.dates, ("date", "day", "when", "time"), "a day I have in mind"),
        "new_date": Detail("new date", "To which new date?", values.dates, ("new", "date", "day", "when"), "another day"),
        "other_date": Detail("other date", "Which other date?", values.dates, ("other", "date", "day"), "another day"),
        "need": Detail(
            "amount in euros", "How many euros?", read_counts,
            ("amount", "euro", "many", "much", "sum", "money", "value", "large", "big", "high"), "a sum in",
        ),
        "floor": Detail(
            "least amount in euros", "From how many euros on?", read_counts,
            ("amount", "euro", "least", "many", "much", "minimum", "threshold", "sum", "value"), "a certain number of",
        ),
        "who": Detail(
            "account id", "What is the account id?", _ACCOUNT,
            ("account", "id", "who", "whom", "whose", "customer", "holder", "name"), "my account",
        ),
        "means": Detail(
            "signing key", "Which signing key?", _KEY,
            ("key", "sign", "signing", "signature", "signed", "authorise", "authorize"), "my usual key",
        ),
        "source": Detail(
            "payee that the money is with", "Which payee does the money come from?", _PAYEE,
            ("from", "come", "source", "origin", "sender", "start"), "where it is",
        ),
        "first": Detail("first payee", "Which is the first payee?", _NAME, ("first", "payee"), "a payee"),
        "second": Detail("second payee", "Which is the second payee?", _NAME, ("second", "payee"), "another"),
        "reason": Detail(
            "reason", "What is the reason for the dispute?", _REASON,
            ("reason", "why", "ground", "cause", "wrong", "dispute", *REASONS), "something I will explain",
        ),
    }  # fmt: skip

    def __init__(self) -> None:
        made: list[graphs.Graph] = [family().bind(self) for family in FAMILIES]
        self.families = {family.name: family for family in made}

    def derive(self, seed: int, size: int, split: Split) -> Derive:
        return rows(seed, size, split)

    def normalise(self, state: State) -> Changes:
        out: Changes = {}
        for (table, id), row in state.changes().items():
            if table == "tans":
                continue
            if table == "transfers" and row is not None and state.start(table, id) is None:
                if row["status"] == "recalled":
                    continue
                id = f"new {row['window_id']} {row['account_id']}"
                while (table, id) in out:
                    id += " again"
            out[table, id] = row
        return out

    def vary(self, task: Task, table: str, column: str, value: Any, salt: object) -> Any:
        split, seed = task.split, task.seed
        if (table, column) == ("payees", "name"):
            n = PAYEE.number(split, seed, value) or 0
            return PAYEE.name(split, seed, shifted_number(n, salt, 0, PAYEE.capacity(split) - 1, 1))
        if (table, column) == ("windows", "time"):  # by tens of minutes, so that windows stay apart
            j, late = divmod(60 * int(value[:2]) + int(value[3:]) - SEVEN, APART)
            return clock(j, shifted_number(late // 10, salt, 0, 5, 1))
        if (table, column) == ("transfers", "window_id"):  # the same hour of the same day for another payee
            payees = max(1, task.size // PER_BRANCH) * PER_BRANCH
            payee, rest = divmod(WINDOW_ID.number(split, seed, value) or 0, DAYS * WINDOWS)
            return WINDOW_ID.id(split, seed, shifted_number(payee, salt, 0, payees - 1, 1) * DAYS * WINDOWS + rest)
        if (table, column) == ("accounts", "card_id"):
            n = CARD_ID.number(split, seed, value) or 0
            return CARD_ID.id(split, seed, shifted_number(n, salt, 0, task.size - 1, 1))
        moves = {
            "payees.trust_score": (30.0, 99.9, 0.1),
            "payees.fee": (1, 45, 1),
            "cases.amount": (20, 810, 10),
            "queues.waiting": (0, 189, 1),
            "clearings.minutes": (5, 240, 1),
            "windows.limit": (100, 900, 50),
            "transfers.amount": (50, 500, 10),
            "accounts.daily_limit": (2000, 6000, 250),  # never less than the transfers of one day add up to
        }.get(f"{table}.{column}")
        if moves is None or (column == "limit" and not value):
            return value
        return shifted_number(value, (table, column, salt), *moves)

    # -- rows for the graphs

    def things(self, state: State, group: str, kind: str) -> list[Thing]:
        found = ((id, state.row("payees", id)) for id in payees_in(state, group) or ())
        return [
            Thing(id, row["name"], row["trust_score"], row["fee"])
            for id, row in found
            if row and row["payee_type"] == kind
        ]

    def thing(self, state: State, id: str) -> Thing | None:
        row = state.row("payees", id)
        return Thing(id, row["name"], row["trust_score"], row["fee"]) if row else None

    def amounts(self, state: State, thing: str) -> list[int]:
        return [row["amount"] for id in cases_of(thing) if (row := state.row("cases", id))]

    def figure(self, state: State, group: str, date: str) -> int:
        row = state.row("queues", f"{group}|{date}")
        return int(row["waiting"]) if row else 0

    def far(self, state: State, source: str, target: str) -> int:
        row = state.row("clearings", f"{source}|{target}")
        return int(row["minutes"]) if row else 0

    def slots(self, state: State, thing: str, date: str) -> list[Slot]:
        found = ((id, state.row("windows", id)) for id in windows_of(state, thing, date))
        made = [Slot(id, row["time"], left(state, id, row["limit"])) for id, row in found if row]
        return sorted(made, key=lambda s: s.time)

    def bookings(self, state: State, who: str) -> list[Booking]:
        out = []
        for id in transfers_of(state, who):
            row = state.row("transfers", id)
            window = row and state.row("windows", row["window_id"])
            if row and window:
                live = row["status"] != "recalled"
                out.append(Booking(id, row["window_id"], window["payee_id"], window["date"], row["amount"], live))
        return out

    def made(self, state: State, slot: str, who: str, need: int, means: str | None) -> Changes:
        row = {"account_id": who, "window_id": slot, "amount": need}
        row |= {"status": "signed" if means else "prepared", "signing_key": means or ""}
        return {("transfers", new_id(state, slot, who)): row, ("tans", f"{slot}|{who}"): {"tan": tan_of(slot, who)}}

    def ended(self, state: State, booking: str) -> Changes:
        row = state.row("transfers", booking) or {}
        return {("transfers", booking): {**row, "status": "recalled", "signing_key": ""}}

    def moved(self, state: State, booking: str, slot: str) -> Changes:
        row = state.row("transfers", booking) or {}
        who = row["account_id"]
        return {
            ("transfers", booking): {**row, "window_id": slot},
            ("tans", f"{slot}|{who}"): {"tan": tan_of(slot, who)},
        }

    def new_bookings(self, end: State) -> list[tuple[str, str | None]]:
        return [
            (id, receipt_of(id, row["signing_key"]) if row["signing_key"] else None)
            for id, row in end.written("transfers")
            if end.start("transfers", id) is None and row["status"] != "recalled"
        ]

    def someone(self, rng: Random, state: State) -> tuple[str, str]:
        n = rng.randrange(state.size)
        for step in range(state.size):  # the next account that is not blocked
            id = ACCOUNT_ID.id(state.split, state.seed, (n + step) % state.size)
            row = state.row("accounts", id)
            if row and row["standing"] == "good":
                return id, row["home_branch"]
        return ACCOUNT_ID.id(state.split, state.seed, n), BRANCH.name(state.split, state.seed, 0)

    def allowed(self, state: State, who: str) -> bool:
        row = state.row("accounts", who)
        return row is not None and row["standing"] == "good"

    def kinds(self) -> tuple[str, ...]:
        return tuple(PAYEE_TYPES)

    def dates(self, state: State) -> list[str]:
        return calendar(state.seed)

    def means(self, rng: Random) -> str:
        return f"key-{rng.randrange(10000):04d}"

    def needs(self, rng: Random) -> int:
        return rng.randrange(80, 520, 20)

    def floors(self, rng: Random) -> int:
        return rng.randrange(100, 700, 50)

    def full(self, state: State, thing: str, date: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for id in windows_of(state, thing, date):
            out |= edit("windows", id, state.row("windows", id) or {}, limit=0)
        return out

    def barred(self, state: State, who: str) -> dict[str, Any]:
        return edit("accounts", who, state.row("accounts", who) or {}, standing="blocked")

    def emptied(self, state: State, group: str, kind: str) -> dict[str, Any]:
        names = tuple(PAYEE_TYPES)
        other = names[(names.index(kind) + 1) % len(names)]
        out: dict[str, Any] = {}
        for thing in self.things(state, group, kind):
            out |= edit("payees", thing.id, state.row("payees", thing.id) or {}, payee_type=other)
        return out

    def lost(self, state: State, booking: str) -> dict[str, Any]:
        return {f"transfers/{booking}": None}


# ---------------------------------------------------------------- graphs of its own


def is_signed(state: State, transfer_id: str) -> bool:
    row = state.row("transfers", transfer_id)
    return row is not None and row["status"] == "signed"


def disputed(state: State, transfer_id: str, reason: str) -> Changes:
    """What disputing a transfer leaves behind."""
    row = state.row("transfers", transfer_id) or {}
    return {
        ("transfers", transfer_id): {**row, "status": "disputed"},
        ("disputes", transfer_id): {"reason": reason},
    }


def unsigned(state: State, transfer_id: str) -> dict[str, Any]:
    """Edits after which a transfer is prepared and not signed."""
    return edit("transfers", transfer_id, state.row("transfers", transfer_id) or {}, status="prepared", signing_key="")


def frozen(state: State, account_id: str) -> Changes | None:
    """What freezing an account's card leaves behind; None where there is no card to freeze."""
    account = state.row("accounts", account_id)
    card = account and state.row("cards", account["card_id"])
    if not account or not card or card["status"] != "active":
        return None
    return {("cards", account["card_id"]): {**card, "status": "frozen"}}


class AccountGraph(graphs.Cancel):
    """A family about an account and its transfers."""

    # -- parts of solutions

    def record(self, account_id: str) -> Gathering:
        return (yield ToolCall("account_record", {"account_id": account_id})).content

    def transfers(self, account_id: str) -> graphs.Rows:
        found: list[Row] = (yield ToolCall("list_transfers", {"account_id": account_id})).content
        return found

    def dispute(self, transfer_id: str, reason: str) -> Gathering:
        made = yield ToolCall("open_dispute", {"transfer_id": transfer_id, "reason": reason})
        return made.content["dispute_no"]

    # -- parts of goals

    def told_dispute(self, end: State) -> Expected:
        """The number of the dispute that was opened."""
        made = [
            dispute_of(id, row["amount"], dispute["reason"])
            for id, dispute in end.written("disputes")
            if (row := end.row("transfers", id))
        ]
        return Expected("id", made[0] if made else "none")


class Remainder(AccountGraph):
    """Read what is left of an account's daily limit on a date."""

    level = 1
    roles: ClassVar[tuple[str, ...]] = ("who", "date")
    stands = "record > bookings (subtract)"

    def solve(self, brief: Brief) -> Solution:
        who, date = yield from self.gather(brief)
        limit = (yield from self.record(who))["daily_limit"]
        rows = yield from self.transfers(who)
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
        return (Expected("money", row["daily_limit"] - spent(start, who, date)),) if row else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [{f"accounts/{self.wanted(task, state)[0]}": None}]


class Block(AccountGraph):
    """Freeze the card of an account."""

    level = 1
    roles: ClassVar[tuple[str, ...]] = ("who",)
    stands = "record > freeze"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        return self.stated(self.domain.someone(rng, state)[0])

    def solve(self, brief: Brief) -> Solution:
        (who,) = yield from self.gather(brief)
        card = (yield from self.record(who))["card_id"]
        yield ToolCall("freeze_card", {"card_id": card})
        return f"{card} is frozen."

    def ends(self, task: Task, start: State) -> list[Changes]:
        made = frozen(start, self.wanted(task, start)[0])
        return [made] if made else []

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        (who,) = self.wanted(task, state)
        account = state.row("accounts", who)
        return [{f"accounts/{who}": None}, {f"cards/{account['card_id']}": None}] if account else []


class Contest(AccountGraph):
    """Dispute the transfer that an account made on a date."""

    level = 1
    roles: ClassVar[tuple[str, ...]] = ("who", "date", "reason")
    stands = "bookings > dispute"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, live = self.live(rng, state)
        signed = [b for b in live if is_signed(state, b.id)]
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
        held = self.booking(task, start)
        reason = self.wanted(task, start)[2]
        return [disputed(start, held.id, reason)] if held and is_signed(start, held.id) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (self.told_dispute(end),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        held = self.booking(task, state)
        return [self.domain.lost(state, held.id), unsigned(state, held.id)] if held else []


class Suspicion(AccountGraph):
    """Dispute that signed transfer of an account whose payee has the most euros in closed disputes."""

    level = 2
    roles: ClassVar[tuple[str, ...]] = ("who", "reason")
    stands = "bookings > entries, for each (sum, most) > dispute"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, _ = self.domain.someone(rng, state)
        totals = sorted(self.totals(state, who).values(), reverse=True)
        if not 2 <= len(totals) <= 4 or totals[0] == totals[1]:
            return None
        return self.stated(who, rng.choice(tuple(REASONS)))

    def totals(self, state: State, who: str) -> dict[str, int]:
        """By signed transfer: what the closed disputes against its payee add up to."""
        signed = (b for b in self.domain.bookings(state, who) if is_signed(state, b.id))
        return {b.id: sum(self.domain.amounts(state, b.thing)) for b in signed}

    def suspect(self, who: str) -> Generator[ToolCall, ToolResult, str | None]:
        """The transfer to dispute; None where nothing is signed."""
        t = self.t
        totals = {}
        for row in (yield from self.transfers(who)):
            if row["status"] == "signed":
                cases = (yield ToolCall(t.entries, {t.thing: row[t.thing]})).content
                amounts = [case["amount"] for case in cases]
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
        return [disputed(start, max(totals, key=lambda id: totals[id]), reason)] if totals else []

    def hopes(self, task: Task, start: State) -> list[Changes]:
        """Any signed transfer might have been the one."""
        who, reason = self.wanted(task, start)
        return [disputed(start, id, reason) for id in self.totals(start, who)]

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (self.told_dispute(end),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        signed = self.totals(state, self.wanted(task, state)[0])
        gone = {k: row for id in signed for k, row in self.domain.lost(state, id).items()}
        prepared = {k: row for id in signed for k, row in unsigned(state, id).items()}
        return [gone, prepared] if signed else []


class Emergency(Suspicion):
    """Freeze the card besides, and look at what is signed then."""

    level = 3
    stands = "bookings > entries, for each (sum, most) > record > dispute > freeze > bookings (count)"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        stated = super().propose(rng, state, split)
        return stated if stated and frozen(state, stated[self.t.who]) else None

    def solve(self, brief: Brief) -> Solution:
        who, reason = yield from self.gather(brief)
        suspect = yield from self.suspect(who)
        if suspect is None:
            return Refusal(f"{who} has no signed transfer")
        card = (yield from self.record(who))["card_id"]
        number = yield from self.dispute(suspect, reason)
        yield ToolCall("freeze_card", {"card_id": card})
        signed = [(r["status"], r["status"] == "signed") for r in (yield from self.transfers(who))]
        yield notes.count(signed)
        return f"The dispute is {number}; {sum(counts for _, counts in signed)} transfers are signed now."

    def with_card(self, task: Task, start: State, ends: list[Changes]) -> list[Changes]:
        card = frozen(start, self.wanted(task, start)[0])
        return [{**end, **card} for end in ends] if card else []

    def ends(self, task: Task, start: State) -> list[Changes]:
        return self.with_card(task, start, super().ends(task, start))

    def hopes(self, task: Task, start: State) -> list[Changes]:
        return self.with_card(task, start, super().hopes(task, start))

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        signed = [b for b in self.domain.bookings(end, self.wanted(task, start)[0]) if is_signed(end, b.id)]
        return self.told_dispute(end), Expected("number", len(signed))


class Capped(graphs.Hold):
    """Hold the best thing's earliest slot for a person whose limit does not allow it: to be refused."""

    level = 2
    refusal = True
    stands = "search > slots > permit > hold (refused) > refuse"

    def ends(self, task: Task, start: State) -> list[Changes]:
        at = self.target(task, start)
        need, who, _ = self.party(task, start)
        account = start.row("accounts", who)
        if at is None or account is None or spent(start, who, at[1]) + need > account["daily_limit"]:
            return []
        return super().ends(task, start)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        at = self.target(task, state)
        need, who, _ = self.party(task, state)
        if at is None:
            return []
        short = (spent(state, who, at[1]) + need - 1) // 50 * 50
        return [edit("accounts", who, state.row("accounts", who) or {}, daily_limit=short)]


# ---------------------------------------------------------------- families


class BestPayeeFee(graphs.Fact):
    """The transfer fee of the most trusted payee."""

    name = "best_payee_fee"
    queries = (
        "What is the fee for a transfer to the most trusted {payee_type} on file at {branch}?",
        "How much does it cost to send money to the {payee_type} with the highest trust score at {branch}?",
        "I want to pay the best-trusted {payee_type} of {branch}. What is the transfer fee?",
        "At {branch}, what do you charge for a transfer to the {payee_type} with the top trust score?",
        "Look up the {payee_type} that {branch} trusts most and tell me the transfer fee.",
    )


class BestPayeeFeeAsked(graphs.FactAsked):
    """The transfer fee of the most trusted payee; the user leaves out the branch or the type of payee."""

    name = "best_payee_fee_asked"
    queries = (
        "What is the fee for a transfer to the most trusted {payee_type} on file at {branch}?",
        "How much does it cost to send money to the best-trusted {payee_type} at {branch}?",
        "Please tell me the transfer fee for the highest-scored {payee_type} at {branch}.",
        "Before I pay anything I need the fee: what is it for the top-trusted {payee_type} at {branch}?",
    )


class DisputeCount(graphs.Tally):
    """How many closed disputes against the most trusted payee reach an amount."""

    name = "dispute_count"
    queries = (
        "How many closed disputes of at least {at_least} euros are there against the most trusted {payee_type} on file "
        "at {branch}?",
        "Count the closed disputes over {at_least} euros or more against the {payee_type} with the highest trust score "
        "at {branch}.",
        "Look up the best-trusted {payee_type} at {branch}: how many of the closed disputes against it were about "
        "{at_least} euros or more?",
        "We review {branch}. For the {payee_type} with the top trust score, tell me the number of closed disputes that "
        "reach {at_least} euros.",
    )


class CheaperPayee(graphs.Versus):
    """Which of two named payees has the lower transfer fee."""

    name = "cheaper_payee"
    queries = (
        "Which {payee_type} on file at {branch} is cheaper to pay, {first} or {second}?",
        "I can send the money to {first} or to {second}, each a {payee_type} on file at {branch}. Whose transfer fee is lower?",
        "Compare the transfer fees for a {payee_type} at {branch}: is {first} or {second} the cheaper?",
        "At {branch} I have to choose a {payee_type}. Does a transfer to {first} or to {second} cost less?",
    )


class EarliestWindow(graphs.NextSlot):
    """The earliest clearing window of the most trusted payee that carries an amount."""

    name = "earliest_window"
    queries = (
        "When is the earliest clearing window on {date} that can carry {amount} euros to the most trusted {payee_type} "
        "on file at {branch}?",
        "On {date}, at what time can {amount} euros first go out to the {payee_type} with the highest trust score at "
        "{branch}?",
        "I want to send {amount} euros to the best-trusted {payee_type} of {branch}. Which window on {date} is the "
        "first with enough of its limit left?",
        "Find the first window on {date} in which {amount} euros still fit, for the {payee_type} with the top trust "
        "score at {branch}.",
    )


class RecallPayment(graphs.Cancel):
    """Recall the transfer on a date."""

    name = "recall_payment"
    queries = (
        "Recall the transfer from {account_id} on {date}.",
        "The money from {account_id} must not go out on {date} after all. Please recall that transfer.",
        "I changed my plans: call back what {account_id} is sending on {date}.",
        "Please stop the payment of {account_id} that is due on {date}; it is no longer needed.",
    )


class PreparePayment(graphs.Hold):
    """Prepare a transfer to the most trusted payee."""

    name = "prepare_payment"
    queries = (
        "Prepare a transfer of {amount} euros to the most trusted {payee_type} on file at {branch} on {date} from "
        "{account_id}, as early as possible.",
        "From {account_id}: {amount} euros to the {payee_type} with the highest trust score at {branch}, in the "
        "earliest window with room on {date}. Leave it unsigned.",
        "Please set up {amount} euros for the best-trusted {payee_type} of {branch} on {date}, charged to {account_id}, "
        "in the first window that can carry it. I will sign later.",
        "On {date}, {account_id} wants to send {amount} euros to the {payee_type} with the top trust score at {branch}. "
        "Prepare it for the earliest window that fits.",
    )


class PreparePaymentAsked(graphs.HoldAsked):
    """Prepare a transfer to the most trusted payee; the user leaves out the date or the amount."""

    name = "prepare_payment_asked"
    queries = (
        "Prepare a transfer of {amount} euros to the most trusted {payee_type} on file at {branch} on {date} from "
        "{account_id}, as early as possible.",
        "{account_id} wants to send {amount} euros to the best-trusted {payee_type} of {branch} on {date}. Prepare it "
        "for the earliest window with room.",
        "Please set up a payment from {account_id} to the highest-scored {payee_type} at {branch}: {amount} euros, on "
        "{date}, in the first window that fits.",
        "On {date} I want {amount} euros to go from {account_id} to the {payee_type} with the top trust score at "
        "{branch}. Prepare that as early as possible, and do not sign it.",
    )


class SignedPayment(graphs.Book):
    """Prepare and sign a transfer to the most trusted payee."""

    name = "signed_payment"
    queries = (
        "Send {amount} euros from {account_id} to the most trusted {payee_type} on file at {branch} on {date}, earliest "
        "window, and sign it with {signing_key}.",
        "{account_id} pays {amount} euros to the {payee_type} with the highest trust score at {branch} on {date}; take "
        "the first window with room and sign with {signing_key}.",
        "Prepare and sign ({signing_key}) a transfer of {amount} euros from {account_id} to the best-trusted "
        "{payee_type} of {branch}, {date}, as early as possible.",
        "Please get {amount} euros out of {account_id} to the {payee_type} with the top trust score at {branch} on "
        "{date}, in the earliest window that can carry them, signed by {signing_key}.",
    )


class NoWindowLeft(graphs.Full):
    """Prepare and sign a transfer on a day on which no window carries more: to be refused."""

    name = "no_window_left"
    queries = SignedPayment.queries


class BlockedAccount(graphs.Barred):
    """Prepare and sign a transfer from an account that is blocked: to be refused."""

    name = "blocked_account"
    queries = SignedPayment.queries


class CheapestPayment(graphs.Thrift):
    """Prepare and sign a transfer to the payee with the lowest fee."""

    name = "cheapest_payment"
    queries = (
        "Send {amount} euros from {account_id} to the {payee_type} on file at {branch} with the lowest transfer fee, on "
        "{date}, earliest window, and sign it with {signing_key}.",
        "Fees eat up everything: {amount} euros to the {payee_type} of {branch} that is cheapest to pay, on {date}, "
        "first window with room, from {account_id}, signed by {signing_key}.",
        "Find out which {payee_type} at {branch} costs the least to pay. Then transfer {amount} euros on {date} from "
        "{account_id}, as early as possible, and sign with {signing_key}.",
        "{account_id} wants {amount} euros to go to whichever {payee_type} at {branch} has the smallest transfer fee. "
        "Use the earliest window on {date} that can carry them and sign with {signing_key}.",
    )


class CheapestPaymentBlocked(graphs.ThriftBarred):
    """Prepare and sign a transfer to the payee with the lowest fee from a blocked account: to be refused."""

    name = "cheapest_payment_blocked"
    queries = CheapestPayment.queries


class QuieterDay(graphs.Outing):
    """Prepare and sign a transfer on the day with fewer orders waiting."""

    name = "quieter_day"
    queries = (
        "Send {amount} euros to the most trusted {payee_type} on file at {branch} on {date} or {other_date}, whichever "
        "has fewer orders waiting there, from {account_id}; earliest window, signed with {signing_key}.",
        "Check the queue of {branch}: on the quieter of {date} and {other_date}, by orders waiting, transfer {amount} "
        "euros from {account_id} to the best-trusted {payee_type}, as early as possible, and sign with {signing_key}.",
        "{account_id} can pay on {date} or {other_date}. Take the day with the shorter queue at {branch}, send {amount} "
        "euros to the {payee_type} with the highest trust score in the first window with room, and sign with "
        "{signing_key}.",
        "It should be {date} or {other_date}, depending on when fewer orders wait at {branch}: {amount} euros from "
        "{account_id} to the {payee_type} with the top trust score, earliest window that fits, {signing_key} to sign.",
    )


class ReschedulePayment(graphs.Shift):
    """Move a transfer to another date."""

    name = "reschedule_payment"
    queries = (
        "Reschedule the transfer from {account_id} on {date} to {new_date}, earliest window with room for it.",
        "{account_id} is short of money on {date}. Please put that transfer off to {new_date}, as early as possible.",
        "The payment that {account_id} has on {date} should go out on {new_date}, in the first window that can carry "
        "it.",
        "Change the date of the transfer from {account_id}: not {date} but {new_date}, same payee and same amount, at "
        "the earliest time that fits.",
    )


class TotalTransferFees(graphs.Total):
    """The sum of transfer fees over an account's transfers."""

    name = "total_transfer_fees"
    queries = (
        "Add up the transfer fees of all transfers from {account_id} (leave out what is recalled).",
        "What do the transfers of {account_id} cost in fees altogether, not counting recalled ones?",
        "For {account_id}: sum the payee's transfer fee over every transfer that is not recalled.",
        "{account_id} wants to know what the fees come to. What is the total over all transfers that have not been "
        "recalled?",
    )


class FastestClearing(graphs.Closest):
    """The payee of a type to which money clears fastest."""

    name = "fastest_clearing"
    queries = (
        "To which {payee_type} on file at {branch} does money from {from_payee} clear fastest?",
        "A refund lies with {from_payee} and is to go on to a {payee_type} at {branch}. Which has the shortest "
        "clearing time?",
        "Find the {payee_type} at {branch} that money from {from_payee} reaches in the fewest minutes.",
        "If {from_payee} passes the money on to a {payee_type} at {branch}, who gets it soonest?",
    )


class ReplacePayment(graphs.Rebook):
    """Replace a transfer by another one, and say how many are left."""

    name = "replace_payment"
    queries = (
        "{account_id} wants to swap: recall the transfer on {date} and send money to the most trusted {payee_type} on "
        "file at {branch} on {new_date} instead, {amount} euros, earliest window, signed with {signing_key}. How many "
        "transfers are not recalled then?",
        "Instead of the transfer on {date}, {account_id} should pay the best-trusted {payee_type} of {branch} on "
        "{new_date}: {amount} euros as early as possible, sign with {signing_key}, and recall the old transfer. Then "
        "tell me the number of transfers that are not recalled.",
        "For {account_id}: replace what goes out on {date} by a transfer to the {payee_type} with the highest trust "
        "score at {branch} on {new_date} (first window with room for {amount} euros, {signing_key}). Afterwards, how "
        "many transfers still stand?",
        "Please recall what {account_id} is sending on {date}. In its place, {new_date}: {amount} euros to the "
        "{payee_type} with the top trust score at {branch}, in the earliest window that fits, signed by {signing_key}. "
        "How many live transfers does that make?",
    )


class LimitLeft(Remainder):
    """What is left of an account's daily limit on a date."""

    name = "limit_left"
    queries = (
        "How much of the daily limit of {account_id} is left on {date}?",
        "How many euros can {account_id} still send on {date} before the daily limit is reached?",
        "What remains of the daily limit for {account_id} on {date}, once the transfers of that day that are not "
        "recalled are taken off?",
        "I want to plan {date}. Tell me how much {account_id} has left of its daily limit after the transfers already "
        "set down for that day.",
    )


class LostCard(Block):
    """Freeze the card of an account."""

    name = "lost_card"
    queries = (
        "Freeze the card of {account_id}.",
        "I have lost the card that belongs to {account_id}. Please freeze it.",
        "Somebody may have the card of {account_id}. Make sure nobody can pay with it.",
        "Please have the card for {account_id} frozen; I can't find it anywhere.",
    )


class DisputePayment(Contest):
    """Dispute the transfer on a date."""

    name = "dispute_payment"
    queries = (
        "Open a dispute about the transfer from {account_id} on {date}; the reason is {reason}.",
        "Something is wrong with what {account_id} paid on {date}. Please dispute that transfer on the ground of "
        "{reason}.",
        "I do not accept the transfer that left {account_id} on {date}. Reason for the dispute: {reason}.",
        "Dispute the payment of {account_id} dated {date}, with {reason} as the reason.",
    )


class DubiousPayee(Suspicion):
    """Dispute the transfer whose payee has lost the most in closed disputes."""

    name = "dubious_payee"
    queries = (
        "Of the signed transfers from {account_id}, dispute the transfer to the payee whose closed disputes add up to "
        "the most euros; the reason is {reason}.",
        "Check the payees of all signed transfers of {account_id}. The payee with the highest sum of closed disputes "
        "is not to be trusted: open a dispute about that transfer on the ground of {reason}.",
        "{account_id} has paid somebody dubious. Find the signed transfer whose payee has the largest total of closed "
        "disputes, in euros, and dispute it with {reason} as the reason.",
        "Please dispute a signed transfer of {account_id}: the payee with the most euros in closed disputes is the "
        "culprit. Reason: {reason}.",
    )


class StolenCard(Emergency):
    """Dispute the transfer whose payee has lost the most in disputes, freeze the card, and say how many stay signed."""

    name = "stolen_card"
    queries = (
        "The card of {account_id} was stolen. Freeze it, and of the signed transfers dispute the transfer to the payee "
        "whose closed disputes add up to the most euros (reason: {reason}). How many transfers are still signed then?",
        "Somebody got into {account_id}: look for the signed transfer whose payee has the largest total of closed "
        "disputes, open a dispute about it on the ground of {reason}, and freeze the card. Then tell me the number of "
        "transfers that are left as signed.",
        "Emergency for {account_id}! The signed transfer to the payee with the most euros in closed disputes is to be "
        "disputed, the reason is {reason}, and the card is to be frozen. Afterwards, how many transfers are signed?",
        "Please secure {account_id}. Have the card frozen and open a dispute, with {reason} as the reason, about the "
        "signed transfer whose payee has the highest sum of closed disputes. How many signed transfers remain?",
    )


class OverLimit(Capped):
    """Prepare a transfer that the account's daily limit does not allow: to be refused."""

    name = "over_limit"
    queries = PreparePayment.queries


FAMILIES: tuple[type[graphs.Graph], ...] = (
    BestPayeeFee, BestPayeeFeeAsked, DisputeCount, CheaperPayee, EarliestWindow, RecallPayment, NoWindowLeft,
    PreparePayment, PreparePaymentAsked, SignedPayment, ReschedulePayment, TotalTransferFees, FastestClearing,
    BlockedAccount, CheapestPayment, QuieterDay, ReplacePayment, CheapestPaymentBlocked,
    LimitLeft, LostCard, DisputePayment, DubiousPayee, StolenCard, OverLimit,
)  # fmt: skip

BANKING = Banking()
domains.add(BANKING.name, BANKING)
