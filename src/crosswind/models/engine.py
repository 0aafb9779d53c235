"""Batched generation: the replies of thousands of conversations are written together by one model.

A conversation is known by its key and keeps its slot between its turns, with what it has read and written so far; of a
longer prompt only the new part is read. Turns wait for a slot in the order in which they came. When none is free, the
conversation that has been idle longest gives up its slot and is read again at its next turn. One thread does all the
work on the device and hands over finished replies while the next steps run there.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch

from crosswind.base.errors import CrosswindError
from crosswind.core.flow import rng_for
from crosswind.models.prompts import CLOSE, end_of
from crosswind.models.slots import LENGTH, RUNNING, NewTokens, Slots, Stops

if TYPE_CHECKING:
    from crosswind.models.constrained import Constraint

STEPS = 8  # of writing between two looks at who has ended, on a GPU
WINDOW = 4096  # tokens of a slot, unless the model has fewer or somebody says
SWITCH = 2e-4  # seconds that another thread may keep the interpreter, on a GPU
END = "<|im_end|>"
NEARLY_ONE = 1 - 2**-24  # the greatest number below 1 in single precision


class Completion(NamedTuple):
    """What a model wrote."""

    ids: list[int]  # with the token that ended it
    logprobs: list[float]  # of each, in the distribution it was drawn from (at temperature 0: the model's own)
    ended: Literal["stop", "length", "window"]  # window: the conversation fills its slot


@dataclass(slots=True)
class Stats:
    """What the engine did so far; seconds by what the device worked at, and the host's own."""

    turns: int = 0
    read: int = 0  # tokens read
    written: int = 0  # tokens written that count
    steps: int = 0  # of writing
    rows: int = 0  # conversations that wrote, summed over steps
    context: int = 0  # tokens they looked at, summed over steps and conversations
    evicted: int = 0
    reading: float = 0.0
    writing: float = 0.0
    host: float = 0.0  # seconds in which the engine's thread neither waited for the device nor for turns
    late: float = 0.0  # of these, between a look at who has ended and the launch of the next steps: the device's loss
    idle: float = 0.0  # seconds without a turn
    most: int = 0  # turns that were written at once


@dataclass(slots=True)
class _Turn:
    key: Hashable
    ids: list[int]
    limit: int
    heat: float
    seed: tuple[object, ...]
    forced: Sequence[int]
    future: Future[Completion]
    rule: Constraint | None = None
    told: int = 0  # tokens of which the rule has been told
    slot: int = -1


@dataclass(slots=True)
class _Held:
    """A conversation's slot, and the tokens whose keys and values are in it."""

    slot: int
    tokens: list[int] = field(default_factory=list)
    busy: bool = True
    released: bool = False


