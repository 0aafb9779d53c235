"""Words and codes by which errors and requests are told apart, as HTTP, gRPC and common services write them."""

from __future__ import annotations

import re

TRANSIENT = re.compile(r"unavail|busy|overload|temporar|transient|retry|try again|again|50[023]|EAGAIN", re.I)
TIMEOUT = re.compile(r"time.?out|timed out|no answer|deadline|504|408", re.I)
LIMITED = re.compile(r"rate|limit|throttl|too.?many|quota|429", re.I)
MOVED = re.compile(r"moved|deprecat|redirect|renamed|replaced|301|308", re.I)
GONE = re.compile(r"gone|retired|removed|no longer|410|unknown_tool|not.?found.*tool", re.I)
STALE = re.compile(r"changed|conflict|stale|modified|precondition|version|409|412", re.I)
LATE = re.compile(r"too.?late|closed|deadline|expired|past", re.I)
PENDING = re.compile(r"pending|approv|await|review", re.I)
SHUT = re.compile(r"closed|hours|down until|opens|maintenance|not yet", re.I)
REFUSED = re.compile(r"refus|confirm|denied|forbid|token|ticket|code|40[13]", re.I)
CLOCK = re.compile(r"\b\d{1,2}[:.h]\d{2}\b")
EITHER = re.compile(r"\bor\b|\beither\b|\w/\w", re.I)
VALUE = re.compile(r"(?<![\w-])[\w-]*\d[\w:.-]*")
FINAL = re.compile(
    r"no longer|permanent|same way|for good|discontinued|decommission|not (?:be )?back|never|will not work", re.I
)
