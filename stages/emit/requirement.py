"""Compiler requirements of the emitted C: a core's sources compile for it only."""

from collections.abc import Iterable
from dataclasses import dataclass

from stages.backends.kernels.folder import KernelFolder
from stages.backends.targets.spec import Target


@dataclass(frozen=True)
class Requirement:
    """A preprocessor condition, and the error message if it is false."""

    condition: str
    message: str


def architecture_flags(target: Target) -> str:
    """Return the target's compiler flags that select the machine: `-march=... -mabi=...`."""
    return " ".join(flag for flag in target.compiler.flags_to_compile if flag.startswith("-m"))


def requirements(folders: Iterable[KernelFolder], target: Target) -> list[Requirement]:
    """Return a requirement for each used kernel folder that is not plain C."""
    flags = architecture_flags(target)
    return [
        Requirement(
            folder.condition.format(word_bits=target.word_bits),
            f"This model was written for core {target.core}: compile all of its files with {flags}",
        )
        for folder in folders
        if folder.condition
    ]
