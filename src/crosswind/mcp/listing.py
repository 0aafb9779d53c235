"""A session's tools as a client of the proxy is shown them, and the names that must not reach it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from crosswind.core.perturbation import Perturbation
from crosswind.core.session import Session
from crosswind.core.types import Step, Tools, ToolSpec
from crosswind.mcp import hiding
from crosswind.mcp import tools as forms
from crosswind.mcp.schema import Json
from crosswind.mcp.toolbox import Origin, ServerTools

ORIGIN = "x-crosswind-origin"  # a mark on a parameter, by which it is found again under the name it is shown by


class Listing:
    """The answer to `tools/list` for a session; `trial` holds the made-up calls that proved its stack."""

    def __init__(self, session: Session, toolbox: ServerTools, trial: Sequence[Step]) -> None:
        self.session, self.toolbox = session, toolbox
        self._of: dict[str, ToolSpec] | None = None  # the session's tools when the rest was made
        self._shown: dict[str, Json] = {}
        self._params: dict[str, dict[str, str]] = {}
        self._origins: dict[str, Origin] = {}
        self._shapes: dict[str, list[Any]] = {}  # what each shown tool returned in the trial,
        self._shapes_of: dict[str, list[Any]] = {}  # and by the server's tool that was wanted
        self._kept: set[str] = (
            set()
        )  # tools, as shown and of the server, with a result that came as the server gave it,
        self._reshaped: set[str] = set()  # and those with one that did not
        self._others = any(map(_may_reshape, session.layers))  # what is to be expected of tools without a result there
        for step in trial:
            if step.result.error is None:
                kept = bool(step.inner) and step.inner[-1][1] is step.result
                (self._kept if kept else self._reshaped).update(
                    {step.call.tool, *(call.tool for call, _ in step.inner)}
                )
                self._shapes.setdefault(step.call.tool, []).append(step.result.content)
                if step.inner:
                    self._shapes_of.setdefault(step.inner[0][0].tool, []).append(step.result.content)

    def shown(self) -> dict[str, Json]:
        """The tools as the client is shown them now, by name."""
        self._renew()
        return self._shown

    def origins(self) -> dict[str, Origin]:
        """What each tool that is shown now has of a tool of the server, if it is one tool that it has it of."""
        self._renew()
        return self._origins

    def clean(self, text: str, tool: str) -> str:
        """A text about a shown tool, without the names that the client must not see."""
        self._renew()
        return hiding.renamed(text, *self._hidden(tool), shown=self.session.specs)

    def _renew(self) -> None:
        """Write the list again if the session shows other tools than before."""
        session = self.session
        if self._of is session.specs:
            return
        marks = _marks(session)
        self._of, self._shown = session.specs, {}
        self._params = {name: {old: new for new, (_, old) in found.items()} for name, found in marks.items()}
        self._origins = {}
        for name, found in marks.items():
            of = session.specs[name].ids & self.toolbox.tools.keys() | {tool for tool, _ in found.values()}
            if len(of) == 1:
                theirs = self.toolbox.tools[next(iter(of))].spec.params
                params = {new: theirs[old] for new, (_, old) in found.items()}
                self._origins[name] = Origin(params, frozenset(theirs.keys() - session.specs[name].params.keys()))
        for spec in session.specs.values():
            if spec.listed:
                self._shown[spec.name] = self._tool(spec)

    def _tool(self, spec: ToolSpec) -> Json:
        shown = forms.shown(spec, self.toolbox.tools, self.session.render(spec.doc), self._outline(spec))
        tools, params = self._hidden(spec.name)
        if not tools and not params:
            return shown
        clean = partial(hiding.renamed, tools=tools, params=params, shown=self.session.specs)
        return hiding.scrubbed(shown, [*tools, *params], clean)

    def _outline(self, spec: ToolSpec) -> Json | None:
        """The schema of a shown tool's results; None where it has none, or where they are not JSON."""
        tools = self.toolbox.tools
        of = [tools[id] for id in spec.ids if id in tools]
        if not of or any(tool.output is None for tool in of):
            return None
        names = {spec.name, *spec.ids}
        if len(of) == 1 and not names & self._reshaped and (names & self._kept or not self._others):
            return of[0].output
        shapes = self._shapes.get(spec.name) or [s for id in spec.ids for s in self._shapes_of.get(id, [])]
        if shapes and all(isinstance(shape, str) for shape in shapes):
            return None
        properties: Json = {}
        for shape in shapes:
            properties |= forms.outlined(shape if isinstance(shape, dict) else {"result": shape})["properties"]
        return {"type": "object", **({"properties": properties} if properties else {})}

    def _hidden(self, tool: str) -> tuple[dict[str, str], dict[str, str]]:
        """Names that the client must not see, and what takes their place: tools, and parameters of a shown one."""
        shown = self.session.specs
        out: dict[str, str] = {}
        for name in self.toolbox.tools:
            if name not in shown or not shown[name].listed:
                named = [spec.name for spec in shown.values() if spec.listed and name in spec.ids]
                if named:
                    named = [tool] if tool in named else named  # of a tool that was split, the part that is spoken to
                    out |= dict.fromkeys(hiding.spellings(name), named[0])
                    out[name] = " and ".join(named)
        own = shown[tool].params if tool in shown else {}
        for name in [name for name in out if name in own or (name in shown and shown[name].listed)]:
            del out[name]  # what is a spelling of one is shown as the name of another, or is a parameter here
        return out, {old: new for old, new in self._params.get(tool, {}).items() if old != new}


def parameter_names(session: Session) -> dict[str, dict[str, str]]:
    """For each shown tool, the toolbox's own names of its parameters with those shown now."""
    return {name: {old: new for new, (_, old) in found.items()} for name, found in _marks(session).items()}


def _marks(session: Session) -> dict[str, dict[str, tuple[str, str]]]:
    """For each shown tool, the tool and the parameter of the toolbox behind each of its parameters as shown now.

    Each parameter gets a mark, layers carry it along, and it is looked for in what they show.
    """
    marked: Tools = tuple(
        spec.replace(params={p: replace(q, extra={**q.extra, ORIGIN: (spec.name, p)}) for p, q in spec.params.items()})
        for spec in session.toolbox.specs
    )
    for layer in session.layers:
        if layer.retools:
            marked = layer.on_tools(marked, session.shown_at)
    return {
        spec.name: {shown: part.extra[ORIGIN] for shown, part in spec.params.items() if ORIGIN in part.extra}
        for spec in marked
        if spec.name in session.specs
    }


def _may_reshape(layer: Perturbation) -> bool:
    """May a layer give other results than the server did? Faults only keep them back for a while."""
    cls = type(layer)
    maps = cls.encode_result is not Perturbation.encode_result
    return maps or (cls.handle is not Perturbation.handle and layer.rank != "fault")
