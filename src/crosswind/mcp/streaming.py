"""Streams in front of a live server: each session of a client is an episode, and meets the release of its time.

The releases are drawn over the tools that the server lists in the first session, and kept beside the record of the
sessions. How many sessions there were says which release is next, so that a proxy that was killed goes on as if nothing
had happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import ValidationError, model_validator

from crosswind.base.errors import BadFile, CannotPerturb, CrosswindError
from crosswind.base.files import replace_file
from crosswind.base.yaml_files import complaint
from crosswind.core.draw import Drawn, parse_kind
from crosswind.core.oracle import Walks
from crosswind.core.perturbation import load_layers
from crosswind.core.release import Release, evolve
from crosswind.core.types import Model
from crosswind.episodes.career import CareerPlan
from crosswind.episodes.schedule import StreamMark
from crosswind.episodes.stream import Plan, StreamPlan, release_notes
from crosswind.mcp import live
from crosswind.mcp.tools import Tool
from crosswind.runs.store import MANIFEST, load_run

FILE = "releases.json"


class Releases(Model):
    """What the sessions of a stream meet, in a file beside their record."""

    plan: StreamPlan
    seed: int
    releases: tuple[Release, ...]
    notices: tuple[str, ...]  # what the changelog says of each

    @model_validator(mode="after")
    def _whole(self) -> Self:
        wanted = self.plan.releases + 1
        if [release.version for release in self.releases] != [*range(1, wanted + 1)]:
            raise ValueError(f"expected the releases 1 to {wanted} in turn")
        if len(self.notices) != wanted:
            raise ValueError(f"there are {len(self.notices)} notices; expected {wanted}, one for each release")
        for release in self.releases:
            try:
                load_layers(list(release.layers), release.name)
            except CrosswindError as error:
                raise ValueError(str(error)) from None
        return self


@dataclass(frozen=True, slots=True)
class LiveStream:
    """A stream over the sessions that are recorded in a folder."""

    plan: StreamPlan
    folder: Path
    seed: int = 0

    def mark(self) -> StreamMark:
        """Where the next session stands: after all that are recorded. Sessions at the same time stand at one place."""
        n = len(load_run(self.folder, damaged=True).records) if (self.folder / MANIFEST).exists() else 0
        at = n if self.plan.schedule == "recurring" else min(n, self.plan.episodes - 1)  # the last release stays
        version = self.plan.version(at, (), ("live", self.seed))
        kept = self.kept()
        return StreamMark(number=n, version=version + 1, notice=kept.notices[version] if kept else "")

    def draw(self, tools: Mapping[str, Tool], mark: StreamMark) -> Drawn:
        """The release of a session over a server's tools. Raises `CannotPerturb` where it does not go with them."""
        found = self.kept() or self._made(tools)
        return live.fitted(tools, found.releases[mark.version - 1].stack)

    def kept(self) -> Releases | None:
        """The releases as they were drawn for the first session."""
        path = self.folder / FILE
        try:
            found = Releases.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BadFile(f"{path}: cannot be read ({error.strerror})") from None
        except ValidationError as error:
            why = complaint(error.errors()[0])
            raise BadFile(f"{path}: is damaged ({why}); restore it, or begin the stream in another folder") from None
        if (found.plan, found.seed) != (self.plan, self.seed):
            raise CrosswindError(f"{path}: holds releases of another stream or seed; choose another --log")
        return found

    def _made(self, tools: Mapping[str, Tool]) -> Releases:
        """Draw the releases, each of which must be met by some made-up call, and keep them."""
        server = live.LiveServer(tools)
        probe, kinds = Walks(server, live.TASK), dict(map(parse_kind, self.plan.kinds))
        try:
            chain = evolve(
                server,
                kinds,
                self.plan.releases,
                self.seed,
                probes=[probe],
                prove=live.proved,
                announced=self.plan.announced,
            )
        except CannotPerturb as error:
            raise CannotPerturb(
                f"the {len(tools)} tools of this server have no {self.plan.releases} releases of the stream "
                f"{self.plan.name}: {error}; name other kinds, or fewer releases, in a YAML file",
                applies=False,
            ) from None
        stacks = [release.stack for release in chain]
        notices = [release_notes(server, live.TASK, stacks, i, self.plan.changelog) for i in range(len(stacks))]
        out = Releases(plan=self.plan, seed=self.seed, releases=tuple(chain), notices=tuple(notices))
        try:
            replace_file(self.folder / FILE, (out.model_dump_json(indent=1) + "\n").encode())
        except OSError as error:
            raise CrosswindError(f"{self.folder / FILE}: cannot be written ({error.strerror})") from None
        return out


def without_tasks(plan: Plan) -> StreamPlan:
    """A plan for a live server. What needs a task or a verdict is refused."""
    if isinstance(plan, CareerPlan):
        raise CrosswindError(f"{plan.name} is a career: its requests need a world of ours, and a live server has none")
    if plan.schedule == "earned":
        raise CrosswindError(f"the releases of {plan.name} are earned by success, which nobody judges on a live server")
    if plan.drift:
        raise CrosswindError(f"{plan.name} changes how requests are worded, and a proxy sees no requests")
    if bad := [kind for kind, _ in map(parse_kind, plan.kinds) if live.needs_task(kind)]:
        apply = ", ".join(live.applicable())
        raise CrosswindError(
            f"{plan.name}: {', '.join(bad)} need a task, and a live server has none; these apply: {apply}"
        )
    return plan
