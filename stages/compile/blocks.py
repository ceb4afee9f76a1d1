"""Memory regions and linker sections of a model's arenas and weights."""

from collections.abc import Mapping
from typing import Any

from stages.backends.targets.linker_script import own_section
from stages.backends.targets.spec import Target


def blocks_of(model: Mapping[str, Any], target: Target) -> list[dict[str, Any]]:
    """Return arenas and weight blocks with their region; '' without a memory map."""
    return [
        {**block, "region": block["region"] or ("" if target.memory is None else target.memory.home(block["part"]))}
        for block in model["blocks"]
    ]


def own_sections(model: Mapping[str, Any], target: Target) -> list[str]:
    """Return compiler flags for blocks in own sections: `-DMODEL_ARENA_SECTION=".bss.arena.s"`."""
    if target.memory is None:
        return []
    named = [
        (block["section_macro"], own_section(block["part"], block["region"], target.memory))
        for block in blocks_of(model, target)
    ]
    return [f'-D{macro}="{section}"' for macro, section in named if section]


def size_line(part: str, model: Mapping[str, Any], target: Target) -> str:
    """Return `arena 9,000`, or for several regions `arena 9,000 (dtcm 8,000, sram 1,000)`."""
    blocks = [block for block in blocks_of(model, target) if block["part"] == part]
    sizes = ", ".join(f"{block['region']} {block['bytes']:,}" for block in blocks)
    return f"{part} {model[f'{part}_bytes']:,}" + (f" ({sizes})" if len(blocks) > 1 else "")
