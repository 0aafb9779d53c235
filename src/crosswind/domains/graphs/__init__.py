"""Task graphs that several domains share, so that transfer between them can be measured.

In each of these domains *things* of a *kind* are found in a *group*; they have a fee, a score, dated entries and slots;
a person holds a slot with a code, settles it by some means, moves it or cancels it. A domain says in its `Terms` what
all this is called there, and `Records` gives access to its rows; the graphs hold `solve`, `ends` and `answer` once.
Two families of two domains mirror each other when they are made of one graph.

lookups.py ends in an answer, booking.py holds or settles a slot, held.py begins with what is held; graph.py is their base.
"""

from crosswind.domains.graphs.booking import Barred, Book, Full, Hold, HoldAsked, Outing, Thrift, ThriftBarred
from crosswind.domains.graphs.graph import LATEST, NO_RULES, SAID, SPARE, STRICT, SURCHARGE, Graph, Rows
from crosswind.domains.graphs.held import Cancel, Rebook, Shift, Total
from crosswind.domains.graphs.lookups import Closest, Fact, FactAsked, Lookup, NextSlot, Ranked, Tally, Versus

BY_NAME: dict[str, type[Graph]] = {  # graphs that requests may name
    graph.__name__: graph
    for graph in (
        *(Fact, FactAsked, Tally, Versus, NextSlot, Closest, Cancel, Shift, Total, Rebook),
        *(Hold, HoldAsked, Book, Full, Barred, Thrift, ThriftBarred, Outing),
    )
}

__all__ = [
    "BY_NAME", "LATEST", "NO_RULES", "SAID", "SPARE", "STRICT", "SURCHARGE", "Barred", "Book", "Cancel", "Closest", "Fact",
    "FactAsked", "Full", "Graph", "Hold", "HoldAsked", "Lookup", "NextSlot", "Outing", "Ranked", "Rebook", "Rows", "Shift",
    "Tally", "Thrift", "ThriftBarred", "Total", "Versus",
]  # fmt: skip
