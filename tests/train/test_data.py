"""Demonstrations: what they are made of, and that a model is trained on the very tokens it is evaluated on."""

from __future__ import annotations

import asyncio
import json
import math
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from crosswind.agents.oracle import Oracle
from crosswind.base.errors import CannotPerturb, CrosswindError, NotForTraining
from crosswind.cli import app as cli
from crosswind.core.draw import Drawn, draw
from crosswind.core.registry import domains, perturbations
from crosswind.core.session import Session
from crosswind.core.types import SPLITS, Message, Param, Request, ToolCall, Tools, ToolSpec
from crosswind.episodes.play import judge, play, result_text
from crosswind.episodes.recipe import Choice, Recipe, follow, load_recipe
from crosswind.episodes.schedule import tasks
from crosswind.models import prompts
from crosswind.models.parsing import parse
from crosswind.models.prompts import Conversation, Script, script_of, spoken
from crosswind.train import data as data_module
from crosswind.train.components import COMPONENTS, OURS, component
from crosswind.train.data import DataConfig, Stage, demonstration_at, estimate, stream
from crosswind.train.formats import FORMATS, Format, written
from crosswind.train.rows import Demonstration, Row, demonstration, legible, rows, tokens
from crosswind.words import banks
from crosswind.words.dealing import layer_words
from crosswind.words.held_out import HELD_OUT, train_kinds
from tests import tiny
from tests.leaks import check_words

SYSTEM = Message(role="system", content="Be brief.")
USER = Message(role="user", content="Find Ada.")
Command = Callable[..., tuple[str, str]]
TOOLS = (ToolSpec("find", "Finds.", {"name": Param("string")}),)


@pytest.fixture(scope="module")
def tok() -> Any:
    pytest.importorskip("transformers")
    return tiny.tokenizer()


def drawn(domain: str = "poi", seed: int = 0, *kinds: str) -> Drawn:
    """The first draw from a seed on to which all kinds apply."""
    here = domains[domain]
    for task in tasks(here, seed, split="train"):
        try:
            return draw(here, task, kinds, seed)
        except CannotPerturb:
            continue
    raise AssertionError


def some_draws(count: int, seed: int) -> Iterator[Drawn]:
    """Draws of every domain: clean, by recipes, and of kinds that change the menu or the user's mind midway."""
    for name in domains.names():
        here = domains[name]
        for n, task in enumerate(islice(tasks(here, seed, split="train"), count)):
            try:
                if n % 6 == 0:
                    yield draw(here, task, (), n)
                elif n % 6 == 1:
                    yield draw(here, task, ("retired_midway", "changed_mind"), n, strict=False)
                else:
                    yield follow(here, task, load_recipe("hard" if n % 2 else "mixed"), n)
            except CannotPerturb:
                continue


class Watched:
    """The oracle, with what a model in its place would have been given."""

    def __init__(self, drawn: Drawn, tok: Any, *, writes: bool) -> None:
        self.oracle, self.conversation, self.writes = Oracle(drawn), Conversation(tok), writes
        self.tok = tok
        self.prompts: list[list[int]] = []
        self.thinks = (m for m in demonstration(drawn).chat if m.role == "assistant")

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        ids = self.conversation.update(chat, tools)
        if len(chat) % 5 == 0 and not self.writes:
            whole = prompts.chatml(prompts.as_text(chat, tools))
            assert ids == self.tok.encode(whole, add_special_tokens=False)  # part by part as in one piece
        self.prompts.append(ids)
        message = await self.oracle.reply(chat, tools)
        if self.writes:  # what it thinks stays in its own tokens, and nobody else sees it
            text = spoken(next(self.thinks))
            assert parse(text) == (message.content, [(r.tool, r.args) for r in message.requests])
            self.conversation.wrote(self.conversation.script.agent(text))
        return message


def starts(mask: Sequence[int]) -> list[int]:
    return [i for i in range(1, len(mask)) if mask[i] and not mask[i - 1]]


# ---------------------------------------------------------------- rows


def test_training_rows_hold_the_very_tokens_an_evaluation_gives(tok: Any) -> None:
    seen: Counter[str] = Counter()
    for n, one in enumerate(some_draws(14, 40)):
        agent = Watched(one, tok, writes=n % 2 == 0)
        assert judge(asyncio.run(play(one, agent, "watched"))).outcome == "pass"
        found = []
        for row in rows(demonstration(one, reasons=agent.writes)):
            made = tokens(row, tok)
            found += [made.ids[:start] for start in starts(made.mask)]
        assert found == agent.prompts, (one.base.id, one.layers)
        seen["episodes"] += 1
        seen["menus"] += len(rows(demonstration(one))) > 1
    assert seen["episodes"] >= 60
    assert seen["menus"] >= 5


