"""HTML that is safe by construction: plain strings are escaped, and only elements made here are not.

There is no way to hand over text as markup. Attributes are written by this package alone; those that could load or
run something are refused, so that a page has no address in it but places within itself. The one script that a page may
have comes from this package; what it shows is data, which nothing runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from html import escape

LONGEST = 20_000  # characters of one text
# what would move, hide or reorder text: controls, zero-width characters, bidirectional marks, halves of characters
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_ATTRIBUTE = re.compile(r"(?!on|src|style$|srcset)[a-zA-Z][a-zA-Z0-9-]*")
_EMPTY = frozenset({"meta", "line", "circle", "rect", "input"})


class Markup:
    """A finished piece of HTML; made only by `tag` and `join`."""

    __slots__ = ("html",)

    def __init__(self, html: str) -> None:
        self.html = html


Piece = Markup | str | int | None
Pieces = Piece | Iterable["Pieces"]


def visible(text: str) -> str:
    """Text in which every character shows: what would be hidden or obeyed stands as its code."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def clipped(text: str, limit: int = LONGEST) -> str:
    """Text that is not too long, and says how much is missing."""
    more = len(text) - limit
    return text if more <= 0 else f"{text[:limit]}… [{more:,} more characters]"


def join(*pieces: Pieces) -> Markup:
    """Pieces one after the other; strings are escaped."""
    return Markup("".join(_html(pieces)))


def tag(name: str, /, *pieces: Pieces, **attributes: str | float | bool | None) -> Markup:
    """An element. `class_` and `for_` lose their underscore, other underscores become hyphens."""
    if not _NAME.fullmatch(name) or name in ("script", "iframe", "object", "embed", "base", "link"):
        raise ValueError(f"no element {name!r} on a page")
    opening = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-") if key != "viewBox" else key
        if not _ATTRIBUTE.fullmatch(key) or (key == "href" and not str(value).startswith("#")):
            raise ValueError(f"no attribute {key!r} of {value!r} on a page")
        opening.append(key if value is True else f'{key}="{escape(visible(str(value)))}"')
    if name in _EMPTY:
        return Markup(f"<{' '.join(opening)}/>")
    return Markup(f"<{' '.join(opening)}>{''.join(_html(pieces))}</{name}>")


def div(class_: str, *pieces: Pieces) -> Markup:
    return tag("div", *pieces, class_=class_)


def span(class_: str, *pieces: Pieces) -> Markup:
    return tag("span", *pieces, class_=class_)


def small(*pieces: Pieces) -> Markup:
    return tag("small", *pieces)


def lead(*pieces: Pieces) -> Markup:
    """What a section opens with."""
    return tag("p", *pieces, class_="lead")


def note(*pieces: Pieces) -> Markup:
    return tag("p", *pieces, class_="note")


def style(css: str) -> Markup:
    """A style sheet of this package."""
    if "<" in css or "url(" in css or "@import" in css:
        raise ValueError("a style sheet loads nothing and holds no markup")
    return Markup(f"<style>{css}</style>")


def script(code: str) -> Markup:
    """A script of this package."""
    if "</" in code or "<!--" in code or "://" in code:
        raise ValueError("a script loads nothing and holds no markup")
    return Markup(f"<script>{code}</script>")


def data(id_: str, value: object) -> Markup:
    """JSON for a script: the browser neither runs nor shows it. Nothing in it can end the element."""
    text = json.dumps(_visible(value), ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(f'<script type="application/json" id="{escape(id_)}">{text}</script>')


def _visible(value: object) -> object:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {visible(str(key)): _visible(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return value if all(type(one) is int for one in value) else [_visible(one) for one in value]
    return value


def _html(pieces: Pieces) -> Iterable[str]:
    if pieces is None:
        return
    if isinstance(pieces, Markup):
        yield pieces.html
    elif isinstance(pieces, str):
        yield escape(visible(pieces))
    elif isinstance(pieces, int):
        yield str(pieces)
    else:
        for piece in pieces:
            yield from _html(piece)
