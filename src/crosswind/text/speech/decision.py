"""Step 6: decide whether a message is an answer, a question or a refusal."""

from __future__ import annotations

from typing import Literal

from crosswind.text.speech import request
from crosswind.text.speech.inability import FLAT, NONE_ENDED, RESULT, inability_kind, is_mild, names_next_free
from crosswind.text.speech.sentences import Sentence, sentences_of
from crosswind.text.speech.success import BUT, states_success, success_outweighs, tells_success, took_back

Speech = Literal["answer", "question", "refusal"]


def classify(text: str) -> Speech:
    """What the message is, by the rule in the package's docstring."""
    sentences = sentences_of(text)
    asks = [sentence.text for n, sentence in enumerate(sentences) if request.asks_user(sentences, n)]
    verdict = _on_inability(sentences, asks)
    if verdict:
        return verdict
    return "question" if asks and not _only_offers(sentences, asks) else "answer"


def offers(text: str) -> bool:
    """Whether all that the message asks is whether to go ahead or to do something: "Shall I book it?"."""
    sentences = sentences_of(text)
    asks = [sentence.text for n, sentence in enumerate(sentences) if request.asks_user(sentences, n)]
    return bool(asks) and all(map(request.is_offer, asks))


def _on_inability(sentences: list[Sentence], asks: list[str]) -> Speech | None:
    """Steps 6a to 6g."""
    if _is_flat(sentences):
        return "refusal"
    if took_back(sentences):
        return "question" if any(map(request.wants_detail, asks)) else "refusal"
    kinds = {n: kind for n, sentence in enumerate(sentences) if (kind := inability_kind(sentence, n))}
    if any(map(request.is_lifted, (sentences[n] for n in kinds))):
        return "question"
    if (not kinds and not is_mild(sentences, asks)) or success_outweighs(sentences, max(kinds, default=0)):
        return None
    if _leaves_none_out(sentences, list(kinds)):
        return None
    found = set(kinds.values())
    if found == {"lost"}:
        return _on_loss(sentences, max(kinds), asks)
    if found == {"full"} and not asks and names_next_free(sentences):
        return None
    if "full" not in found and any(map(request.wants_detail, asks)):
        return "question"
    return "refusal"


def _leaves_none_out(sentences: list[Sentence], blocked: list[int]) -> bool:
    """Whether "no order was cancelled" only says what a total goes over."""
    if not blocked or not all(NONE_ENDED.search(sentences[n].text) for n in blocked):
        return False
    return any(RESULT.search(sentence.text) for sentence in sentences)


def _is_flat(sentences: list[Sentence]) -> bool:
    """Step 6a: whether the message is "I cannot do this: ...", and asks nothing."""
    if not sentences or not FLAT.match(sentences[0].text) or any(sentence.asked for sentence in sentences):
        return False
    # A reason may be the text of an error ("... ; choose one of ..."): only what speaks to the user asks.
    return not any(
        ("please" in words or request.TO_USER.search(text)) and request.DETAIL.search(text)
        for text, words, _ in sentences[1:]
    )


def _on_loss(sentences: list[Sentence], lost: int, asks: list[str]) -> Speech:
    """Step 6g: something was not found, last in the sentence with the number `lost`."""
    if any(not request.OFFER.search(ask) or request.wants_detail(ask) for ask in asks):
        return "question"
    led_on = any(BUT.search(sentence.text) for sentence in sentences[lost:])
    known = any(RESULT.search(sentence.text) for sentence in sentences[:lost])
    return "answer" if not asks and (led_on or known) else "refusal"


def _only_offers(sentences: list[Sentence], asks: list[str]) -> bool:
    """Step 6h: whether all that is asked is whether to do more, after a success."""
    if any(not request.MORE.search(ask) or request.GO_AHEAD.search(ask) for ask in asks):
        return False
    if any(map(tells_success, sentences)):
        return True
    # "The visit is scheduled for May. Would you like me to cancel it?" is about the task itself.
    return any(states_success(sentence) for sentence in sentences) and not any(map(request.ACT.search, asks))
