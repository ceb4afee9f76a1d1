"""A family's linker script: which part of a firmware goes to which region of the target's memory map.

Weights and arena have sections of their own only where they lie apart from the other constants and variables; the
compile stage then names these sections to the emitted sources (`own_sections`).
"""

from __future__ import annotations

from pathlib import Path
from string import Template

from stages.targets.memory import Memory, Part, Region

WEIGHTS_SECTION, ARENA_SECTION = ".weights", ".bss.arena"  # of this name, so that GCC keeps no zeros for it

# %s: the region. Nothing clears the arena: a layer writes before another reads.
_WEIGHTS = """
  .weights : ALIGN(16) {
    *(.weights .weights.*)
    . = ALIGN(16);
  } > %s
"""
_ARENA = """
  .arena (NOLOAD) : ALIGN(64) {
    *(.bss.arena)
    . = ALIGN(16);
  } > %s AT > %s
"""


def fill(template: Path, memory: Memory) -> str:
    """The script with regions, homes of the parts and the size of the stack."""
    homes = {part: memory.home(part) for part in ("code", "constants", "data", "stack")}
    sections = own_sections(memory)
    return Template(template.read_text()).substitute(
        regions="\n".join(_line(name, region) for name, region in memory.regions.items()),
        others="".join(_symbols(number, name) for number, name in enumerate(_others(memory))),
        stack_bytes=hex(memory.stack),
        weights=_WEIGHTS % memory.home("weights") if "WEIGHTS" in sections else "",
        arena=_ARENA % ((memory.home("arena"),) * 2) if "ARENA" in sections else "",
        **homes,
    )


def own_sections(memory: Memory | None) -> dict[str, str]:
    """Sections by what they hold (WEIGHTS, ARENA), for what lies in another region than its like."""
    if memory is None:
        return {}
    apart: dict[str, tuple[Part, Part, str]] = {
        "WEIGHTS": ("weights", "constants", WEIGHTS_SECTION),
        "ARENA": ("arena", "data", ARENA_SECTION),
    }
    return {name: section for name, (part, like, section) in apart.items() if memory.home(part) != memory.home(like)}


def protection_flags(memory: Memory | None) -> tuple[str, ...]:
    """What the start-up code has to know of a map that is not one ROM and one RAM, as macros for the compiler.

    `OTHER_REGIONS` has `OTHER(number, access)` for each region beside those of code and data, whose bounds are the
    script's symbols: the same object files are linked for the board and for the simulator's machine.
    """
    if memory is None:
        return ()
    flags = ["-DCODE_IS_WRITTEN"] if memory.region_of("code").is_written else []
    if memory.home("code") == memory.home("data"):
        flags.append("-DCODE_BESIDE_DATA")
    others = list(_others(memory).values())
    if others:
        access = ["READ_AND_WRITE" if region.is_written else "READ_AND_RUN" for region in others]
        flags.append(f"-DOTHER_REGIONS={''.join(f'OTHER({n},{what})' for n, what in enumerate(access))}")
    read_only = [number for number, region in enumerate(others) if not region.is_written]
    return (*flags, *(f"-DOTHER_ROM={number}" for number in read_only[:1]))


def _others(memory: Memory) -> dict[str, Region]:
    usual = (memory.home("code"), memory.home("data"))
    return {name: region for name, region in memory.regions.items() if name not in usual}


def _symbols(number: int, name: str) -> str:
    start = f"  __other_{number}_start = ORIGIN({name});\n"
    return f"{start}  __other_{number}_end = ORIGIN({name}) + LENGTH({name});\n"


def _line(name: str, region: Region) -> str:
    attributes = "r" + ("w" if region.is_written else "") + ("x" if region.is_run else "")
    return f"  {name} ({attributes}) : ORIGIN = {region.origin:#x}, LENGTH = {region.length:#x}"