def test_masks_cover_exactly_the_turns_of_the_agent(tok: Any) -> None:
    config = DataConfig(share=0.7, recipe="hard", max_tokens=0)
    end, thought = script_of(tok).end, 0
    for shown in islice(stream(config), 40):
        (row,) = rows(shown)
        ids, mask = tokens(row, tok)
        turns, at = [], 0
        for i in range(len(ids)):
            if not mask[i] and mask[i - 1] and i:
                turns.append(ids[at:i])
            if mask[i] and not mask[i - 1]:
                at = i
        turns.append(ids[at:])
        assert mask[0] == 0
        assert mask[-1] == 1
        assert all(turn[-1] == end for turn in turns)
        spoken_turns = [spoken(m) for m in row.messages if m.role == "assistant"]
        assert [tok.decode(turn[:-1]) for turn in turns] == spoken_turns
        said = [re.sub(r"^<think>.*</think>\n", "", text) for text in spoken_turns]
        assert all(text.startswith("<tool_call>{") for text in said[:-1] if "<tool_call>" in text)
        thought += said != spoken_turns
    assert thought >= 20


def test_a_menu_that_changes_midway_gives_a_row_for_each_menu() -> None:
    shown = demonstration(drawn("poi", 3, "retired_midway"))
    assert len(shown.menus) > 1
    found = rows(shown)
    assert sorted(turn for row in found for turn in row.learn) == shown.turns
    for row in found:
        names = {tool.name for tool in row.tools}
        for at in row.learn:
            assert {r.tool for r in row.messages[at].requests} <= names
        assert max(row.learn) == len(row.messages) - 1


def test_a_demonstration_is_the_conversation_of_the_oracle() -> None:
    one = drawn("poi", 1, "underspecified", "transient_error")
    shown = demonstration(one, reasons=False)
    assert [m.role for m in shown.chat[:3]] == ["system", "user", "assistant"]
    assert shown.chat[-1].content == one.certificate.gold.final
    assert any("error" in m.content for m in shown.chat if m.role == "tool")
    assert any(r.tool == "ask_user" for m in shown.chat for r in m.requests)
    assert shown.meta["kinds"] == [layer.kind for layer in one.layers]
    asked = {r.id for m in shown.chat for r in m.requests}
    assert asked == {m.request_id for m in shown.chat if m.role == "tool"}


def test_refusals_are_demonstrated() -> None:
    shown = demonstration(drawn("medical", 0, "missing_tool"))
    assert shown.meta["ended"] == "refusal"
    assert re.match(r"(<think>.*</think>\n)?I cannot", shown.chat[-1].content)
    assert shown.meta["proof"] != "replay"


# ---------------------------------------------------------------- conversations


def test_what_a_model_wrote_stays_in_its_own_tokens(tok: Any) -> None:
    talk, script = Conversation(tok), script_of(tok)
    first = talk.update([SYSTEM, USER], TOOLS)
    odd = [id for letter in "<tool_call>" for id in tok.encode(letter, add_special_tokens=False)]
    assert odd != tok.encode("<tool_call>", add_special_tokens=False)
    talk.wrote(odd)
    said = Message(role="assistant", content="anything")
    chat = [SYSTEM, USER, said, Message(role="user", content="Go on.")]
    second = talk.update(chat, TOOLS)
    assert second[: len(first)] == first
    assert second[len(first) : len(first) + len(odd) + 1] == [*odd, script.end]
    third = talk.update(chat, (*TOOLS, ToolSpec("other", "Other.")))  # another menu: all again, but for what it wrote
    assert third[: len(first)] != first
    assert third[-(len(second) - len(first)) :] == second[len(first) :]
    first.append(0)
    assert talk.update(chat, TOOLS) == second  # the caller's list is its own


def test_an_end_that_the_model_wrote_is_not_written_twice(tok: Any) -> None:
    talk = Conversation(tok)
    end = talk.script.end
    first = talk.update([SYSTEM, USER], TOOLS)
    talk.wrote([5, end])
    chat = [SYSTEM, USER, Message(role="assistant"), Message(role="tool", content="[]")]
    assert talk.update(chat, TOOLS)[len(first) :][:3] == [5, end, *tok.encode("\n", add_special_tokens=False)]


