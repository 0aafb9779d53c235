"""Domains, perturbations and agents from outside the package: Python files, YAML domains, installed distributions.

A file is loaded when somebody names it (`--plugin`, `CROSSWIND_PLUGINS` or `load`), and whatever is wrong with it is an
error. What an installed distribution announces as an entry point is loaded when a registry is first asked; if that goes
wrong it is a warning, since the command at hand may not need it, and an error for anyone who asks for it by name.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from crosswind.authoring import domain_checks
from crosswind.authoring.domain_checks import relative_path
from crosswind.base.errors import BadFile, CrosswindError
from crosswind.core.flow import digest
from crosswind.core.registry import Registry, adding_from, agents, domains, perturbations
from crosswind.words import banks
from crosswind.words.dealing import read_bank

if TYPE_CHECKING:
    from crosswind.core.domain import Domain

VARIABLE = "CROSSWIND_PLUGINS"  # files to load, separated as in PATH
REGISTRIES: tuple[Registry[Any], ...] = (domains, perturbations, agents)
MODULE = "crosswind_plugin_"  # how the modules that files become are called
HOW = "use domains.add(name, domain), @perturbation or agents.add(name, factory)"


class PluginWarning(UserWarning):
    """An installed distribution announces something that could not be loaded."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A file that was loaded, and what it added: pairs of a sort and a name."""

    path: Path
    added: tuple[tuple[str, str], ...]


_loaded: dict[Path, Plugin] = {}
_looked = False  # for what is announced


# ---------------------------------------------------------------- files


def load(path: Path | str) -> Plugin:
    """Load a Python file that registers something, or a YAML domain. A file that was loaded before is not run again."""
    where, file = str(path), Path(path).expanduser().absolute()
    real = file.resolve()
    _ours()
    if real in _loaded:
        return _loaded[real]
    if not file.exists():
        raise BadFile(f"{where}: file not found; check the path of the plug-in")
    if file.is_dir():
        raise BadFile(f"{where}: this is a folder; name each plugin file in it")
    before = _things()
    with _all_or_nothing(), adding_from(where):
        if file.name.endswith(".bank.yaml"):
            raise BadFile(f"{where}: this is a word bank, which is loaded with its domain; name the domain's file")
        if file.suffix in (".yaml", ".yml"):
            domain = _declared(file)
            domains.add(domain.name, domain)
        elif file.suffix == ".py":
            _run(file, where)
        else:
            raise BadFile(f"{where}: expected a Python file (.py) or a YAML domain (.yaml)")
        added = tuple(thing for thing in _things() if thing not in before)
        if not added:
            raise BadFile(f"{where}: registers nothing; {HOW}")
        for sort, name in added:
            _check(next(r for r in REGISTRIES if r.sort == sort), name, where)
        brought = {name: read_bank(domains[name], Path(where).parent) for sort, name in added if sort == domains.sort}
    for name, bank in brought.items():
        banks.bring(name, bank)
        _add_suite(domains[name])
    _loaded[real] = Plugin(file, added)
    return _loaded[real]


def _declared(file: Path) -> Domain:
    """The domain that a YAML file declares: a world of its own, or tasks for an MCP server."""
    from crosswind.authoring.yaml_domain import load as load_domain
    from crosswind.base.yaml_files import read
    from crosswind.mcp import tasks

    document = read(file)
    return tasks.load(file, document) if tasks.is_tasks(document.data) else load_domain(file)


def _add_suite(domain: Domain) -> None:
    """Tasks for a server say themselves under which conditions they are to be run."""
    from crosswind.episodes.suite import suites
    from crosswind.mcp.tasks import ServerDomain, suite_of

    if isinstance(domain, ServerDomain):
        suites.names()  # loads ours, so that a name that is taken is found out here
        suites.add(domain.name, suite_of(domain))


def share(paths: list[Path]) -> None:
    """Load files here, and let processes that are started from here load them too."""
    files = [str(load(path).path) for path in paths]
    known = [text for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]
    os.environ[VARIABLE] = os.pathsep.join([*known, *files])


def _run(file: Path, where: str) -> None:
    """Import a file under a name of its own; report an error in it with its line."""
    name = f"{MODULE}{file.stem}_{digest(file.resolve()).hex()[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise BadFile(f"{where}:{_line(error, file)}: {_words(error)}; fix this line of the plugin") from error


