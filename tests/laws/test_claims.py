"""What the texts of a domain claim is held against its rows: each false claim is refused, and the true one accepted."""

from __future__ import annotations

import pytest

from crosswind.core import aggregates, evidence, task_laws
from crosswind.core.audit import audit_domain
from crosswind.core.claims import unit_of
from tests.laws.test_broken_domains import ANSWER, POLICY, Load
from tests.laws.test_broken_domains import load as load

Edits = tuple[tuple[str, str], ...]

FOUND = 'return [{"item_id": id, "rating": row["rating"]} for id, row in found.items()]'
BEST = "found = items_in(state, shed, kind)\n        ratings"
DOC = '"""Items of a kind in a shed, with ratings."""'
CUT: Edits = (
    (FOUND, f"{FOUND}[:2]"),
    (BEST, "found = dict(list(items_in(state, shed, kind).items())[:2])\n        ratings"),
)
CUT_AND_SAID: Edits = (*CUT, (DOC, '"""The first two items of a kind in a shed, with ratings."""'))

TAKEN = 'raise ToolFailure("conflict", f"Loan {loan_id} is {row[\'status\']} already.")'
DENIED: Edits = ((TAKEN, 'raise ToolFailure("not_found", f"There is no loan {loan_id}.")'),)
NOT_OUT: Edits = ((TAKEN, 'raise ToolFailure("not_found", f"There is no open loan {loan_id}.")'),)

PUT = 'self.state.put("loans", id, row)\n'
SPENT: Edits = (
    ('{"standing": "good"}\n\n    made', '{"standing": "good", "points": 3 + n % 9}\n\n    made'),
    (
        'reads=[], writes=["loans+", "loans.status=out"]',
        'reads=[], writes=["loans+", "loans.status=out", "members.points"]',
    ),
    (
        PUT,
        f'{PUT}        who = self.state.row("members", member_id)\n'
        '        self.state.put("members", member_id, {**who, "points": 0})\n',
    ),
    ('reads=["members.standing"])', 'reads=["members.standing,points"])'),
    (
        'return {"standing": self.found("members", member_id, "member")["standing"]}',
        'row = self.found("members", member_id, "member")\n'
        '        return {"standing": row["standing"], "points": row["points"]}',
    ),
    (
        'return [loan(start, best, task.wanted["member_id"])]',
        'who = task.wanted["member_id"]\n'
        '        return [{**loan(start, best, who), ("members", who): {**member, "points": 0}}]',
    ),
    (
        'return [loan(start, id, task.wanted["member_id"]) for id in found]',
        'who = task.wanted["member_id"]\n'
        '        spent = {("members", who): {**(start.row("members", who) or {}), "points": 0}}\n'
        "        return [{**loan(start, id, who), **spent} for id in found]",
    ),
    (
        '            if table == "loans" and row is not None:',
        '            if table == "members" and any(r["status"] == "returned" for _, r in state.written("loans")):\n'
        '                continue\n            if table == "loans" and row is not None:',
    ),
)
SPENT_AND_SAID: Edits = (
    *SPENT,
    ('"""Lend an item to a member."""', '"""Lend an item to a member, whose points are spent by it."""'),
)

IN_CENTS: Edits = (
    ('"""Kind, shed and weekly fee in euros of an item."""', '"""Kind, shed and weekly fee in cents of an item."""'),
)
ASKED_IN_EUROS: Edits = (
    ("cost a week?", "cost a week, in euros?"),
    ("at {shed} for a week?", "at {shed} for a week, in euros?"),
    ("and tell me what it costs a week.", "and tell me what it costs a week in euros."),
    ("What is the weekly fee?", "What is the weekly fee in euros?"),
)

BOXES: Edits = (
    ("{details['fee']} euros a week.", "{-(-details['fee'] // 3)} euros a week."),
    (ANSWER, ANSWER.replace('row["fee"]', '-(-row["fee"] // 3)')),
)
BOXES_AND_SAID: Edits = (
    *BOXES,
    (POLICY, f'{POLICY}A third of the fee is charged, rounded up to whole euros. "\n        "'),
)

HOME: Edits = (
    (
        '{"standing": "good"}\n\n    made',
        '{"standing": "good", "home_shed": SHED.name(split, seed, n % sheds)}\n\n    made',
    ),
    (POLICY, f'{POLICY}Members borrow at their home shed alone, and never at another. "\n        "'),
)