class Engine:
    """A model that writes many replies at a time. The model is its own until it is closed."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        slots: int | None = None,
        window: int | None = None,
        device: Any = None,
        graphs: bool = True,
        kernel: bool | None = None,
        seed: int = 0,
    ) -> None:
        model = model.to(device) if device is not None else model
        own = int(getattr(model.config, "max_position_embeddings", 0) or WINDOW)
        self.window = min(window or WINDOW, own)
        self.seed, self.stats = seed, Stats()
        self._steps = STEPS if model.device.type == "cuda" else 1
        self._slots = Slots(
            model.eval(),
            slots=slots,
            window=self.window,
            stops=stops_of(model, tokenizer),
            graphs=graphs and not _counts_positions(model.config),
            kernel=kernel,
        )
        self._inbox: SimpleQueue[_Turn | Callable[[], None] | None] = SimpleQueue()
        self._waiting: deque[_Turn] = deque()
        self._active: dict[int, _Turn] = {}  # by slot
        self._span = np.zeros(self._slots.slots, np.int64)  # by slot: tokens at the most, by now
        self._held: OrderedDict[Hashable, _Held] = OrderedDict()  # longest idle first
        self._free = list(range(self._slots.slots))[::-1]
        self._done: list[tuple[_Turn, Completion]] = []
        self._fetched: Callable[[], tuple[Any, Any]]  # the replies on their way from the device
        self._timers: list[_Timer] = []  # of work that the device may not be through with
        self._numbers = itertools.count()
        self._broken: BaseException | None = None
        self._closed = False
        self._interval = sys.getswitchinterval()
        if self._slots.cuda:  # each call of torch lets go of the interpreter, and would wait 5 ms to have it back
            sys.setswitchinterval(min(self._interval, SWITCH))
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
        self._thread.start()

    # -- for everybody

    @property
    def model(self) -> Any:
        return self._slots.model

    @property
    def slots(self) -> int:
        return self._slots.slots

    @property
    def token_bytes(self) -> int:
        """Bytes that the keys and values of one token take."""
        return self._slots.token_bytes

    @property
    def kernel(self) -> bool:
        """Is attention computed by the kernel, rather than in plain torch?"""
        return self._slots.kernel

    def submit(
        self,
        ids: Sequence[int],
        *,
        key: Hashable,
        max_new: int,
        temperature: float = 0.0,
        seed: object = None,
        forced: Sequence[int] = (),
        rule: Constraint | None = None,
    ) -> Future[Completion]:
        """Let the model write after a prompt, in at most `max_new` tokens; at most one turn of a key at a time.

        `seed` and the prompt's length decide what is drawn at a temperature above 0, whatever else is in the batch;
        None: a new one for each turn. `forced` tokens are written whatever the model would, and scored as its own.
        A `rule` bars tokens (`models.constrained`); it is asked after each token, so that steps are taken one by one.
        """
        self._check()
        if not ids or max_new < 1:
            raise CrosswindError(f"{len(ids)} tokens of prompt, {max_new} to generate; expected at least 1 of each")
        future: Future[Completion] = Future()
        fresh = ("turn", next(self._numbers)) if seed is None else (seed,)
        limit = min(max_new, self.window - len(ids))
        if limit < 1:
            future.set_result(Completion([], [], "window"))
            return future
        self._inbox.put(_Turn(key, list(ids), limit, temperature, fresh, forced, future, rule))
        self._check()
        return future

    def prepare(self, *, hot: bool = False) -> None:
        """Capture all graphs now rather than when each is first needed; nothing where there are none."""
        self._between_turns(lambda: self._slots.prepare(hot=hot))

    def release(self, key: Hashable) -> None:
        """Forget a conversation."""
        self._inbox.put(lambda: self._forget(key))

    def load_weights(self, weights: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Copy new values into the model's weights, by name, and forget all conversations. No turn may be under way."""
        named = dict(weights.items() if isinstance(weights, Mapping) else weights)

        def copy() -> None:
            own = dict(self._slots.model.named_parameters(remove_duplicate=False))
            if unknown := sorted(set(named) - set(own)):
                raise CrosswindError(f"the model has no weights {unknown[0]!r} ({len(unknown)} unknown names in all)")
            for name, value in named.items():
                own[name].copy_(value)
            self._forget_all()

        self._between_turns(copy)

    def close(self) -> None:
        """Stop, and give the memory back; turns under way are cancelled."""
        if not self._closed:
            self._closed = True
            self._inbox.put(None)
            self._thread.join()
            self._slots.close()
            sys.setswitchinterval(self._interval)

    def _check(self) -> None:
        if self._broken is not None:
            raise CrosswindError(f"the model's engine has stopped: {self._broken}") from self._broken
        if self._closed:
            raise CrosswindError("the model's engine is closed")

    def _between_turns(self, work: Callable[[], None]) -> None:
        self._check()
        done: Future[None] = Future()

        def run() -> None:
            if self._active or self._waiting:
                done.set_exception(CrosswindError("turns are in progress; wait for them before you change the weights"))
                return
            try:
                work()
                done.set_result(None)
            except Exception as error:
                done.set_exception(error)

        self._inbox.put(run)
        done.result()

    # -- the engine's thread

    def _work(self) -> None:
        try:
            if self._slots.cuda:
                torch.cuda.set_device(self._slots.device)  # each thread has its own
            with torch.inference_mode():
                while self._take():
                    self._round()
        except torch.OutOfMemoryError:
            self._broken = CrosswindError(
                f"out of memory on {self._slots.device} with {self.slots:,} slots of {self.window:,} tokens: "
                f"try {max(1, self.slots // 2):,} slots, or a window of {self.window // 2:,}"
            )
        except BaseException as error:
            self._broken = error
        self._hand_over()
        left = [*self._active.values(), *self._waiting]
        while not self._inbox.empty():
            one = self._inbox.get()
            left += [one] if isinstance(one, _Turn) else []
        for turn in left:
            if self._broken is None:
                turn.future.cancel()
            elif not turn.future.done():
                turn.future.set_exception(self._broken)

    def _take(self) -> bool:
        """Take in what has come; wait for it if there is nothing else to do. False: it is over."""
        while True:
            try:
                if self._active or self._waiting or self._done:
                    one = self._inbox.get_nowait()
                else:
                    began = time.perf_counter()
                    one = self._inbox.get()
                    self.stats.idle += time.perf_counter() - began
            except Empty:
                return True
            if one is None:
                return False
            if isinstance(one, _Turn):
                self._waiting.append(one)
            else:
                one()

    def _round(self) -> None:
        """See who has ended, launch the next steps of the others, and do the host's work while the device is at them.

        So the device never waits for a reply to be handed over, nor for a prompt to be put together: those that were
        read in this round write from the next one on.
        """
        began = time.perf_counter()
        over, waited = self._ended()
        ended = {slot for slot, _, _ in over}
        timer = _Timer(self._slots.cuda)
        self._write([slot for slot in self._active if slot not in ended])
        timer.lap()
        launched = time.perf_counter()
        waited += self._finish(over)
        self._hand_over()
        admitted = self._admitted()
        readings = [self._reading(turn) for turn in admitted]
        prepared = time.perf_counter()
        timer.skip()
        if readings:
            self._bar([turn for turn in admitted if turn.rule], readings)
            self._slots.read(readings)
        timer.lap()
        if over or readings:
            self.stats.late += launched - began - waited
        busy = waited if self._slots.cuda else waited + (launched - began) + (time.perf_counter() - prepared)
        self.stats.host += time.perf_counter() - began - busy
        self._timers.append(timer)

    def _ended(self) -> tuple[list[tuple[int, int, int]], float]:
        """The replies that have ended, as slot, how and number of tokens, and the seconds waited for the device."""
        active = list(self._active)
        if not active:
            return [], 0.0
        waits = time.perf_counter()
        ended, count = self._slots.standing(active)
        waited = time.perf_counter() - waits
        for timer in self._timers:  # the device has passed all of their marks
            writing, reading = timer.seconds()
            self.stats.writing += writing
            self.stats.reading += reading
        self._timers.clear()
        over = [(active[i], int(ended[i]), int(count[i])) for i in np.flatnonzero(ended != RUNNING)]
        if over:  # asked for before the next steps are launched, so that it need not wait for these
            self._fetched = self._slots.replies([slot for slot, _, _ in over], max(n for _, _, n in over))
        return over, waited

    def _write(self, active: list[int]) -> None:
        """Launch some steps of writing; nobody waits for them here."""
        if not active:
            return
        ruled = [self._active[slot] for slot in active if self._active[slot].rule]
        steps = 1 if ruled else self._steps
        if ruled:
            self._bar(self._told(ruled))
        self._span[active] += steps
        self._slots.write(
            active, steps, int(self._span[active].max()), hot=any(self._active[slot].heat for slot in active)
        )
        stats = self.stats
        stats.steps += steps
        stats.rows += steps * len(active)
        stats.context += steps * int(self._span[active].sum())
        stats.most = max(stats.most, len(active))

    def _told(self, ruled: list[_Turn]) -> list[_Turn]:
        """Tell the rules what was written since they were last told; those of replies that go on come back."""
        tokens, ended, count = self._slots.latest([turn.slot for turn in ruled])
        for turn, token, n in zip(ruled, tokens, count, strict=True):
            if turn.rule and n > turn.told:
                turn.rule.wrote(int(token))
                turn.told = int(n)
        return [turn for turn, how in zip(ruled, ended, strict=True) if how == RUNNING]

    def _bar(self, ruled: Sequence[_Turn], readings: Sequence[NewTokens] = ()) -> None:
        """Put in place what each of some replies may not write next."""
        masks = {turn.slot: turn.rule.barred() for turn in ruled if turn.rule}
        self._slots.bar({**{one.slot: None for one in readings}, **masks})

    def _admitted(self) -> list[_Turn]:
        """Turns that now have a slot."""
        out: list[_Turn] = []
        while self._waiting:
            turn = self._waiting[0]
            held = self._held.get(turn.key)
            if held is not None and held.busy:
                self._waiting.popleft()
                turn.future.set_exception(CrosswindError(f"two turns of the conversation {turn.key!r} at a time"))
                continue
            if held is None and not self._free and not self._evict():
                break
            self._waiting.popleft()
            if not turn.future.set_running_or_notify_cancel():
                continue
            if held is None:
                held = self._held[turn.key] = _Held(self._free.pop())
            held.busy, turn.slot = True, held.slot
            self._active[turn.slot] = turn
            out.append(turn)
        return out

    def _evict(self) -> bool:
        """Take the slot of the conversation that has been idle longest."""
        wanted = {turn.key for turn in self._waiting}
        idle = [key for key, held in self._held.items() if not held.busy]
        key = next((key for key in idle if key not in wanted), idle[-1] if idle else None)
        if key is None:
            return False
        self._free.append(self._held.pop(key).slot)
        self.stats.evicted += 1
        return True

    def _reading(self, turn: _Turn) -> NewTokens:
        held = self._held[turn.key]
        known = min(shared(held.tokens, turn.ids), len(turn.ids) - 1)  # the last one is read for what comes after it
        self._span[turn.slot] = len(turn.ids) + 1
        self.stats.read += len(turn.ids) - known
        uniform: list[float] = []
        if turn.heat:
            rng = rng_for("sampling", self.seed, *turn.seed, len(turn.ids))
            uniform = [min(rng.random(), NEARLY_ONE) for _ in range(turn.limit)]
        return NewTokens(turn.slot, known, turn.ids[known:], turn.limit, turn.heat, turn.forced[: turn.limit], uniform)

    def _finish(self, over: list[tuple[int, int, int]]) -> float:
        """Take the replies that have ended off the device; the seconds that were waited for them come back."""
        if not over:
            return 0.0
        waits = time.perf_counter()
        ids, logprobs = self._fetched()
        waited = time.perf_counter() - waits
        for i, (slot, ended, n) in enumerate(over):
            turn = self._active.pop(slot)
            written = ids[i, :n].tolist()
            held = self._held[turn.key]
            held.tokens, held.busy = turn.ids + written[:-1], False  # the last one was chosen, not read
            self._held.move_to_end(turn.key)
            if held.released:
                self._forget(turn.key)
            full = len(turn.ids) + n >= self.window
            why: Literal["stop", "length", "window"] = "stop"
            if ended == LENGTH:
                why = "window" if full else "length"
            self._done.append((turn, Completion(written, logprobs[i, :n].tolist(), why)))
            self.stats.turns += 1
            self.stats.written += n
        return waited

    def _hand_over(self) -> None:
        done, self._done = self._done, []
        for turn, completion in done:
            turn.future.set_result(completion)

    def _forget(self, key: Hashable) -> None:
        held = self._held.get(key)
        if held is None:
            return
        if held.busy:
            held.released = True
            return
        self._free.append(self._held.pop(key).slot)

    def _forget_all(self) -> None:
        self._held.clear()
        self._free = list(range(self.slots))[::-1]


