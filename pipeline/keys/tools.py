"""Which version of a tool this machine has.

A program is asked `--version` once; the answer is remembered with the program's path, times, size and inode, so that a
run in which nothing changed starts no compiler. A C library's version is a macro of its headers, remembered in the same
way, and so is that of a Python package, which importlib.metadata reads from its description.
"""

from __future__ import annotations

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
from stages.base import Tool, ToolIdentity
from stages.support.system.caches import read_cache, write_cache
from stages.support.system.programs import ended_by
from stages.support.system.system_limits import system_limit

_FORMAT = 3
# How often a program is asked that is replaced meanwhile.
_ATTEMPTS = 3
_APT = "apt-get install "
# With dots if any, and never a number inside a word: riscv64-unknown-elf-gcc is no version 64.
_VERSIONS = (re.compile(r"(?<![\w.-])\d+(?:\.\d+)+(?:[\w.+-]*\w)?"), re.compile(r"(?<![\w.-])\d+(?![\w.])"))

# Picolibc defines newlib's too, for it came from there.
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
        self._found: dict[Tool, ToolIdentity] = {}
        self._states: dict[Tool, list[Any]] = {}
        self._versions: dict[str, list[Any]] = {}
        loaded = read_cache(cache)
        if isinstance(loaded, dict) and loaded.get("format") == _FORMAT:
            self._versions = loaded["versions"]

    def identify(self, tool: Tool) -> ToolIdentity:
        """The tool as found here. Raises ToolError when it is missing or older than its minimum."""
        if tool not in self._found:
            if tool.package:
                identity = self._package(tool)
            elif tool.c_flags is not None:
                identity = self._c_library(tool, tool.c_flags)
            else:
                identity = self._program(tool)
            if tool.minimum and _order(identity.version) < _order(tool.minimum):
                where = f" ({identity.path})" if identity.path else ""
                raise ToolError(
                    f"{tool.name} is too old: found {identity.version or 'no version'}{where}, "
                    f"{tool.minimum} or newer is needed",
                    hint=_install(tool),
                )
            self._found[tool] = identity
        return self._found[tool]

    def install_missing(self, tools: Iterable[Tool]) -> bool:
        """Install the Debian packages of the programs and C libraries that are missing, all at once.

        Return whether any was installed. Nothing is where `install` is None, or this process may not.
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
        """What is not as it was when `identify` looked: the path of a file, or a package's name; '' when all is."""
        before = self._states[tool]
        if tool.package:
            return "" if before == [_package_state(tool.package)] else f"Python package {tool.package}"
        if shutil.which(tool.command) != before[0]:
            return str(before[0])
        return next((state[0] for state in before[1:] if state != _state(state[0])), "")

    def _package(self, tool: Tool) -> ToolIdentity:
        version = self._package_version(tool.package)
        here = f"{sys.platform} {platform.machine().lower()}"
        if not version and tool.platform not in ("", here):
            raise ToolError(f"{tool.name} runs on {tool.platform} only, and this is {here}", hint=tool.install)
        if not version and tool.group and self._install is not None and self._install(tool.group):
            version = self._package_version(tool.package)
        if not version and tool.group and self._locked_version is not None and self._locked_version(tool.package):
            identity = ToolIdentity(tool.name, "", self._locked_version(tool.package))
            return self.to_install.setdefault(tool, identity)
        if not version:
            message = f"Python package {tool.package} is not installed{_needed(tool)}"
            raise ToolError(message, hint=_install(tool))
        self._states[tool] = [_package_state(tool.package)]
        return ToolIdentity(tool.name, "", version)

    def _package_version(self, package: str) -> str:
        """'' for one that is not installed."""
        state, name = _package_state(package), f"package {package}"
        is_file = len(state) > 1
        if is_file and self._versions.get(name, [])[:-1] == [state]:
            return str(self._versions[name][-1])
        try:
            version = metadata.version(package) if state else ""
        except metadata.PackageNotFoundError:
            return ""
        if is_file:
            self._remember(name, [state, version])
        return version

    def _remember(self, name: str, entry: list[Any]) -> None:
        with self._lock:
            self._versions[name] = entry
            # Without this cache the next run asks again, no more.
            write_cache(self._cache, {"format": _FORMAT, "versions": self._versions})

    def _program(self, tool: Tool) -> ToolIdentity:
        path = _which(tool)
        # Debian's commands are links into /etc/alternatives: what counts is the file at the end.
        real = os.path.realpath(path)
        version = self._remembered(tool, path, path, real, lambda: (_ask_version(path), [real]))
        return ToolIdentity(tool.name, path, version)

    def _c_library(self, tool: Tool, flags: Sequence[str]) -> ToolIdentity:
        path = _which(tool)
        real = os.path.realpath(path)

        def ask() -> tuple[str, list[str]]:
            version, header = _ask_c_library(path, flags)
            if not header and not _has_headers(path, flags):
                raise ToolError(f"{tool.name} of {tool.command} is missing", hint=_install(tool))
            return version, [real, header] if header else []

        return ToolIdentity(tool.name, "", self._remembered(tool, path, " ".join([path, *flags]), real, ask))

    def _remembered(
        self, tool: Tool, path: str, name: str, program: str, ask: Callable[[], tuple[str, list[str]]]
    ) -> str:
        """A version, asked for again when one of the files that `ask` gave with it, `program` first, has changed."""
        entry = self._versions.get(name)
        if entry is None or entry[:-1] != [_state(program), *(_state(file[0]) for file in entry[1:-1])]:
            entry, lasts = _asked(ask, program)
            if lasts:
                self._remember(name, entry)
        self._states[tool] = [path, *(entry[:-1] or [_state(program)])]
        return str(entry[-1])


