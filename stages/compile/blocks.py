"""The arenas and the weights of an emitted model: in which region of the target each lies, and in which section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stages.backends.targets.linker_script import own_section

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target


def blocks_of(model: Mapping[str, Any], target: Target) -> list[dict[str, Any]]:
    """Each arena and each block of weights, with the region that it lies in; `region` is '' on a target without."""
    return [
        {**block, "region": block["region"] or ("" if target.memory is None else target.memory.home(block["part"]))}
        for block in model["blocks"]
    ]


def own_sections(model: Mapping[str, Any], target: Target) -> list[str]:
    """Sections for what lies apart from other constants or variables: `-DMODEL_ARENA_SECTION=".bss.arena.sram"`."""
    if target.memory is None:
        return []
    named = [
        (block["section_macro"], own_section(block["part"], block["region"], target.memory))
        for block in blocks_of(model, target)
    ]
    return [f'-D{macro}="{section}"' for macro, section in named if section]


def listed(part: str, model: Mapping[str, Any], target: Target) -> str:
    """`arena 9,000`, or `arena 9,000 (dtcm 8,000, sram 1,000)` where it lies in several regions."""
    blocks = [f"{one['region']} {one['bytes']:,}" for one in blocks_of(model, target) if one["part"] == part]
    among = f" ({', '.join(blocks)})" if len(blocks) > 1 else ""
    return f"{part} {model[f'{part}_bytes']:,}{among}"
