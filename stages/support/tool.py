"""Programs and Python packages that stages depend on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tool:
    """A program or Python package that a stage needs. Its version is part of the action key.

    command   program on PATH, or an absolute path
    package   Python distribution
    c_flags   `command` is a compiler, and the tool is the C library whose headers it uses with these flags
    minimum   lowest version that works
    install   command that installs it, shown if it is missing or too old; in a clone, `doit run` runs it if it is
              `apt-get install …`
    group     optional dependencies in pyproject.toml with the package, which `doit run` installs
    platform  only platform with builds of it, such as "linux x86_64" ('': any); `install` then tells what to do
              elsewhere
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
    """An installed tool: its path ('' for a Python package) and the version that it reports."""

    name: str
    path: str
    version: str
