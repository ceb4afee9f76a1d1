"""Versions of installed tools.

A program's version is the output of `--version`. It is cached with the program's path, times, size and inode, so that
a no-op run starts no compiler. The version of a C library is a macro of its headers, and that of a Python package is in
its metadata; both are cached likewise.
"""

import math
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from pipeline.errors import ToolError
from pipeline.keys.package_groups import install_command, install_debian
from stages.backends.targets.spec import Target
from stages.base import Stage, Tool, ToolIdentity
from stages.ir.models.spec import FileModel
from stages.support.messages import escape
from stages.support.system.caches import read_cache, write_cache
from stages.support.system.programs import ended_by_signal
from stages.support.system.system_limits import system_limit

_FORMAT = 3
# Attempts for a program that is replaced while it runs.
_ATTEMPTS = 3
_APT = "apt-get install "
# Prefer versions with dots; ignore numbers inside of words: riscv64-unknown-elf-gcc is not version 64.
_VERSIONS = (re.compile(r"(?<![\w.-])\d+(?:\.\d+)+(?:[\w.+-]*\w)?"), re.compile(r"(?<![\w.-])\d+(?![\w.])"))

# Picolibc also defines the macro of newlib, from which it derives.
_LIBRARIES = (
    ("picolibc", re.compile(r'^#define __PICOLIBC_VERSION__ "(\S+)"', re.MULTILINE)),
    ("newlib", re.compile(r'^#define _NEWLIB_VERSION "(\S+)"', re.MULTILINE)),
    ("glibc", re.compile(r"^#define __GLIBC__ (\d+)(?:\n.*)*?\n#define __GLIBC_MINOR__ (\d+)", re.MULTILINE)),
)
_HEADER = re.compile(r'^# 1 "(/[^"]*/stdlib\.h)"', re.MULTILINE)


