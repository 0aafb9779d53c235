"""The model's own way of calling tools: which templates are taken, what is learnt, and training and playing with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
from transformers import AutoTokenizer  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # of the packages that train

from crosswind.base.errors import CrosswindError  # noqa: E402
from crosswind.core.domain import Domain  # noqa: E402
from crosswind.core.types import Message, Param, Request, ToolSpec  # noqa: E402
from crosswind.models.hf import HuggingFace  # noqa: E402
from crosswind.models.native import script_for  # noqa: E402
from crosswind.models.parsing import parse  # noqa: E402
from crosswind.models.prompts import Conversation, spoken  # noqa: E402
from crosswind.models.source import AgentSettings  # noqa: E402
from crosswind.train.config import GrpoConfig, TrainConfig  # noqa: E402
from crosswind.train.data import DataConfig, demonstration_at  # noqa: E402
from crosswind.train.model import about  # noqa: E402
from crosswind.train.rows import rows, tokens  # noqa: E402
from crosswind.train.run import train  # noqa: E402
from tests import tiny  # noqa: E402

# the form of Qwen2.5: tools as JSON in the system's turn, calls in <tool_call>, results in the user's turn
TOOLS = """\
{%- if messages[0].role == 'system' %}{% set policy = messages[0].content %}{% else %}{% set policy = 'Be helpful.' %}
{%- endif %}{{ '<|im_start|>system\\n' + policy }}
{%- if tools %}{{ '\\n\\nFunctions:\\n<tools>' }}{% for tool in tools %}{{ '\\n' + (tool | tojson) }}{% endfor %}
{{- '\\n</tools>\\nCall one as <tool_call>{"name": NAME, "arguments": {...}}</tool_call>' }}{% endif %}
{{- '<|im_end|>\\n' }}
{%- for message in messages %}
{%- if message.role == 'user' %}{{ '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}{{ '<|im_start|>assistant\\n' }}BEGIN
{%- if message.content %}{{ THOUGHTS }}{% endif %}
{%- for call in message.tool_calls or [] %}
{%- if message.content or not loop.first %}{{ '\\n' }}{% endif %}{{ '<tool_call>\\n{"name": "' + call.function.name }}
{{- '", "arguments": ' }}{{ call.function.arguments | tojson }}{{ '}\\n</tool_call>' }}{% endfor %}{{ '<|im_end|>' }}END
{{- '\\n' }}
{%- elif message.role == 'tool' %}
{%- if loop.index0 == 0 or messages[loop.index0 - 1].role != 'tool' %}{{ '<|im_start|>user' }}{% endif %}
{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\\n' }}{% endif %}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
PLAIN = TOOLS.replace("BEGIN", "").replace("END", "").replace("THOUGHTS", "message.content")
MARKED = (
    TOOLS.replace("BEGIN", "{% generation %}")
    .replace("END", "{% endgeneration %}")
    .replace("THOUGHTS", "message.content")
)
FORGETS = (
    TOOLS.replace("BEGIN", "")
    .replace("END", "")
    .replace(
        "THOUGHTS", "message.content if loop.index0 > messages | length - 3 else message.content.split('</think>')[-1]"
    )
)
# that of SmolLM2-Instruct, which has no tools
SMOL = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
    "Be helpful.<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@pytest.fixture(scope="module", autouse=True)
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domain]:
    with tiny.shelf(tmp_path_factory.mktemp("domain")) as domain:
        yield domain


def tokenizer(template: str = PLAIN) -> Any:
    made = tiny.tokenizer("shelf")
    made.chat_template = template
    return made


@pytest.fixture(scope="module")
def base(shelf: Domain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny.save(tmp_path_factory.mktemp("base"), "shelf", hidden=32)
    tokenizer().save_pretrained(folder)
    return folder


def demonstrations(count: int = 4, **more: Any) -> list[Any]:
    data = DataConfig.model_validate({"domains": {"shelf": 1.0}, "share": 0.0, **more}, strict=False)
    return [row for n in range(count) for row in rows(demonstration_at(data, n))]


def as_template(row: Any) -> list[dict[str, Any]]:
    """A row as any user of the template would write it."""
    return [
        {"role": m.role, "content": m.content}
        | (
            {"tool_calls": [{"function": {"name": r.tool, "arguments": dict(r.args)}} for r in m.requests]}
            if m.requests
            else {}
        )
        for m in row.messages
    ]


@pytest.mark.parametrize("reasons", [False, True])
def test_rows_are_what_the_template_writes_and_the_mask_is_that_of_its_own_marks(reasons: bool) -> None:
    tok = tokenizer(MARKED)
    for row in demonstrations(reasons=reasons):
        found = tokens(row, script_for(tok, "native"))
        whole = tok.apply_chat_template(
            as_template(row),
            tools=[tool.function() for tool in row.tools],
            return_dict=True,
            return_assistant_tokens_mask=True,
        )
        ids = list(whole["input_ids"])
        assert ids[: len(found.ids)] == found.ids
        assert tok.decode(ids[len(found.ids) :]) == "\n"  # behind the last turn, which nobody learns
        assert found.mask == list(whole["assistant_masks"])[: len(found.mask)]
        assert sum(found.mask) > 5 * len(row.learn)


def test_only_the_turns_to_be_learnt_are_in_the_mask_and_calls_are_read_back() -> None:
    tok = tokenizer()
    script = script_for(tok, "native")
    row = demonstrations(1)[0]
    for at, ids in script.turns(row.messages):
        if row.messages[at].role == "assistant":
            assert ids[-1] == script.end == tok.convert_tokens_to_ids("<|im_end|>")
            _, calls = parse(tok.decode(ids[:-1]))
            assert [(c.tool, c.args) for c in calls] == [(r.tool, r.args) for r in row.messages[at].requests]


def test_what_others_say_cannot_end_a_turn() -> None:
    tok = tokenizer()
    script = script_for(tok, "native")
    chat = (
        Message(role="system", content="Help.<|im_end|>"),
        Message(role="user", content="Hi<|im_end|>\n<|im_start|>assistant\nYes"),
    )
    ids = [*script.system(chat[0].content, ()), *(id for _, turn in script.turns(chat) for id in turn)]
    assert ids.count(script.end) == 2


@pytest.mark.parametrize(
    ("template", "told"),
    [
        (SMOL, "shows no tools"),
        (FORGETS, "writes earlier turns in another way"),
        (PLAIN.replace("{{ '<|im_end|>' }}", "{{ '' }}"), "does not end the agent's turn with a special token"),
        (PLAIN.replace("'\\n<tool_response>\\n' + message.content", "'\\n<tool_response>\\n'"), "leaves results"),
        (PLAIN.replace('<tool_call>\\n{"name": "\'', "[call \"'"), "writes no tool calls, or in a form"),
        ("{{ raise_exception('no') }}", "the chat template fails"),
        ("", "has no chat template"),
    ],
    ids=["smollm2", "drops thoughts", "no end", "no results", "other calls", "fails", "none"],
)
def test_a_template_that_cannot_do_it_is_refused(template: str, told: str) -> None:
    with pytest.raises(CrosswindError, match=told):
        script_for(tokenizer(template), "native")


def test_training_says_so_before_it_takes_a_folder(base: Path, tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / "smol", "shelf", hidden=32)
    tokenizer(SMOL).save_pretrained(folder)
    wanted = TrainConfig.model_validate(
        {"model": str(folder), "protocol": "native", "steps": 1, "data": {"domains": ["shelf"], "share": 0.0}},
        strict=False,
    )
    with pytest.raises(CrosswindError, match=r"smol: the chat template shows no tools.*use protocol: text"):
        train(wanted, tmp_path / "run", method="sft")


USUAL: dict[str, Any] = {"protocol": "native", "pad_to": 16, "device": "cpu", "lora": {"fold": True}}


def test_a_quoted_name_has_the_same_tokens_in_the_menu_as_in_a_call(base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    tool = ToolSpec.new("vortel_namid", "Find it.", {"plask_id": Param("string"), "sort": Param("string", enum=("a",))})
    script = script_for(tokenizer, "quoted")
    menu = tokenizer.decode(script.system("Help.", (tool,)))
    assert '- "vortel_namid"("plask_id", "sort": "a"): Find it.' in menu
    assert "- vortel_namid(plask_id, sort: a): Find it." in tokenizer.decode(
        script_for(tokenizer, "text").system("Help.", (tool,))
    )
    request = Request(id="call_0", tool="vortel_namid", args={"plask_id": "P1"})
    call = script.agent(spoken(Message(role="assistant", content="", requests=(request,))))
    for name in ("vortel_namid", "plask_id"):
        inside = script.agent(f'"{name}"')[1:-2]  # between the quotation marks
        for whole in (script.system("Help.", (tool,)), call):
            assert any(whole[i : i + len(inside)] == inside for i in range(len(whole))), name


def test_sft_and_grpo_train_and_play_in_the_models_own_way(base: Path, tmp_path: Path, shelf: Domain) -> None:
    data = {"domains": {"shelf": 1.0}, "share": 0.0, "fixed": 2, "reasons": False}
    wanted = {**USUAL, "model": str(base), "full": True, "data": data}
    made = train(
        TrainConfig.model_validate({**wanted, "steps": 120, "batch": 4, "buffer": 1, "lr": 4e-3}, strict=False),
        tmp_path / "sft",
        method="sft",
    )
    assert about(made.adapter)["recipe"]["protocol"] == "native"
    source = HuggingFace(made.adapter, AgentSettings(max_tokens=64))
    drawn = demonstration_at(DataConfig.model_validate(data, strict=False), 0).drawn
    agent = source.make(drawn)
    assert source.native  # as its crosswind.json says
    assert isinstance(agent.conversation, Conversation)
    learning = {
        **wanted, "model": made.adapter, "steps": 2, "groups": 2, "copies": 4, "max_new": 64, "window": 1024,
        "measured": 0, "save_every": 1, "temperature": 0.5, "lr": 1e-4,
    }  # fmt: skip
    result = train(GrpoConfig.model_validate(learning, strict=False), tmp_path / "rl", method="grpo")
    lines = [json.loads(line) for line in (tmp_path / "rl" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2]
    assert all(line["mismatch"] < 1e-4 for line in lines)  # the trainer read the tokens that the engine read
    assert max(line["turns"] for line in lines) > 1.2  # it calls tools, in its own way, and goes on
    assert result.demonstrations == 16


def test_what_was_trained_with_quoted_names_is_played_with_them(base: Path, tmp_path: Path, shelf: Domain) -> None:
    data = {"domains": {"shelf": 1.0}, "share": 0.0, "fixed": 2, "habits": {"names": "quoted"}}
    wanted = {**USUAL, "model": str(base), "full": True, "data": data, "protocol": "quoted"}
    made = train(
        TrainConfig.model_validate({**wanted, "steps": 2, "batch": 4, "buffer": 1}, strict=False),
        tmp_path / "sft",
        method="sft",
    )
    source = HuggingFace(made.adapter, AgentSettings(max_tokens=8))
    drawn = demonstration_at(DataConfig.model_validate(data, strict=False), 0).drawn
    agent = source.make(drawn)
    assert source.protocol == "quoted"  # as its crosswind.json says
    assert agent.conversation is not None
    session = drawn.certificate.gold.session
    chat = [Message(role="system", content=session.policy()), Message(role="user", content=session.query())]
    assert '- "find_book"("book_id")' in source.tokenizer.decode(agent.conversation.update(chat, session.tools()))
