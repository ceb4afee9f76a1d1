"""Symbols that an object file defines and needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Symbols:
    """Global and weak symbols of an ELF object file: defined, and undefined but referenced."""

    defined: frozenset[str]
    needed: frozenset[str]

    @classmethod
    def of(cls, path: Path) -> Symbols:
        """Read the symbols of an object file."""
        from elftools.elf.elffile import ELFFile

        with path.open("rb") as stream:
            table: Any = ELFFile(stream).get_section_by_name(".symtab")
            names: dict[bool, set[str]] = {True: set(), False: set()}
            for symbol in table.iter_symbols():
                if symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK"):
                    names[symbol["st_shndx"] != "SHN_UNDEF"].add(symbol.name)
        return cls(frozenset(names[True]), frozenset(names[False]))
