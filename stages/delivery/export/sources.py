"""Sources of an export: its networks' sources, with kernels once and unique names."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stages.backends.targets.runtime import runtime_for
from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import compile_sources
from stages.base import StageError
from stages.compile.firmware import KERNELS, model_sources
from stages.compile.symbols import Symbols
from stages.delivery.export.names import SYMBOLS, renamed
from stages.delivery.export.network import Network
from stages.delivery.export.shared_arena import ARENA, SharedArena, init_arguments
from stages.support.messages.templates import environment
from stages.support.system.path_below import path_below
from stages.support.system.scratch import temporary_folder

#: Templates of all forms.
SHARED = Path(__file__).resolve().parent / "templates"
#: Files of the emitted folder that an export does not need: the harness and the build files.
_SKIPPED = {"model_trace.c", "model_trace.h", "CMakeLists.txt"}
_KERNEL_INCLUDE = re.compile(rf'^(\s*#\s*include\s+"){KERNELS}/'.encode(), re.MULTILINE)
_INCBIN = re.compile(rb'^(\s*\.incbin\s+")', re.MULTILINE)


def sources_of(
    name: str, networks: Sequence[Network], folders: Mapping[str, Path], target: Target, shared: Sequence[SharedArena]
) -> dict[str, bytes]:
    """Return the sources by path, compiled once to check that all global names have a prefix.

    name     name of the export, prefix of the kernels
    folders  emitted sources by network

    With several networks, each has a folder, and `kernels/` is common. Raises StageError.
    """
    prefixes = [name, *(network.name for network in networks)]
    models = [network.model for network in networks]
    files: dict[str, bytes] = {}
    for network in networks:
        folder = network.name if len(networks) > 1 else ""
        for path, content in _relocated(_read(folders[network.name]), folder).items():
            if files.setdefault(path, content) != content:
                raise StageError(f"{path} differs between {' and '.join(folders)}", hint="run both recipes again")
    sources = renamed(files, _defined(files, models, target), name, prefixes)
    unprefixed = sorted(
        symbol
        for symbol in _defined(sources, models, target)
        if not symbol.startswith(tuple(f"{prefix}_" for prefix in prefixes))
    )
    if unprefixed:
        raise StageError(
            f"{', '.join(unprefixed[:4])} would clash with another export: {SYMBOLS} does not rename them",
            hint="The C or assembly of a kernel composes the name at compile time. Write it out.",
        )
    return dict(sorted((sources | _arena_file(name, networks, shared)).items()))


def listed(models: Sequence[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the sources of all networks, each file once.

    {c: […], assembly: […]} with {path, flags}, as in model.json.
    """
    several = len(models) > 1
    files: dict[str, dict[str, dict[str, Any]]] = {"c": {}, "assembly": {}}
    for model in models:
        for kind, entries in files.items():
            for entry in model["sources"][kind]:
                path, flags = (entry, []) if isinstance(entry, str) else (entry["path"], entry["flags"])
                path = _place(path, model["prefix"] if several else "")
                entries[path] = {"path": path, "flags": flags}
    return {kind: list(entries.values()) for kind, entries in files.items()}


def _read(src: Path) -> dict[str, bytes]:
    return {
        path.relative_to(src).as_posix(): path.read_bytes()
        for path in sorted(src.rglob("*"))
        if path.is_file() and path.name not in _SKIPPED
    }


def _relocated(files: Mapping[str, bytes], folder: str) -> dict[str, bytes]:
    """Move a network's files into a folder, and leave the kernels beside it."""
    if not folder:
        return dict(files)
    moved = {}
    for path, content in files.items():
        if not path.startswith(f"{KERNELS}/"):
            if path.endswith((".c", ".h")):
                content = _KERNEL_INCLUDE.sub(rb"\1../" + f"{KERNELS}/".encode(), content)
            elif path.endswith(".S"):
                content = _INCBIN.sub(rb"\1" + f"{folder}/".encode(), content)
        moved[_place(path, folder)] = content
    return moved


def _place(path: str, folder: str) -> str:
    return path if not folder or path.startswith(f"{KERNELS}/") else f"{folder}/{path}"


def _defined(files: Mapping[str, bytes], models: Sequence[Mapping[str, Any]], target: Target) -> set[str]:
    with temporary_folder("export") as folder:
        for path, content in files.items():
            place = path_below(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        return defined(folder, listed(models), target)


def _arena_file(name: str, networks: Sequence[Network], shared: Sequence[SharedArena]) -> dict[str, bytes]:
    if not shared:
        return {}
    from jinja2 import FileSystemLoader

    facts = {
        "name": name,
        "arenas": [arena.facts() for arena in shared],
        "networks": [
            {
                "name": network.name,
                "arguments": init_arguments(network, shared),
                "state": network.model["state"]["symbol"] if network.is_stateful else "",
            }
            for network in networks
        ],
    }
    text: str = environment(FileSystemLoader(SHARED)).get_template(f"{ARENA}.j2").render(facts)
    return {ARENA: text.encode()}


# Names with two leading underscores are the compiler's.
_IDENTIFIER = re.compile(r"(?!__)[A-Za-z_]\w*")


def defined(src: Path, listed: Mapping[str, Any], target: Target) -> set[str]:
    """Compile the sources in `src` for the target and return their global names.

    Raises StageError.

    listed  files as in `sources` of model.json
    """
    with temporary_folder("export") as folder:
        flags = tuple(flag for flag in target.compiler.flags if "-fsanitize" not in flag)
        plain = target.model_copy(update={"compiler": target.compiler.model_copy(update={"flags": flags})})
        options = ("-std=c11", "-O1")
        sources = model_sources(src, listed)
        objects = compile_sources(plain, runtime_for(target), sources, folder, flags=options, include=(src,))
        return {name for path in objects for name in Symbols.of(path).defined if _IDENTIFIER.fullmatch(name)}
