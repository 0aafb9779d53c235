"""Agents by a line of text: a scripted one by its name, or a provider, a model and an address.

    oracle                              a scripted agent
    openai:<model>[@<base-url>]         any server that speaks OpenAI's chat API
    anthropic:<model>[@<base-url>]      Anthropic's messages API
    python:<module>:<name>              a function, an object or a class of your own; see `python_agent`
    cmd:<command>                       any program that speaks MCP; {config}, {query}, ... are put in
    hf:<path or name>[+<adapter>]       transformers, in process
    embedded[:<adapter>]                a small model in process, offline after the first time; static, paft or a path
    constrained:[seen:]<spec>           hf: or embedded, held to the tools that are shown; see `constrained`
    adaptive:<spec>                     any of these behind a wrapper that repairs calls and results; see `adaptive`

A spec never holds a secret: keys come from the environment, and a name or a password in an address is left out of
`AgentSource.name`, which goes into files.
"""

from __future__ import annotations

import ast
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.core.draw import Drawn
from crosswind.core.registry import LOADERS, agents, did_you_mean, resolve
from crosswind.core.types import Agent, Ending
from crosswind.models.redact import strip_credentials
from crosswind.models.source import AgentSettings, AgentSource, Price, code_digest

EMBEDDED = "embedded"
SPECS = {  # agents that are not scripted; docs/agents.md explains them
    "openai:MODEL[@URL]": "Any server with OpenAI's chat API.",
    "anthropic:MODEL[@URL]": "Anthropic's messages API.",
    "python:MODULE:NAME": "Your own function or object.",
    "cmd:COMMAND": "Any program that takes its tools from an MCP server.",
    "hf:PATH[+ADAPTER]": "A model in transformers, in this process.",
    "constrained:[seen:]SPEC": "A model in this process that can only call tools as the menu shows them.",
    "adaptive:SPEC": "Any agent, behind a wrapper that repairs its calls and results.",
    "embedded[:ADAPTER]": "A small model in this process; adapters: static, paft or a path.",
}
PROVIDERS = [spec.split(":")[0].rstrip("[") for spec in SPECS]
FORMS = (
    "Expected the name of a scripted agent (`crosswind catalog agents` lists them), or a spec: "
    f"{', '.join([*SPECS][:-1])} or {[*SPECS][-1]}"
)


class ScriptedSource:
    """Agents of the registry, made of the draw they play in."""

    price: Price | None = Price(0.0, 0.0)
    concurrency = 1  # they never wait
    ending: Ending = "words"
    resumes = False

    def __init__(self, name: str) -> None:
        self.name = name
        origin = Path(agents.origin(name))
        self.settings: dict[str, Any] = {"code": code_digest([origin])} if origin.is_file() else {}
        self._make = agents[name]

    def make(self, drawn: Drawn) -> Agent:
        made: Agent = self._make(drawn)
        return made

    async def aclose(self) -> None:
        pass


def open_agent(agent: object, settings: AgentSettings | None = None, ending: str | None = None) -> AgentSource:
    """The source of agents that a spec names, or that a function, an object or a class stands for.

    `ending` is finish or words: how its agents end an episode, if not in their usual way. Raises `CrosswindError` for
    what cannot work.
    """
    if ending not in (None, "", "finish", "words"):
        raise CrosswindError(f"--ending is {ending!r}; expected finish or words")
    source = _opened(agent, settings or AgentSettings())
    source.ending = "finish" if ending == "finish" else "words" if ending == "words" else source.ending
    return source


def spec_of_file(text: str) -> str:
    """The spec that a path such as ./my_agent.py or my_agent.py:agent stands for; empty where it is no Python file."""
    found = re.fullmatch(r"(?:python:)?([^:]+)\.py(?::([\w.]+))?", text)
    if found is None:
        return ""
    path = Path(os.path.relpath(found[1]))
    module = path.name if os.pardir in path.parts else ".".join(path.parts)
    return f"python:{module}:{found[2] or _agent_in(path.with_suffix('.py'))}"


def _agent_in(file: Path) -> str:
    """The function or class of a file that is most likely its agent."""
    names: list[str] = []
    with suppress(OSError, SyntaxError, ValueError):
        body = ast.parse(file.read_bytes()).body
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        names = [node.name for node in body if isinstance(node, kinds) and not node.name.startswith("_")]
    likely = [name for name in names if name.lower() == "agent"] or names
    return likely[0] if len(likely) == 1 else "NAME"


def _opened(agent: object, settings: AgentSettings) -> AgentSource:
    if not isinstance(agent, str):
        given: AgentSource = resolve(LOADERS["agent:python"])(agent, settings)
        return given
    spec = agent
    if spec in agents:
        return ScriptedSource(spec)
    provider, colon, rest = spec.partition(":")
    if file_meant := "" if provider in PROVIDERS and provider != "python" else spec_of_file(spec):
        told = "is a file, and an agent in Python is named by its module, looked for in this folder first"
        raise CrosswindError(f"{strip_credentials(spec)!r} {told}; write {file_meant}")
    if provider not in PROVIDERS or not (colon or provider == EMBEDDED):
        names = [*agents.names(), EMBEDDED, *(f"{p}:" for p in PROVIDERS if p != EMBEDDED)]
        shown = strip_credentials(spec)  # what is not a spec may hold a secret in an address
        meant = did_you_mean(shown, names)
        hint = f"; {meant}" if meant.endswith("?") else "."
        raise CrosswindError(f"no agent {shown!r}{hint} {FORMS}")
    if not rest and spec != EMBEDDED:
        raise CrosswindError(f"{spec!r} has nothing after the colon. {FORMS}")
    source: AgentSource = resolve(LOADERS[f"agent:{provider}"])(rest, settings)
    return source