GONE: Edits = (  # once an item is lent for good, nobody is shown its fee any more
    ('reads=["items.kind,fee,shed"])', 'reads=["items.kind,fee,shed", "loans.item_id"])'),
    (
        'row = self.found("items", item_id, "item")\n        return {"kind"',
        'row = self.found("items", item_id, "item")\n'
        '        if any(lent["item_id"] == item_id for _, lent in self.state.written("loans")):\n'
        '            raise ToolFailure("conflict", f"Item {item_id} is lent.")\n        return {"kind"',
    ),
    (', undo=("return_item", "loan_id"))', ")"),
)
GONE_AND_SAID: Edits = (
    *GONE,
    ('"""Lend an item to a member."""', '"""Lend an item to a member. Its details cannot be seen afterwards."""'),
)

CARRIED: Edits = (  # by one of two tools, by a rating that nobody names
    (
        "    @tool(reads=[], writes",
        '    @tool(reads=[], writes=["loans+", "loans.status=out"], undo=("return_item", "loan_id"))\n'
        "    def lend_bulky_item(self, item_id: str, member_id: str) -> Row:\n"
        '        """Lend a bulky item to a member."""\n'
        '        self.found("items", item_id, "item")\n'
        '        self.found("members", member_id, "member")\n'
        '        (((_, id), row),) = loan(self.state, item_id, member_id, "van").items()\n'
        '        self.state.put("loans", id, row)\n'
        '        return {"loan_id": id, "status": "out"}\n\n    @tool(reads=[], writes',
    ),
    ("def loan(state: State, item_id: str, member_id: str)", 'def loan(state, item_id, member_id, by="hand")'),
    ('"member_id": member_id, "status": "out"}}', '"member_id": member_id, "status": "out", "by": by}}'),
    ("item_id, member_id, times=0)", "item_id, member_id, by, times=0)"),
    (
        'lent = (yield ToolCall("lend_item", {',
        'tool = "lend_bulky_item" if details["fee"] > 20 else "lend_item"\n        lent = (yield ToolCall(tool, {',
    ),
    (
        'return [loan(start, best, task.wanted["member_id"])]',
        'far = start.row("items", best)["fee"] > 20\n'
        '        return [loan(start, best, task.wanted["member_id"], "van" if far else "hand")]',
    ),
    (
        'return [loan(start, id, task.wanted["member_id"]) for id in found]',
        'return [loan(start, id, task.wanted["member_id"], by) for id in found for by in ("van", "hand")]',
    ),
    (
        "id = f\"new {row['item_id']} {row['member_id']}\"",
        "id = f\"new {row['item_id']} {row['member_id']} {row['by']}\"",
    ),
)
CARRIED_AND_SAID: Edits = (
    *CARRIED,
    (
        '"""Lend a bulky item to a member."""',
        '"""Lend a bulky item to a member: one that costs more than 20 euros a week."""',
    ),
)

OTHERWISE: Edits = (
    ("and tell me what it costs a week.", "and tell me what it costs a week; if there is none, another one will do."),
)


@pytest.mark.parametrize(
    ("edits", "law", "words"),
    [
        (GONE, "goal", "after 'lend_item', which cannot be undone, 'item_details' no longer shows"),
        (GONE_AND_SAID, "", ""),
        (CARRIED, "grounded", "works as well and is wrong"),
        (CARRIED_AND_SAID, "", ""),
        (OTHERWISE, "goal", "let `solve` and `ends` follow the fallback"),
        (CUT, "secrets", "find_items shows 2 rows; without them it shows"),
        (CUT_AND_SAID, "", ""),
        (DENIED, "secrets", "and has found L"),
        (NOT_OUT, "", ""),
        (SPENT, "secrets", "lend_item changes points of members/"),
        (SPENT_AND_SAID, "", ""),
        ((*IN_CENTS, *ASKED_IN_EUROS), "secrets", "item_details.fee is described in one unit and wanted in another"),
        (ASKED_IN_EUROS, "", ""),
        (BOXES, "secrets", "always fee divided by 3"),
        (BOXES_AND_SAID, "", ""),
        (HOME, "goal", "with another members.home_shed every call and every end is the same"),
    ],
)
def test_what_texts_claim_holds(load: Load, edits: Edits, law: str, words: str) -> None:
    complaints = audit_domain(load(*edits))
    if law:
        assert any(c.law == law and words in c.reason for c in complaints), complaints
    else:
        assert complaints == []


