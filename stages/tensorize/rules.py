"""Kernels that rules of a recipe name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from stages.backends.kernels import registry
from stages.backends.kernels.places import folder_names
from stages.base import StageError, blaming
from stages.support.messages import escape
from stages.support.messages.wording import all_known, did_you_mean

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.tensorize import TensorizeRule


def check_names(rules: Sequence[TensorizeRule], target: Target) -> None:
    """Raises StageError for a name that no kernel of any target has, whether a layer matches its rule or not.

    A folder that is neither Firmline's nor the target's may be another target's plug-in: such names are left to a run.
    """
    if not rules:
        return
    from stages.backends.accelerators.registry import names

    own = [*registry.kernels_of(target), *([] if target.accelerator is None else [target.accelerator.kind])]
    known = {*own, *registry.kernels(folder_names()), *names()}
    folders = {*folder_names(), *target.kernels, *names()}
    for number, rule in enumerate(rules):
        if rule.kernel not in known and rule.kernel.partition(".")[0] in folders:
            with blaming("stages", "tensorize", "rules", number, "kernel"):
                guess = _near(rule.kernel, known)
                message = f"a tensorize rule names kernel {escape.name(rule.kernel)}, which there is not{guess}"
                raise StageError(message, hint="" if guess else all_known(sorted(own)))


def unknown_kernel(name: str, target: Target, known: Collection[str]) -> StageError:
    """A kernel that the target, which has those that are `known`, does not have."""
    guess = _near(name, known)
    has = f"target {target.core}" if target.accelerator is None else f"{target.core} with {target.accelerator.kind}"
    return StageError(
        f"a tensorize rule names kernel {escape.name(name)}, which {has} does not have{guess}",
        hint="" if guess else all_known(sorted(known)),
    )


def _near(name: str, known: Collection[str]) -> str:
    # An accelerator is one kernel: `ne16`, no `ne16.conv2d`.
    folder = name.partition(".")[0]
    return did_you_mean(folder if folder in known else name, sorted(known))
