"""What a training run is: a YAML file, read strictly, and changes to it from the command line.

Every option stands here with its meaning; docs/training.md explains them at more length. A file is the same for all
methods, so that two arms of a study differ in the lines that make them differ.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, overload

import yaml
from pydantic import Field, model_validator

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.yaml_files import Document, read
from crosswind.episodes.recipe import LARGE
from crosswind.train.data import DataConfig, Domains, Options, Severities, demonstration_at
from crosswind.train.worlds import some_of, unknown
from crosswind.words.held_out import check_kinds

Method = Literal["sft", "paft", "grpo"]
LORA_RATE, FULL_RATE = 2e-3, 5e-4  # learning rates unless given
GRPO_LORA_RATE, GRPO_FULL_RATE = 2e-4, 2e-5  # and of reinforcement: a tenth of those that imitate
GRPO_SHARE = 0.1  # for larger models as well, whose rates `sizing` knows
RUN, METRICS, CHECKPOINTS = "train.json", "metrics.jsonl", "checkpoints"  # in the folder of a training
ROUNDS = "rounds.json"  # of an adaptive one
SEEDS = 2**31 - 1  # the largest seed
MOST = 2**16  # of anything that is counted: more is a slip of the pen


class Lora(Options):
    """A low-rank adapter."""

    rank: int = Field(default=16, ge=1, le=MOST)
    alpha: float = Field(default=32.0, gt=0, le=LARGE)  # the adapter is scaled by alpha / rank
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: str | tuple[str, ...] = "all-linear"  # every linear layer but the output, or names of modules
    fold: bool = True  # add the adapter to the weights before each product: fewer and larger kernels, same gradient


class DomainStage(Options):
    """One part of sequential training: other domains for a number of steps."""

    domains: Domains  # name -> weight
    steps: int = Field(ge=1, le=10**9)


class Evaluation(Options):
    """How a model is measured between stages, or between the rounds of adaptive training."""

    tasks: int = Field(default=8, ge=1, le=MOST)  # per domain and kind
    clean: int = Field(default=32, ge=1, le=MOST)  # clean tasks per domain
    domains: tuple[str, ...] = ()  # those trained unless given
    levels: tuple[int, ...] = ()  # of tasks; all unless given
    severity: int = Field(default=3, ge=1, le=5)
    split: Literal["train", "dev"] = "dev"  # between stages; adaptive rounds always use fresh draws of the train split
    kinds: tuple[str, ...] = ()  # the train kinds unless given
    max_tokens: int = Field(default=256, ge=1)  # of one reply


class Adaptive(Options):
    """Rounds of training; after each the weights of the kinds move to where the agent breaks."""

    rounds: int = Field(default=4, ge=2, le=1024)  # at most; the steps are shared among them
    pull: float = Field(default=0.7, ge=0, le=1)  # how far the weights move towards the failures in one round
    floor: float = Field(default=0.25, gt=0, le=1)  # the least weight of a kind, in multiples of its recipe's
    cap: float = Field(default=4.0, ge=1, le=LARGE)  # the most
    patience: int = Field(default=1, ge=1)  # rounds without an improvement after which it stops
    margin: float = Field(default=0.01, ge=0, le=1)  # a rise of the mean success that counts as an improvement
    rule: Literal[2] = 2  # by which weights move; 1 forgot those of the recipe, and its runs are not gone on with


class TrainConfig(Options):
    """The whole file."""

    model: str = "embedded"  # embedded, a folder, a .gguf file or a name that transformers knows
    start: str = ""  # an adapter to go on from, made by an earlier run
    # How tools are shown and called: as text, as text with names in quotes, or as the model's own template does.
    protocol: Literal["text", "quoted", "native"] = "text"
    out: str = ""  # the folder of the run; --out goes before it
    seed: int = Field(default=0, ge=0, le=SEEDS)  # of the adapter's first weights, and of the data unless it has one
    steps: int = Field(default=700, ge=1, le=10**9)  # optimiser steps
    batch: int = Field(default=32, ge=1, le=MOST)  # demonstrations per step, over all devices
    accumulate: int = Field(default=1, ge=1, le=MOST)  # passes per step, into which a batch is split to save memory
    lr: float | None = Field(default=None, gt=0, le=LARGE)  # 2e-3 with an adapter, 5e-4 for all parameters
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    warmup: float = Field(default=0.03, ge=0, le=1)  # share of the steps in which the rate rises
    weight_decay: float = Field(default=0.0, ge=0, le=LARGE)
    clip: float = Field(default=1.0, ge=0, le=LARGE)  # norm of the gradient beyond which it is scaled down; 0: never
    full: bool = False  # train all parameters rather than an adapter
    lora: Lora = Lora()
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["auto", "bf16", "fp32"] = "auto"  # auto: bf16 on a GPU, fp32 on a CPU
    kernels: Literal["auto", "torch", "liger"] = "auto"  # auto: those of liger-kernel on a GPU, where it is installed
    compile: bool = False  # compile the layers; pays on a GPU after some hundred steps
    checkpointing: bool = False  # compute activations twice to save memory
    pad_to: int = Field(default=64, ge=1, le=MOST)  # rows are padded to a multiple of this
    buffer: int = Field(default=8, ge=1, le=1024)  # batches that are drawn together and sorted by length, to pad less
    # processes that make the data; one per core on a GPU, else none
    workers: int | None = Field(default=None, ge=0, le=1024)
    log_every: int = Field(default=10, ge=1)  # steps
    save_every: int = Field(default=100, ge=1)  # steps between checkpoints
    keep: int = Field(default=2, ge=1)  # checkpoints
    # conversations on the device at a time, in grpo and while it is measured; as many as there are and have room
    slots: int | None = Field(default=None, ge=1)
    data: DataConfig = DataConfig()
    stages: tuple[DomainStage, ...] = ()  # sequential training: `steps` and `data.domains` are those of the stages
    evaluate: Evaluation | None = None  # measure before training and after each stage
    adaptive: Adaptive | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_seed(cls, values: Any) -> Any:
        if isinstance(values, dict) and "seed" in values:
            data = values.get("data", {})
            if isinstance(data, DataConfig) and "seed" not in data.model_fields_set:
                data = data.model_dump(exclude_unset=True)
            if isinstance(data, dict):
                return {**values, "data": {"seed": values["seed"], **data}}
        return values

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.batch % self.accumulate:
            raise ValueError(
                f"batch is {self.batch} and accumulate {self.accumulate}; the one must divide by the other"
            )
        if self.adaptive and self.steps < self.adaptive.rounds:
            raise ValueError(
                f"steps is {self.steps} and adaptive.rounds {self.adaptive.rounds}; every round needs a step at least"
            )
        if self.stages and self.adaptive:
            raise ValueError("stages and adaptive do not go together; leave one of them out")
        if self.stages and "steps" in self.model_fields_set and self.steps != sum(s.steps for s in self.stages):
            raise ValueError("steps is not the sum of those of the stages; leave it out")
        if self.stages and self.full:
            raise ValueError("stages train an adapter; leave full out")
        if self.full and self.start:
            raise ValueError("start names an adapter, and full trains all parameters; leave one of them out")
        return self

    @property
    def rate(self) -> float:
        return self.lr if self.lr is not None else FULL_RATE if self.full else LORA_RATE

    def domains(self) -> list[str]:
        """Every domain that is trained in; of a range the first few."""
        if self.stages:
            return some_of(name for stage in self.stages for name in stage.domains)
        return some_of(self.data.domains)

    def recipe(self) -> dict[str, Any]:
        """What the weights depend on, as JSON: all but where the run lies, how it is watched and on what it runs."""
        whole = self.model_copy(update={"data": self.data.resolved()}) if self.data.share else self
        return whole.model_dump(mode="json", exclude=set(FREE))


# may change when a run goes on, and in grpo what only says how much is computed at a time
FREE = ("out", "device", "workers", "log_every", "save_every", "keep", "checkpointing", "slots")
FREE_IN_GRPO = ("micro",)
NOT_IN_GRPO = ("batch", "accumulate", "buffer", "stages", "adaptive", "evaluate")
C = TypeVar("C", bound=TrainConfig)


class Rung(Options):
    """How hard tasks are on one rung of a ladder; what is left out is that of `data`."""

    levels: tuple[int, ...] | None = None
    share: float | None = Field(default=None, ge=0, le=1)
    severity: Severities | None = None
    domains: Domains | None = None

    def of(self, data: DataConfig) -> DataConfig:
        """What is drawn from on this rung."""
        return data.model_copy(update={name: value for name, value in self if value is not None})


class GrpoConfig(TrainConfig):
    """The file of a reinforcement; what it shares with other trainings means the same."""

    steps: int = Field(default=60, ge=1, le=10**9)  # of playing and learning
    schedule: Literal["cosine", "linear", "constant"] = "constant"
    log_every: int = Field(default=1, ge=1)
    save_every: int = Field(default=10, ge=1)
    groups: int = Field(default=64, ge=1, le=MOST)  # per step
    copies: int = Field(default=8, ge=2, le=4096)  # episodes of a group
    updates: int = Field(default=2, ge=1, le=MOST)  # of the weights per step; the groups are dealt out to them
    epochs: int = Field(default=1, ge=1, le=1024)  # how often each group is learnt from
    temperature: float = Field(default=1.0, gt=0, le=LARGE)
    max_new: int = Field(default=256, ge=1)  # tokens of one reply
    window: int = Field(default=2048, ge=64)  # tokens of a conversation
    micro: int = Field(default=32768, ge=1)  # tokens of one pass, padding included
    epsilon: float = Field(default=0.2, gt=0, lt=1)  # how far the ratio of probabilities may move and still be pushed
    beta: float = Field(default=0.0, ge=0, le=LARGE)  # weight of the divergence from the weights at the start
    scale: Literal["none", "std"] = "none"  # divide advantages by the group's standard deviation?
    weigh: Literal["token", "episode"] = "token"  # what weighs the same in the loss
    old: Literal["trainer", "engine"] = "trainer"  # whose log-probabilities the ratio is taken to
    partial: float = Field(default=0.0, ge=0, lt=1)  # credit of a failure for the checks that held
    patience: int = Field(default=256, ge=0)  # groups in a row without a signal after which it stops; 0: never
    refill: int = Field(default=1, ge=1, le=64)  # times `groups` are drawn in a step, until as many carry a signal
    ladder: tuple[Rung, ...] = ()  # tasks that get harder; the next rung comes with success on this one
    climb: float = Field(default=0.7, gt=0, le=1)  # mean reward at which it goes up a rung
    dwell: int = Field(default=3, ge=1, le=MOST)  # steps over which that mean is taken
    watch: int = Field(default=10, ge=0, le=256)  # steps at the start and at the end compared for a collapse; 0: none
    measured: int = Field(default=128, ge=0, le=MOST)  # greedy episodes before and after, clean and perturbed

    @model_validator(mode="after")
    def _fit_for_groups(self) -> Self:
        for name in NOT_IN_GRPO:
            if name in self.model_fields_set and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} is not for grpo: groups, copies and updates say what a step is; leave it out")
        if self.ladder and self.data.curriculum:
            raise ValueError("a ladder goes by success and data.curriculum by steps; leave one of them out")
        return self

    @property
    def rate(self) -> float:
        return self.lr if self.lr is not None else GRPO_FULL_RATE if self.full else GRPO_LORA_RATE

    def recipe(self) -> dict[str, Any]:
        return {name: value for name, value in super().recipe().items() if name not in (*NOT_IN_GRPO, *FREE_IN_GRPO)}


def assigned(text: str) -> tuple[tuple[str, ...], Any]:
    """The place and the value of KEY=VALUE, as --set takes it."""
    key, sign, value = text.partition("=")
    place = tuple(key.strip().split("."))
    if not sign or not all(place):
        raise CrosswindError(f"--set {text!r}: expected KEY=VALUE, such as data.share=0.2")
    try:
        return place, yaml.safe_load(value)
    except yaml.YAMLError:
        raise CrosswindError(f"--set {text!r}: the value is not valid YAML") from None


class _Changed(Document):
    """A file with changes from the command line; a complaint about a change names the change."""

    def __init__(self, document: Document, changes: Sequence[str]) -> None:
        data = {} if document.data is None else document.data
        if not isinstance(data, dict):
            raise document.error((), "expected options with their values, such as `steps: 700`")
        super().__init__(data, document.lines, document.where)
        self.changes: dict[tuple[str, ...], str] = {}
        for text in changes:
            self._change(text)

    def _change(self, text: str) -> None:
        place, found = assigned(text)
        part: Any = self.data
        for step in place[:-1]:
            inside = part.get(step)
            if inside is None:
                inside = part[step] = {}
            if not isinstance(inside, dict):
                raise CrosswindError(f"--set {text!r}: {step!r} is a single value, without keys of its own")
            part = inside
        part[place[-1]] = found
        self.changes[place] = text

    def at(self, place: Sequence[str | int]) -> str:
        for spot, text in self.changes.items():
            if tuple(place[: len(spot)]) == spot:
                return f"--set {text}"
        inside = [text for spot, text in self.changes.items() if spot[: len(place)] == tuple(place)]
        if inside and tuple(place) not in self.lines:
            return " ".join(f"--set {text}" for text in inside)
        return super().at(place)


@overload
def load(path: Path | str | None, changes: Sequence[str] = ()) -> TrainConfig: ...
@overload
def load(path: Path | str | None, changes: Sequence[str], kind: type[C]) -> C: ...
def load(path: Path | str | None, changes: Sequence[str] = (), kind: type[Any] = TrainConfig) -> Any:
    """The configuration in a file with the changes made to it; without a file, the defaults."""
    return _fitted(read(path) if path is not None else Document({}, {}, "the defaults"), changes, kind)


def fitted(options: Mapping[str, Any], changes: Sequence[str], method: Method) -> TrainConfig:
    """Build the configuration of a method from options and changes; report what does not fit."""
    return _fitted(Document(copy.deepcopy(dict(options)), {}, "the arm's options"), changes, kind_of(method))


def kind_of(method: Method) -> type[TrainConfig]:
    """The class of a method's options."""
    return GrpoConfig if method == "grpo" else TrainConfig


