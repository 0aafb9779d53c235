"""Batched generation: what many conversations are given together is what each would be given alone."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from crosswind.base.errors import CrosswindError  # noqa: E402
from crosswind.models import prompts, slots  # noqa: E402
from crosswind.models.engine import Completion, Engine, shared, stop_table  # noqa: E402
from crosswind.models.loading import load, merged, with_adapter  # noqa: E402
from crosswind.models.source import AgentSettings  # noqa: E402
from crosswind.models.spec import open_agent  # noqa: E402
from tests import tiny  # noqa: E402

NEW = 12
Prompt = list[int]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny.tokenizer()


def lively(tokenizer: Any, seed: int = 0) -> Any:
    """A tiny model whose words depend on all it has read; as it is made, it would repeat the last one."""
    model = tiny.model(tokenizer)
    chance = torch.Generator().manual_seed(seed)
    model.config.tie_word_embeddings = False
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    for weight in model.parameters():
        if weight.dim() > 1:
            weight.data.normal_(0.0, 0.25, generator=chance)
    return model.eval()


@pytest.fixture(scope="module")
def reference(tokenizer: Any) -> Any:
    """The same weights, for `generate` and for whole forward passes."""
    return lively(tokenizer)


@pytest.fixture
def made(tokenizer: Any) -> Iterator[Any]:
    """Makes engines, and closes them."""
    engines: list[Engine] = []

    def make(**options: Any) -> Engine:
        engines.append(Engine(lively(tokenizer), tokenizer, **({"slots": 6, "window": 256} | options)))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def some(tokenizer: Any, count: int, longest: int = 70, seed: int = 0) -> list[Prompt]:
    rng = random.Random(seed)
    return [[rng.randrange(3, len(tokenizer)) for _ in range(rng.randrange(1, longest))] for _ in range(count)]


def greedy(model: Any, ids: Prompt, new: int = NEW) -> Prompt:
    tokens = torch.tensor([ids])
    out = model.generate(
        tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=new, do_sample=False, pad_token_id=0
    )
    return [int(token) for token in out[0, len(ids) :]]


def scored(model: Any, ids: Prompt, said: Prompt, heat: float = 1.0) -> list[float]:
    """Log-probabilities by one forward pass over everything."""
    with torch.no_grad():
        logits = model(torch.tensor([ids + said])).logits[0, len(ids) - 1 : -1] / heat
    found: list[float] = logits.log_softmax(-1).gather(1, torch.tensor(said)[:, None])[:, 0].tolist()
    return found


def results(futures: list[Future[Completion]]) -> list[Completion]:
    return [future.result(60) for future in futures]


def test_replies_are_those_of_generate_turn_after_turn_whoever_is_evicted(
    tokenizer: Any, reference: Any, made: Any
) -> None:
    engine = made(slots=5)
    chats = some(tokenizer, 12)
    told = some(tokenizer, 24, 20, seed=1)
    for turn in range(3):
        replies = results([engine.submit(ids, key=i, max_new=NEW) for i, ids in enumerate(chats)])
        for ids, reply in zip(chats, replies, strict=True):
            assert reply.ids == greedy(reference, ids)[: len(reply.ids)]
            assert reply.ended == ("length" if len(reply.ids) == NEW else "stop")
            assert reply.logprobs == pytest.approx(scored(reference, ids, reply.ids), abs=1e-4)
        if turn < 2:
            chats = [ids + r.ids + told[12 * turn + i] for i, (ids, r) in enumerate(zip(chats, replies, strict=True))]
    assert engine.stats.evicted > 0
    assert engine.stats.most == 5


def test_of_a_prompt_that_goes_on_only_the_new_part_is_read(tokenizer: Any, reference: Any, made: Any) -> None:
    engine = made()
    (ids, more) = some(tokenizer, 2)
    first = engine.submit(ids, key="a", max_new=NEW).result(60)
    assert engine.stats.read == len(ids)
    longer = ids + first.ids + more
    engine.submit(longer, key="a", max_new=NEW).result(60)
    assert engine.stats.read == len(ids) + 1 + len(more)  # the last token written was not read yet
    changed = [*longer[:5], longer[5] ^ 1, *longer[6:]]
    before = engine.stats.read
    reply = engine.submit(changed, key="a", max_new=NEW).result(60)
    assert engine.stats.read == before + len(changed) - 5
    assert reply.ids == greedy(reference, changed)
    engine.release("a")
    assert engine.submit(changed, key="a", max_new=NEW).result(60) == reply
    assert engine.stats.read == before + 2 * len(changed) - 5


def test_the_end_of_the_window_is_the_end_of_the_reply(tokenizer: Any, reference: Any, made: Any) -> None:
    engine = made(window=40)
    ids = some(tokenizer, 1, seed=3)[0][:30]
    ids = (ids * 30)[:30]
    reply = engine.submit(ids, key=0, max_new=100).result(60)
    assert (len(reply.ids), reply.ended) == (10, "window")
    assert reply.ids == greedy(reference, ids, 10)
    assert engine.submit(ids + reply.ids, key=0, max_new=5).result(60) == Completion([], [], "window")
    short = engine.submit(ids[:3], key=0, max_new=4).result(60)
    assert short.ids == greedy(reference, ids[:3], 4)


def test_what_is_drawn_depends_on_the_seed_and_not_on_the_batch(tokenizer: Any, reference: Any, made: Any) -> None:
    asked = some(tokenizer, 8)

    def drawn(engine: Engine, order: list[int], heat: float = 0.8) -> dict[int, Completion]:
        futures = {i: engine.submit(asked[i], key=("s", heat, i), max_new=NEW, temperature=heat, seed=i) for i in order}
        return {i: future.result(60) for i, future in futures.items()}

    one, other = drawn(made(slots=8), [*range(8)]), drawn(made(slots=2), [5, 2, 0, 7, 1, 6, 4, 3])
    for i, ids in enumerate(asked):
        assert one[i].ids == other[i].ids
        assert one[i].logprobs == pytest.approx(scored(reference, ids, one[i].ids, 0.8), abs=1e-4)
    assert [one[i].ids for i in range(8)] != [greedy(reference, ids) for ids in asked]
    assert drawn(made(seed=1), [0])[0].ids != one[0].ids
    mixed = made()
    hot = mixed.submit(asked[0], key=0, max_new=NEW, temperature=0.8, seed=0)
    cold = mixed.submit(asked[1], key=1, max_new=NEW)
    assert (hot.result(60).ids, cold.result(60).ids) == (one[0].ids, greedy(reference, asked[1]))


def test_tokens_are_drawn_as_often_as_they_are_likely(tokenizer: Any, reference: Any, made: Any) -> None:
    engine = made(slots=64)
    ids = some(tokenizer, 1)[0]
    replies = results([engine.submit(ids, key=i, max_new=1, temperature=0.05, seed=i) for i in range(600)])
    with torch.no_grad():
        likely = (reference(torch.tensor([ids])).logits[0, -1] / 0.05).softmax(-1)
    top = int(likely.argmax())
    assert 0.1 < float(likely[top]) < 0.9
    share = sum(reply.ids == [top] for reply in replies) / 600
    assert share == pytest.approx(float(likely[top]), abs=0.08)


def test_forced_tokens_are_written_and_scored(tokenizer: Any, reference: Any, made: Any) -> None:
    engine = made()
    ids, said = some(tokenizer, 2, seed=5)
    said = [*said[:9], tokenizer.eos_token_id]
    reply = engine.submit(ids, key=0, max_new=30, forced=said).result(60)
    assert (reply.ids, reply.ended) == (said, "stop")
    assert reply.logprobs == pytest.approx(scored(reference, ids, said), abs=1e-4)
    assert engine.submit(ids, key=0, max_new=NEW).result(60).ids == greedy(reference, ids)  # and no longer


@pytest.mark.parametrize("text", ['{"name": "x"}</tool_call>', "</tool_call>", "<</tool_call>", "no</tool</tool_call>"])
def test_a_reply_ends_with_its_tool_call_however_that_is_cut_into_tokens(tokenizer: Any, made: Any, text: str) -> None:
    engine = made()
    for said in (tokenizer.encode(text), [tokenizer.encode(letter)[0] for letter in text]):
        reply = engine.submit([5, 6, 7], key=0, max_new=60, forced=[*said, 5, 5, 5]).result(60)
        assert reply.ids == said
        assert reply.ended == "stop"


def test_the_table_of_stops_follows_text_over_tokens() -> None:
    texts = ["a", "b", "ab", "xab", "aab", "abc", "", "cab", "é"]
    table = stop_table(texts, ["abc", "cc"])
    final = len(table) - 1
    rng = random.Random(0)
    for _ in range(300):
        state, text = 0, ""
        for token in (rng.randrange(len(texts)) for _ in range(6)):
            state, text = int(table[state, token]), text + texts[token]
            assert (state == final) == ("abc" in text or "cc" in text)


def test_weights_are_loaded_between_turns(tokenizer: Any, made: Any) -> None:
    engine = made()
    other = lively(tokenizer, seed=7)
    ids = some(tokenizer, 1)[0]
    first = engine.submit(ids, key=0, max_new=NEW).result(60)
    engine.load_weights(other.state_dict())
    again = engine.submit(ids, key=0, max_new=NEW).result(60)
    assert again.ids == greedy(other, ids) != first.ids
    with pytest.raises(CrosswindError, match="no weights 'nothing'"):
        engine.load_weights({"nothing": torch.zeros(1)})
    running = engine.submit(ids, key=0, max_new=180)
    with pytest.raises(CrosswindError, match="turns are in progress"):
        engine.load_weights({})
    running.result(60)
    engine.load_weights({})


def test_an_adapter_under_training_is_merged_into_the_engine(tokenizer: Any, made: Any, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    wrapped = peft.get_peft_model(
        lively(tokenizer), peft.LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
    )
    engine = made()
    engine.load_weights(merged(wrapped))
    ids = some(tokenizer, 1)[0]
    reply = engine.submit(ids, key=0, max_new=NEW).result(60)
    assert reply.ids == greedy(wrapped.eval(), ids)
    wrapped.save_pretrained(tmp_path)
    assert greedy(with_adapter(lively(tokenizer), str(tmp_path)).eval(), ids) == reply.ids


def test_bad_requests_are_refused_and_a_closed_engine_says_so(tokenizer: Any, made: Any) -> None:
    engine = made()
    with pytest.raises(CrosswindError, match="0 tokens of prompt, 5 to generate"):
        engine.submit([], key=0, max_new=5)
    one, two = (engine.submit([5, 6], key="same", max_new=100) for _ in range(2))
    with pytest.raises(CrosswindError, match="two turns of the conversation 'same'"):
        two.result(60)
    assert len(one.result(60).ids) > 0
    with pytest.raises(CrosswindError, match="belongs to an engine"):
        engine.model(torch.tensor([[5, 6]]))
    engine.close()
    with pytest.raises(CrosswindError, match="closed"):
        engine.submit([5], key=0, max_new=5)
    assert engine.model(torch.tensor([[5, 6]])).logits.shape[1] == 2


def test_too_little_memory_says_how_many_slots_to_try(
    tokenizer: Any, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "room", lambda *_: 3)
    with pytest.raises(CrosswindError, match=r"100 slots of 256 tokens take .* GiB, .*: try 3 slots"):
        made(slots=100)
    assert made(slots=None).slots == 3
    monkeypatch.setattr(slots, "room", lambda *_: 0)
    with pytest.raises(CrosswindError, match="try a window of 128"):
        made(slots=None)
    monkeypatch.undo()
    engine = made()

    def out_of_memory(*_: Any) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(engine._slots, "read", out_of_memory)
    with pytest.raises(CrosswindError, match="out of memory on cpu with 6 slots of 256 tokens: try 3 slots"):
        engine.submit([5], key=0, max_new=5).result(60)
    with pytest.raises(CrosswindError, match="has stopped"):
        engine.submit([5], key=0, max_new=5)


def test_what_two_sequences_share() -> None:
    rng = random.Random(0)
    for _ in range(200):
        one, n = [rng.randrange(9) for _ in range(rng.randrange(1, 30))], rng.randrange(30)
        other = [*one[:n], 9, *one[n + 1 :]] if n < len(one) else one + [3] * n
        assert shared(one, other) == shared(other, one) == min(n, len(one))


# ---------------------------------------------------------------- hf: agents


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("tiny"))


def test_a_run_with_a_local_model_is_played_and_classified(folder: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from crosswind.cli.app import app
    from crosswind.runs.store import load_run

    spec = f"hf:{folder}"
    told = CliRunner().invoke(
        app, ["run", "quick", "--agent", spec, "--out", str(tmp_path / "run"), "--reply-tokens", "8"]
    )
    assert told.exit_code == 0, told.output
    run = load_run(tmp_path / "run")
    assert len(run.records) == 20
    assert {record.outcome for record in run.records} <= {"pass", "fail"}
    assert all(record.cause for record in run.records if record.outcome == "fail")
    assert run.manifest.agent == spec
    assert (run.records[0].usage.input_tokens or 0) > 100


def test_a_window_too_short_to_begin_with_is_told_of_once(folder: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from crosswind.cli.app import app

    asked = ["run", "quick", "--agent", f"hf:{folder}", "--out", str(tmp_path / "run"), "--context", "64"]
    with pytest.warns(UserWarning, match="and the window has 64: nothing is written there") as told:
        assert CliRunner().invoke(app, asked).exit_code == 0
    assert len(told) == 1


def test_a_template_that_fails_is_told_in_the_line_of_training(folder: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from crosswind.cli.app import app

    shutil.copytree(folder, tmp_path / "model")
    (tmp_path / "model" / "chat_template.jinja").write_text("{{ raise_exception('no system\\nhere') }}")
    done = CliRunner().invoke(
        app, ["run", "quick", "--agent", f"hf:{tmp_path / 'model'}", "--out", str(tmp_path / "run")]
    )
    assert isinstance(done.exception, CrosswindError)
    assert re.fullmatch(r".*/model: the chat template takes no system .*: no system here; set .*", str(done.exception))


def test_an_agent_goes_on_in_the_tokens_it_wrote(folder: Path) -> None:
    import asyncio

    from crosswind.core.draw import draw
    from crosswind.core.registry import domains
    from crosswind.core.types import Message

    here = domains["poi"]
    drawn = draw(here, here.task(next(iter(here.families)), 1, split="test"), (), 1)
    tools = drawn.certificate.gold.session.tools()

    async def talk() -> None:
        source: Any = open_agent(f"hf:{folder}", AgentSettings(max_tokens=6))
        agent = source.make(drawn)
        chat = [Message(role="system", content="Help."), Message(role="user", content="Where?")]
        first = await agent.reply(chat, tools)
        read = source.engine.stats.read
        chat += [first, Message(role="user", content="And when?")]
        await agent.reply(chat, tools)
        script = prompts.script_of(source.tokenizer)
        wrote = agent.conversation._wrote[2]
        said = [*script.system("Help.", tools), *script.user("Where?", first=True), *wrote, *script.user("And when?")]
        assert agent.conversation.update(chat, tools) == said
        assert source.engine.stats.read - read < len(script.user("And when?")) + 3
        assert agent.usage.requests == 2
        del agent
        await source.aclose()

    asyncio.run(talk())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "no model found"),
        ("encoder", "BertModel not a causal language model"),
        ("gone.gguf", "no such file; give a model's folder, a .gguf file"),
        ("gone/model", "no such file or folder; give a model's folder"),
        ("notes.txt", "this is a file, and no .gguf file; give a model's folder"),
        ("cut", "cannot be loaded as a causal language model: .*header.*; give a model's folder"),
        ("other", "cannot be loaded as a causal language model: .*; give a model's folder"),
    ],
)
def test_what_is_no_causal_model_is_refused_in_one_line(tmp_path: Path, name: str, told: str) -> None:
    where = tmp_path / name
    if name == "encoder":
        where.mkdir()
        (where / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": ["BertModel"]}))
    elif name == "notes.txt":
        where.write_text("a model")
    elif name == "cut":  # weights of which the end is missing
        tiny.save(where)
        (where / "model.safetensors").write_bytes((where / "model.safetensors").read_bytes()[:64])
    elif name == "other":  # weights of another shape
        tiny.save(where)
        described = json.loads((where / "config.json").read_text())
        (where / "config.json").write_text(json.dumps({**described, "hidden_size": 128}))
    with pytest.raises(CrosswindError, match=told) as raised:
        load(str(where), torch.float32)
    assert str(raised.value).startswith(str(where))
    assert "\n" not in str(raised.value)


def test_an_adapter_that_is_none_is_refused_in_one_line(tokenizer: Any, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    with pytest.raises(CrosswindError, match="no adapter found; give a"):
        with_adapter(tiny.model(tokenizer), str(tmp_path))
    with pytest.raises(CrosswindError, match="cannot be loaded as an adapter"):
        with_adapter(tiny.model(tokenizer), str(tmp_path / "none"))
