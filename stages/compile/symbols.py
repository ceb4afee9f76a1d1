"""What names an object file defines for others, and what it needs of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Symbols:
    """Global and weak symbols of an ELF object file: those that it defines, and those that it refers to."""

    defined: frozenset[str]
    needed: frozenset[str]

    @classmethod
    def of(cls, path: Path) -> Symbols:
        from elftools.elf.elffile import ELFFile

        with path.open("rb") as stream:
            table: Any = ELFFile(stream).get_section_by_name(".symtab")
            found: dict[bool, set[str]] = {True: set(), False: set()}
            for symbol in table.iter_symbols():
                if symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK"):
                    found[symbol["st_shndx"] != "SHN_UNDEF"].add(symbol.name)
        return cls(frozenset(found[True]), frozenset(found[False]))
