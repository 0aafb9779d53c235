"""Parameters that want their values in another form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Model, Param, Step, ToolCall, Tools, ToolSpec, failed
from crosswind.core.world import brief_of
from crosswind.perturbations._dates import read_date, write_date
from crosswind.words import banks

DateStyle = Literal[
    "DD/MM/YYYY", "D Month YYYY", "DD.MM.YYYY", "Month D, YYYY", "DD-Mon-YYYY", "YYYY/MM/DD", "MM/DD/YYYY"
]
DATES = banks.own("parameter_format", "dates")
IDS = banks.own("parameter_format", "ids")  # in capitals, what is before the number
COUNTS = banks.own("parameter_format", "counts")  # digits at least, decimals
CHOICES = banks.own("parameter_format", "choices")
MOST_CODES = 16  # a longer legend nobody would read
_ISO = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-[0-9]{2}")
_ID = re.compile(r"([A-Za-z]+[-_]?)[0-9]{2,}")


class DateForm(Model):
    """A date in another style."""

    sort: Literal["date"] = "date"
    style: DateStyle
    told: bool  # the description says so; otherwise the error does

    @property
    def words(self) -> str:
        return f"{self.style}, such as {self.written('2030-11-24')}"

    def written(self, value: Any) -> Any:
        """A value as it is shown; the same where it is none of this sort."""
        if not isinstance(value, str) or not _ISO.fullmatch(value):
            return value
        return write_date(value, self.style)

    def read(self, value: Any) -> Any:
        """What a value in this form stands for; None where it is not in this form."""
        return read_date(value, self.style) if isinstance(value, str) else None


class IdForm(Model):
    """An id in other letters, with another separator."""

    sort: Literal["id"] = "id"
    prefix: str  # of the ids further in
    head: str  # what is in its place
    told: bool

    @property
    def words(self) -> str:
        return f"written as {self.head}102938 for {self.prefix}102938"

    def written(self, value: Any) -> Any:
        fits = isinstance(value, str) and value.startswith(self.prefix)
        return self.head + value[len(self.prefix) :] if fits else value

    def read(self, value: Any) -> Any:
        fits = isinstance(value, str) and value.startswith(self.head)
        return self.prefix + value[len(self.head) :] if fits else None


class CountForm(Model):
    """A whole number as text."""

    sort: Literal["count"] = "count"
    digits: int = Field(ge=1, le=9)
    decimals: int = Field(ge=0, le=9)
    told: Literal[True] = True  # the type is another one, so it must be said

    @property
    def words(self) -> str:
        return f"text, {self.written(12)} for 12"

    def written(self, value: Any) -> Any:
        if not isinstance(value, int) or value < 0:
            return value
        return str(value).zfill(self.digits) + ("." + "0" * self.decimals if self.decimals else "")

    def read(self, value: Any) -> Any:
        whole = value.split(".")[0] if isinstance(value, str) else ""
        if not (whole.isascii() and whole.isdigit() and len(whole) < 18):
            return None
        return int(whole) if self.written(int(whole)) == value else None


class ChoiceForm(Model):
    """One of a few choices under another name, which the schema lists."""

    sort: Literal["enum"] = "enum"
    choices: dict[str, str]  # choice further in -> shown
    legend: bool  # they are codes, and the description says for what
    told: Literal[True] = True

    @property
    def words(self) -> str:
        pairs = (f"{shown} is {choice}" for choice, shown in self.choices.items())
        return ", ".join(pairs if self.legend else self.choices.values())

    def written(self, value: Any) -> Any:
        return self.choices.get(value, value)

    def read(self, value: Any) -> Any:
        return next((choice for choice, shown in self.choices.items() if shown == value), None)


Form = Annotated[DateForm | IdForm | CountForm | ChoiceForm, Field(discriminator="sort")]


@perturbation
class ParameterFormat(Perturbation):
    """Dates, ids, counts and choices must be passed in another format, given in descriptions or errors."""

    kind: Literal["parameter_format"] = "parameter_format"
    axis, tier, rank = "action", "perception", "vocabulary"
    severities = (
        "Parameters in the solution that need another format: 1 one, 2 a third, 3 two thirds, 4 all; at 5 all, and "
        "for dates and ids only the error tells the format, not the description."
    )
    needs = "a date, an id, a count or a choice among the arguments in the solution"
    way = "write arguments in the format that the description or the error asks for"
    forms: dict[str, dict[str, Form]]  # tool further in -> parameter -> form

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        split, told = scene.task.split, severity < 5
        style, (capitals, joint) = rng.choice(DATES[split]), rng.choice(IDS[split])
        (digits, decimals), names = rng.choice(COUNTS[split]), rng.choice(CHOICES[split])
        found: list[tuple[str, str, Form]] = []
        for (tool, name), held in _arguments(scene).items():
            param = scene.tools[tool].params[name]
            form: Form | None = None
            if param.enum:
                form = _choosing(param.enum, names)
            elif param.type == "integer":
                form = CountForm(digits=digits, decimals=decimals)
            elif all(isinstance(value, str) and _ISO.fullmatch(value) for value in held):
                form = DateForm(style=style, told=told)
            elif prefix := _prefix(held):
                letters = prefix.rstrip("-_")
                head = (letters.upper() if capitals else letters.lower()) + joint
                form = IdForm(prefix=prefix, head=head, told=told)
            if form and all(form.written(v) != v and form.read(form.written(v)) == v for v in held):
                found.append((tool, name, form))
        if not found:
            return None
        rng.shuffle(found)
        share = {1: 1, 2: max(1, round(len(found) / 3)), 3: max(1, round(2 * len(found) / 3))}
        forms: dict[str, dict[str, Form]] = {}
        for tool, name, form in sorted(found[: share.get(severity, len(found))], key=lambda f: f[:2]):
            forms.setdefault(tool, {})[name] = form
        return cls(forms=forms)

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each parameter, and once more where its description does not tell."""
        return sum(1 + (not form.told) for params in self.forms.values() for form in params.values())

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(_wanting(t, self.forms[t.name]) if t.name in self.forms else t for t in tools)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        forms = self.forms.get(call.tool)
        if forms is None:
            return (yield call)
        memo.fire()
        args, wrong = dict(call.args), []
        for name, form in forms.items():
            if name in args:
                args[name] = form.read(call.args[name])
                if args[name] is None:
                    wrong.append(f"'{name}' must be {form.words}; got {brief_of(call.args[name])}")
        if wrong:
            return failed("bad_arguments", ". ".join(wrong))
        return (yield ToolCall(call.tool, args))

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        forms = self.forms.get(call.tool)
        if forms is None:
            return (yield call)
        right = {k: forms[k].written(v) if k in forms else v for k, v in call.args.items()}
        heard = memo.notes.setdefault(call.tool, [])
        untold = {k: v for k, v in call.args.items() if k in forms and not forms[k].told and k not in heard}
        if untold:  # tried as it is; the error tells the form
            result = yield ToolCall(call.tool, {**right, **untold})
            if not (result.error and result.error.code == "bad_arguments"):
                return result
            heard += untold
        return (yield ToolCall(call.tool, right))


