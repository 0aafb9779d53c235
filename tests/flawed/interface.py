"""Flaws in reading the request and the tools."""

from __future__ import annotations

from typing import Any

from crosswind.core.types import ASK, Flow, ToolCall, ToolResult, ToolSpec
from crosswind.core.world import bad_arguments
from tests.flawed.walker import SORRY, Ends, Flawed, flaw


@flaw("flaw_memorised_interface")
class MemorisedInterface(Flawed):
    """Calls tools by the names and parameters that they have in the clean world, and stops when that is refused."""

    stage, cause = "understanding", "memorised interface"

    def wish(self, call: ToolCall) -> Flow:
        spec = self.session.specs.get(call.tool)
        stale = spec is None or (call.tool in spec.ids and bad_arguments(spec.params, call.args) is not None)
        if stale and not (spec and self.planned) and call.tool not in self.task.blocked:
            self.tell(call)
            raise Ends(SORRY)
        return (yield call)


@flaw("flaw_wrong_tool")
class WrongTool(Flawed):
    """Calls another tool than the one it needs, once, and takes what that says for what it wanted."""

    stage, cause = "understanding", "wrong tool"
    picked = False

    def sent(self, call: ToolCall) -> ToolResult:
        used = {step.call.tool for step in self.certificate.gold.steps}
        spec = self.session.specs.get(call.tool)
        if not self.picked and spec and not spec.opaque and self.rng.random() < 0.6:
            others = [t for t in self.session.tools() if t.name not in (*used, ASK) and not t.ids & spec.ids]
            fits = [(t, fitted(t, call.args)) for t in others]
            fitting = [(t, args) for t, args in fits if args is not None]
            if fitting:
                self.picked = True
                other, args = max(fitting, key=lambda f: (len(set(f[0].params) & set(spec.params)), f[0].name))
                return super().sent(ToolCall(other.name, args or {}))
        return super().sent(call)


def fitted(tool: ToolSpec, args: Any) -> dict[str, Any] | None:
    """Those arguments that a tool takes, if they will do."""
    some = {k: v for k, v in args.items() if k in tool.params}
    return some if some and bad_arguments(tool.params, some) is None else None


@flaw("flaw_wrong_argument")
class WrongArgument(Flawed):
    """Passes another value than the one that the request gives, once."""

    stage, cause = "understanding", "wrong argument"
    bent = False

    def wish(self, call: ToolCall) -> Flow:
        given = [k for k, v in call.args.items() if str(v) in self.task.given]
        if not self.bent and given and self.rng.random() < 0.7:
            self.bent = True
            key = self.rng.choice(given)
            call = call.with_args(**{key: self.near(call.args[key])})
        return (yield call)

    def near(self, value: Any) -> Any:
        """Another value that looks like this one."""
        if isinstance(value, int):
            return value + 1
        kinds = self.drawn.domain.kinds()
        if value in kinds:
            return kinds[(kinds.index(value) + 1) % len(kinds)]
        text = str(value)
        return text[:-1] + (str((int(text[-1]) + 1) % 10) if text[-1].isdigit() else "x")


@flaw("flaw_malformed_call")
class MalformedCall(Flawed):
    """Leaves out a required argument, or sends one of a wrong type, once, and stops at the error."""

    stage, cause = "understanding", "malformed call"

    def sent(self, call: ToolCall) -> ToolResult:
        spec = self.session.specs.get(call.tool)
        canonical = spec and self.walker.specs.get(next(iter(spec.ids & set(self.walker.specs)), ""))
        own = [k for k in call.args if canonical and k in canonical.params and canonical.params[k].required]
        if own and self.rng.random() < 0.6:
            key = self.rng.choice(own)
            bad = call.without(key) if self.rng.random() < 0.5 else call.with_args(**{key: {"value": call.args[key]}})
            if self.tell(bad).error:
                raise Ends(self.rng.choice((SORRY, "Done.")))
        return super().sent(call)
