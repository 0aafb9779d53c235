"""Mistakes that authors make in domains: each is refused for the right reason, and the template without it is fair."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

import crosswind
from crosswind.authoring import plugins
from crosswind.base.errors import CannotPerturb, CrosswindError, Unfair
from crosswind.core.audit import audit_domain
from crosswind.core.domain import Domain
from crosswind.core.draw import draw
from crosswind.core.registry import domains

TEMPLATE = (Path(crosswind.__file__).parent / "data/templates/domain.txt").read_text("utf-8")
Load = Callable[..., Domain]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """The template with some of its text replaced, as a domain."""

    def loaded(*edits: tuple[str, str]) -> Domain:
        text = TEMPLATE.replace("{{name}}", "lending").replace("{{Name}}", "Lending")
        text = text[: text.index("\ndomains.add(")]
        for old, new in edits:
            assert old in text, old
            text = text.replace(old, new)
        file = tmp_path / f"lending{crc32(repr(edits).encode())}.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        domain = module.Lending()
        domain.name = file.stem
        return domain  # type: ignore[no-any-return]

    return loaded


COARSE = ('"rating": round(1 + (h[1] * 256 + h[2]) % 400 / 100, 2)', '"rating": 1 + h[1] % 3')
TIES = ("if not ratings or ratings.count(ratings[0]) > 1:", "if not ratings:")
DETAILS = 'return {"kind": row["kind"], "shed": row["shed"], "fee": row["fee"]}'
ANSWER = 'return (Expected("money", row["fee"]),) if row else ()'
PLAN = (
    (
        "def lend_item(self, item_id: str, member_id: str)",
        "def lend_item(self, item_id: str, member_id: str, plan: str)",
    ),
    ('undo=("return_item", "loan_id"))', 'undo=("return_item", "loan_id"), enums={"plan": ("basic", "premium")})'),
    ("loan(self.state, item_id, member_id).items()", "loan(self.state, item_id, member_id, plan).items()"),
    ("def loan(state: State, item_id: str, member_id: str)", 'def loan(state, item_id, member_id, plan="basic")'),
    ('"member_id": member_id, "status": "out"}}', '"member_id": member_id, "status": "out", "plan": plan}}'),
    (
        '{"item_id": item, "member_id": member_id})).content',
        '{"item_id": item, "member_id": member_id, "plan": "basic"})).content',
    ),
)
BY_ID = (  # of the best-rated, the one with the lowest id: in the solution and in the goal
    COARSE,
    TIES,
    ("return next(id for id, row in found", "return min(id for id, row in found"),
    (
        'max(found, key=lambda row: float(row["rating"]))["item_id"]',
        'min(found, key=lambda row: (-row["rating"], row["item_id"]))["item_id"]',
    ),
)
SAID_BY_ID = (
    ("cost a week?", "with the lowest id cost a week?"),
    ("at {shed} for a week?", "and the lowest id at {shed} for a week?"),
    ("in the shed of {shed} and tell", "with the lowest id in the shed of {shed} and tell"),
    ("at {shed}. Lend it.", "and the lowest id at {shed}. Lend it."),
)
RETURN = '    @tool(reads=["loans.status"], writes=["loans.status=returned"])\n'
PARDON = (
    RETURN,
    """    @tool(reads=["members.standing"], writes=["members.standing=good"])
    def pardon(self, member_id: str) -> Row:
        \"\"\"Forgive a member.\"\"\"
        self.state.put("members", member_id, {**self.found("members", member_id, "member"), "standing": "good"})
        return {"standing": "good"}

"""
    + RETURN,
)
CLUB = (
    (
        RETURN,
        """    @tool(reads=[], writes=["loans+", "loans.status=out"], undo=("return_item", "loan_id"))
    def lend_to_club(self, item_id: str, member_id: str, club: str) -> Row:
        \"\"\"Lend an item to a member of a club.\"\"\"
        (((_, id), row),) = loan(self.state, item_id, member_id).items()
        self.state.put("loans", id, {**row, "club": club})
        return {"loan_id": id, "status": "out"}