class Tools:
    """Find tools and their versions.

    cache: file that stores the versions of programs.
    install: installs the group of a missing Python package and returns whether it did; None installs nothing.
    locked_version: version of a package that `install` would install, for commands that run nothing.
    to_install: packages that are missing and have a locked version.
    """

    def __init__(
        self,
        cache: Path,
        install: Callable[[str], bool] | None = None,
        locked_version: Callable[[str], str] | None = None,
    ) -> None:
        self._cache = cache
        self._install = install
        self._locked_version = locked_version
        self.to_install: dict[Tool, ToolIdentity] = {}
        self._lock = threading.Lock()
        self._identities: dict[Tool, ToolIdentity] = {}
        self._states: dict[Tool, list[Any]] = {}
        self._versions: dict[str, list[Any]] = {}
        loaded = read_cache(cache)
        if isinstance(loaded, dict) and loaded.get("format") == _FORMAT:
            self._versions = loaded["versions"]

    def identify(self, tool: Tool) -> ToolIdentity:
        """Return path and version of a tool. Raises ToolError if it is missing or too old."""
        if tool not in self._identities:
            if tool.package:
                identity = self._package(tool)
            elif tool.c_flags is not None:
                identity = self._c_library(tool, tool.c_flags)
            else:
                identity = self._program(tool)
            if tool.minimum and _sort_key(identity.version) < _sort_key(tool.minimum):
                where = f" ({identity.path})" if identity.path else ""
                raise ToolError(
                    f"{tool.name} is too old: found {identity.version or 'no version'}{where}, "
                    f"{tool.minimum} or newer is needed",
                    hint=_install_hint(tool),
                )
            self._identities[tool] = identity
        return self._identities[tool]

    def install_missing(self, tools: Iterable[Tool]) -> bool:
        """Install the Debian packages of missing programs and C libraries.

        Returns whether any was installed. Installs nothing if `install` is None or without permission.
        """
        if self._install is None:
            return False
        missing = [tool for tool in tools if tool.command and tool.install.startswith(_APT) and self._is_missing(tool)]
        packages = dict.fromkeys(name for tool in missing for name in tool.install.removeprefix(_APT).split())
        return bool(packages) and install_debian(list(packages))

    def _is_missing(self, tool: Tool) -> bool:
        if shutil.which(tool.command) is None:
            return True
        try:
            return tool.c_flags is not None and not self._c_library(tool, tool.c_flags)
        except ToolError:
            return True

    def changed_file(self, tool: Tool) -> str:
        """Return the file or package that changed since `identify`, or ''."""
        before = self._states[tool]
        if tool.package:
            return "" if before == [_package_state(tool.package)] else f"Python package {tool.package}"
        if shutil.which(tool.command) != before[0]:
            return str(before[0])
        return next((state[0] for state in before[1:] if state != _state(state[0])), "")

    def _package(self, tool: Tool) -> ToolIdentity:
        version = self._package_version(tool.package)
        machine = f"{sys.platform} {platform.machine().lower()}"
        if not version and tool.platform not in ("", machine):
            raise ToolError(f"{tool.name} requires {tool.platform}; this machine is {machine}", hint=tool.install)
        if not version and tool.group and self._install is not None and self._install(tool.group):
            version = self._package_version(tool.package)
        if not version and tool.group and self._locked_version is not None and self._locked_version(tool.package):
            identity = ToolIdentity(tool.name, "", self._locked_version(tool.package))
            return self.to_install.setdefault(tool, identity)
        if not version:
            message = f"Python package {tool.package} is not installed{_requirement(tool)}"
            raise ToolError(message, hint=_install_hint(tool))
        self._states[tool] = [_package_state(tool.package)]
        return ToolIdentity(tool.name, "", version)

    def _package_version(self, package: str) -> str:
        """Return the version of an installed package, or ''."""
        state, name = _package_state(package), f"package {package}"
        is_file = len(state) > 1
        if is_file and self._versions.get(name, [])[:-1] == [state]:
            return str(self._versions[name][-1])
        try:
            version = metadata.version(package) if state else ""
        except metadata.PackageNotFoundError:
            return ""
        if is_file:
            self._cache_version(name, [state, version])
        return version

    def _cache_version(self, name: str, entry: list[Any]) -> None:
        with self._lock:
            self._versions[name] = entry
            # If the cache cannot be written, the next run asks again.
            write_cache(self._cache, {"format": _FORMAT, "versions": self._versions})

    def _program(self, tool: Tool) -> ToolIdentity:
        path = _which(tool)
        # Debian's commands are links into /etc/alternatives; the version depends on the file at the end.
        real = os.path.realpath(path)
        version = self._cached_version(tool, path, path, real, lambda: (_ask_version(path), [real]))
        return ToolIdentity(tool.name, path, version)

    def _c_library(self, tool: Tool, flags: Sequence[str]) -> ToolIdentity:
        path = _which(tool)
        real = os.path.realpath(path)

        def ask() -> tuple[str, list[str]]:
            version, header = _ask_c_library(path, flags)
            if not header:
                _check_c_library(tool, path, flags)
            return version, [real, header] if header else []

        return ToolIdentity(tool.name, "", self._cached_version(tool, path, " ".join([path, *flags]), real, ask))

    def _cached_version(
        self, tool: Tool, path: str, name: str, program: str, ask: Callable[[], tuple[str, list[str]]]
    ) -> str:
        """Return a cached version, or ask again if one of the files that it came from changed."""
        entry = self._versions.get(name)
        if entry is None or entry[:-1] != [_state(program), *(_state(file[0]) for file in entry[1:-1])]:
            entry, cacheable = _ask_unchanged(ask, program)
            if cacheable:
                self._cache_version(name, entry)
        self._states[tool] = [path, *(entry[:-1] or [_state(program)])]
        return str(entry[-1])


def default_tools(stage: Stage[Any], target: Target) -> tuple[Tool, ...]:
    """Return the tools of a stage with default options, for a TFLite file."""
    return stage.inputs(stage.config(), FileModel(file="model.tflite"), target).tools


def _which(tool: Tool) -> str:
    path = shutil.which(tool.command)
    if path is None:
        raise ToolError(f"{tool.command} is not on PATH{_requirement(tool)}", hint=_install_hint(tool))
    return path


def _ask_unchanged(ask: Callable[[], tuple[str, list[str]]], program: str) -> tuple[list[Any], bool]:
    """Return file states and version as a cache entry, and whether it can be cached."""
    for _ in range(_ATTEMPTS):
        before = _state(program)
        version, files = ask()
        states = [_state(file) for file in files]
        if _state(program) == before:
            break
    else:
        raise ToolError(f"{program} changes while it runs", hint="try again after its installation")
    return [*states, version], bool(files)