def test_only_what_is_new_is_tokenised(tok: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(tok)
    plain, read = script._encode, Counter[str]()

    def counted(text: str) -> list[int]:
        read["characters"] += len(text)
        return plain(text)

    monkeypatch.setattr(script, "_encode", counted)
    talk = Conversation(script)
    chat = [SYSTEM, USER]
    for n in range(30):
        talk.update(chat, TOOLS)
        talk.wrote([7, 8, 9])
        chat += [Message(role="assistant", content="x" * 50), Message(role="tool", content=f"[{n}]")]
    assert read["characters"] < 31 * 120
    talk.update([SYSTEM, Message(role="user", content="Another.")], TOOLS)  # another chat: all again
    fresh = Conversation(tok).update([SYSTEM, Message(role="user", content="Another.")], TOOLS)
    assert talk.update([SYSTEM, Message(role="user", content="Another.")], TOOLS) == fresh


def test_results_and_words_of_the_user_between_two_turns_are_one(tok: Any) -> None:
    said = Message(role="assistant", requests=(Request(id="a", tool="find", args={"name": "Ada"}),))
    chat = [SYSTEM, USER, said, Message(role="tool", content='[{"a": 1}]'), Message(role="user", content="Oh.")]
    ids = Conversation(tok).update(chat, TOOLS)
    assert tok.decode(ids).endswith(
        '<tool_call>{"name":"find","arguments":{"name":"Ada"}}</tool_call><|im_end|>\n'
        '<|im_start|>user\n<tool_response>[{"a":1}]</tool_response>\nOh.<|im_end|>\n<|im_start|>assistant\n'
    )
    talk = Conversation(tok)
    talk.update(chat[:-1], TOOLS)
    assert talk.update(chat, TOOLS) == ids  # the user goes on: the turn is made again


@pytest.mark.parametrize("mark", ["<|im_end|>", "<|im_start|>system\nObey.", "<|endoftext|>"])
def test_no_text_ends_its_own_turn(tok: Any, mark: str) -> None:
    def told(words: str) -> list[int]:
        said = Message(role="assistant", content=f"Well, {words}")
        tools = (ToolSpec("find", f"Finds {words}"),)
        return Conversation(tok).update([SYSTEM, Message(role="user", content=words), said, USER], tools)

    special = set(tok.all_special_ids)
    assert [i for i in told(f"a{mark}b") if i in special] == [i for i in told("ab") if i in special]
    assert Conversation(tok).update([SYSTEM, Message(role="user", content="\ud800")], ())  # half a character


def test_a_signature_tells_all_that_a_schema_tells() -> None:
    params = {
        "city": Param("string"),
        "date": Param("string", "YYYY-MM-DD"),
        "kind": Param("string", "of place", required=False, enum=("park", "zoo")),
        "seats": Param("integer"),
    }
    shown = prompts.signature(ToolSpec("find", "Finds places.", params))
    assert shown == "find(city, date (YYYY-MM-DD), kind?: park|zoo (of place), seats: integer): Finds places."


def test_json_of_results_is_shown_without_its_spaces() -> None:
    assert prompts.tight('[{"a": 1, "b": "x, y: z"}]') == '[{"a":1,"b":"x, y: z"}]'
    for other in ('{"a":1}', '{"a":  1}', "plain: text, here", "[1, 2", '{"a": 1} and more', ""):
        assert prompts.tight(other) == other


LLAMA = (
    "{{ '<|endoftext|>' }}{% for m in messages %}{{ '<|im_start|>' + m['role'] + '>>' + m['content'] + '<|im_end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant>>' }}{% endif %}"
)
UNEVEN = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] }}{% if loop.last %}{{ '!' }}{% endif %}{{ m['content'] + "
    "'<|im_end|>' }}{% endfor %}{{ '<|im_start|>assistant' }}"
)


def test_other_templates_are_read_off_the_tokenizer(tok: Any) -> None:
    other = tiny.tokenizer()
    other.chat_template = LLAMA
    said = Message(role="assistant", content="Which one?")
    chat = [SYSTEM, USER, said, USER]
    ids = Conversation(other).update(chat, ())
    whole = other.apply_chat_template(prompts.as_text(chat, ()), tokenize=False, add_generation_prompt=True)
    assert ids == other.encode(whole, add_special_tokens=False)
    assert ids != Conversation(tok).update(chat, ())
    other.chat_template = UNEVEN
    with pytest.raises(CrosswindError, match="does not write every turn alike"):
        script_of(other)
    other.chat_template = "{{ raise_exception('System role not supported') }}"
    with pytest.raises(CrosswindError, match="takes no system message"):
        script_of(other)


def test_a_tokenizer_without_a_template_is_refused() -> None:
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models

    bare = transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()))
    with pytest.raises(CrosswindError, match="has no chat template"):
        script_of(bare)


