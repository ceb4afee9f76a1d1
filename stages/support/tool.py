"""Programs and Python packages that stages depend on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tool:
    """A program or Python package a stage depends on; its identity is part of the action key.

    `command` is looked up on PATH (or is an absolute path); `package` is a Python distribution. With `c_flags`,
    `command` is a compiler and the tool is the C library whose headers it finds with these flags. `minimum` is the
    lowest version that works; `install` is the command that installs it, shown when it is missing or too old. In a
    clone `doit run` installs it if that is `apt-get install …`. A package that only some recipes need is in a `group`
    of pyproject.toml's optional dependencies, which `doit run` installs. `platform` is the only one that has builds of
    it, such as "linux x86_64" ('': any); `install` then says what to do elsewhere.
    """

    name: str
    command: str = ""
    package: str = ""
    c_flags: tuple[str, ...] | None = None
    minimum: str = ""
    install: str = ""
    group: str = ""
    platform: str = ""


@dataclass(frozen=True)
class ToolIdentity:
    """A tool as found on this machine: where it is ('' for a Python package) and which version it reports."""

    name: str
    path: str
    version: str
