"""Descriptor of an export form: the files of a build system around the emitted sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from stages.delivery.export.content import Content

Files = dict[str, bytes]


def accept_all(content: Content) -> str:
    """Return '': all networks are supported."""
    return ""


def cortex_m_only(content: Content) -> str:
    """Return '' for plain C and Cortex-M, else the reason for a refusal."""
    target = content.target
    return "" if target.is_native or target.family == "cortex_m" else f"{target.core} is not a Cortex-M core"


def unchanged(files: Files, content: Content) -> Files:
    """Return the files unchanged."""
    return files


@dataclass(frozen=True)
class Form:
    """Form of `doit export … as=NAME`.

    The name is that of the package whose __init__.py (`file`) declares it.

    title          description for the user
    templates      output files and their templates, from the package's folder `templates`, or with `shared/` from the
                   shared one. Paths may contain {name}, the export's name. An empty result writes no file
    sources        folder of the public header {name}.h; the emitted sources are in its subfolder {name}/
    weights        emit's option: `c` if the assembler cannot include files
    places_memory  whether the export has a linker script, which an accelerator's memory needs
    gives_flags    whether the build supports flags per file
    contract_off   whether the build compiles with -ffp-contract=off
    several        whether an export may have several networks (`networks` of the templates)
    why_not        returns the reason if a network is not supported, else ''
    finish         changes the rendered files, or adds binary ones
    facts          returns additional variables of the templates (see stages/delivery/export/content.py)
    run            command that the user runs first, as a template; '' without one
    note           sentences about that command or the first step, on one line, as a template
    """

    file: str
    title: str
    templates: Mapping[str, str]
    sources: str = "src"
    weights: Literal["incbin", "c"] = "c"
    places_memory: bool = False
    gives_flags: bool = False
    contract_off: bool = False
    several: bool = False
    why_not: Callable[[Content], str] = accept_all
    finish: Callable[[Files, Content], Files] = unchanged
    facts: Callable[[Content], Mapping[str, Any]] = field(default=lambda content: {})
    run: str = ""
    note: str = ""

    @property
    def folder(self) -> Path:
        """Folder of the form's templates."""
        return Path(self.file).resolve().parent / "templates"
