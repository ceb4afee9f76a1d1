"""Measurements of one network's own layers, `recipes/NAME.tuning.json`, which count instead of a core's cost table.

`doit tune recipe=NAME` writes the file beside the recipe:

  format    of the file
  targets   `entry_of` -> {tools, kernels, layers}: versions of the tools and options of the compiler, kernel name ->
            digest of its code, signature of a layer -> variant -> instructions, or cycles (stages.tensorize.costs)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.base import StageError
from stages.system.json_text import parsed_json
from stages.tensorize.beside import SUFFIX
from stages.tensorize.costs import CostTable
from stages.tensorize.cycles import timing_digest

if TYPE_CHECKING:
    from stages.targets.spec import Target

FORMAT = 1
TIMING = "timing"
"""Among the tools of what is measured in cycles: the digest of the timing model and of the memory."""


def entry_of(target: Target, *, in_cycles: bool) -> str:
    """Under which name a file has the figures for a target: instructions are the core's, cycles the board's."""
    return f"{target.name} in cycles" if in_cycles else target.core


def read_targets(path: Path) -> dict[str, dict[str, Any]]:
    """What the file has of each entry; nothing where there is no file. Raises StageError for one that is damaged."""
    hint = f"delete it, or write it again: doit tune recipe={path.name.removesuffix(SUFFIX)} --all"
    try:
        raw = parsed_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StageError(f"{path.name} cannot be read: {error}", hint=hint) from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT or not isinstance(raw.get("targets"), dict):
        raise StageError(f"{path.name} is no tuning of format {FORMAT}", hint=hint)
    targets: dict[str, dict[str, Any]] = raw["targets"]
    for entry, found in targets.items():
        wrong = _wrong(found)
        if wrong:
            raise StageError(f"{path.name}, {entry}: {wrong}", hint=hint)
    return targets


def sound_targets(path: Path) -> dict[str, dict[str, Any]]:
    """As `read_targets`, and nothing where the file is damaged: for who writes it anew."""
    try:
        return read_targets(path)
    except StageError:
        return {}


def _wrong(found: Any) -> str:
    if not isinstance(found, dict) or not all(
        isinstance(found.get(key), dict) for key in ("tools", "kernels", "layers")
    ):
        return "has no tools, kernels and layers"
    for signature, row in found["layers"].items():
        if not isinstance(row, dict) or not all(isinstance(count, int) and count >= 0 for count in row.values()):
            return f"layer {signature!r} has figures that are no instructions"
    return ""


def tuned_table(path: Path, target: Target, *, in_cycles: bool) -> CostTable | None:
    """The measurements for a target; None where there are none. Raises StageError as `read_targets`.

    Cycles count only for the timing model and the memory that they were measured with.
    """
    found = read_targets(path).get(entry_of(target, in_cycles=in_cycles))
    if found is None or (in_cycles and found["tools"].get(TIMING) != timing_digest(target)):
        return None
    return CostTable(found["kernels"], found["layers"])
