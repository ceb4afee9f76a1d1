"""What the emitted C demands of the compiler: sources with instructions of one core refuse another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.targets.spec import Target


@dataclass(frozen=True)
class Requirement:
    """`condition` of the preprocessor, and what to say where it does not hold."""

    condition: str
    message: str


# By folder of stages/kernels. Folders that are not here, generic among them, are plain C. The macros are those of the
# RISC-V C API and of Arm's C Language Extensions (ACLE).
_CONDITIONS = {
    "rvp": "defined(__riscv_xlen) && __riscv_xlen == {word_bits}",
    "arm_dsp": "defined(__ARM_FEATURE_DSP)",
    "mve": "defined(__ARM_FEATURE_MVE)",
    "neon": "defined(__aarch64__)",
    "neon_dotprod": "defined(__ARM_FEATURE_DOTPROD)",
}


def architecture_flags(target: Target) -> str:
    """`-march=... -mabi=...`: those of the target's compiler flags that say which machine the code is for."""
    return " ".join(flag for flag in target.compiler.flags if flag.startswith("-m"))


def requirements(kernel_files: Iterable[str], target: Target) -> list[Requirement]:
    """One for each folder of `kernel_files` (relative to stages/kernels) that is not plain C."""
    folders = sorted({file.partition("/")[0] for file in kernel_files} & set(_CONDITIONS))
    flags = architecture_flags(target)
    return [
        Requirement(
            _CONDITIONS[folder].format(word_bits=target.word_bits),
            f"This model was written for core {target.core}: compile all of its files with {flags}",
        )
        for folder in folders
    ]