def _fitted(document: Document, changes: Sequence[str], kind: type[C]) -> C:
    document = _Changed(document, changes)
    config = document.fit(kind)
    check(config, document)
    return config


def check(config: TrainConfig, document: Document | None = None, *, draw: bool = True) -> None:
    """Refuse what could not be trained: unknown domains, kinds that are held out, a recipe that is not there.

    With `draw` a first demonstration is made, which takes a moment.
    """
    places: list[tuple[tuple[str | int, ...], Sequence[str]]] = [(("data", "domains"), list(config.data.domains))]
    places += [(("stages", i, "domains"), list(stage.domains)) for i, stage in enumerate(config.stages)]
    if config.evaluate:
        places.append((("evaluate", "domains"), config.evaluate.domains))
    for place, names in places:
        for name in names:
            if why := unknown(name):
                raise _at(document, place, why)
    kinds: list[tuple[tuple[str, str], Sequence[str]]] = []
    try:
        kinds.append((("data", "recipe"), config.data.followed().kinds()))
    except CrosswindError as error:
        raise _at(document, ("data", "recipe"), str(error)) from None
    if config.evaluate:
        kinds.append((("evaluate", "kinds"), config.evaluate.kinds))
    for spot, some in kinds:
        try:
            check_kinds(some)
        except CrosswindError as error:
            raise _at(document, spot, str(error)) from None
    for name in ("kinds", "domains"):
        if config.adaptive and config.evaluate and getattr(config.evaluate, name):
            raise _at(document, ("evaluate", name), f"rounds are measured on the {name} they train on; leave it out")
    if config.adaptive and not config.data.share:
        raise _at(document, ("data", "share"), "adaptive training moves the weights of kinds; give a share above 0")
    try:
        if draw:
            for data in [rung.of(config.data) for rung in getattr(config, "ladder", ())] or [config.data]:
                demonstration_at(data, 0)
    except CrosswindError as error:
        raise _at(document, ("data",), str(error)) from None