"""
        + RETURN,
    ),
    (
        'if row["status"] != "out":\n                continue',
        'if row["status"] != "out" or "club" in row:\n                continue',
    ),
)
HIDE = 'if table == "loans" and row is not None:'
FLAT = (
    "            out[table, id] = row\n",
    '            out[table, id] = {k: v for k, v in row.items() if k != "club"} if row else row\n',
)
FITS = (
    RETURN,
    """    @tool(reads=["items.fee"], enums={"kind": KINDS})
    def deposit(self, item_id: str, kind: str) -> Row:
        \"\"\"What is to be left for an item of a kind.\"\"\"
        return {"deposit": {KINDS[0]: 5}[kind] + self.found("items", item_id, "item")["fee"]}

"""
    + RETURN,
)
CENTS = (
    (DETAILS, DETAILS.replace('row["fee"]', 'row["fee"] * 100')),
    ("costs {details['fee']} euros", "costs {details['fee'] // 100} euros"),
)
INSURED = (
    ("costs {details['fee']} euros", "costs {details['fee'] + 3} euros"),
    (ANSWER, ANSWER.replace("]),)", "] + 3),)")),
)
SECOND_CLASS = (
    ('"fee": 2 + h[3] % 40', '"fee": 2 + h[3] % 40, "sort": ("tidy", "worn", "rusty")[h[4] % 3]'),
    ('"items.kind,fee,shed"', '"items.kind,fee,shed,sort"'),
    (DETAILS, DETAILS.replace('"fee": row["fee"]', '"sort": "ABC"[("tidy", "worn", "rusty").index(row["sort"])]')),
    (ANSWER, 'return (Expected("choice", row["sort"], ("tidy", "worn", "rusty")),) if row else ()'),
    ("costs {details['fee']} euros a week.", "is {dict(A='tidy', B='worn', C='rusty')[details['sort']]}."),
    ("cost a week?", "look like?"),
    (
        "How much is the {kind} with the highest rating at {shed} for a week?",
        "In what state is the best-rated {kind} of {shed}?",
    ),
    ("and tell me what it costs a week.", "and tell me its state."),
    ("What is the weekly fee?", "What is its state?"),
)
EVEN_ONLY = (
    (
        "found = items_in(state, shed, kind)\n        ratings",
        "found = {i: r for i, r in items_in(state, shed, kind).items() if i[-1] in '02468'}\n        ratings",
    ),
    (
        "        if not found:\n",
        "        found = [row for row in found if row['item_id'][-1] in '02468']\n        if not found:\n",
    ),
)
ANY = (
    ("What does the best-rated {kind} in", "What does a {kind} in"),
    ("How much is the {kind} with the highest rating at", "How much is some {kind} at"),
    (
        "Lend {member_id} the best-rated {kind} in the shed of {shed} and tell me what it costs a week.",
        "Lend {member_id} some {kind} in the shed of {shed}.",
    ),
    (
        "wants the {kind} with the highest rating at {shed}. Lend it. What is the weekly fee?",
        "wants some {kind} at {shed}. Lend one.",
    ),
)
TWO_FACES = (
    ('"items.kind,fee,shed"', '"items.kind,fee,shed,rating"'),
    (DETAILS, DETAILS.replace('"fee"', '"rating": round(6 - row["rating"], 2), "fee"', 1)),
)
WORN_OUT = (
    ("    def item(id: str)", "    served = dict.fromkeys(())\n\n    def item(id: str)"),
    ("        h = digest(split", "        served[id] = (served.get(id) or 0) + 1\n        h = digest(split"),
    ('"fee": 2 + h[3] % 40', '"fee": 2 + h[3] % 40 + served[id] // 50'),
)
IN_FOUR_DAYS = (
    *((old.replace("plan", "day"), new.replace("plan", "day")) for old, new in PLAN[:1]),
    ("loan(self.state, item_id, member_id).items()", "loan(self.state, item_id, member_id, day).items()"),
    ("def loan(state: State, item_id: str, member_id: str)", 'def loan(state, item_id, member_id, day="2031-03-14")'),
    ('"member_id": member_id, "status": "out"}}', '"member_id": member_id, "status": "out", "day": day}}'),
    ('"member_id": member_id})).content', '"member_id": member_id, "day": "2031-03-14"})).content'),
    ("of {shed} and tell", "of {shed} in 4 days and tell"),
    ("Lend it. What", "Lend it in 4 days. What"),
)
RATED = 'sum(row["rating"] >= 3 for row in {})'
COUNT = (  # how many items there are of a kind, of which those below 3 are left out
    ("PER_SHED = 16", "PER_SHED = 48"),
    (
        "What does the best-rated {kind} in the shed of {shed} cost a week?",
        "How many items of the kind {kind} has {shed}?",
    ),
    (
        "How much is the {kind} with the highest rating at {shed} for a week?",
        "Count what is of the kind {kind} at {shed}.",
    ),
    ("return f\"It costs {details['fee']} euros a week.\"", f"return f'There are {{{RATED.format('found')}}}.'"),
    (
        ANSWER,
        "n = "
        + RATED.format('items_in(start, task.wanted["shed"], task.wanted["kind"]).values()')
        + '\n        return (Expected("number", n, unit="count"),) if best else ()',
    ),
)
SAID_COUNT = (
    ("items of the kind {kind} has {shed}", "items of the kind {kind} rated 3 or better has {shed}"),
    ("Count what is of the kind {kind} at {shed}", "Count what is of the kind {kind} at {shed}, rated no lower than 3"),
)
FOUND = 'row = self.found("items", item_id, "item")\n        return {"kind"'
CACHED = ((FOUND, FOUND.replace("self.found(", 'self.__dict__.setdefault("kept", self.found(').replace('m")', 'm"))')),)
CACHED_BY_ID = ((FOUND, CACHED[0][1].replace('"kept"', 'f"kept {item_id}"')),)
LONG_ENOUGH = (  # any that is good enough is asked for, and the best is wanted
    (
        "Lend {member_id} the best-rated {kind} in the shed of {shed} and tell me what it costs a week.",
        "Lend {member_id} a {kind} with a rating of at least 1 in the shed of {shed}.",
    ),
    (
        "wants the {kind} with the highest rating at {shed}. Lend it. What is the weekly fee?",
        "wants a {kind} at {shed}, rated no lower than 1. Lend one.",
    ),
)
PROMISED_FEES = (
    '"""Items of a kind in a shed, with ratings."""',
    '"""Items of a kind in a shed, the one with the highest rating first."""',
)
COLOUR = (  # a wish that nobody follows
    ("tell me what it costs a week.", "tell me what it costs a week. Paint its label {colour}."),
    ("What is the weekly fee?", "What is the weekly fee? Paint its label {colour}."),
    (
        '("member", "who", "whom", "id"), "a member"),',
        '("member", "who", "whom", "id"), "a member"),\n        "colour": Detail("colour", "Which colour?", '
        'read_choice({"red": (), "blue": ()}), ("colour",), "in some colour"),',
    ),
    ("rng.randrange(state.size))}", 'rng.randrange(state.size)), "colour": rng.choice(("red", "blue"))}'),
)
PAINTED = tuple(
    (old, new.replace('"plan": "basic"', '"plan": colour').replace('("basic", "premium")', '("red", "blue")'))
    for old, new in PLAN
    if '"basic")' not in new
)
FOLLOWED = (
    *COLOUR,
    *PAINTED,
    ("def loan(state: State, item_id: str, member_id: str)", 'def loan(state, item_id, member_id, plan="red")'),
    ('return [loan(start, best, task.wanted["member_id"])]', "return [loan(start, best, *self.whom(task))]"),
    ('return [loan(start, id, task.wanted["member_id"]) for', "return [loan(start, id, *self.whom(task)) for"),
    (
        "    def conceivable_ends(",
        '    def whom(self, task):\n        return task.wanted["member_id"], task.wanted["colour"]\n\n'
        "    def conceivable_ends(",
    ),
    (
        'kind, shed, member_id = yield from self.all(brief, "kind", "shed", "member_id")',
        'kind, shed, member_id, colour = yield from self.all(brief, "kind", "shed", "member_id", "colour")',
    ),
)


def roles(borrower: str, shed: str) -> tuple[tuple[str, str], ...]:
    """Lending that is sent the member and the shed under these names."""
    return (
        (
            "def lend_item(self, item_id: str, member_id: str)",
            f"def lend_item(self, item_id: str, {borrower}: str, {shed}: str)",
        ),
        (
            'self.found("members", member_id, "member")\n'
            "        (((_, id), row),) = loan(self.state, item_id, member_id)",
            f'self.found("members", {borrower}, "member")\n'
            f"        (((_, id), row),) = loan(self.state, item_id, {borrower})",
        ),
        ('"member_id": member_id})).content', f'"{borrower}": member_id, "{shed}": shed}})).content'),
        ('"member_id": Detail("member id"', '"member_id": Detail("borrower"'),
    )


POLICY = '"You work for sheds that lend items. '

BROKEN: dict[str, tuple[tuple[tuple[str, str], ...], str, str]] = {
    # name: (edits, law, words in the complaint)
    "a whole row is shown": (((DETAILS, "return dict(row)"),), "footprint", "'item_details' shows items.rating"),
    "rows are read past the state": (
        ((DETAILS, f'extra = self.state.derive("items", item_id)\n        {DETAILS}'),),
        "footprint",
        "past `state.row`",
    ),
    "a hidden column decides": (
        ((DETAILS, f'if row["rating"] > 3:\n            row = {{**row, "fee": 99}}\n        {DETAILS}'),),
        "footprint",
        "'item_details' reads items.rating",
    ),
    "a tool off every way shows too much": (
        (
            (
                'return {"standing": self.found("members", member_id, "member")["standing"]}',
                'best = self.state.row("items", ITEM_ID.id(self.state.split, self.state.seed, 3))\n'
                '        member = self.found("members", member_id, "member")\n'
                '        return {"standing": member["standing"], "fee": best["fee"]}',
            ),
        ),
        "footprint",
        "'member_record' shows items.fee",
    ),
    "an effect is not declared": (
        (('"loans+", "loans.status=out"', '"loans+"'),),
        "footprint",
        "writes loans.status=out",
    ),
    "a column does not exist": (
        (('"items.kind,fee,shed"', '"items.kind,fee,shed,colour"'),),
        "footprint",
        "items.colour",
    ),
    "a table does not exist": ((("reads=[], writes", 'reads=["stock.level"], writes'),), "footprint", "'stock'"),
    "undone by nothing": ((('undo=("return_item"', 'undo=("give_back"'),), "footprint", "'give_back'"),
    "undone by a key that the result lacks": (
        (('return {"loan_id": id, "status": "out"}', 'return {"loan": id, "status": "out"}'),),
        "footprint",
        "'loan_id'",
    ),
    "the undo leaves something behind": (
        (
            ('writes=["loans.status=returned"]', 'writes=["loans.status=returned", "fines+"]'),
            (
                'return {"loan_id": loan_id, "status": "returned"}',
                'self.state.put("fines", loan_id, {"amount": 3})\n        return {"loan_id": loan_id}',
            ),
        ),
        "footprint",
        "leaves behind: fines/",
    ),
    "a listed value raises": ((FITS,), "footprint", "'deposit' raised KeyError"),
    "a write that does not count lifts the bar": (
        (PARDON, (HIDE, f'if table == "members":\n                continue\n            {HIDE}')),
        "refusal",
        "pardon(",
    ),
    "a second tool goes past the rule": ((*CLUB, FLAT), "refusal", "lend_to_club("),
    "ties by id": (BY_ID, "ties", "taken for its id"),
    "the rule reads what it does not say": (
        (('"loans.status", "members.standing")', '"loans.status")'),),
        "footprint",
        "members.standing",
    ),
    "ties by order": ((COARSE, TIES), "ties", "rows of find_items"),
    "the request holds the answer": (
        (
            ("cost a week?", "cost a week? Is it the {kind}?"),
            (ANSWER, 'return (Expected("name", task.wanted["kind"]),) if row else ()'),
            ("return f\"It costs {details['fee']} euros a week.\"", 'return f"It is the {kind}."'),
        ),
        "leak",
        "only",
    ),
    "the answer is always the same": (
        (('"fee": 2 + h[3] % 40', '"fee": 7'),),
        "leak",
        "always answers",
    ),
    "a description states the answer": (
        (
            ('"fee": 2 + h[3] % 40', '"fee": 1234'),
            (
                '"""Kind, shed and weekly fee in euros of an item."""',
                '"""Kind, shed and weekly fee of an item. The fee is 1234 euros."""',
            ),
        ),
        "leak",
        "quotes what is shown",
    ),
    "a value that only a schema lists": (PLAN, "grounded", "'premium' as well"),
    "nothing to state": (((ANSWER, "return ()"),), "idle", "says anything"),
    "writes that do not count": (
        (('if row["status"] == "returned":', 'if row["status"]:'),),
        "idle",
        "normalise",
    ),
    "a tool that draws by itself": (
        (('"fee": row["fee"]}', '"fee": row["fee"] + __import__("random").randrange(10**6)}'),),
        "goal",
        "fails the check 'answer'",
    ),
    "tasks from a shared generator": (
        (("kind = rng.choice(KINDS)", 'kind = __import__("random").choice(KINDS)'),),
        "seeded",
        "two tasks",
    ),
    "a unit that no text gives": (CENTS, "secrets", "always fee times 0.01"),
    "a summand that no text gives": (INSURED, "secrets", "always fee plus 3"),
    "a word that is shown nowhere": (SECOND_CLASS, "secrets", "was shown nowhere"),
    "a date counted from one that nobody shows": (IN_FOUR_DAYS, "grounded", "never shown"),
    "a filter that nobody states": (EVEN_ONLY, "grounded", "no other will do"),
    "any will do, and one is right": (ANY, "grounded", "no other will do"),
    "two tools contradict each other": (TWO_FACES, "secrets", "shows the rating"),
    "a row that changes as it is derived": (WORN_OUT, "seeded", "derived for the"),
    "a count that leaves out what nobody names": (COUNT, "grounded", "are counted"),
    "a look-up that keeps its first answer": (CACHED, "footprint", "once something else was looked up"),
    "one of those that are good enough": (LONG_ENOUGH, "grounded", "no other will do"),
    "an order that is not kept": ((PROMISED_FEES,), "ties", "its rows come in another order"),
    "a wish that nobody follows": (COLOUR, "goal", "the request states the colour"),
    "sent as the opposite": (roles("lender", "borrower"), "secrets", "is sent the borrower as 'lender'"),
    "a tool raises": (
        (('"fee": row["fee"]}', '"fee": row["cost"]}'),),
        "code",
        "tool 'item_details' raised KeyError: 'cost'",
    ),
    "solve raises": ((("details['fee']", "details['cost']"),), "code", "solve of the family"),
    "ends is missing": ((("def ends(self", "def ends_(self"),), "code", "ends of the family"),
    "a hole in a wording": (
        (("{kind} in the shed of {shed} cost", "{sort} in the shed of {shed} cost"),),
        "code",
        "{sort}",
    ),
}


def test_the_template_is_fair(load: Load) -> None:
    assert audit_domain(load()) == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_domain_is_refused(load: Load, name: str) -> None:
    edits, law, words = BROKEN[name]
    domain = load(*edits)
    complaints = audit_domain(domain)
    assert any(c.law == law and words in c.reason for c in complaints), list(map(str, complaints))
    with pytest.raises((CannotPerturb, Unfair)) as caught:  # and nothing is drawn from it
        [draw(domain, domain.task(family, 1), (), 0) for family in domain.families]
    assert not re.search(r"no fair draw|lower the severity", str(caught.value))


def test_a_domain_with_a_missing_undo_tool_is_not_registered(load: Load) -> None:
    domain = load(*BROKEN["undone by nothing"][0])
    with pytest.raises(CrosswindError, match="'lend_item' is undone by 'give_back', and there is no such tool"):
        domains.add(domain.name, domain)
    assert domain.name not in domains


def test_what_breaks_a_law_may_be_mended(load: Load) -> None:
    """The same domains once fixed: a tie is broken, an order promised, a choice stated, a column declared."""
    promised = (
        '"""Items of a kind in a shed, with ratings."""',
        '"""Items of a kind in a shed, with ratings, best first."""',
    )
    sort = (
        "for id, row in found.items()]",
        "for id, row in sorted(found.items(), key=lambda p: (-p[1]['rating'], p[0]))]",
    )
    assert not [c for c in audit_domain(load(COARSE)) if c.law == "ties"]
    ordered = ('item = max(found, key=lambda row: float(row["rating"]))', "item = found[0]")
    assert audit_domain(load(promised, sort, ordered)) == []
    assert not [c for c in audit_domain(load(*BY_ID, *SAID_BY_ID)) if c.law == "ties"]
    assert audit_domain(load((FITS[0], FITS[1].replace("{KINDS[0]: 5}[kind]", "len(kind)")))) == []
    assert audit_domain(load(PARDON)) == []  # a pardon counts as a change
    assert audit_domain(load(CLUB[0], FLAT)) == []  # the rule holds for clubs
    said = (
        ("Lend {member_id} the", "Lend {member_id} on the basic plan the"),
        ("Lend it. What", "Lend it, basic plan. What"),
    )
    assert audit_domain(load(*PLAN, *said)) == []
    cents = ("shed and weekly fee in euros of an item", "shed and weekly fee in cents of an item")
    assert audit_domain(load(*CENTS, cents)) == []
    assert audit_domain(load(*INSURED, (POLICY, f"{POLICY}Add 3 euros of insurance to every fee. "))) == []
    assert audit_domain(load(*IN_FOUR_DAYS, (POLICY, f"{POLICY}Today is 2031-03-10. "))) == []
    legend = ("shed and weekly fee in euros of an item", "shed and state (A tidy, B worn, C rusty) of an item")
    assert audit_domain(load(*SECOND_CLASS, legend)) == []
    assert audit_domain(load(*EVEN_ONLY, (POLICY, f"{POLICY}Lend only items whose number is even. "))) == []
    wear = ("shed and weekly fee in euros", "shed, rating by the last user and weekly fee in euros")
    assert audit_domain(load(*TWO_FACES, wear)) == []
    every = ('return [loan(start, best, task.wanted["member_id"])]', "return self.conceivable_ends(task, start)")
    assert not [
        c
        for c in audit_domain(load(*ANY, every, (", *super().answer(task, start, end))", ",)")), ["lend_best"])
        if c.law == "grounded"
    ]
    past = (
        ('"fee": 2 + h[3] % 40', '"fee": 2 + h[3] % 40, "past": [{"fee": 3 + h[4] % 9}, {"fee": 3 + h[5] % 9}]'),
        ('"items.kind,fee,shed"', '"items.kind,fee,shed,past"'),
        (DETAILS, DETAILS.replace('"fee"', '"past": row["past"], "fee"', 1)),
    )
    assert audit_domain(load(*past), ["best_fee"]) == []  # a column may hold a list of records
    assert audit_domain(load(*COUNT, *SAID_COUNT), ["best_fee"]) == []
    assert audit_domain(load(*CACHED_BY_ID)) == []
    enough = load(*LONG_ENOUGH, every, (", *super().answer(task, start, end))", ",)"))
    assert audit_domain(enough, ["lend_best"]) == []
    assert audit_domain(load(PROMISED_FEES, sort)) == []
    assert audit_domain(load(*FOLLOWED)) == []
    assert audit_domain(load(*roles("borrower", "lender"))) == []
    declared = (('"items.kind,fee,shed"', '"items.kind,fee,shed,rating"'), (DETAILS, "return dict(row)"))
    assert audit_domain(load(*declared)) == []


@pytest.mark.parametrize(("fee", "law"), [("hash((split, id)) % 40", "seeded"), ("h[3] % 40", None)])
def test_rows_are_the_same_in_every_process(tmp_path: Path, fee: str, law: str | None) -> None:
    name = f"sheds_{law}"
    text = TEMPLATE.replace("{{name}}", name).replace("{{Name}}", "Sheds").replace("h[3] % 40", fee)
    (tmp_path / "sheds.py").write_text(text)
    plugins.load(tmp_path / "sheds.py")
    try:
        laws = {complaint.law for complaint in audit_domain(domains[name])}
        assert laws == ({law} if law else set())
    finally:
        domains.remove(name)
