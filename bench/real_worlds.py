"""Real MCP servers for `bench/real_servers.py`: what each works on, and seeded calls, right and wrong ones."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from crosswind.core.types import ToolCall

Make = Callable[[Random, Path], ToolCall]
ZONES = ("UTC", "Europe/London", "Asia/Tokyo", "America/New_York", "Australia/Sydney", "Mars/Olympus")
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath")
STEADY = {"GIT_AUTHOR_DATE": "2030-01-01 00:00:00 +0000", "GIT_COMMITTER_DATE": "2030-01-01 00:00:00 +0000"}


def time_call(rng: Random, _: Path) -> ToolCall:
    if rng.random() < 0.3:
        return ToolCall("get_current_time", {"timezone": rng.choice(ZONES)})
    args = {"source_timezone": rng.choice(ZONES), "target_timezone": rng.choice(ZONES)}
    return ToolCall("convert_time", {**args, "time": f"{rng.randrange(25):02}:{rng.randrange(60):02}"})


def git_call(rng: Random, root: Path) -> ToolCall:
    repo = {"repo_path": str(root)}
    word = rng.choice(WORDS)
    tool = rng.choice(
        ["git_status", "git_diff_unstaged", "git_diff_staged", "git_diff", "git_log", "git_show", "git_branch"] * 2
        + ["git_add", "git_commit", "git_reset", "git_create_branch", "git_checkout"]
    )
    known: dict[str, dict[str, Any]] = {
        "git_diff": {"target": rng.choice(("HEAD", "HEAD~1", "nowhere"))},
        "git_log": {"max_count": rng.randint(1, 5)},
        "git_show": {"revision": rng.choice(("HEAD", "HEAD~1", "nowhere"))},
        "git_branch": {"branch_type": rng.choice(("local", "all"))},
        "git_add": {"files": [f"{word}.txt"]},
        "git_commit": {"message": f"Add {word}"},
        "git_create_branch": {"branch_name": f"{word}-{rng.randrange(100)}"},
        "git_checkout": {"branch_name": rng.choice(("main", word))},
    }
    (root / f"{word}.txt").write_text(f"{rng.random()}\n")  # something to be done
    return ToolCall(tool, {**repo, **known.get(tool, {})})


def file_call(rng: Random, root: Path) -> ToolCall:
    word, other = rng.choice(WORDS), rng.choice(WORDS)
    path = str(root / f"{word}.txt")
    calls: list[ToolCall] = [
        ToolCall("read_text_file", {"path": path}),
        ToolCall("read_text_file", {"path": path, "head": rng.randint(1, 3)}),
        ToolCall("read_text_file", {"path": path, "head": 1, "tail": 1}),  # an error that names both
        ToolCall("read_file", {"path": path}),
        ToolCall("read_multiple_files", {"paths": [path, str(root / f"{other}.txt")]}),
        ToolCall("write_file", {"path": path, "content": f"{word}\n{rng.randrange(10**6)}\n"}),
        ToolCall("edit_file", {"path": path, "edits": [{"oldText": word, "newText": other}], "dryRun": True}),
        ToolCall("create_directory", {"path": str(root / f"dir-{other}")}),
        ToolCall("list_directory", {"path": str(root)}),
        ToolCall("list_directory_with_sizes", {"path": str(root), "sortBy": rng.choice(("name", "size"))}),
        ToolCall("directory_tree", {"path": str(root)}),
        ToolCall("move_file", {"source": path, "destination": str(root / f"{other}.txt")}),
        ToolCall("search_files", {"path": str(root), "pattern": f"*{word}*"}),
        ToolCall("get_file_info", {"path": path}),
        ToolCall("list_allowed_directories", {}),
    ]
    return rng.choice(calls)


def time_world(root: Path) -> None:
    root.mkdir(parents=True)


def git_world(root: Path) -> None:
    root.mkdir(parents=True)
    for word in WORDS:
        (root / f"{word}.txt").write_text(f"{word}\n")
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    for key, value in (("user.name", "t"), ("user.email", "t@example.org")):
        subprocess.run([*git, "config", key, value], check=True)
    for n in range(3):
        (root / "count.txt").write_text(f"{n}\n")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"Count {n}"], check=True, env={**os.environ, **STEADY})


def file_world(root: Path) -> None:
    root.mkdir(parents=True)
    for word in WORDS[:5]:
        (root / f"{word}.txt").write_text(f"{word}\none\ntwo\nthree\n")


def sqlite_call(rng: Random, _: Path) -> ToolCall:
    word, count = rng.choice(WORDS), rng.randrange(100)
    calls = [
        ToolCall("list_tables", {}),
        ToolCall("describe_table", {"table_name": rng.choice(("trees", "nowhere"))}),
        ToolCall("read_query", {"query": f"SELECT name, height FROM trees WHERE height > {count} ORDER BY name"}),
        ToolCall("read_query", {"query": f"SELECT count(*) AS n, '{{{word}}}' AS mark FROM trees"}),
        ToolCall("read_query", {"query": f"DELETE FROM trees WHERE name = '{word}'"}),  # refused
        ToolCall("read_query", {"query": "SELECT FROM"}),
        ToolCall("write_query", {"query": f"INSERT INTO trees VALUES ('{word}', {count})"}),
        ToolCall("write_query", {"query": f"UPDATE trees SET height = {count} WHERE name = '{word}'"}),
        ToolCall("create_table", {"query": f"CREATE TABLE {word}_{count} (id INTEGER, note TEXT)"}),
        ToolCall("append_insight", {"insight": f"The {word} grows."}),
        ToolCall("describe_table", {}),
        ToolCall("write_query", {"query": 7}),
    ]
    return rng.choice(calls)


def sqlite_world(root: Path) -> None:
    import sqlite3

    root.mkdir(parents=True)
    with sqlite3.connect(root / "trees.db") as database:
        database.execute("CREATE TABLE trees (name TEXT, height INTEGER)")
        database.executemany("INSERT INTO trees VALUES (?, ?)", [(word, 10 * n) for n, word in enumerate(WORDS)])
    database.close()


def editor_call(rng: Random, root: Path) -> ToolCall:
    path = root / f"{rng.choice(WORDS)}.txt"
    start = rng.randint(1, 3)
    file: dict[str, Any] = {"file_path": str(path), "ranges": [{"start": start, "end": start + 1}]}
    mark = hashlib.sha256(path.read_bytes() if path.exists() else b"").hexdigest()
    patch = {"start": start, "end": start, "contents": f"{rng.choice(WORDS)} {rng.randrange(100)}\n", "range_hash": ""}
    edit = {"path": str(path), "encoding": "utf-8", "patches": [patch]}
    calls = [
        ToolCall("get_text_file_contents", {"files": [file]}),
        ToolCall("get_text_file_contents", {"files": [file, {**file, "file_path": str(root / "none.txt")}]}),
        ToolCall("get_text_file_contents", {"files": [{"ranges": []}]}),
        ToolCall("get_text_file_contents", {"files": "all"}),
        ToolCall("edit_text_file_contents", {"files": [{**edit, "file_hash": mark}]}),
        ToolCall("edit_text_file_contents", {"files": [{**edit, "file_hash": "0" * 64}]}),
        ToolCall("edit_text_file_contents", {}),
    ]
    return rng.choice(calls)


def excel_call(rng: Random, root: Path) -> ToolCall:
    book = {"filepath": str(root / rng.choice(("book.xlsx", "book.xlsx", "book.xlsx", "none.xlsx")))}
    sheet = {**book, "sheet_name": rng.choice(("Sheet1", "Sheet1", "Trees", "Nowhere"))}
    word, row = rng.choice(WORDS), rng.randint(1, 6)
    calls = [
        ToolCall("create_worksheet", {**book, "sheet_name": rng.choice(("Trees", word.title()))}),
        ToolCall("write_data_to_excel", {**sheet, "data": [[word, row], ["x", row * 1.5]], "start_cell": f"A{row}"}),
        ToolCall("read_data_from_excel", {**sheet, "start_cell": "A1", "end_cell": f"B{row}"}),
        ToolCall("read_data_from_excel", {**sheet, "preview_only": rng.choice((True, "yes", 3))}),
        ToolCall("get_workbook_metadata", {**book, "include_ranges": rng.choice((True, False))}),
        ToolCall("apply_formula", {**sheet, "cell": f"C{row}", "formula": rng.choice(("=SUM(A1:A3)", "=SUM(", "{x}"))}),
        ToolCall("validate_formula_syntax", {**sheet, "cell": f"C{row}", "formula": "=A1+1"}),
        ToolCall("validate_excel_range", {**sheet, "start_cell": rng.choice(("A1", "1A")), "end_cell": "B2"}),
        ToolCall("format_range", {**sheet, "start_cell": "A1", "end_cell": "B2", "bold": rng.choice((True, "maybe"))}),
        ToolCall("merge_cells", {**sheet, "start_cell": f"D{row}", "end_cell": f"E{row}"}),
        ToolCall("unmerge_cells", {**sheet, "start_cell": f"D{row}", "end_cell": f"E{row}"}),
        ToolCall("get_merged_cells", sheet),
        ToolCall("insert_rows", {**sheet, "start_row": row, "count": rng.choice((1, "1", 0))}),
        ToolCall("delete_sheet_rows", {**sheet, "start_row": row}),
        ToolCall("rename_worksheet", {**book, "old_name": word.title(), "new_name": "Trees"}),
        ToolCall("copy_range", {**sheet, "source_start": "A1", "source_end": "B2", "target_start": "G1"}),
        ToolCall("get_data_validation_info", {**sheet, "unheard_of": row}),
        ToolCall("create_worksheet", book),
    ]
    return rng.choice(calls)


def excel_world(root: Path) -> None:
    """An empty folder; the server's own tool makes the workbook, since its library is not ours."""
    root.mkdir(parents=True)


