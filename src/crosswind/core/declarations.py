"""What is wrong with the declarations of a world's tools at first sight."""

from __future__ import annotations

from crosswind.core.world import World


def wrong_declarations(world: type[World]) -> list[tuple[str, str]]:
    """Tools whose declaration is wrong at first sight, and why: undo tools must exist and take the key given."""
    out = list[tuple[str, str]]()
    for name, entry in world.entries.items():
        if entry.spec.undo:
            tool, key = entry.spec.undo
            if tool not in world.entries:
                out.append((name, f"tool {name!r} is undone by {tool!r}, and there is no such tool"))
            elif key not in world.entries[tool].spec.params:
                out.append((name, f"tool {name!r} is undone by {tool!r}, which has no parameter {key!r}"))
        for column in sorted(entry.reads):
            if not all(column.partition(".")[::2]):
                out.append((name, f"tool {name!r} declares {column!r} in `reads`; expected TABLE.COLUMN"))
    return out