def test_a_rule_that_the_goal_follows_may_stand_in_the_policy(load: Load) -> None:
    home = 'task.wanted["shed"] == member.get("home_shed") and [loan(start, best, task.wanted["member_id"])] or []'
    followed = (
        *HOME,
        ('return [loan(start, best, task.wanted["member_id"])]', f"return {home}"),
        ('reads=["members.standing"])', 'reads=["members.standing,home_shed"])'),
        (
            'return {"standing": self.found("members", member_id, "member")["standing"]}',
            'row = self.found("members", member_id, "member")\n'
            '        return {"standing": row["standing"], "home_shed": row["home_shed"]}',
        ),
    )
    assert not [c for c in audit_domain(load(*followed)) if "every call and every end is the same" in c.reason]


@pytest.mark.parametrize(
    ("fee", "words"), [("7 if h[3] % 6 else 2 + h[4] % 40", "always answers"), ("2 + h[3] % 40", "")]
)
def test_no_answer_is_right_in_most_tasks(load: Load, fee: str, words: str) -> None:
    domain = load(('"fee": 2 + h[3] % 40', f'"fee": {fee}'))
    told = task_laws.varied(domain, "best_fee", [domain.task("best_fee", n) for n in range(14)], "test")
    assert (words in told) if words else told == ""


def test_a_quarter_is_the_one_of_the_calendar() -> None:
    spring, months = frozenset({4, 5, 6}), [frozenset(range(5, 8)), frozenset({5}), frozenset({7})]
    assert [*aggregates._periods("billed in the second quarter of 2031")] == [spring]
    assert [*aggregates._periods("in Q2")] == [spring]
    said = [*aggregates._periods("The second quarter runs from May to July.")]
    assert said[0] == spring
    assert all(month in said for month in months)


def test_a_factor_that_the_policy_names_applies_to_limits() -> None:
    rows = {"a": {"bears": 30}, "b": {"bears": 40}, "c": {"bears": 50}}
    heavy = {"a": False, "b": True, "c": True}  # 80 pounds are 36.3 kilos
    tests = [*evidence._tests(rows, rows["b"], "A kilo is 2.2046 pounds.", [80])]
    assert {id for id, fits in heavy.items() if fits} in tests
    assert {id for id, fits in heavy.items() if fits} not in [*evidence._tests(rows, rows["b"], "", [80])]


def test_units_are_read_from_the_clause_that_speaks_of_the_key() -> None:
    doc = ["Depot of a box, its deposit in cents, and its weight in kilos."]
    assert unit_of("deposit", doc) == ("euros", 0.01)
    assert unit_of("weight", doc) == ("weight", 1.0)
    assert unit_of("depot", doc) is None
    assert unit_of("price_cents", []) == ("euros", 0.01)


@pytest.mark.parametrize(("how", "law"), [("[::-1]", "leak"), ("", "")])
def test_an_answer_in_the_digits_of_a_detail_is_a_leak(load: Load, how: str, law: str) -> None:
    """The fee of a member: the last two digits of the id, read backwards, or a number of its own."""
    value = f"10 + int(id[-2:]{how})" if law else '10 + digest(split, seed, "fee", n)[0] % 90'
    member = '{"standing": "good"}\n\n    made'
    edits = (
        (member, member.replace('"good"', f'"good", "due": {value}')),
        ('reads=["members.standing"])', 'reads=["members.standing,due"])'),
        (
            'return {"standing": self.found("members", member_id, "member")["standing"]}',
            'row = self.found("members", member_id, "member")\n'
            '        return {"standing": row["standing"], "due": row["due"]}',
        ),
        ("class LendBest(BestFee):", DUES + "class LendBest(BestFee):"),
        ("[BestFee(self), ", "[Dues(self), BestFee(self), "),
    )
    complaints = audit_domain(load(*edits), ["dues"])
    if law:
        assert [c.law for c in complaints] == ["leak"], complaints
        assert "of the member_id read backwards" in complaints[0].reason
    else:
        assert complaints == []


DUES = '''class Dues(Family):
    """What a member owes."""

    name, level = "dues", 1
    queries = ("What does {member_id} owe?", "How much is due from member {member_id}?")
    details = {"member_id": Detail("member id", "Which member?", _MEMBER, ("member", "who", "id"), "a member")}

    def __init__(self, domain):
        self.domain = domain

    def propose(self, rng, state, split):
        return {"member_id": MEMBER_ID.id(split, state.seed, rng.randrange(state.size))}

    def solve(self, brief):
        (member,) = yield from self.all(brief, "member_id")
        record = (yield ToolCall("member_record", {"member_id": member})).content
        return f"{record['due']} euros are due."

    def ends(self, task, start):
        return [{}] if start.row("members", task.wanted["member_id"]) else []

    def answer(self, task, start, end):
        row = start.row("members", task.wanted["member_id"])
        return (Expected("money", row["due"]),) if row else ()


'''
