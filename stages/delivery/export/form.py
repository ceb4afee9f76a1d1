"""A form of export: one ecosystem's files around the emitted sources, as a descriptor with templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from stages.delivery.export.content import Content

Files = dict[str, bytes]
SHARED = Path(__file__).resolve().parent / "templates"


def no_objection(content: Content) -> str:
    """Any network."""
    return ""


def as_they_are(files: Files, content: Content) -> Files:
    """Nothing beside the templates."""
    return files


@dataclass(frozen=True)
class Form:
    """What `doit export … as=NAME` writes; the name is that of the package whose __init__.py, `file`, declares it.

    title          what it is, for people
    templates      the files that it writes, each with the template it is made of: in the package's folder `templates`,
                   or, with `shared/` before it, in the one that all forms have. Paths may have {name}, the export's;
                   a template that comes to nothing writes no file
    sources        the folder of the public header, {name}.h, in which {name}/ has the emitted sources
    weights        as emit's option of that name: `c` where the assembler finds no file beside it
    places_memory  whether the ecosystem's linker script is the export's, so that memories beside the usual ones can be
                   used: what an accelerator needs
    gives_flags    whether its build gives files of a kernel flags of their own
    contract_off   whether its build compiles with -ffp-contract=off
    why_not        a reason why a network cannot be exported so, or ''
    finish         the files once all are made, with those that are no text
    facts          what the form's own templates read beside what all have (stages/delivery/export/content.py)
    run            what a user does first with the folder: a line, a template itself; '' where that is no command
    note           what has to be known for that: sentences in one line, a template itself
    """

    file: str
    title: str
    templates: Mapping[str, str]
    sources: str = "src"
    weights: Literal["incbin", "c"] = "c"
    places_memory: bool = False
    gives_flags: bool = False
    contract_off: bool = False
    why_not: Callable[[Content], str] = no_objection
    finish: Callable[[Files, Content], Files] = as_they_are
    facts: Callable[[Content], Mapping[str, Any]] = field(default=lambda content: {})
    run: str = ""
    note: str = ""

    @property
    def folder(self) -> Path:
        """Where its own templates are."""
        return Path(self.file).resolve().parent / "templates"
