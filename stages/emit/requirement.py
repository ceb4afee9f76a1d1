"""What the emitted C demands of the compiler: sources with instructions of one core refuse another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.backends.kernels.folder import KernelFolder
    from stages.backends.targets.spec import Target


@dataclass(frozen=True)
class Requirement:
    """`condition` of the preprocessor, and what to say where it does not hold."""

    condition: str
    message: str


def architecture_flags(target: Target) -> str:
    """`-march=... -mabi=...`: those of the target's compiler flags that say which machine the code is for."""
    return " ".join(flag for flag in target.compiler.flags if flag.startswith("-m"))


def requirements(folders: Iterable[KernelFolder], target: Target) -> list[Requirement]:
    """One for each of the kernel folders in use that is not plain C."""
    flags = architecture_flags(target)
    return [
        Requirement(
            folder.condition.format(word_bits=target.word_bits),
            f"This model was written for core {target.core}: compile all of its files with {flags}",
        )
        for folder in folders
        if folder.condition
    ]