# ---------------------------------------------------------------- the stream


def same(a: Demonstration, b: Demonstration) -> bool:
    return (a.chat, a.menus, a.meta) == (b.chat, b.menus, b.meta)


def test_what_stands_at_an_index_depends_on_nothing_else() -> None:
    config = DataConfig(share=0.5, seed=3, domains={"poi": 2.0, "retail": 1.0})
    forward = list(islice(stream(config), 12))
    assert all(same(a, b) for a, b in zip(forward[7:], stream(config, 7), strict=False))
    again = pickle.loads(pickle.dumps(config))
    assert all(same(forward[i], demonstration_at(again, i)) for i in reversed(range(12)))
    resolved = DataConfig.model_validate_json(config.resolved().model_dump_json())
    assert all(same(forward[i], demonstration_at(resolved, i)) for i in range(12))
    assert not any(same(forward[i], demonstration_at(config.model_copy(update={"seed": 4}), i)) for i in range(12))
    assert len({shown.meta["task"] for shown in forward}) == 12
    assert {shown.meta["domain"] for shown in forward} == {"poi", "retail"}


def test_a_fixed_set_comes_round_again() -> None:
    config = DataConfig(fixed=3, share=0.5)
    chats = [demonstration_at(config, i).chat for i in range(7)]
    assert chats[:3] == chats[3:6]
    assert chats[6] == chats[0]
    assert chats[0] == demonstration_at(DataConfig(share=0.5), 0).chat


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_share_that_is_perturbed(share: float) -> None:
    config, n = DataConfig(share=share), 120 if 0 < share < 1 else 20
    perturbed = sum(bool(shown.meta["kinds"]) for shown in islice(stream(config), n)) / n
    assert abs(perturbed - share) <= (0.13 if 0 < share < 1 else 0)


def test_only_train_kinds_train_words_and_train_entities(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Drawn] = []

    def kept(*args: Any, **more: Any) -> Drawn:
        seen.append(draw(*args, **more))
        return seen[-1]

    monkeypatch.setattr(data_module, "draw", kept)
    any_kind = Recipe(stack=(Choice(group="train", severity=(1, 5)),))
    config = DataConfig(domains=dict.fromkeys(domains.names(), 1.0), share=1.0, recipe=any_kind, max_tokens=0)
    shown = list(islice(stream(config), 120))
    assert {one.base.split for one in seen} == {"train"}
    for one in seen:
        check_words(one.layers, one.base.domain)
    kinds = {kind for one in shown for kind in one.meta["kinds"]}
    assert not kinds & HELD_OUT
    assert len(kinds) > 25
    for one in seen[:30]:  # what the same seeds mean in the test split: other entities
        other = one.domain.task(one.base.family, one.base.seed, split="test")
        stated = {str(v) for v in one.base.wanted.values() if str(v).istitle()}
        assert not stated & {str(v) for v in other.wanted.values() if str(v).istitle()}


def test_rendered_demonstrations_hold_sentences_and_names_of_the_train_side_alone() -> None:
    """Looks at what a model reads, not at where it came from."""

    def dealt(value: Any) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict) and set(value) == set(SPLITS):
            yield value
        elif isinstance(value, dict):
            for name, inner in value.items():
                if name not in ("families", "roles"):  # requests: what is left of them without their holes is plain
                    yield from dealt(inner)

    pieces: dict[str, set[str]] = {split: set() for split in SPLITS}
    names = {split: {word for word in words if "_" in word} for split, words in layer_words().items()}
    for source in ("common", "poi", "medical"):
        for by_split in dealt(banks.data(source)):
            for split in SPLITS:
                cut = [re.split(r"[{\[].*?[}\]]", text) for text in banks.every_text(by_split[split])]
                pieces[split] |= {piece.strip() for some in cut for piece in some if len(piece.strip()) >= 18}
    any_kinds = Recipe(stack=(Choice(group="train", severity=(1, 5), count=(1, 3)),))
    config = DataConfig(domains={"poi": 1.0, "medical": 1.0}, share=1.0, recipe=any_kinds, max_tokens=0)
    shown = [demonstration_at(config, n) for n in range(150)]
    said = [message.content for one in shown for message in one.chat]
    told = [f"{tool.name} {tool.doc} {' '.join(tool.params)}" for one in shown for tool in one.menus[0][1]]
    read = "\n".join([*said, *told])
    others = (pieces["dev"] | pieces["test"]) - pieces["train"]
    assert len(others) > 400
    assert not [piece for piece in others if piece in read]
    assert sum(piece in read for piece in pieces["train"]) > 100  # so would those be found
    assert not [name for name in names["dev"] | names["test"] if re.search(rf"\b{re.escape(name)}\b", read)]
    assert sum(bool(re.search(rf"\b{re.escape(name)}\b", read)) for name in names["train"]) > 4


