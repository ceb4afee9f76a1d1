"""Kernel folders of a core, and kernel names in the rules of a recipe."""

from collections.abc import Collection, Sequence

from stages.backends.accelerators.registry import names
from stages.backends.kernels import registry
from stages.backends.kernels.places import folder_names
from stages.backends.targets.spec import Target
from stages.base import StageError, error_at
from stages.support.messages import escape
from stages.support.messages.wording import all_known, did_you_mean
from stages.tensorize.config import TensorizeRule


def check_folders(target: Target) -> None:
    """Raise StageError for a kernel folder of the core whose kernels cannot run on it."""
    for name, folder in registry.folders_of(target).items():
        if reason := folder.why_not(target):
            raise StageError(
                f"kernels of {escape.name(name)} cannot run on core {escape.name(target.core)}: the folder {reason}",
                hint="Remove the folder from `kernels`, or correct `isa`, `extensions` or `vlen` of the core.",
                at=("cores", target.core, "kernels", target.kernels.index(name)),
            )


def check_names(rules: Sequence[TensorizeRule], target: Target) -> None:
    """Raise StageError for a rule with a kernel that no target has.

    Names in an unknown folder may belong to a plug-in of another target. They are checked when the stage runs.
    """
    if not rules:
        return
    available = [*registry.kernels_of(target), *([] if target.accelerator is None else [target.accelerator.kind])]
    known = {*available, *registry.kernels(folder_names()), *names()}
    folders = {*folder_names(), *target.kernels, *names()}
    for number, rule in enumerate(rules):
        if rule.kernel not in known and rule.kernel.partition(".")[0] in folders:
            with error_at("stages", "tensorize", "rules", number, "kernel"):
                guess = _near(rule.kernel, known)
                message = f"unknown kernel {escape.name(rule.kernel)} in a tensorize rule{guess}"
                raise StageError(message, hint="" if guess else all_known(sorted(available)))


def unknown_kernel(name: str, target: Target, known: Collection[str]) -> StageError:
    """Return the error for a kernel that is not among the target's `known` ones."""
    guess = _near(name, known)
    has = f"target {target.core}" if target.accelerator is None else f"{target.core} with {target.accelerator.kind}"
    return StageError(
        f"{has} has no kernel {escape.name(name)}, which a tensorize rule names{guess}",
        hint="" if guess else all_known(sorted(known)),
    )


def _near(name: str, known: Collection[str]) -> str:
    # An accelerator is one kernel: `ne16`, not `ne16.conv2d`.
    folder = name.partition(".")[0]
    return did_you_mean(folder if folder in known else name, sorted(known))
