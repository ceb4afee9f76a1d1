"""The record of a kernel folder: its kernels, required core features, compiler flags.

A folder is a package. Its `__init__.py` has

    FOLDER = KernelFolder(
        __file__,
        kernels=(Add, Conv2d),
        needs=("aarch64", "dotprod"),
        needed="needs the dot-product instructions of Armv8.2-A",
        condition="defined(__ARM_FEATURE_DOTPROD)",
    )

A new folder needs no other change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stages.backends.kernels.kernel import Kernel, RowSumKernel
from stages.backends.targets.spec import Core

#: The headers that all folders may include.
INCLUDE = Path(__file__).resolve().parent / "include"


@dataclass(frozen=True)
class KernelFolder:
    """A folder of kernels.

    file       the package's `__file__`; the package's name is the folder's name
    kernels    its classes, in order of preference
    sums       classes for layers that add up rows
    needs      required features of a core (`Core.features`); of a tuple inside, one feature is enough
    uses       extensions of a core that kernels use, but do not need
    needed     the reason to report for a core that lacks one: "needs Armv8.1-M with MVE"
    condition  of the C preprocessor, true for a compiler of such a core; `{word_bits}` is the core's. It uses the
               macros of the RISC-V C API and of Arm's C Language Extensions (ACLE)
    include    folders, relative to this one, with headers for its C, besides its own folder and INCLUDE
    flags      of the compiler for its .c and .S files, after the recipe's
    generate   text of a generated file from its name; None for a name that is not generated
    generate_for_core
               files that are generated for a core, with their texts by name: a header that depends on its extensions
    """

    file: str
    kernels: tuple[type[Kernel], ...]
    sums: tuple[type[RowSumKernel], ...] = ()
    needs: tuple[str | tuple[str, ...], ...] = ()
    uses: tuple[str, ...] = ()
    needed: str = ""
    condition: str = ""
    include: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    generate: Callable[[str], str | None] | None = None
    generate_for_core: Callable[[Core], Mapping[str, str]] | None = None

    @property
    def path(self) -> Path:
        """The folder with its files."""
        return Path(self.file).resolve().parent

    @property
    def name(self) -> str:
        """The folder's name in targets. Names of its kernels begin with it."""
        return self.path.name

    def on(self, core: Core) -> KernelFolder:
        """Return the record with the files of `generate_for_core` among the generated files."""
        of_core, by_name = self.generate_for_core, self.generate
        if of_core is None:
            return self

        def generate(name: str) -> str | None:
            text = of_core(core).get(name)
            return by_name(name) if text is None and by_name is not None else text

        return replace(self, generate=generate)

    def concerns(self, extension: str, version: str) -> bool:
        """Return whether a kernel needs or uses this version of an extension."""
        needs = [feature for need in self.needs for feature in ((need,) if isinstance(need, str) else need)]
        return not {extension, f"{extension} {version}"}.isdisjoint((*needs, *self.uses))

    def why_not(self, core: Core) -> str:
        """Return why no kernel of the folder runs on the core, '' if kernels may run."""
        core_features = core.features
        lacks = [
            feature
            for feature in self.needs
            if core_features.isdisjoint((feature,) if isinstance(feature, str) else feature)
        ]
        return (self.needed or f"needs {_names(lacks[0])}") if lacks else ""


def _names(need: str | tuple[str, ...]) -> str:
    return need if isinstance(need, str) else " or ".join(need)