def _at(document: Document | None, place: Sequence[str | int], text: str) -> CrosswindError:
    return document.error(place, text) if document else CrosswindError(f"{'.'.join(map(str, place))}: {text}")


def for_method(config: C, method: Method, document: str = "") -> C:
    """The configuration of a method: sft learns from clean demonstrations, paft from a share of perturbed ones too."""
    where = f"{document}: " if document else ""
    if method == "sft":
        if config.adaptive:
            raise BadFile(f"{where}adaptive belongs to paft; give --set adaptive=null, or train with paft")
        if config.data.share and "share" in config.data.model_fields_set:
            raise BadFile(
                f"{where}data.share is {config.data.share}, but sft learns from clean demonstrations alone; "
                "give --set data.share=0, or train with paft"
            )
        return config.model_copy(update={"data": config.data.model_copy(update={"share": 0.0})})
    if method == "paft" and not config.data.share:
        raise BadFile(
            f"{where}data.share is 0, but paft learns from perturbed demonstrations too; give a share above 0"
        )
    return config


def differences(before: Mapping[str, Any], after: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """How two recipes differ, option by option, in words."""
    for key in dict.fromkeys((*before, *after)):
        old, new, spot = before.get(key), after.get(key), f"{name}.{key}" if name else key
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from differences(old, new, spot)
        elif old != new:
            yield f"{spot} was {_short(old)}, now {_short(new)}"


def is_main_process() -> bool:
    """Whether this is the first, or the only one, of the processes of a run."""
    return int(os.environ.get("WORLD_SIZE") or 1) == 1 or int(os.environ.get("RANK") or 0) == 0


def another(held: Mapping[str, Any], config: TrainConfig) -> str:
    """How a recipe that was stored differs from that of a configuration, in words; what may change is not looked at.

    An option that there was not when it was stored had what is now its default.
    """
    before = {key: value for key, value in merged(type(config)().recipe(), held).items() if key not in FREE}
    return "; ".join(list(differences(before, config.recipe()))[:5])


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Options overridden by others, part by part; `domains` is one part."""
    out = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(out.get(key), Mapping) and key != "domains"
        out[key] = merged(out[key], value) if both else value
    return out


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
