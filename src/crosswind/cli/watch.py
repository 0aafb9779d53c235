"""`crosswind watch`: raise alarms over a log, and name what changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from crosswind.base import terminal
from crosswind.cli.exits import FAILED, HARMLESS
from crosswind.cli.help import App, epilog

if TYPE_CHECKING:
    from crosswind.watch.alarms import Alarm
    from crosswind.watch.observed import ObservedEpisode
    from crosswind.watch.watcher import Watcher

app = App()
EPILOG = epilog(
    "crosswind watch runs/live --reference runs/last-week",
    "crosswind watch traces.jsonl --reference 300 --json > alarms.jsonl",
    "crosswind watch runs/live --reference runs/last-week --follow --events alarms.otlp.jsonl",
    "crosswind watch today.tools.json --reference yesterday.tools.json",
    notes="SOURCE and REF are run folders, logs of the proxy, OTLP-JSON or OpenInference spans, ATIF trajectories, "
    "Inspect logs, or snapshots of tools/list; - reads JSON lines from standard input.",
    exits={0: "no alarm", FAILED: "an alarm, and the change hurts the agent", HARMLESS: "alarms, but no harm visible"},
)


@app.command(epilog=EPILOG)
@terminal.reserve_stdout()
def watch(
    source: Annotated[str, Argument(metavar="SOURCE", help="Log to watch; - for standard input.")],
    reference: Annotated[
        str, Option(metavar="REF", help="Log of a period without changes, or N: the first N episodes of SOURCE.")
    ],
    follow: Annotated[bool, Option("--follow", help="Keep reading as SOURCE grows, like tail -f.")] = False,
    only: Annotated[str, Option(metavar="TEXT", help="Only episodes of this agent, service or domain.")] = "",
    runs: Annotated[
        list[Path],
        Option(metavar="DIR", help="Earlier run of the same agent, used to predict the cost of a shift; repeatable."),
    ] = [],  # noqa: B006
    per: Annotated[
        int,
        Option(metavar="N", min=50, help="Allow at most one false alarm per N episodes, on average."),
    ] = 1000,
    evidence: Annotated[
        int,
        Option(metavar="N", min=0, max=60, help="Number of episodes to read between detecting a shift and naming it."),
    ] = 8,
    json_: Annotated[bool, Option("--json", help="Print alarms as JSON lines and nothing else.")] = False,
    page: Annotated[
        Path | None, Option(metavar="FILE", help="Write an HTML page with a timeline of the alarms.")
    ] = None,
    events: Annotated[Path | None, Option(metavar="FILE", help="Append alarms as OpenTelemetry events.")] = None,
    progress: Annotated[bool, Option(help="Show progress.")] = True,
) -> None:
    """Watch the log of an agent for shifts, and name the perturbation behind each.

    Learn what is normal from a reference, then test every later episode with a bounded false-alarm rate. Each alarm
    says what changed, with what confidence, what it costs the agent, and how to reproduce it.
    """
    from crosswind.base.errors import CrosswindError
    from crosswind.cli.progress import Display
    from crosswind.watch.events import event_line
    from crosswind.watch.losses import Losses
    from crosswind.watch.page import History
    from crosswind.watch.page import page as page_of
    from crosswind.watch.sources.opening import pause, read_episodes
    from crosswind.watch.watcher import Watcher

    losses = Losses(runs)
    episodes = _only(read_episodes(source, follow=pause if follow else None), only)
    first, nth = _first(reference), count(1)
    usual = islice(episodes, first) if first is not None else _only(read_episodes(reference), only)
    usual = (episode for episode, _ in zip(usual, nth, strict=False))
    watcher = Watcher(usual, per=per, evidence=evidence)
    if first is not None:
        deque(usual, maxlen=0)  # those that are more than the watcher learns from
    history, found = History(), list[Any]()
    with ExitStack() as stack:
        display = stack.enter_context(Display("watching", quiet=json_ or not progress))
        log = stack.enter_context(_appending(events)) if events else None

        def tell(alarm: Alarm) -> None:
            if alarm.shift is not None:
                loss = losses.of(alarm.shift.kind, alarm.shift.severity)
                alarm = alarm.model_copy(update={"predicted_loss": loss})
            found.append(alarm)
            with _written("standard output"):
                _print(alarm, json_, display)
            if log is not None:
                with _written(f"{events}"):
                    log.write(f"{event_line(alarm, source)}\n".encode())
            if page is not None:
                _write(page, page_of(source, found, history, watcher.guarantee))

        try:
            for episode in episodes:
                for alarm in watcher.add(episode):
                    tell(alarm)
                history.add(watcher.levels)
                display.say(_line(watcher, len(found)))
        except KeyboardInterrupt:
            if not follow:
                raise
        for alarm in watcher.end():
            tell(alarm)
    if first is not None and not watcher.count and not follow:
        raise CrosswindError(
            f"{source} has {next(nth) - 1} episodes, so none is left to watch after a reference of {first:,}"
        )
    if page is not None:
        _write(page, page_of(source, found, history, watcher.guarantee))
    if not json_:
        print(f"{_counts(watcher, len(found))}. {watcher.guarantee}", file=terminal.out())
    if found:
        raise Exit(FAILED if any(alarm.is_costly for alarm in found) else HARMLESS)


def _only(episodes: Iterator[ObservedEpisode], text: str) -> Iterator[ObservedEpisode]:
    return (one for one in episodes if not text or text in (one.agent, one.source))


def _first(given: str) -> int | None:
    """How many episodes of SOURCE are the reference; None where another log is."""
    return int(given[:12]) if given.isdecimal() and not Path(given).exists() else None


@contextmanager
def _written(where: str) -> Iterator[None]:
    """Report a full disk in one line. A reader that is gone is no error of ours."""
    from crosswind.base.errors import CrosswindError

    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CrosswindError(f"{where}: cannot be written ({error.strerror}); make room, then watch again") from None


def _print(alarm: Alarm, json_: bool, display: Any) -> None:
    from crosswind.watch.wording import headline, lines_of

    file = terminal.out()
    if json_:
        print(alarm.line, file=file, flush=True)
        return
    display.clear()
    mark = "ALARM" if alarm.is_costly else "change"
    print(terminal.one_line(f"{mark}: {headline(alarm)}"), file=file)
    for name, text in lines_of(alarm):
        print(terminal.marked("", name, text, 34), file=file)
    print(file=file, flush=True)


def _line(watcher: Watcher, alarms: int) -> str:
    """How far it is, and which channel is nearest to an alarm."""
    name, level = max(watcher.levels.items(), key=lambda one: one[1], default=("", 0.0))
    near = f"; {name} at {100 * level:.0f} % of its threshold" if level >= 0.01 else ""
    pending = "; gathering evidence on a change" if watcher.pending is not None else ""
    return f"{_counts(watcher, alarms)}{near}{pending}"


def _counts(watcher: Watcher, alarms: int) -> str:
    from crosswind.metrics import formats

    return f"{formats.many(watcher.count, 'episode')}, {formats.many(alarms, 'alarm')}"


def _appending(path: Path) -> Any:
    from crosswind.base.errors import CrosswindError

    try:
        return path.open("ab", buffering=0)  # what cannot be written is not tried again when it is closed
    except OSError as error:
        raise CrosswindError(f"{path}: cannot be written ({error.strerror}); give another --events") from None


def _write(path: Path, text: str) -> None:
    from crosswind.base.errors import CrosswindError
    from crosswind.base.files import write_output

    try:
        write_output(path, text.encode())
    except OSError as error:
        raise CrosswindError(f"{path}: cannot be written ({error.strerror}); give another --page") from None
