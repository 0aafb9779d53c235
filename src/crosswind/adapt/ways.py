"""How a candidate is made: by notes, by the wrapper, by another adapter of the registry, or by training.

A candidate is a spec with {name} for each file that it needs, so that the registry can keep the files. Where several
are possible, they are compared on tasks of the dev split; the test split is for the gate alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field

from crosswind.adapt.plan import REPLAY, SHARE, STEPS, AdaptPlan, refusing
from crosswind.adapt.registry import AgentRegistry, Version
from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.base.extras import need_packages
from crosswind.base.files import replace_file
from crosswind.core.registry import perturbations
from crosswind.core.types import Model
from crosswind.episodes.recipe import Choice, Recipe
from crosswind.episodes.record import Record
from crosswind.episodes.suite import Suite
from crosswind.models.redact import Secrets, environment
from crosswind.models.spec import EMBEDDED
from crosswind.models.wrapping import PREFIX, Wrapping, unwrapped
from crosswind.words.held_out import HELD_OUT, train_kinds

AIMED = {  # axis of a shift -> parts of the wrapper that can take it off an agent
    "query": ("ask", "stuck"),
    "action": ("names", "arguments", "check", "redirect", "complete", "replan", "stuck", "tell", "notes"),
    "observation": ("retry", "verify", "redirect", "results", "keys", "pages", "complete", "notes"),
    "domain": ("names", "arguments", "replan", "stuck", "ask"),
}
LISTED = 40  # entries of a map that a note repeats
LONG = 120  # characters of each


class Play(Protocol):
    """Play a suite with an agent into a folder of the loop, resuming what is there; gives the episodes."""

    def __call__(self, suite: Suite, spec: str, name: str) -> list[Record]: ...


class Candidate(Model):
    """An agent that may replace the one in use; without a spec there is none, and `why` says so."""

    spec: str = ""  # with {name} for each file
    files: dict[str, str] = Field(default_factory=dict)  # name -> path
    why: str = ""
    dev: dict[str, float] = Field(default_factory=dict)  # success on the dev split by candidate

    def resolved(self) -> str:
        """The spec as `--agent` takes it."""
        return filled(self.spec, self.files)


def filled(spec: str, files: Mapping[str, str]) -> str:
    """A spec with the paths of its files."""
    for name, path in files.items():
        spec = spec.replace(f"{{{name}}}", path)
    return spec


def candidate(
    plan: AdaptPlan, registry: AgentRegistry, current: Version, out: Path, play: Play, tell: Callable[[str], None]
) -> Candidate:
    """Make a candidate the way that the plan says."""
    files = registry.files(current)
    if plan.way == "notes":
        return _with_notes(plan, current.spec, files, out)
    if plan.way == "wrapper":
        return _wrapped(plan, current.spec, files, play)
    if plan.way == "adapter":
        return _other(plan, registry, current, play)
    return _trained(plan, current.spec, files, out, tell)


# ---------------------------------------------------------------- notes


def _with_notes(plan: AdaptPlan, spec: str, files: dict[str, str], out: Path) -> Candidate:
    path = out / "notes.md"
    before = ""
    if "notes" in files:
        before = Path(files["notes"]).read_text(encoding="utf-8").strip() + "\n\n"
    replace_file(path, (before + notes_on(plan)).encode())
    made = Wrapping(parts=("notes",), notes="{notes}").around(spec)
    return Candidate(spec=made, files={**files, "notes": str(path)}, why="told what changed")


def notes_on(plan: AdaptPlan) -> str:
    """What an agent is told of the alarms: what the kinds demand of it, and what is known of this shift."""
    lines = ["The tools that you use have changed. Read each result and each list of tools for what it says now."]
    told: set[str] = set()
    for recipe in plan.new:
        for kind in recipe.kinds():
            if kind not in told:
                told.add(kind)
                summary = (perturbations[kind].__doc__ or "").strip().split("\n")[0]
                lines.append(f"- {summary} What to do: {perturbations[kind].way}.")
    for alarm in plan.alarms:
        if alarm.shift is None:
            continue
        for what, names in (("Tools", alarm.shift.tools), ("Keys and parameters", alarm.shift.keys)):
            if names:
                lines.append(f"- {what} concerned: {', '.join(map(_short, names[:LISTED]))}.")
        for old, new in sorted(_renamings(alarm.shift.layer))[:LISTED]:
            lines.append(f"- {_short(old)} is now {_short(new)}.")
    return Secrets(*environment()).scrub("\n".join(dict.fromkeys(lines))) + "\n"


def _renamings(value: Any) -> set[tuple[str, str]]:
    """Maps of names in a perturbation's value."""
    out: set[tuple[str, str]] = set()
    if isinstance(value, Mapping):
        if value and all(isinstance(v, str) for v in value.values()) and "kind" not in value:
            out |= {(str(k), v) for k, v in value.items() if k != v}
        for inner in value.values():
            out |= _renamings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            out |= _renamings(inner)
    return out


def _short(text: str) -> str:
    return terminal.short(terminal.one_line(text), LONG)


# ---------------------------------------------------------------- the wrapper


def _wrapped(plan: AdaptPlan, spec: str, files: dict[str, str], play: Play) -> Candidate:
    if plan.memory:
        files = {**files, "memory": plan.memory}
    memory = "{memory}" if plan.memory else ""
    if plan.parts:
        made = Wrapping(parts=plan.parts, memory=memory).around(spec)
        return Candidate(spec=made, files=files, why=f"the wrapper with the parts {', '.join(plan.parts)}")
    axes = {perturbations[kind].axis for recipe in plan.new for kind in recipe.kinds()}
    every = Wrapping(memory=memory)
    aimed = tuple(part for part in every.parts if any(part in AIMED[axis] for axis in axes))
    options = {"aimed": Wrapping(parts=aimed, memory=memory), "all": every}
    specs = {name: wrapping.around(spec) for name, wrapping in options.items()}
    return _best(plan, {name: (made, files) for name, made in specs.items()}, filled(spec, files), play, "wrapper")


