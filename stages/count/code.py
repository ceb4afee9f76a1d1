"""The code that functions reach in object files, with a section per function or constant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.compile.sizes import section_kind

Place = tuple[str, int]
"""A source file, and the number of a section in its object."""


@dataclass(frozen=True)
class Sections:
    """Sections of object files with their sizes and references.

    sizes    ROM bytes of each section
    names    `rvp/quads.c:.text.rvp_quads`: source file and section name
    refers   the sections that a section refers to
    defined  the sections of global symbols
    """

    sizes: Mapping[Place, int]
    names: Mapping[Place, str]
    refers: Mapping[Place, frozenset[Place]]
    defined: Mapping[str, Place]

    @classmethod
    def of(cls, objects: Mapping[str, Path]) -> Sections:
        """Return the sections of ELF objects by source file, without references to other files."""
        sizes: dict[Place, int] = {}
        names: dict[Place, str] = {}
        defined: dict[str, Place] = {}
        references: dict[Place, set[Place | str]] = {}
        for source, path in objects.items():
            _read(source, path, sizes, names, defined, references)
        refers = {
            place: frozenset(
                target
                for reference in section_references
                if (target := defined.get(reference) if isinstance(reference, str) else reference) is not None
                and target in sizes
            )
            for place, section_references in references.items()
        }
        return cls(sizes, names, refers, defined)

    def reached(self, functions: Iterable[str]) -> frozenset[Place]:
        """Return the sections of the functions and everything that they refer to, directly or not."""
        waiting = [self.defined[name] for name in functions]
        done: set[Place] = set(waiting)
        while waiting:
            new = self.refers.get(waiting.pop(), frozenset()) - done
            done |= new
            waiting += new
        return frozenset(done)


def _read(
    source: str,
    path: Path,
    sizes: dict[Place, int],
    names: dict[Place, str],
    defined: dict[str, Place],
    references: dict[Place, set[Place | str]],
) -> None:
    """Add an object's sections to the mappings. References to global symbols are names."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.relocation import RelocationSection

    with path.open("rb") as stream:
        image = ELFFile(stream)
        table: Any = image.get_section_by_name(".symtab")
        symbols: list[Place | str] = []
        for symbol in table.iter_symbols():
            index = symbol["st_shndx"]
            place = (source, index) if isinstance(index, int) else None
            symbols.append(symbol.name if place is None else place)
            if place is not None and symbol["st_info"]["bind"] != "STB_LOCAL":
                defined[symbol.name] = place
        for number, section in enumerate(image.iter_sections()):
            if section_kind(section) in ("text", "rodata", "data"):
                sizes[source, number] = int(section["sh_size"])
                names[source, number] = f"{source}:{section.name}"
            if isinstance(section, RelocationSection):
                section_references = references.setdefault((source, int(section["sh_info"])), set())
                section_references.update(
                    symbols[relocation["r_info_sym"]] for relocation in section.iter_relocations()
                )