def _line(error: BaseException, file: Path) -> int:
    """The line of a file at which an error arose or passed through."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno or 1
    line, step = 1, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(file):
            line = step.tb_lineno
        step = step.tb_next
    return line


def _words(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    if isinstance(error, CrosswindError):
        return text
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def blamed(error: BaseException) -> str:
    """The innermost line of a plug-in file that an exception went through, and its words; empty where there is none."""
    found, step = "", error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if any(str(plugin.path) == code.co_filename for plugin in _loaded.values()):
            found = f"{relative_path(code.co_filename)}:{step.tb_lineno}: `{code.co_name}` raises {_words(error)}"
        step = step.tb_next
    return found


# ---------------------------------------------------------------- what is announced


def load_announced() -> None:
    """Load what entry points and `CROSSWIND_PLUGINS` announce, once in a process; registries call this."""
    global _looked
    if _looked:
        return
    _looked = True
    try:
        files = [text for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]
        found = [(r, entry) for r in REGISTRIES for entry in entry_points(group=f"crosswind.{r.sort}s")]
        if files or found:
            _ours()
        for registry, entry in found:
            _announced(registry, entry)
        for text in files:
            try:
                load(text)
            except CrosswindError as error:
                raise BadFile(f"{error} (named by {VARIABLE})") from error.__cause__
    except BaseException:
        _looked = False
        for registry in REGISTRIES:
            registry.loaded = False  # the next lookup raises it as well
        raise


def _announced(registry: Registry[Any], entry: EntryPoint) -> None:
    """Add what an entry point stands for. Whatever is wrong with it must not stop those who do not need it."""
    where = f"distribution {entry.dist.name} {entry.dist.version}" if entry.dist else "a distribution"
    try:
        with _all_or_nothing(), adding_from(where):
            before = domains.names()
            _add(registry, entry.name, entry.load(), where)
            brought = {name: read_bank(domains[name], None) for name in domains.names() if name not in before}
        for name, bank in brought.items():
            banks.bring(name, bank)
    except Exception as error:
        why = f"{where} announces it as {entry.value!r}: {_words(error)}; fix or uninstall that distribution"
        registry.broken[entry.name] = why
        warnings.warn(f"the {registry.sort} {entry.name!r} is left out: {why}", PluginWarning, stacklevel=2)


def _add(registry: Registry[Any], name: str, thing: Any, where: str) -> None:
    from crosswind.core.domain import Domain
    from crosswind.core.perturbation import check_class

    if isinstance(thing, ModuleType):
        if not any(r.origin(n) == where for r in REGISTRIES for n in r.names()):
            raise CrosswindError(f"the module {thing.__name__} registers nothing; {HOW}")
        return
    if registry is domains and isinstance(thing, type) and issubclass(thing, Domain):
        thing = thing()
    if registry is perturbations and isinstance(thing, type) and hasattr(thing, "model_fields"):
        check_class(thing)
    registry.add(name, thing)
    _check(registry, name, where)


# ---------------------------------------------------------------- parts


def _ours() -> None:
    """Import the package's own modules, so that a plug-in's additions can be told from them and clashes are seen."""
    for registry in REGISTRIES:
        registry.names()


def _things() -> list[tuple[str, str]]:
    return [(registry.sort, name) for registry in REGISTRIES for name in registry.names()]


@contextmanager
def _all_or_nothing() -> Iterator[None]:
    """If something goes wrong, neither things nor modules of plugins are left behind."""
    before = set(sys.modules)
    with ExitStack() as stack:
        for registry in REGISTRIES:
            stack.enter_context(registry.undone_on_error())
        try:
            yield
        except BaseException:
            for name in set(sys.modules) - before:
                if name.startswith(MODULE):
                    del sys.modules[name]
            raise


def _takes_a_draw(factory: Any) -> bool:
    """Can something be called with one argument? True where that cannot be told."""
    try:
        inspect.signature(factory).bind(None)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _check(registry: Registry[Any], name: str, where: str) -> None:
    """Refuse a thing that is not of the sort it is registered as, or goes by another name."""
    from crosswind.core.domain import Domain
    from crosswind.core.perturbation import Perturbation

    thing = registry[name]
    own = name
    if registry is domains:
        fits, expected = isinstance(thing, Domain), "an instance of a subclass of crosswind.Domain"
        own = getattr(thing, "name", name) if fits else name
    elif registry is perturbations:
        fits = isinstance(thing, type) and issubclass(thing, Perturbation)
        expected = "a subclass of crosswind.Perturbation"
        own = thing.model_fields["kind"].default if fits else name
    else:
        fits, expected = callable(thing), "a class or function that makes an agent of the draw it plays in"
        if fits and not _takes_a_draw(thing):
            raise BadFile(
                f"{where}: the agent {name!r} is made by {thing.__name__}{inspect.signature(thing)}; it is called with "
                "the draw it plays in: take one argument, and ignore it"
            )
    if not fits:
        raise BadFile(f"{where}: the {registry.sort} {name!r} is {type(thing).__name__}; expected {expected}")
    if own != name:
        raise BadFile(f"{where}: a {registry.sort} that calls itself {own!r} is registered as {name!r}; use one name")
    if registry is domains and where.endswith(".py") and (wrong := list(domain_checks.problems(thing))):
        raise BadFile("\n".join(wrong))