class _Timer:
    """Seconds between marks, as the device has it."""

    def __init__(self, cuda: bool) -> None:
        self.cuda, self.spans = cuda, list[tuple[Any, Any]]()
        self.skip()

    def skip(self) -> None:
        """Begin here: what was before is not counted."""
        self.last = self._mark()

    def lap(self) -> None:
        now = self._mark()
        self.spans.append((self.last, now))
        self.last = now

    def _mark(self) -> Any:
        if not self.cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self) -> list[float]:
        return [a.elapsed_time(b) / 1000 if self.cuda else b - a for a, b in self.spans]


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def stops_of(model: Any, tokenizer: Any, strings: Sequence[str] = (CLOSE, END)) -> Stops:
    """When a reply ends: at the model's own end, at the end of a turn, after a tool call."""
    ends: set[int] = set()
    config = getattr(model, "generation_config", None)
    for found in (tokenizer.eos_token_id, getattr(config, "eos_token_id", None), model.config.eos_token_id):
        ends.update(found if isinstance(found, (list, tuple)) else [] if found is None else [found])
    end = tokenizer.convert_tokens_to_ids(END)
    if end is not None and end != tokenizer.unk_token_id:
        ends.add(end)
    own = end_of(tokenizer)  # of its template, which training teaches; few base models name it among their ends
    if own is not None:
        ends.add(own)
    return Stops(frozenset(ends), stop_table(texts_of(tokenizer), strings))


