"""What a run shows, in sentences: the headline, refusals, and what they rest on. Every view and `run` print these."""

from __future__ import annotations

from crosswind.metrics import Summary, formats


def verdict(found: Summary, agent: str) -> str:
    """Summarise the run in three sentences at most: success on solvable tasks, where most is lost, and refusals."""
    return " ".join(filter(None, (headline(found, agent), refusals(found))))


def headline(found: Summary, agent: str, *, brief: bool = False) -> str:
    """Success on solvable tasks: what changed, where most, and why; a brief one says only how far."""
    if not found.episodes:
        return f"{agent} has no finished episode that counts, so there is no result yet."
    clean, shifted = found.trivial.get("clean"), found.trivial.get("shifted")
    if clean and not clean.better:
        return f"{agent} is {formats.TRIVIAL}, so no change can be measured."
    if found.drop is None:
        solved = " and ".join(
            f"{formats.percent(cell.rate)} of {formats.many(cell.n, f'solvable {side} episode')}"
            for side, cell in (("clean", found.clean), ("shifted", found.shifted))
            if cell.n
        )
        did = f"solves {solved}" if solved else "played no solvable task"
        return f"{agent} {did}; no solvable task was played both clean and shifted, so no change can be measured."
    change = found.drop
    before, after = formats.sides(change)
    out = (
        f"{agent} solves {before} of the solvable tasks in the clean world and "
        f"{after} of them in the open world: {formats.brief(change)}."
    )
    if shifted and not shifted.better:
        return f"{out} In the open world it is {formats.TRIVIAL}."
    return out if brief else f"{out}{_where(found)}"


def refusals(found: Summary) -> str:
    """Right, wrong and false refusals, in one sentence; empty if no task should be refused."""
    shares = found.refusals["shifted"]
    if not found.episodes or not shares.right.n:
        return ""
    every = formats.many(shares.right.n, "episode")
    told = f"refuses {formats.percent(shares.right.rate)} of the {every} that should be refused"
    if shares.wrong.passed:
        told = formats.refused(shares)
    return f"It {told}, and {formats.percent(shares.false.rate)} of the solvable ones."


def details(found: Summary) -> str:
    """What the verdict rests on: whether the change is sure, by which figures it is no better, and what is refused."""
    out = []
    clean = found.trivial.get("clean")
    if clean and not clean.better:
        out.append(formats.no_better(clean))
    elif found.drop:
        out.append(formats.certainty(found.drop))
        if (shifted := found.trivial.get("shifted")) and not shifted.better:
            out.append(formats.no_better(shifted))
    shares = found.refusals["shifted"]
    if found.episodes and shares.right.n:
        out.append(
            f"An agent that always refuses with the right reason would refuse 100{formats.PERCENT} of the tasks to "
            "refuse and of the solvable ones."
        )
        if shares.wrong.passed:
            out.append(formats.RIGHTLY)
    return " ".join(out)


def _where(found: Summary) -> str:
    tiers = [d for d in found.drops.get("tier", {}).values() if d.clear and d.delta < 0]
    worst = min(tiers, key=lambda d: d.delta, default=None)
    out = (
        f" The largest fall is in {worst.name} ({formats.points(worst.delta)} points)"
        if worst and len(tiers) > 1
        else ""
    )
    named = {cause: n for cause, n in found.causes.items() if cause and cause != "undetermined"}
    if named:
        cause = max(named, key=lambda c: named[c])
        out += f"{'; the' if out else ' The'} most frequent cause of failure is {cause}"
    return out and f"{out}."
