"""Versions of an agent: where each came from, how it scored, and which one is in use.

A folder with one JSON file per version and one per event, each written once and never changed:

    versions/0001.json      a version: its spec, its parent, the way it was made, its scores and its verdict
    events/0001.json        which version came into use, and why: start, promote or rollback
    files/DIGEST/           adapters and notes that versions need

The version in use follows from the events alone. A file that is damaged is reported and never overwritten, so that
nothing else is lost with it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import exclusive_lock, open_regular, replace_file, sync_folder
from crosswind.base.terminal import one_line
from crosswind.base.version import __version__
from crosswind.base.yaml_files import complaint
from crosswind.core.types import Model
from crosswind.episodes.recipe import Recipe
from crosswind.models.redact import strip_credentials
from crosswind.runs.store import now

WAIT = 20.0  # seconds for another process that is writing
LARGEST = 4 << 20  # bytes of an entry
WAYS = ("notes", "wrapper", "adapter", "train")
Way = Literal["notes", "wrapper", "adapter", "train"]


class PassCount(Model):
    """How many of some tasks an agent got right."""

    n: int
    passed: int

    @property
    def rate(self) -> float:
        return self.passed / self.n if self.n else 0.0


Scores = dict[str, PassCount]  # condition -> solvable tasks; "refusals": tasks to refuse, all conditions together


class Version(Model):
    """One version of the agent."""

    number: int = Field(ge=1)
    key: str = ""  # of the adaptation that made it, so that one that was killed adds it once
    spec: str  # as `--agent` takes it; {adapter} and {notes} stand for the files
    files: dict[str, str] = Field(default_factory=dict)  # adapter, notes -> path in the registry
    parent: int | None = None
    way: Way | Literal["given"] = "given"
    recipes: tuple[Recipe, ...] = ()  # the worlds it was adapted to
    alarms: tuple[str, ...] = ()  # in words
    scores: Scores = Field(default_factory=dict)
    parent_scores: Scores = Field(default_factory=dict)  # on the same episodes
    verdict: Literal["pass", "fail", "inconclusive", "infrastructure", ""] = ""  # of the gate; empty: not judged
    reason: str = ""
    created: str
    crosswind: str


class Adoption(Model):
    """A version came into use."""

    number: int = Field(ge=1)
    sort: Literal["start", "promote", "rollback"]
    version: int
    before: int | None = None
    reason: str = ""
    created: str


M = TypeVar("M", Version, Adoption)


class AgentRegistry:
    """The registry in a folder."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    # -- reading

    def versions(self) -> list[Version]:
        """Every version that can be read, the oldest first; `damaged` names the others."""
        return [version for path in self._paths("versions") if (version := _readable(path, Version)) is not None]

    def damaged(self) -> list[str]:
        """What is wrong with files that cannot be read, in words."""
        out = []
        reads: dict[str, Callable[[Path], object]] = {
            "versions": lambda path: _read(path, Version),
            "events": lambda path: _read(path, Adoption),
        }
        for name, read in reads.items():
            for path in self._paths(name):
                try:
                    read(path)
                except BadFile as error:
                    out.append(str(error))
        return out

    def version(self, number: int) -> Version:
        path = self.folder / "versions" / f"{number:04}.json"
        if not path.exists():
            known = ", ".join(str(one.number) for one in self.versions()) or "none"
            raise CrosswindError(f"{self.folder}: no version {number}; there are: {known}")
        return _read(path, Version)

    def events(self) -> list[Adoption]:
        """All events in order. Raises `BadFile` where one is damaged or missing: what is in use is then not known."""
        paths = self._paths("events")
        events = [_read(path, Adoption) for path in paths]
        for wanted, event in enumerate(events, 1):
            if event.number != wanted:
                raise BadFile(
                    f"{self.folder / 'events'}: {wanted:04}.json is missing, so the version in use is not known; "
                    "restore the file from a backup"
                )
        return events

    def current(self) -> Version | None:
        """The version in use; None before the first."""
        stack = self._stack()
        return self.version(stack[-1]) if stack else None

    def _stack(self) -> list[int]:
        """The version in use last, before it those that a rollback goes back to."""
        stack: list[int] = []
        for event in self.events():
            if event.sort != "rollback":
                stack.append(event.version)
            elif event.version in stack:
                del stack[len(stack) - stack[::-1].index(event.version) :]
            else:
                raise BadFile(
                    f"{self.folder / 'events'}/{event.number:04}.json: rolls back to version {event.version}, which "
                    "was never in use; restore the file from a backup"
                )
        return stack

    def spec(self, version: Version) -> str:
        """The agent of a version, as `--agent` takes it. Raises where one of its files is missing or has changed."""
        spec = version.spec
        for name, path in self.files(version).items():
            spec = spec.replace(f"{{{name}}}", path)
        return spec

    def files(self, version: Version) -> dict[str, str]:
        """The paths of a version's files. Raises where one is missing or has changed."""
        paths = {}
        for name, place in version.files.items():
            path, parts = self.folder / place, Path(place).parts
            if len(parts) != 3 or parts[0] != "files" or ".." in parts:  # as `_keep` places it
                raise BadFile(
                    f"{self.folder}: the {name} of version {version.number} is at {place}, outside the registry; "
                    "restore the version from a backup"
                )
            if not path.exists() or path.parent.name != digest(path):
                state = "missing" if not path.exists() else "not what it was when the version was registered"
                raise BadFile(f"{path}: the {name} of version {version.number} is {state}; restore it from a backup")
            paths[name] = str(path)
        return paths

    def lineage(self, version: Version) -> list[Version]:
        """A version and those it descends from, the youngest first."""
        out = [version]
        while out[-1].parent is not None:
            out.append(self.version(out[-1].parent))
        return out

    # -- writing

    def add(self, spec: str, files: Mapping[str, Path] | None = None, *, key: str = "", **about: Any) -> Version:
        """Register a version; one with the same key is returned as it is. `spec` holds {name} for each of `files`."""
        if one_line(spec) != spec:
            raise CrosswindError(f"the spec {one_line(spec)!r} holds control characters or line breaks; leave them out")
        with self._locked():
            for path in self._paths("versions"):
                there = _readable(path, Version)
                if key and there is not None and there.key == key:
                    return there
            placed = {name: self._keep(path) for name, path in (files or {}).items()}
            number = self._next("versions")
            version = Version(
                number=number, key=key, spec=spec, files=placed, created=now(), crosswind=__version__, **about
            )
            _write(self.folder / "versions" / f"{number:04}.json", version)
            return version

    def start(self, spec: str, reason: str = "the first version") -> Version:
        """Register an agent as the first version in use."""
        if (there := self.current()) is not None:
            raise CrosswindError(
                f"{self.folder}: version {there.number} is in use; only an adaptation that passes its gate replaces it"
            )
        if strip_credentials(spec) != spec:
            raise CrosswindError(
                "the spec holds a name or a password in its address; leave it out, keys come from the environment"
            )
        version = self.add(spec, key=f"start {sha256(spec.encode()).hexdigest()[:16]}", reason=reason)
        self._event("start", lambda stack: version.number if not stack else None, reason)
        return version

    def promote(self, number: int, *, expected: int | None = None, reason: str = "") -> Version:
        """Put a version into use. It must have passed the gate, against the version in use now (`expected` if given).

        A version in use already stays so.
        """
        version = self.version(number)
        self.spec(version)  # its files are there
        if version.verdict != "pass":
            raise CrosswindError(
                f"version {number} is not promoted: its gate says {version.verdict or 'nothing'}, not pass; adapt again"
            )
        parent = version.parent if expected is None else expected

        def choose(stack: list[int]) -> int | None:
            if stack and stack[-1] == number:
                return None
            if not stack or stack[-1] != parent:
                there = f"version {stack[-1]}" if stack else "none"
                raise CrosswindError(
                    f"version {number} is not promoted: it was compared with version {parent}, and {there} is in use "
                    "now; adapt again from there"
                )
            return number

        self._event("promote", choose, reason or version.reason)
        return version

    def rollback(self, to: int | None = None, reason: str = "") -> Version:
        """Go back to the version that was in use before, or to an earlier one."""

        def choose(stack: list[int]) -> int:
            earlier = stack[:-1]
            if not earlier:
                raise CrosswindError(f"{self.folder}: this registry has no earlier version to go back to")
            if to is not None and to not in earlier:
                raise CrosswindError(f"version {to} was not in use before; these were: {', '.join(map(str, earlier))}")
            self.spec(self.version(earlier[-1] if to is None else to))  # it is whole
            return earlier[-1] if to is None else to

        return self.version(self._event("rollback", choose, reason).version)

    def _event(
        self, sort: Literal["start", "promote", "rollback"], choose: Callable[[list[int]], int | None], reason: str
    ) -> Adoption:
        with self._locked():
            stack, events = self._stack(), self.events()
            if (version := choose(stack)) is None:
                return events[-1]
            before = stack[-1] if stack else None
            number = self._next("events")
            event = Adoption(number=number, sort=sort, version=version, before=before, reason=reason, created=now())
            _write(self.folder / "events" / f"{number:04}.json", event)
            return event

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the registry against other processes."""
        try:
            for name in ("versions", "events", "files"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            end = time.monotonic() + WAIT
            while True:
                with exclusive_lock(self.folder / ".lock") as held:
                    if held:
                        yield
                        return
                if time.monotonic() > end:
                    raise CrosswindError(f"{self.folder}: another process is writing; try again when it is done")
                time.sleep(0.05)
        except OSError as error:
            raise CrosswindError(f"{self.folder}: cannot be written ({error.strerror or error})") from None

    def _paths(self, name: str) -> list[Path]:
        return sorted(path for path in (self.folder / name).glob("*.json") if path.stem.isdecimal())

    def _next(self, name: str) -> int:
        """The number after the last file, damaged or not."""
        return max((int(path.stem) for path in self._paths(name)), default=0) + 1

    def _keep(self, path: Path) -> str:
        """Copy a file or a folder into the registry, whole or not at all; gives its place."""
        place = Path("files") / digest(path) / path.name
        target = self.folder / place
        if target.exists():
            return str(place)
        with tempfile.TemporaryDirectory(dir=self.folder / "files", prefix="copying-") as scratch:
            copy = Path(scratch) / "made"
            copy.mkdir()
            if path.is_dir():
                shutil.copytree(path, copy / path.name)
            else:
                shutil.copyfile(path, copy / path.name)
            copy.rename(target.parent)
        sync_folder(self.folder / "files")
        return str(place)


def digest(path: Path) -> str:
    """A short digest of a file, or of all files of a folder."""
    found = sha256()
    for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if one.is_file():
            found.update(f"{one.relative_to(path)}\0".encode())
            found.update(sha256(one.read_bytes()).digest())
    return found.hexdigest()[:24]


def _write(path: Path, value: Version | Adoption) -> None:
    data = value.model_dump(mode="json")
    replace_file(path, (json.dumps({**data, "sha256": _sum(data)}, indent=1, ensure_ascii=False) + "\n").encode())


def _sum(data: Mapping[str, Any]) -> str:
    return sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _read(path: Path, model: type[M]) -> M:
    damaged = "restore it from a backup; no other file was touched"
    try:
        with open_regular(path, links=True) as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise BadFile(f"{path}: over {LARGEST >> 20} MiB, not an entry of the registry; {damaged}")
        data = json.loads(text)
        written = data.pop("sha256")
    except OSError as error:
        raise BadFile(f"{path}: cannot be read ({error.strerror}); {damaged}") from None
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise BadFile(f"{path}: damaged, not an entry of the registry; {damaged}") from None
    if written != _sum(data):
        raise BadFile(f"{path}: damaged or edited, its checksum does not fit; {damaged}")
    try:
        found = model.model_validate_json(json.dumps(data))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise BadFile(
            f"{path}: {place}: {complaint(first)}; it may be of a newer crosswind than {__version__}"
        ) from None
    if found.number != int(path.stem):
        raise BadFile(f"{path}: holds number {found.number}; {damaged}")
    if isinstance(found, Version) and (found.parent or 0) >= found.number:  # else a lineage could have no end
        raise BadFile(f"{path}: descends from version {found.parent}, which is not an earlier one; {damaged}")
    return found


def _readable(path: Path, model: type[M]) -> M | None:
    try:
        return _read(path, model)
    except BadFile:
        return None