def texts_of(tokenizer: Any) -> list[str]:
    """What each token adds to a text; tokens may look different at a text's beginning, so each is put after another."""
    before = tokenizer.encode("a", add_special_tokens=False)[-1:]
    skip = len(tokenizer.decode(before, clean_up_tokenization_spaces=False))
    pairs = [[*before, token] for token in range(len(tokenizer))]
    return [text[skip:] for text in tokenizer.batch_decode(pairs, clean_up_tokenization_spaces=False)]


def stop_table(texts: Sequence[str], strings: Sequence[str]) -> Any:
    """By state and token, the state after it: how much of one of the strings stands at the text's end.

    The last state is that one of them has been written, and is never left. States are the beginnings of the strings.
    """
    states = sorted({string[:n].encode() for string in strings for n in range(len(string))}, key=len)
    index = {state: i for i, state in enumerate(states)}
    final = len(states)
    step = np.zeros((final + 1, 257), np.int16)  # 256: no more letters
    step[:, 256] = np.arange(final + 1)
    step[final] = final
    for i, state in enumerate(states):
        for letter in range(256):
            tail = state + bytes([letter])
            if any(string.encode() in tail for string in strings):
                step[i, letter] = final
                continue
            step[i, letter] = next(index[tail[n:]] for n in range(len(tail) + 1) if tail[n:] in index)
    coded = [text.encode() for text in texts]
    letters = np.full((len(coded), max((len(text) for text in coded), default=0)), 256, np.int16)
    for i, text in enumerate(coded):
        letters[i, : len(text)] = np.frombuffer(text, np.uint8)
    out = np.repeat(np.arange(final + 1, dtype=np.int16)[:, None], len(coded), 1)
    for column in letters.T:
        out = step[out, column]
    return out


def _counts_positions(config: Any) -> bool:
    """Do the model's positions depend on the longest one in the batch? Then its passes cannot be kept as graphs."""
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    return "dynamic" in str(rope) or "longrope" in str(rope)