def _which(tool: Tool) -> str:
    path = shutil.which(tool.command)
    if path is None:
        raise ToolError(f"{tool.command} is not on PATH{_needed(tool)}", hint=_install(tool))
    return path


def _asked(ask: Callable[[], tuple[str, list[str]]], program: str) -> tuple[list[Any], bool]:
    """The states of the files that a version comes from, and the version; whether it has any and may be remembered."""
    for _ in range(_ATTEMPTS):
        before = _state(program)
        version, files = ask()
        states = [_state(file) for file in files]
        if _state(program) == before:
            break
    else:
        raise ToolError(f"{program} is being replaced", hint="try again when it is installed")
    return [*states, version], bool(files)


def _package_state(package: str) -> list[Any]:
    """The state of a package's description, which a new installation writes; its version where that is no such file.

    [] of one that is not installed.
    """
    try:
        found = metadata.distribution(package)
        state = _state(f"{getattr(found, '_path', '')}/METADATA")
        return state if len(state) > 1 else [found.version]
    # The latter where its description is gone and the backport importlib_metadata, once imported, answers for Python's.
    except (metadata.PackageNotFoundError, FileNotFoundError):
        return []


def _state(path: str) -> list[Any]:
    """A file's path, and what tells it from a changed one; the path alone where there is none.

    Installers link the files of an environment to those of a cache: each environment that is made or removed elsewhere
    changes the time of the last change of the entry. So it counts for files with one name alone.
    """
    try:
        info = Path(path).stat()
    except OSError:
        return [path]
    return [path, info.st_mtime_ns, info.st_ctime_ns if info.st_nlink == 1 else 0, info.st_size, info.st_ino]


def _ask_c_library(compiler: str, flags: Sequence[str]) -> tuple[str, str]:
    """The version in the headers that the compiler finds, and one of them; '' twice when it finds none it knows."""
    command = [compiler, *flags, "-E", "-dD", "-include", "stdlib.h", "-x", "c", os.devnull]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _does_not_run(f"{compiler} -E", error) from None
    header = _HEADER.search(done.stdout)
    for name, pattern in _LIBRARIES:
        found = pattern.search(done.stdout)
        if found and header:
            return f"{name} {'.'.join(found.groups())}", header[1]
    return "", ""


def _has_headers(compiler: str, flags: Sequence[str]) -> bool:
    """Whether a compiler finds a C library of any kind."""
    command = [compiler, *flags, "-E", "-include", "stdlib.h", "-x", "c", os.devnull]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    return done.returncode == 0


def _does_not_run(command: str, error: Exception) -> ToolError:
    text, hint = system_limit(error) or (str(error), "")
    return ToolError(f"{command} does not run: {text}", hint=hint)


def _ask_version(path: str) -> str:
    """The version in the first line of `--version`, or '' when there is none. Raises ToolError when it does not run."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _does_not_run(f"{path} --version", error) from None
    if done.returncode < 0:
        raise ToolError(f"{path} --version {ended_by('was', done.returncode)}")
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[:1]
        raise ToolError(f"{path} --version fails: {''.join(said)[:200] or f'exit code {done.returncode}'}")
    for line in (done.stdout + done.stderr).splitlines():
        # "gcc (Debian 12.2.0-14) 12.2.0": what is in parentheses is the packager's.
        for text in (re.sub(r"\([^)]*\)", "", line), line):
            for pattern in _VERSIONS:
                match = pattern.search(text)
                if match:
                    return match[0]
    return ""


def _order(version: str) -> tuple[tuple[int, ...], float]:
    """What versions are compared by: `13.2.0-rc1` is ((13, 2), inf), for trailing zeros do not count.

    A development release of a Python package, `0.0.5.dev20`, comes before what it leads to: ((0, 0, 5), 20).
    """
    match = re.match(r"(\d+(?:\.\d+)*)(?:\.dev(\d+))?", version)
    if not match:
        return (), 0
    parts = [int(part) for part in match[1].split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts), int(match[2]) if match[2] else math.inf


def _needed(tool: Tool) -> str:
    if tool.name == tool.package and not tool.minimum:
        return ""
    return f"; {tool.name} {tool.minimum} or newer is needed" if tool.minimum else f"; {tool.name} is needed"


def _install(tool: Tool) -> str:
    command = install_command(tool.group) if tool.group else tool.install
    return f"install it: {command}" if command else ""
