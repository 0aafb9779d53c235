"""Decide whether a message is an answer, a question or a refusal."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from crosswind.text.speech import deeds, request
from crosswind.text.speech.inability import FLAT, NONE_ENDED, RESULT, inability_kind, is_mild, names_next_free
from crosswind.text.speech.sentences import Utterance, own_words, sentences_in
from crosswind.text.speech.success import BUT, states_success, success_outweighs, tells_success, took_back

Speech = Literal["answer", "question", "refusal"]


@lru_cache(maxsize=64)
def classify(text: str) -> Speech:
    """What the message is, without regard to a task. Cached, since laws and judge ask about one message in turn."""
    sentences = sentences_in(text)
    asks = [sentence.text for n, sentence in enumerate(sentences) if request.asks_user(sentences, n)]
    verdict = _on_inability(sentences, asks)
    if verdict:
        return verdict
    return "question" if asks and not _only_offers(sentences, asks) else "answer"


@lru_cache(maxsize=64)
def offers(text: str) -> bool:
    """Whether all that the message asks is whether to go ahead or to do something: "Shall I book it?"."""
    sentences = sentences_in(text)
    asks = [sentence.text for n, sentence in enumerate(sentences) if request.asks_user(sentences, n)]
    return bool(asks) and all(map(request.is_offer, asks))


def refuses(text: str) -> bool:
    """Whether a message, where nothing was done and nothing could be, says so and claims no success."""
    if _is_flat(sentences_in(text)):
        return True
    clauses = deeds.clauses_of(own_words(text))
    if deeds.overcomes(clauses):
        return False
    said = classify(text)
    if said == "question":
        sentences = sentences_in(text)
        if not any(request.asks_user(sentences, n) for n in range(len(sentences))):
            return deeds.refuses(clauses)
        elsewhere = not any(s.asked for s in sentences) or any(request.OTHER.search(s.text) for s in sentences)
        return elsewhere and deeds.refuses(clauses) and not any(map(request.is_lifted, sentences))
    return said == "refusal" or deeds.refuses(clauses)


def completes(text: str) -> bool:
    """Whether a message, where all was done and nothing is to be stated, stands by it."""
    said = deeds.completes(deeds.clauses_of(own_words(text)))
    return classify(text) == "answer" if said is None else said


def _on_inability(sentences: list[Utterance], asks: list[str]) -> Speech | None:
    """What an inability makes of the message; None where there is none that counts."""
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


def _leaves_none_out(sentences: list[Utterance], blocked: list[int]) -> bool:
    """Whether "no order was cancelled" only says what a total goes over."""
    if not blocked or not all(NONE_ENDED.search(sentences[n].text) for n in blocked):
        return False
    return any(RESULT.search(sentence.text) for sentence in sentences)


def _is_flat(sentences: list[Utterance]) -> bool:
    """Whether the message is "I cannot do this: ...", and asks nothing."""
    if not sentences or not FLAT.match(sentences[0].text) or any(sentence.asked for sentence in sentences):
        return False
    # A reason may be the text of an error ("... ; choose one of ..."): only what speaks to the user asks.
    return not any(
        ("please" in words or request.TO_USER.search(text)) and request.DETAIL.search(text)
        for text, words, _ in sentences[1:]
    )


def _on_loss(sentences: list[Utterance], lost: int, asks: list[str]) -> Speech:
    """Something was not found, last in the sentence with the number `lost`."""
    if any(not request.OFFER.search(ask) or request.wants_detail(ask) for ask in asks):
        return "question"
    led_on = any(BUT.search(sentence.text) for sentence in sentences[lost:])
    known = any(RESULT.search(sentence.text) for sentence in sentences[:lost])
    return "answer" if not asks and (led_on or known) else "refusal"


def _only_offers(sentences: list[Utterance], asks: list[str]) -> bool:
    """Whether all that is asked is whether to do more, after a success."""
    if any(not request.MORE.search(ask) or request.GO_AHEAD.search(ask) for ask in asks):
        return False
    if any(map(tells_success, sentences)):
        return True
    # "The visit is scheduled for May. Would you like me to cancel it?" is about the task itself.
    return any(states_success(sentence) for sentence in sentences) and not any(map(request.ACT.search, asks))
