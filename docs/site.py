"""Hooks of the documentation site (mkdocs.yml), which copies each file outside `docs` that a page links to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(\]\(|src=\")(?![a-z]+:|#)([^)#\"\s]+)")
SHIM = "https://unpkg.com/iframe-worker/shim"
LAST_FOUND = ("results/", "repository/", "samples/")  # guides and reference pages answer a search first
LAST = 0.1  # of the weight of other pages in the search
AS_IS = (".md", ".svg", ".png")  # other files, and folders, become pages that show them


def on_files(files: Files, config: Any) -> Files:
    """Add the files outside `docs` that pages link to, and those that they link to in turn."""
    pages = [Path("docs") / file.src_uri for file in files.documentation_pages()]
    for page in pages:
        for _, link in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
            target = _target(page, link)
            if target is None or files.get_file_from_path(_uri(target)):
                continue
            content = (ROOT / target).read_bytes() if target.suffix in AS_IS else _shown(ROOT / target)
            files.append(File.generated(config, _uri(target), content=content))
            if target.suffix == ".md":
                pages.append(target)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links that leave `docs` to the copies, and those of the copies back."""
    uri: str = page.file.src_uri
    if uri.startswith(LAST_FOUND):
        page.meta["search"] = {"boost": LAST}
    source = Path(uri.removeprefix("repository/")) if uri.startswith("repository/") else Path("docs") / uri

    def lead(match: re.Match[str]) -> str:
        target = _target(source, match[2])
        return match[0] if target is None else f"{match[1]}{'../' * uri.count('/')}{_uri(target)}"

    return LINK.sub(lead, markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Search without a server by our own script; the plug-in would fetch one from elsewhere."""
    return output.replace(SHIM, f"{'../' * page.file.dest_uri.count('/')}assets/frame_worker.js")


def on_post_template(output_content: str, **_: Any) -> str:
    return output_content.replace(SHIM, "assets/frame_worker.js")


def _target(page: Path, link: str) -> Path | None:
    """The file that a link leads to, from the root of the repository."""
    path = (ROOT / page.parent / link).resolve()
    return path.relative_to(ROOT) if path.exists() and path.is_relative_to(ROOT) else None


def _uri(target: Path) -> str:
    """Where the site has a file."""
    inside = target.is_relative_to("docs")
    shown = target.suffix in AS_IS
    return (str(target.relative_to("docs")) if inside else f"repository/{target}") + ("" if shown else ".md")


def _shown(path: Path) -> str:
    """A page that lists a folder or shows a file."""
    title = f"# {path.name}\n\n"
    if not path.is_dir():
        return f"{title}````\n{path.read_text(encoding='utf-8')}\n````\n"
    names = [entry.name for entry in sorted(path.iterdir()) if entry.name[0] not in "._"]
    return title + "\n".join(f"- [{n}]({path.name}/{n})" if n.endswith(AS_IS) else f"- {n}" for n in names) + "\n"