def _wanting(tool: ToolSpec, forms: Mapping[str, Form]) -> ToolSpec:
    """A tool whose parameters say how they want their values."""
    params = dict(tool.params)
    for name, form in forms.items():
        param = params.get(name)
        if param is None:
            continue
        doc, words = param.doc.replace("YYYY-MM-DD", "").strip(" ,;"), form.words if form.told else ""
        if isinstance(form, ChoiceForm):
            words = words if form.legend else ""
            enum = tuple(form.choices.get(choice, choice) for choice in param.enum)
        else:
            enum = param.enum
        doc = f"{doc.rstrip('.')}; {words}" if doc and words else doc or words
        params[name] = Param(
            "string" if isinstance(form, CountForm) else param.type, doc, param.required, enum, param.extra
        )
    return tool.replace(params=params)


def _arguments(scene: Scene) -> dict[tuple[str, str], list[Any]]:
    """The values on the way that are meant for the world, not for a layer, by tool and parameter."""
    entries, tools = scene.domain.world_class.entries, scene.tools
    canonical = {n: {p for i in t.ids if i in entries for p in entries[i].spec.params} for n, t in tools.items()}
    out: dict[tuple[str, str], list[Any]] = {}
    for step in scene.gold:
        if step.call.tool not in tools:
            continue
        reached = [value for call, _ in step.inner for value in call.args.values()]
        for name, value in step.call.args.items():
            if name in canonical[step.call.tool] or value in reached:
                out.setdefault((step.call.tool, name), []).append(value)
    return out


def _prefix(held: Sequence[Any]) -> str | None:
    """What all of some ids begin with, if they are ids."""
    found = [_ID.fullmatch(value) if isinstance(value, str) else None for value in held]
    prefixes = {match[1] if match else None for match in found}
    return next(iter(prefixes)) if len(prefixes) == 1 else None


def _choosing(enum: Sequence[str], style: str) -> ChoiceForm | None:
    """Choices under other names."""
    if style == "codes" and len(enum) <= MOST_CODES:
        return ChoiceForm(choices={choice: f"K{i:02}" for i, choice in enumerate(enum, 1)}, legend=True)
    ways = {"capitals": str.upper, "capital": str.capitalize}
    shown = [ways[style](choice) if style in ways else f"#{choice}" for choice in enum]
    if len(set(shown)) < len(enum):
        return None
    return ChoiceForm(choices=dict(zip(enum, shown, strict=True)), legend=False)