def _package_state(package: str) -> list[Any]:
    """Return the state of a package's METADATA file, or its version without such a file.

    [] if the package is not installed.
    """
    try:
        distribution = metadata.distribution(package)
        state = _state(f"{getattr(distribution, '_path', '')}/METADATA")
        return state if len(state) > 1 else [distribution.version]
    # FileNotFoundError: METADATA is missing, and the backport importlib_metadata replaced Python's.
    except (metadata.PackageNotFoundError, FileNotFoundError):
        return []


def _state(path: str) -> list[Any]:
    """Return path, times, size and inode of a file; only the path if it does not exist.

    Installers hard-link files of environments to a cache, so installing another environment changes the ctime. It is
    ignored for files with several links.
    """
    try:
        info = Path(path).stat()
    except OSError:
        return [path]
    return [path, info.st_mtime_ns, info.st_ctime_ns if info.st_nlink == 1 else 0, info.st_size, info.st_ino]


def _ask_c_library(compiler: str, flags: Sequence[str]) -> tuple[str, str]:
    """Return the C library version and a header path, both '' for an unknown library."""
    command = [compiler, *flags, "-E", "-dD", "-include", "stdlib.h", "-x", "c", os.devnull]
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _does_not_run(f"{compiler} -E", error) from None
    header = _HEADER.search(result.stdout)
    for name, pattern in _LIBRARIES:
        match = pattern.search(result.stdout)
        if match and header:
            return f"{name} {'.'.join(match.groups())}", header[1]
    return "", ""


def _check_c_library(tool: Tool, compiler: str, flags: Sequence[str]) -> None:
    """Raise ToolError if a compiler finds no C library, or refuses the flags."""
    command = [compiler, *flags, "-E", "-include", "stdlib.h", "-x", "c", os.devnull]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20, check=False)
    if result.returncode == 0:
        return
    reason = escape.shortened(result.stderr.partition("\n")[0], 300)
    if "error: " in reason and "spec file" not in reason and "stdlib.h" not in reason:
        raise ToolError(f"{tool.command} refuses its flags: {reason}", hint="Correct `compiler.flags` of the core.")
    raise ToolError(f"{tool.name} of {tool.command} is missing", hint=_install_hint(tool))


def _does_not_run(command: str, error: Exception) -> ToolError:
    text, hint = system_limit(error) or (str(error), "")
    return ToolError(f"{command} failed to start: {text}", hint=hint)


def _ask_version(path: str) -> str:
    """Return the version in the output of `--version`, or ''. Raises ToolError if it fails."""
    try:
        result = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _does_not_run(f"{path} --version", error) from None
    if result.returncode < 0:
        raise ToolError(f"{path} --version {ended_by_signal('was', result.returncode)}")
    if result.returncode:
        output = (result.stderr or result.stdout).strip().splitlines()[:1]
        raise ToolError(f"{path} --version failed: {''.join(output)[:200] or f'exit code {result.returncode}'}")
    for line in (result.stdout + result.stderr).splitlines():
        # "gcc (Debian 12.2.0-14) 12.2.0": the version in parentheses is the package's.
        for text in (re.sub(r"\([^)]*\)", "", line), line):
            for pattern in _VERSIONS:
                match = pattern.search(text)
                if match:
                    return match[0]
    return ""


def _sort_key(version: str) -> tuple[tuple[int, ...], float]:
    """Return the sort key of a version: `13.2.0-rc1` gives ((13, 2), inf).

    A development release of a Python package sorts before its release: ((0, 0, 5), 20) for `0.0.5.dev20`.
    """
    match = re.match(r"(\d+(?:\.\d+)*)(?:\.dev(\d+))?", version)
    if not match:
        return (), 0
    parts = [int(part) for part in match[1].split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts), int(match[2]) if match[2] else math.inf


def _requirement(tool: Tool) -> str:
    if tool.name == tool.package and not tool.minimum:
        return ""
    return f"; {tool.name} {tool.minimum} or newer is needed" if tool.minimum else f"; {tool.name} is needed"


def _install_hint(tool: Tool) -> str:
    command = install_command(tool.group) if tool.group else tool.install
    return f"install it: {command}" if command else ""