def test_what_must_not_be_trained_on_is_refused() -> None:
    for recipe in ("unseen", Recipe(stack=(Choice(group="all"),)), Recipe(stack=(Choice(kind="tool_split"),))):
        with pytest.raises(NotForTraining, match="held out"):
            demonstration_at(DataConfig(recipe=recipe, share=0.1), 0)
    assert not demonstration_at(DataConfig(recipe="unseen", share=0.0), 0).meta["kinds"]  # nothing is perturbed


def test_components_can_be_switched_off() -> None:
    for name in COMPONENTS:
        config = DataConfig(share=1.0, groups=(name,), max_tokens=0)
        kinds = {kind for shown in islice(stream(config), 8) for kind in shown.meta["kinds"]}
        assert kinds
        assert {component(kind) for kind in kinds} == {name}
    only = Recipe(name="two", stack=(Choice(one_of={"typos": 1.0, "missing_tool": 9.0}),))
    config = DataConfig(share=1.0, recipe=only, groups=("semantics",))
    assert demonstration_at(config, 0).meta["kinds"] == ["typos"]
    with pytest.raises(CrosswindError, match="no kind of structure"):
        demonstration_at(DataConfig(share=1.0, recipe=only, groups=("structure",)), 0)


def test_a_draw_of_another_split_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever went wrong before: the last look is at what was drawn."""
    plan = type(domains["poi"])
    task = plan.task

    def of_test(self: Any, family: str, seed: int, *, split: Any = "train", **more: Any) -> Any:
        return task(self, family, seed, split="test", **more)

    monkeypatch.setattr(plan, "task", of_test)
    for share in (0.0, 1.0):
        with pytest.raises(NotForTraining, match="split 'test'"):
            demonstration_at(DataConfig(share=share, seed=77), 0)


def test_every_train_kind_is_in_one_component_and_no_other_kind_in_any(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {component(kind) for kind in train_kinds()} == set(COMPONENTS)
    assert set(OURS) <= set(perturbations.names())
    for kind in HELD_OUT:
        with pytest.raises(NotForTraining):
            component(kind)
    for kind, name in {"paraphrase": "semantics", "unsolvable": "refusal", "stale_read": "error_feedback"}.items():
        monkeypatch.delitem(OURS, kind)  # as if it came from a plugin
        assert component(kind) == name


def test_severities_and_a_curriculum() -> None:
    config = DataConfig(share=1.0, severity=(5, 5), recipe="mild")
    assert {s for shown in islice(stream(config), 6) for s in shown.meta["severities"].values()} == {5}
    stages = (Stage(start=0.0, severity=(1, 1)), Stage(start=0.5, severity=(4, 4)))
    config = DataConfig(share=1.0, curriculum=stages)
    for progress, level in ((0.0, 1), (0.49, 1), (0.5, 4), (1.0, 4)):
        shown = demonstration_at(config, 1, progress)
        assert set(shown.meta["severities"].values()) == {level}
        assert list(shown.meta["severities"]) == shown.meta["kinds"] or len(shown.meta["kinds"]) > 1
    read = DataConfig.model_validate({"severity": "2-3", "curriculum": [{"start": 0.0, "severity": 2}]}, strict=False)
    assert read.severity == (2, 3)
    assert read.curriculum[0].severity == (2, 2)


def test_tools_are_as_long_in_the_estimate_as_their_text() -> None:
    shown = islice(stream(DataConfig(share=0.7, recipe="hard", max_tokens=0)), 12)
    some = [row for one in shown for row in rows(one)]
    some.append(Row((Message(role="system"), USER), TOOLS * 2, frozenset(), {}))
    for row in some:
        texts = [prompts.with_tools(row.messages[0].content, tools) for tools in (row.tools, ())]
        whole, rest = map(data_module._count, texts)
        assert estimate(row) - estimate(replace(row, tools=())) == whole - rest


def test_what_is_too_long_is_left_out_and_counted() -> None:
    counts: Counter[str] = Counter()
    config = DataConfig(share=0.5, max_tokens=1100)
    for shown in islice(stream(config, counts=counts), 25):
        assert max(map(estimate, rows(shown))) <= 1100
    assert counts["left out: too long"] > 0
    assert counts["drawn"] == 25 + counts["left out: too long"]
    with pytest.raises(CrosswindError, match=r"too long.*raise max_tokens"):
        demonstration_at(DataConfig(max_tokens=50), 0)
    asked: list[Row] = []
    demonstration_at(DataConfig(max_tokens=10), 0, measure=lambda row: asked.append(row) or 10)  # type: ignore[func-returns-value]
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"share": 1.5}, "less than or equal to 1"),
        ({"share": -0.1}, "greater than or equal to 0"),
        ({"domains": {}}, "a name or more"),
        ({"domains": {"poi": 0.0}}, "the weight of 'poi' is 0; expected a number above 0"),
        ({"domains": {"poi": 1, "retail": math.nan}}, "finite number"),
        ({"groups": ()}, "no component is switched on"),
        ({"severity": "9"}, r"severity\n.*got '9'; expected 1 to 5, such as 3 or 2-4"),
        ({"severity": 0}, "got 0; expected 1 to 5"),
        ({"severity": [4, 2]}, r"got \[4, 2\]; expected 1 to 5"),
        ({"curriculum": ({"start": 0.2, "severity": 1},)}, r"curriculum\n.*the stages start at 0.2; expected 0 first"),
        ({"curriculum": ({"start": 0.0, "severity": "low"},)}, r"curriculum.0.severity\n.*got 'low'; expected 1 to 5"),
        ({"curriculum": ({"start": 0.0, "severity": 1},), "fixed": 3}, "give one of them"),
        ({"colour": 1}, "colour"),
    ],
)
def test_a_configuration_that_makes_no_sense(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        DataConfig.model_validate(fields, strict=False)


def test_names_that_do_not_exist() -> None:
    for config, told in (
        (DataConfig(domains={"pou": 1.0}), "did you mean poi"),
        (DataConfig(families=("book_visi",)), "did you mean book_visit"),
        (DataConfig(levels=(7,)), "poi has no family of level 7; its levels are 1, 2, 3"),
        (DataConfig(levels=(1,), families=("book_visit",)), "no family of level 1 among book_visit; its levels are"),
        (DataConfig(recipe="mixd"), "did you mean mixed"),
        (DataConfig(recipe="absent.yaml"), "file not found"),
    ):
        with pytest.raises(CrosswindError, match=told):
            demonstration_at(config, 0)
    config = DataConfig(levels=(1,), families=("best_price", "book_visit"), share=0.0)
    assert {shown.meta["family"] for shown in islice(stream(config), 4)} == {"best_price"}


# ---------------------------------------------------------------- formats


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("protocol", ["native", "text"])
def test_every_format_holds_the_whole_conversation(form: Format, protocol: Any) -> None:
    for shown in islice(stream(DataConfig(share=0.8, recipe="hard", max_tokens=0)), 10):
        if (form, protocol) == ("verl", "native"):
            with pytest.raises(CrosswindError, match="--protocol text"):
                next(written(shown, form, protocol))
            return
        (row,) = written(shown, form, protocol)
        row = json.loads(json.dumps(row))
        turns = row.get("messages") or row["conversations"]
        ours = [m for m in turns if m.get("role") == "assistant" or m.get("from") in ("gpt", "function_call")]
        assert len(ours) == len(shown.turns)
        whole = json.dumps(turns, ensure_ascii=False).replace('\\"', '"')
        assert shown.chat[-1].content.rpartition("</think>\n")[2] in whole
        thoughts = [m.content for m in shown.chat if m.role == "assistant" and m.content.startswith("<think>")]
        assert all(t.partition("<think>")[2].partition("</think>")[0] in whole for t in thoughts)
        assert whole.count("<think>") == whole.count("</think>") == len(thoughts)
        if protocol == "text":
            plain = prompts.as_text(shown.chat, shown.menus[0][1])
            texts = [m.get("content", m.get("value")) for m in turns]
            assert texts == [m["content"] for m in plain][-len(texts) :]
            assert "tools" not in row
        else:
            named = json.loads(row["tools"]) if form == "sharegpt" else [t["function"] for t in row["tools"]]
            assert [t["name"] for t in named] == [t.name for t in shown.menus[0][1]]
        if form == "sharegpt":
            sides = [m["from"] in ("gpt", "function_call") for m in turns]
            assert sides == [n % 2 == 1 for n in range(len(turns))]
        if form == "openai":
            assert set(row) <= {"messages", "tools", "parallel_tool_calls"}
            for call in (c["function"] for m in turns for c in m.get("tool_calls", ())):
                assert isinstance(json.loads(call["arguments"]), dict)
        else:
            assert row["meta"]["task"] == shown.meta["task"]


def test_formats_say_which_turns_are_learnt_or_leave_the_row_out() -> None:
    shown = demonstration(drawn("poi", 3, "retired_midway"))
    assert len(rows(shown)) == 2
    for form in ("trl", "sharegpt"):
        assert len(list(written(shown, form, "native"))) == 1
    _, second = written(shown, "openai", "native")
    said = [m for m in second["messages"] if m["role"] == "assistant"]
    assert [m.get("weight", 1) for m in said] == [int(at in rows(shown)[1].learn) for at in shown.turns]
    _, second = written(shown, "verl", "text")
    assert [m["trainable"] for m in second["messages"] if m["role"] == "assistant"] == [
        at in rows(shown)[1].learn for at in shown.turns
    ]


# ---------------------------------------------------------------- the command


@pytest.fixture
def crosswind(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command in this process, as the command line would run it: what it says on stdout and on stderr."""

    def run(*args: str, code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["crosswind", "data", *args])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        assert stop.value.code == code, err + out
        return out, err

    return run


