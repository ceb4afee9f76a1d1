"""Sizes of an ELF file: sections, symbols, and the source file of each symbol.

ROM is everything in flash: code, constants, and data that start-up code copies to RAM (initial values of variables,
weights in RAM). RAM is variables, including the arena, copied weights, and the reserved stack.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.backends.targets.memory import Memory

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

LARGEST_SYMBOLS = 40
_EXECUTABLE, _ALLOCATED, _WRITABLE = 4, 2, 1
# " .text.model_run\n                0x80000abc       0x12 model/000_model.o", on one line when the name is short
_PIECE = re.compile(r"^ (\.\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Piece:
    """An object file's contribution to the firmware image: address, size in bytes, object file."""

    address: int
    size: int
    file: str


def measure(elf: Path, map_file: Path, model: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of sizes.json, in bytes; `symbols` are the largest, with their files.

    `names` maps object files, as written in the map file (`model/...` or `harness/...`), to source files.
    `model_rom_bytes` is the ROM of the model's files, without harness, start-up code and library.
    """
    from elftools.elf.elffile import ELFFile

    with elf.open("rb") as handle:
        image = ELFFile(handle)
        pieces = read_map(map_file.read_text(), {s.name for s in image.iter_sections() if section_kind(s)})
        kinds = dict.fromkeys(("text", "rodata", "data", "bss", "stack_reserved"), 0)
        rom: list[tuple[int, int]] = []
        for section in image.iter_sections():
            kind = section_kind(section)
            if kind == "rodata" and load_address(image, section) != section["sh_addr"]:
                kind = "data"
            if kind:
                kinds[kind] += section["sh_size"]
            if kind in ("text", "rodata", "data"):
                rom.append((section["sh_addr"], section["sh_addr"] + section["sh_size"]))
        symbols = largest_symbols(image, pieces, names)
    model_rom = sum(
        piece.size
        for piece in pieces
        if piece.file.startswith("model/") and any(low <= piece.address < high for low, high in rom)
    )
    return {
        "rom_bytes": kinds["text"] + kinds["rodata"] + kinds["data"],
        "ram_bytes": kinds["data"] + kinds["bss"] + kinds["stack_reserved"],
        **kinds,
        "weights_bytes": model["weights_bytes"],
        "arena_bytes": model["arena_bytes"],
        "model_rom_bytes": model_rom,
        "symbols": symbols,
    }


def region_use(elf: Path, memory: Memory | None) -> list[dict[str, Any]]:
    """Return name, origin, length, `written` and `used` bytes of each region of the memory map.

    `same_as` names the region that is the same memory at another address, or ''. Data that start-up code copies counts
    in both regions. The stack counts with its reserved size.
    """
    from elftools.elf.elffile import ELFFile

    if memory is None:
        return []
    used = dict.fromkeys(memory.regions, 0)
    with elf.open("rb") as handle:
        image = ELFFile(handle)
        for section in image.iter_sections():
            kind = section_kind(section)
            name = memory.name_of(section["sh_addr"]) if kind else None
            if name is not None:
                used[name] += section["sh_size"]
            loaded_from = memory.name_of(load_address(image, section)) if kind in ("data", "rodata") else name
            if loaded_from is not None and loaded_from != name:
                used[loaded_from] += section["sh_size"]
    return [
        {
            "name": name,
            "origin": region.origin,
            "length": region.length,
            "written": region.is_written,
            "used": used[name],
            "same_as": region.same_as,
        }
        for name, region in memory.regions.items()
    ]


def region_ends(elf: Path, memory: Memory) -> dict[str, int]:
    """Return the bytes of each region up to the end of its last section.

    The linker compares them with the region's length. They exceed the used bytes by the alignment of sections.
    """
    from elftools.elf.elffile import ELFFile

    ends = dict.fromkeys(memory.regions, 0)
    with elf.open("rb") as handle:
        image = ELFFile(handle)
        for section in image.iter_sections():
            for start in {section["sh_addr"], load_address(image, section)} if section_kind(section) else ():
                name = memory.name_of(start)
                if name is not None:
                    ends[name] = max(ends[name], start + section["sh_size"] - memory.regions[name].origin)
    return ends


def load_address(image: ELFFile, section: Section) -> int:
    """Return the section's load address.

    It differs from its address if start-up code copies the section.
    """
    start = int(section["sh_addr"])
    for segment in image.iter_segments("PT_LOAD"):
        if segment["p_vaddr"] <= start < segment["p_vaddr"] + segment["p_memsz"]:
            return int(segment["p_paddr"]) + start - int(segment["p_vaddr"])
    return start


def addresses(elf: Path, blocks: Iterable[Mapping[str, Any]], memory: Memory | None) -> list[dict[str, Any]]:
    """Add the `address` to each block of arena and weights.

    It is None if the linker removed the block, and on targets without a memory map.
    """
    from elftools.elf.elffile import ELFFile

    with elf.open("rb") as handle:
        table: Any = ELFFile(handle).get_section_by_name(".symtab")
        values = {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()} if memory else {}
    return [{**block, "address": values.get(block["symbol"])} for block in blocks]


def section_kind(section: Section) -> str:
    """Return text, rodata, data, bss or stack_reserved; '' if the section is not loaded."""
    flags = section["sh_flags"]
    if not flags & _ALLOCATED:
        return ""
    if section.name == ".stack":
        return "stack_reserved"
    if flags & _EXECUTABLE:
        return "text"
    if not flags & _WRITABLE:
        return "rodata"
    if section["sh_type"] != "SHT_NOBITS":
        return "data"
    # .tbss takes no space: its addresses overlap those of the next section.
    return "" if section.name == ".tbss" else "bss"


def read_map(text: str, sections: Set[str]) -> list[Piece]:
    """Return the parts of `sections` from object files in a GNU ld map, sorted by address.

    Other sections, such as debug information, are skipped: their addresses start at 0 and may overlap a ROM.
    """
    _, _, body = text.partition("Linker script and memory map")
    joined = re.sub(r"^( \.\S+)\n\s+0x", r"\1 0x", body, flags=re.MULTILINE)
    pieces: list[Piece] = []
    for output in re.split(r"^(?=\.)", joined, flags=re.MULTILINE):
        if output.split(maxsplit=1)[0] in sections:
            pieces += [
                Piece(int(address, 16), int(size, 16), file)
                for _, address, size, file in _PIECE.findall(output)
                if int(size, 16) > 0
            ]
    return sorted(pieces, key=lambda piece: piece.address)


def largest_symbols(image: ELFFile, pieces: list[Piece], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return functions and objects, largest first.

    `file` is a source file or a library member: libc.a(memcpy.o).
    """
    table: Any = image.get_section_by_name(".symtab")
    if table is None:
        return []
    starts = [piece.address for piece in pieces]
    entries: list[dict[str, Any]] = []
    for symbol in table.iter_symbols():
        index = symbol["st_shndx"]
        if symbol["st_info"]["type"] not in ("STT_FUNC", "STT_OBJECT") or not isinstance(index, int):
            continue
        if symbol["st_size"] == 0 or not section_kind(image.get_section(index)):
            continue
        address = symbol["st_value"]
        nearest = bisect.bisect_right(starts, address) - 1
        is_known = nearest >= 0 and address < pieces[nearest].address + pieces[nearest].size
        file = pieces[nearest].file if is_known else ""
        entries.append(
            {
                "name": symbol.name,
                "section": image.get_section(index).name,
                "bytes": symbol["st_size"],
                "file": names.get(file, file.rsplit("/", 1)[-1]),
            }
        )
    entries.sort(key=lambda entry: (-entry["bytes"], entry["name"]))
    return entries[:LARGEST_SYMBOLS]