def _best(
    plan: AdaptPlan, options: Mapping[str, tuple[str, dict[str, str]]], current: str, play: Play, what: str
) -> Candidate:
    """The option that does best on the dev split, if it does better than the agent in use; the first of equals."""
    suite = plan.suite("dev")
    scores = {"current": _success(play(suite, current, "dev-current"))}
    for name, (spec, files) in options.items():
        scores[name] = _success(play(suite, filled(spec, files), f"dev-{name}"))
    best = max(options, key=lambda name: scores[name])
    told = ", ".join(f"{name} {100 * score:.0f} %" for name, score in scores.items())
    if scores[best] <= scores["current"]:
        return Candidate(why=f"no {what} does better than the agent in use on the dev split ({told})", dev=scores)
    spec, files = options[best]
    return Candidate(spec=spec, files=files, why=f"{what} {best}, the best on the dev split ({told})", dev=scores)


def _success(records: list[Record]) -> float:
    """Mean success of the old worlds and of the new ones, which weigh the same."""
    sides = [[r.passed for r in records if r.judged and r.condition.startswith("new/") is new] for new in (False, True)]
    return sum(sum(side) / len(side) for side in sides if side) / 2


# ---------------------------------------------------------------- another adapter


def _other(plan: AdaptPlan, registry: AgentRegistry, current: Version, play: Play) -> Candidate:
    options = {}
    for version in registry.versions():
        if version.number != current.number and version.spec != current.spec:
            options[f"version-{version.number}"] = (version.spec, registry.files(version))
    if not options:
        return Candidate(why=f"{registry.folder} has no other version; register one with `crosswind adapt add`")
    return _best(plan, options, registry.spec(current), play, "registered")


# ---------------------------------------------------------------- training


def check_trainable(spec: str) -> None:
    """Raise where an agent cannot be trained here: it is no model in this process, or packages are missing."""
    _, inner = unwrapped(spec.removeprefix(PREFIX)) if spec.startswith(PREFIX) else (None, spec)
    if inner.partition(":")[0] not in (EMBEDDED, "hf"):
        raise CrosswindError(f"{inner} cannot be trained here; expected hf:MODEL or embedded, or another --way")
    need_packages("--way train")


def _trained(plan: AdaptPlan, spec: str, files: dict[str, str], out: Path, tell: Callable[[str], None]) -> Candidate:
    from crosswind.models.hf import model_and_adapter
    from crosswind.train.config import fitted
    from crosswind.train.run import train

    check_trainable(spec)
    wrapping, inner = unwrapped(spec.removeprefix(PREFIX)) if spec.startswith(PREFIX) else (None, spec)
    provider, _, rest = filled(inner, files).partition(":")
    model, start = (EMBEDDED, rest) if provider == EMBEDDED else model_and_adapter(rest)
    options = training(plan, model, start)
    tell(f"training {options['steps']} steps from {start or 'the model as it is'}")
    result = train(fitted(options, [], "paft"), out / "train", method="paft")
    trained = f"{EMBEDDED}:{{adapter}}" if provider == EMBEDDED else f"hf:{model}+{{adapter}}"
    made = wrapping.around(trained) if wrapping else trained
    why = f"{result.steps} steps on {result.demonstrations} demonstrations, {result.perturbed} of them perturbed"
    return Candidate(spec=made, files={**files, "adapter": result.adapter}, why=f"trained: {why}")


def training(plan: AdaptPlan, model: str, start: str) -> dict[str, Any]:
    """The configuration of a targeted training: the new worlds, with a replay of the old ones."""
    data = {
        "domains": dict.fromkeys(plan.domains, 1.0),
        "share": SHARE,
        **plan.train.get("data", {}),
        "recipe": training_recipe(plan.new, (*plan.old, refusing())).model_dump(mode="json"),
    }
    start_from = {"start": start} if start else {}
    return {"seed": plan.seed, "steps": STEPS, **plan.train, "model": model, **start_from, "data": data}


def training_recipe(new: tuple[Recipe, ...], old: tuple[Recipe, ...]) -> Recipe:
    """Kinds to train on by weight: those of the new worlds, and those of old ones that are not to be forgotten.

    A kind that is held out from training gives its weight to the trainable kinds of its axis.
    """
    weights: dict[str, float] = {}
    levels = [level for recipe in (*new, *old) for choice in recipe.stack for level in choice.severity]
    for recipes, total in ((new, 1 - REPLAY if old else 1.0), (old, REPLAY)):
        kinds = [kind for recipe in recipes for kind in recipe.kinds()]
        for kind in kinds:
            instead = trainable(kind)
            for one in instead:
                weights[one] = weights.get(one, 0.0) + total / len(kinds) / len(instead)
    return Recipe(name="adapt", stack=(Choice(one_of=weights, severity=(min(levels), max(levels))),))


def trainable(kind: str) -> list[str]:
    """The kind itself, or, if it is held out, the trainable kinds of its tier and axis, or of its axis."""
    if kind not in HELD_OUT:
        return [kind]
    cls = perturbations[kind]
    same = [one for one in train_kinds() if perturbations[one].axis == cls.axis]
    return [one for one in same if perturbations[one].tier == cls.tier] or same
