"""Kernels that rules of a recipe name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from stages.base import StageError, blaming
from stages.kernels import registry
from stages.kernels.places import folder_names
from stages.messages import escape
from stages.messages.wording import all_known, did_you_mean

if TYPE_CHECKING:
    from stages.targets.spec import Target
    from stages.tensorize import TensorizeRule


def check_names(rules: Sequence[TensorizeRule], target: Target) -> None:
    """Raises StageError for a name that no kernel of any target has, whether a layer matches its rule or not.

    Where plug-ins bring kernels, those of another target's folder are not known here: their names are left to a run.
    """
    if not rules:
        return
    from stages.accelerators.registry import names

    own = [*registry.kernels_of(target), *([] if target.accelerator is None else [target.accelerator.kind])]
    known = {*own, *registry.kernels(folder_names()), *names()}
    folders = {*folder_names(), *target.kernels}
    for number, rule in enumerate(rules):
        elsewhere = bool(target.modules) and rule.kernel.partition(".")[0] not in folders
        if rule.kernel not in known and not elsewhere:
            with blaming("stages", "tensorize", "rules", number, "kernel"):
                raise unknown_kernel(rule.kernel, target, own)


def unknown_kernel(name: str, target: Target, known: Collection[str]) -> StageError:
    """A kernel that the target, which has those that are `known`, does not have."""
    # An accelerator is one kernel: `ne16`, no `ne16.conv2d`.
    folder = name.partition(".")[0]
    guess = did_you_mean(folder if folder in known else name, sorted(known))
    has = f"target {target.core}" if target.accelerator is None else f"{target.core} with {target.accelerator.kind}"
    return StageError(
        f"a tensorize rule names kernel {escape.name(name)}, which {has} does not have{guess}",
        hint="" if guess else all_known(sorted(known)),
    )