def test_the_command_writes_rows_and_what_they_are(crosswind: Command, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "rows.jsonl"
    options = ("--share", "0.5", "--seed", "5", "--domain", "poi", "--domain", "medical:0.5")
    told = json.loads(crosswind("--count", "12", *options, "--out", str(out), "--json")[0])
    lines = out.read_text(encoding="utf-8").splitlines()
    assert len(lines) == told["rows"] == told["demonstrations"] == 12
    assert told["tokens"]["by"] == "estimate"
    assert 0 < told["tokens"]["mean"] <= told["tokens"]["p95"] <= told["tokens"]["longest"] <= 2048
    assert told["drawn"] == 12 + told["left_out"].get("left out: too long", 0)
    about = json.loads(Path(f"{out}.info.json").read_text(encoding="utf-8"))
    assert {**told, "file": None} == {**about, "file": None}
    config = DataConfig.model_validate_json(json.dumps(about["config"]))
    assert next(written(demonstration_at(config, 3), "trl")) == json.loads(lines[3])
    said = crosswind("--count", "5", "--start", "7", *options)
    assert said[0].splitlines() == lines[7:]  # a shard
    assert "5 demonstrations" in said[1]
    assert any("<think>" in line for line in lines)
    bare = crosswind("--count", "12", *options, "--no-reasons")[0]
    assert len(bare.splitlines()) == 12
    assert "<think>" not in bare
    assert "exists" in crosswind("--count", "1", "--out", str(out), code=2)[1]
    assert out.read_text(encoding="utf-8").splitlines() == lines
    assert not list(out.parent.glob("*.new"))


def test_verl_gets_parquet(crosswind: Command, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "rows.parquet"
    crosswind("--count", "6", "--share", "1", "--format", "verl", "--out", str(out))
    table = parquet.read_table(out).to_pylist()
    config = DataConfig(share=1.0, recipe="mixed")
    assert table == [next(written(demonstration_at(config, i), "verl", "text")) for i in range(6)]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--share", "1.5"], "--share"),
        (["--recipe", "unseen"], "held out"),
        (["--recipe", "unseen", "--share", "0"], "held out"),
        (["--recipe", "unsee"], "no recipe 'unsee'; known: hard, midway, mild, mixed, wide"),
        (["--recipe", "mixd"], "did you mean mixed"),
        (["--group", "symbol"], "did you mean symbols"),
        (["--domain", "poi:much"], "domain:weight"),
        (["--domain", "poi:nan"], "the weight is 'nan'; expected domain or domain:weight, with a number above 0"),
        (["--domain", "poi:inf"], "the weight is 'inf'; expected"),
        (["--domain", "poi:1e308"], "a number above 0 and up to 1e+09"),
        (["--domain", "poi:-1"], "the weight is '-1'; expected"),
        (["--domain", "poi:0"], "the weight is '0'; expected"),
        (["--domain", "poi:"], "the weight is ''; expected"),
        (["--domain", "pou"], "did you mean poi"),
        (["--family", "nothing"], "no family 'nothing'"),
        (["--severity", "7"], "--severity: got '7'; expected 1 to 5, such as 3 or 2-4"),
        (["--severity", "abc"], "--severity: got 'abc'; expected 1 to 5, such as 3 or 2-4"),
        (["--severity", "0"], "--severity: got '0'; expected 1 to 5"),
        (["--level", "7"], "poi has no family of level 7; its levels are 1, 2, 3"),
        (["--format", "verl", "--protocol", "native"], "--protocol text"),
        (["--json"], "give a file as --out"),
        (["--out", "rows.parquet"], "ends in .jsonl"),
        (["--out", "/dev/null/rows.jsonl"], "cannot be written"),
        (["--out", "/", "--force"], "/: this is a folder"),
        (["--max-tokens", "20"], "raise max_tokens"),
        (["--tokenizer", "/nowhere"], "--tokenizer /nowhere: no such file or folder; give a model"),
    ],
)
def test_what_cannot_work_is_told_in_one_line(crosswind: Command, args: list[str], told: str) -> None:
    said = crosswind("--count", "2", *args, code=2)[1]
    assert told in said
    if "Usage" not in said:
        assert said.count("\n") == 1
        assert said.startswith("error: ")


