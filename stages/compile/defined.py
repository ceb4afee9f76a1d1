"""What names an object file defines for others."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def defined_names(path: Path) -> set[str]:
    """Global and weak symbols that an ELF object file defines."""
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as stream:
        table: Any = ELFFile(stream).get_section_by_name(".symtab")
        return {
            symbol.name
            for symbol in table.iter_symbols()
            if symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK") and symbol["st_shndx"] != "SHN_UNDEF"
        }
