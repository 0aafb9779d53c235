"""A tiny model for tests of training: a Llama of some 200,000 weights and a byte-level BPE tokenizer, made in process.

The tokenizer has ChatML's tokens and no chat template, like many base models. Its merges are learnt from what agents
are shown in `poi`, so that an episode there is some hundred tokens long. Nothing is fetched, nothing is random: two
calls give the same tokenizer and, for the same seed, the same weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from crosswind.authoring import yaml_domain
from crosswind.core.domain import Domain
from crosswind.core.draw import draw
from crosswind.core.registry import domains
from crosswind.episodes.play import result_text
from crosswind.models.prompts import with_tools

PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
VOCABULARY = 1536
WINDOW = 2048


# two calls, one query, a handful of tools: an episode is some 300 tokens long
SHELF = """\
domain: shelf
summary: Books and the floors they stand on.
policy: Help with books.
tables:
  floors:
    id: {key: floor_id, prefix: F}
    one_per: 10
    columns:
      colour: {choice: [red, blue, green, white, black, pink]}
  books:
    id: {key: book_id, prefix: B}
    of: floors
    most: 6
    columns:
      kind: {choice: [novel, atlas, diary]}
tools:
  find_book: {doc: The floor of a book., look: books, by: [book_id], give: [floor_id]}
  check_floor: {doc: The colour of a floor., look: floors, by: [floor_id], give: [colour]}
details:
  book_id: {of: books, label: book id, vague: a book, words: [book, which]}
families:
  colour_of:
    about: The colour of a book's floor.
    level: 1
    queries: ["Which colour has the floor of {book_id}?"]
    steps:
      - {step: book, call: find_book, args: {book_id: "{book_id}"}}
      - {step: floor, call: check_floor, args: {floor_id: $book.floor_id}}
    answer: It is $floor.colour.
    expect: [$floor.colour]
"""


@contextmanager
def shelf(folder: Path) -> Iterator[Domain]:
    """The domain `shelf`, known as long as the context lasts, and one thread: sums come out the same, bit by bit."""
    import torch

    path = folder / "shelf.yaml"
    path.write_text(SHELF)
    domain = yaml_domain.load(path)
    domains.add(domain.name, domain)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield domain
    finally:
        torch.set_num_threads(threads)
        domains.remove(domain.name)


def texts(domain: str = "poi", count: int = 24) -> Iterator[str]:
    """What agents read and write in clean episodes, for the tokenizer to learn from."""
    here = domains[domain]
    families = list(here.families)
    for n in range(count):
        drawn = draw(here, here.task(families[n % len(families)], n, split="train"), (), n)
        gold = drawn.certificate.gold
        if n == 0:
            yield with_tools(gold.session.policy(), gold.session.tools())
        yield gold.session.query()
        for step in gold.steps:
            yield json.dumps({"name": step.call.tool, "arguments": dict(step.call.args)}, default=str)
            yield f"<tool_response>{result_text(step.result)}</tool_response>"
        yield gold.final


@lru_cache(maxsize=4)
def _tokenizer_json(domain: str, vocabulary: int) -> str:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(texts(domain), trainer)
    return str(made.to_str())


def tokenizer(domain: str = "poi", vocabulary: int = VOCABULARY) -> Any:
    """A fast tokenizer of transformers; its end of sequence is the end of a turn."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_tokenizer_json(domain, vocabulary)),
        bos_token=START,
        eos_token=END,
        pad_token=PAD,
        model_max_length=WINDOW,
        clean_up_tokenization_spaces=False,
    )


def model(tok: Any, *, hidden: int = 64, layers: int = 2, seed: int = 0) -> Any:
    """A Llama with random weights, in fp32 on the CPU; two key heads for four query heads, embeddings tied."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tok),
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=WINDOW,
        tie_word_embeddings=True,
        bos_token_id=tok.bos_token_id,
        eos_token_id=tok.eos_token_id,
        pad_token_id=tok.pad_token_id,
    )
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    try:
        return LlamaForCausalLM(config)
    finally:
        torch.random.set_rng_state(state)


def save(folder: Path, domain: str = "poi", **options: Any) -> Path:
    """A folder with a tiny model and its tokenizer, as `from_pretrained` and `hf:` take it; made again at each call."""
    tok = tokenizer(domain)
    model(tok, **options).save_pretrained(folder)
    tok.save_pretrained(folder)
    return folder