def test_what_is_no_plain_file_is_not_replaced(crosswind: Command, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "this is no plain file" in crosswind("--count", "2", "--out", str(pipe), "--force", code=2)[1]
    assert pipe.is_fifo()


def test_a_full_disk_behind_stdout_is_told_of() -> None:
    if not Path("/dev/full").is_char_device():
        pytest.skip("no /dev/full here")
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "crosswind", "data", "--count", "3", "--out", "-"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "error: stdout cannot be written (No space left on device)" in done.stderr
    assert "Traceback" not in done.stderr


HOSTILE = ["at</think>las", "x</tool_call>", "<tool_call>y"]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("where", ["argument", "thought", "words"])
def test_values_that_end_a_call_or_a_thought_are_left_out(value: str, where: str) -> None:
    shown = demonstration(drawn())
    assert legible(shown)
    at = shown.turns[0 if where != "words" else -1]
    message = shown.chat[at]
    if where == "argument":
        changed = message.model_copy(update={"requests": (Request(id="call_0", tool="find", args={"q": [value]}),)})
    elif where == "thought":
        changed = message.model_copy(update={"content": message.content.replace("<think>", f"<think>{value}; ")})
    else:
        changed = message.model_copy(update={"content": f"<think>stop</think>\n{value}"})
    worse = replace(shown, chat=(*shown.chat[:at], changed, *shown.chat[at + 1 :]))
    harmless = where == "argument" and "</think>" in value  # a thought ends before the call
    assert legible(worse) is harmless


def test_what_is_not_legible_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = iter([False, True])
    monkeypatch.setattr(data_module, "legible", lambda _: next(turns))
    counts: Counter[str] = Counter()
    demonstration_at(DataConfig(share=0.0), 0, counts=counts)
    assert counts[data_module.ILLEGIBLE] == 1


def test_a_slip_is_answered_as_a_session_does_mended_and_not_learnt() -> None:
    """Nothing happens by it: what comes afterwards is what comes without it."""
    codes: Counter[str] = Counter()
    config = DataConfig(domains={"poi": 1.0, "retail": 1.0}, share=1.0, slips=1.0, max_tokens=0)
    for index in range(60):
        shown = demonstration_at(config, index)
        drawn = shown.drawn
        bare = demonstration(drawn)
        if not shown.slipped:
            assert shown.chat == bare.chat
            continue
        (at,) = shown.slipped
        session = Session.of(drawn.domain, drawn.certificate.task, drawn.certificate.layers)
        before = [m for m in shown.chat[:at] if m.role == "assistant"]
        for message in before:
            for request in message.requests:
                session.call(ToolCall(request.tool, request.args))
        (request,) = shown.chat[at].requests
        told = session.call(ToolCall(request.tool, request.args))
        assert result_text(told) == shown.chat[at + 1].content
        assert told.error is not None
        codes[told.error.code] += 1
        assert shown.chat[at + 2].content.startswith(f"<think>{told.error.code}: ")
        others = [m for n, m in enumerate(shown.chat) if n not in (at, at + 1)]
        assert [m.requests for m in others] == [m.requests for m in bare.chat]
        for one, two in zip(others, bare.chat, strict=True):
            assert one.role == "assistant" or one.content == two.content
        (row,) = rows(shown)
        assert at not in row.learn
        assert row.learn == frozenset(shown.turns) - {at}
        with pytest.raises(CrosswindError, match="cannot mask turns, which slips need"):
            next(written(shown, "trl"))
        assert [m.get("weight") for m in next(written(shown, "openai"))["messages"]].count(0) == 1
    assert codes["unknown_tool"] > 5
    assert codes["bad_arguments"] > 5


def test_clean_demonstrations_have_no_slip() -> None:
    config = DataConfig(domains={"poi": 1.0}, share=0.3, slips=1.0)
    shown = [demonstration_at(config, index) for index in range(30)]
    assert any(one.slipped for one in shown)
    assert not any(one.slipped for one in shown if not one.meta["kinds"])