def memory_call(rng: Random, _: Path) -> ToolCall:
    word, other = rng.choice(WORDS), rng.choice(WORDS)
    entity = {"name": word, "entityType": "tree", "observations": [f"is near the {other}", "{grows}"]}
    relation = {"from": word, "to": other, "relationType": "shades"}
    calls = [
        ToolCall("create_entities", {"entities": [entity]}),
        ToolCall("create_entities", {"entities": [{"name": word}]}),
        ToolCall("create_relations", {"relations": [relation]}),
        ToolCall("add_observations", {"observations": [{"entityName": word, "contents": [f"was seen {other}"]}]}),
        ToolCall("delete_entities", {"entityNames": [word]}),
        ToolCall("delete_observations", {"deletions": [{"entityName": word, "observations": ["{grows}"]}]}),
        ToolCall("delete_relations", {"relations": [relation]}),
        ToolCall("read_graph", {}),
        ToolCall("search_nodes", {"query": other}),
        ToolCall("search_nodes", {"query": 5}),
        ToolCall("open_nodes", {"names": [word, other]}),
        ToolCall("open_nodes", {"names": [word], "depth": 2}),
    ]
    return rng.choice(calls)


def everything_call(rng: Random, _: Path) -> ToolCall:
    kinds, place = ("error", "success", "debug"), rng.choice(("New York", "Chicago", "Nowhere"))
    calls = [
        ToolCall("echo", {"message": f"{{get-sum}} and {{{rng.choice(WORDS)}}}"}),
        ToolCall("echo", {"message": rng.choice((None, 3, ["a"]))}),
        ToolCall("get-annotated-message", {"messageType": rng.choice(kinds), "includeImage": rng.random() < 0.5}),
        ToolCall("get-annotated-message", {"messageType": "shout"}),
        ToolCall("get-resource-links", {"count": rng.choice((1, 3, 11))}),
        ToolCall("get-resource-reference", {"resourceType": rng.choice(("Text", "Blob")), "resourceId": 0}),
        ToolCall("get-structured-content", {"location": place}),
        ToolCall("get-sum", {"a": rng.randrange(100), "b": rng.choice((1.5, -2, "4"))}),
        ToolCall("get-sum", {"a": 1, "b": 2, "c": 3}),
        ToolCall("get-tiny-image", {}),
        ToolCall("trigger-long-running-operation", {"duration": 0.01, "steps": 1}),
        ToolCall("simulate-research-query", {"topic": rng.choice(WORDS)}),  # only to be called as a task
    ]
    return rng.choice(calls)


# for each server: how a call is made, and how its folder; `{root}` in a command is the folder
SERVERS: dict[str, tuple[Make, Callable[[Path], None]]] = {
    "time": (time_call, time_world),
    "git": (git_call, git_world),
    "filesystem": (file_call, file_world),
    "sqlite": (sqlite_call, sqlite_world),
    "editor": (editor_call, file_world),
    "excel": (excel_call, excel_world),
    "memory": (memory_call, time_world),
    "everything": (everything_call, time_world),
}
BEFORE: dict[str, Callable[[Path], list[ToolCall]]] = {  # calls made directly, before anything is compared
    "excel": lambda root: [ToolCall("create_workbook", {"filepath": str(root / "book.xlsx")})],
}
