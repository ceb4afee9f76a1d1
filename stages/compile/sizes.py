"""What an ELF file puts where: sections and symbols, and which source file each byte comes from.

ROM is what has to be in flash: code, constants, and what start-up code copies from there: initial values of variables,
and weights in RAM. RAM is variables, the arena among them, those weights, and the reserved stack.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

    from stages.backends.targets.memory import Memory

LARGEST_SYMBOLS = 40
_EXECUTABLE, _ALLOCATED, _WRITABLE = 4, 2, 1
# " .text.model_run\n                0x80000abc       0x12 model/000_model.o", on one line when the name is short
_PIECE = re.compile(r"^ (\.\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Piece:
    """One object file's contribution to the image: address, bytes, object file."""

    address: int
    size: int
    file: str


def measure(elf: Path, map_file: Path, model: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The content of sizes.json, all in bytes; `symbols` are the largest, with the file they come from.

    `names` gives the source file of each object file, as the map writes it: `model/...` for the model's own,
    `harness/...` for the others. `model_rom_bytes` is the ROM of the model's own files: without harness, start-up
    code and library.
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
    """For each region of the memory map its name, origin, length, whether a program writes there, and bytes used.

    `same_as` is the region whose memory it is, '' for its own.

    What is copied at start counts where it is loaded as well as where it is copied to; the stack with all that is
    reserved for it.
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
            kept = memory.name_of(load_address(image, section)) if kind in ("data", "rodata") else name
            if kept is not None and kept != name:
                used[kept] += section["sh_size"]
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


def load_address(image: ELFFile, section: Section) -> int:
    """Where the section's bytes are loaded: another address than its own when start-up code copies it."""
    start = int(section["sh_addr"])
    for segment in image.iter_segments("PT_LOAD"):
        if segment["p_vaddr"] <= start < segment["p_vaddr"] + segment["p_memsz"]:
            return int(segment["p_paddr"]) + start - int(segment["p_vaddr"])
    return start


def addresses(elf: Path, blocks: Iterable[Mapping[str, Any]], memory: Memory | None) -> list[dict[str, Any]]:
    """The blocks of arena and weights, each with its `address`.

    It is None for one that the linker left out, and without a memory map: the system decides then.
    """
    from elftools.elf.elffile import ELFFile

    with elf.open("rb") as handle:
        table: Any = ELFFile(handle).get_section_by_name(".symtab")
        found = {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()} if memory else {}
    return [{**block, "address": found.get(block["symbol"])} for block in blocks]


def section_kind(section: Section) -> str:
    """text, rodata, data, bss or stack_reserved; '' for what is not loaded."""
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
    # The space that .tbss seems to take is that of the section behind it.
    return "" if section.name == ".tbss" else "bss"


def read_map(text: str, sections: Set[str]) -> list[Piece]:
    """Contributions of object files to `sections` in a GNU ld map, by address.

    Sections that are not loaded, such as those with debug information, have addresses from 0 on, where a ROM may be.
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
    """Functions and objects, largest first; `file` is a source file, or a library's member such as libc.a(memcpy.o)."""
    table: Any = image.get_section_by_name(".symtab")
    if table is None:
        return []
    starts = [piece.address for piece in pieces]
    found: list[dict[str, Any]] = []
    for symbol in table.iter_symbols():
        index = symbol["st_shndx"]
        if symbol["st_info"]["type"] not in ("STT_FUNC", "STT_OBJECT") or not isinstance(index, int):
            continue
        if symbol["st_size"] == 0 or not section_kind(image.get_section(index)):
            continue
        address = symbol["st_value"]
        at = bisect.bisect_right(starts, address) - 1
        inside = at >= 0 and address < pieces[at].address + pieces[at].size
        file = pieces[at].file if inside else ""
        found.append(
            {
                "name": symbol.name,
                "section": image.get_section(index).name,
                "bytes": symbol["st_size"],
                "file": names.get(file, file.rsplit("/", 1)[-1]),
            }
        )
    found.sort(key=lambda entry: (-entry["bytes"], entry["name"]))
    return found[:LARGEST_SYMBOLS]
