"""crosswind: does a tool-use agent survive the open world, where does it break, and how to train it not to.

>>> import crosswind as cw
>>> def agent(query, tools):
...     return "I am sorry, I cannot do this."
>>> run = cw.evaluate(agent, "quick")
>>> print(run)  # doctest: +SKIP

Everything listed here is public and stable; all other modules are internal. Names are imported when first used.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from crosswind.base.version import __version__

# fmt: off
# isort: off
if TYPE_CHECKING:  # the names of _PLACES, for editors and type checkers; `as` says that they are public
    from crosswind import metrics as metrics
    from crosswind.api.episode import aplay as aplay, certify as certify, draw as draw, judge as judge, play as play
    from crosswind.api.episode import show as show
    from crosswind.api.evaluate import aevaluate as aevaluate, evaluate as evaluate
    from crosswind.api.run import Drops as Drops, Run as Run, RunComparison as RunComparison, compare as compare
    from crosswind.api.run import gate as gate, load_run as load_run
    from crosswind.api.plugins import load_plugin as load_plugin
    from crosswind.api.streams import StreamRun as StreamRun, astream as astream, stream as stream
    from crosswind.api.training import demonstrations as demonstrations, train as train
    from crosswind.base.errors import CannotPerturb as CannotPerturb, CrosswindError as CrosswindError
    from crosswind.base.errors import InfrastructureError as InfrastructureError, ToolFailure as ToolFailure
    from crosswind.base.errors import ToolFailed as ToolFailed, Unfair as Unfair
    from crosswind.core.audit import Complaint as Complaint, audit_domain as audit_domain, audit_kind as audit_kind
    from crosswind.core.certify import Certificate as Certificate
    from crosswind.core.domain import Detail as Detail, Domain as Domain, Family as Family, edit as edit
    from crosswind.core.domain import read_choice as read_choice, read_ids as read_ids, shifted_number as shifted_number
    from crosswind.core.draw import Drawn as Drawn
    from crosswind.core.finish import cannot as cannot, done as done
    from crosswind.core.flow import digest as digest, token as token
    from crosswind.core.laws import twins as twins
    from crosswind.core.names import Namer as Namer, Numbering as Numbering, unused as unused
    from crosswind.core.oracle import Walk as Walk, walk as walk
    from crosswind.core.perturbation import SEVERITIES as SEVERITIES, Memo as Memo, Perturbation as Perturbation
    from crosswind.core.perturbation import Scene as Scene, dump_layers as dump_layers, load_layers as load_layers
    from crosswind.core.perturbation import perturbation as perturbation
    from crosswind.core.registry import agents as agents, domains as domains, perturbations as perturbations
    from crosswind.core.types import AXES as AXES, SPLITS as SPLITS, TIERS as TIERS, Agent as Agent, Brief as Brief
    from crosswind.core.types import Changes as Changes, Finish as Finish, FinishValue as FinishValue
    from crosswind.core.types import Flow as Flow, Message as Message, Param as Param
    from crosswind.core.types import Refusal as Refusal, Request as Request, Row as Row, Solution as Solution
    from crosswind.core.types import Split as Split, Step as Step, Task as Task, ToolCall as ToolCall
    from crosswind.core.types import ToolError as ToolError, ToolResult as ToolResult, ToolSpec as ToolSpec
    from crosswind.core.types import Tools as Tools, failed as failed
    from crosswind.core.state import Derive as Derive, State as State
    from crosswind.core.world import World as World, brief_of as brief_of
    from crosswind.core.value_map import ValueMap as ValueMap
    from crosswind.core.world import tool as tool
    from crosswind.episodes.career import CareerPlan as CareerPlan
    from crosswind.episodes.recipe import Choice as Choice, Recipe as Recipe, follow as follow
    from crosswind.episodes.recipe import load_recipe as load_recipe
    from crosswind.episodes.record import Record as Record, Usage as Usage
    from crosswind.episodes.schedule import tasks as tasks
    from crosswind.episodes.stream import StreamPlan as StreamPlan
    from crosswind.episodes.suite import Condition as Condition, Suite as Suite, load_suite as load_suite
    from crosswind.episodes.suite import suites as suites
    from crosswind.metrics.diagnosis import diagnose as diagnose
    from crosswind.models.source import AgentSettings as AgentSettings
    from crosswind.models.toolset import CallableTool as CallableTool, SyncToolset as SyncToolset, Toolset as Toolset
    from crosswind.study.findings import Hypothesis as Hypothesis, judge_hypotheses as judge_hypotheses
    from crosswind.study.findings import marks_table as marks_table
    from crosswind.study.results import Results as Results
    from crosswind.text.answers import Expected as Expected
    from crosswind.train.data import DataConfig as DataConfig
# isort: on
# fmt: on

_PLACES = {  # module -> names
    "api.episode": "aplay certify draw judge play show",
    "api.evaluate": "aevaluate evaluate",
    "api.run": "Drops Run RunComparison compare gate load_run",
    "api.plugins": "load_plugin",
    "api.streams": "StreamRun astream stream",
    "api.training": "demonstrations train",
    "base.errors": "CannotPerturb CrosswindError InfrastructureError ToolFailed ToolFailure Unfair",
    "core.audit": "Complaint audit_domain audit_kind",
    "core.certify": "Certificate",
    "core.domain": "Detail Domain Family edit read_choice read_ids shifted_number",
    "core.draw": "Drawn",
    "core.finish": "cannot done",
    "core.flow": "digest token",
    "core.laws": "twins",
    "core.names": "Namer Numbering unused",
    "core.oracle": "Walk walk",
    "core.perturbation": "SEVERITIES Memo Perturbation Scene dump_layers load_layers perturbation",
    "core.registry": "agents domains perturbations",
    "core.types": "AXES SPLITS TIERS Agent Brief Changes Finish FinishValue Flow Message Param Refusal Request Row "
    "Solution Split Step Task ToolCall ToolError ToolResult ToolSpec Tools failed",
    "core.value_map": "ValueMap",
    "core.state": "Derive State",
    "core.world": "World brief_of tool",
    "episodes.career": "CareerPlan",
    "episodes.recipe": "Choice Recipe follow load_recipe",
    "episodes.record": "Record Usage",
    "episodes.schedule": "tasks",
    "episodes.stream": "StreamPlan",
    "episodes.suite": "Condition Suite load_suite suites",
    "metrics.diagnosis": "diagnose",
    "models.source": "AgentSettings",
    "models.toolset": "CallableTool SyncToolset Toolset",
    "study.findings": "Hypothesis judge_hypotheses marks_table",
    "study.results": "Results",
    "text.answers": "Expected",
    "train.data": "DataConfig",
}
_NAMES = {name: f"crosswind.{module}" for module, names in _PLACES.items() for name in names.split()}
__all__ = ["__version__", "metrics", *_NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return import_module("crosswind.metrics")
    if name not in _NAMES:
        raise AttributeError(f"module 'crosswind' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_NAMES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__


class _Front(ModuleType):
    """Keeps public names such as `domains` and `gate`: importing the package of that name would replace them."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _NAMES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Front
