"""Baselines of `doit bench suite=layers`: kernel libraries that the user has checked out.

The libraries are not part of Firmline. One module per library generates C that calls its functions for a layer.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stages.delivery.bench.baselines import cmsis_nn
from stages.delivery.bench.baselines.call import Call
from stages.delivery.bench.networks import Network


@dataclass(frozen=True)
class BaselineLibrary:
    """A kernel library that is measured for comparison.

    Paths are relative to the library's folder.

    header    file that declares its functions
    include   include folders
    beside    optional include folders next to the library, which older versions need
    sources   globs of its C files
    families  architecture families that it supports
    revision  pattern of the revision in the header
    prefix    prefix of its function names
    calls     returns the calls that compute a network, the newest API first; empty if unsupported
    """

    header: str
    include: tuple[str, ...]
    beside: tuple[str, ...]
    sources: tuple[str, ...]
    families: tuple[str, ...]
    revision: str
    prefix: str
    calls: Callable[[Network], Sequence[Call]]

    def files(self, folder: Path) -> list[Path]:
        """Return the library's sources in a checkout."""
        return sorted({path for glob in self.sources for path in folder.glob(glob)})

    def revision_of(self, folder: Path) -> str:
        """Return the revision in a checkout's header, or ''."""
        match = re.search(self.revision, (folder / self.header).read_text(encoding="utf-8", errors="replace"))
        return match[1] if match else ""

    def include_folders(self, folder: Path) -> list[Path]:
        """Return the existing include folders of a checkout."""
        beside = (folder.parent / name for name in self.beside)
        return [*(folder / name for name in self.include), *(place for place in beside if place.is_dir())]


BASELINES: Mapping[str, BaselineLibrary] = {
    "cmsis-nn": BaselineLibrary(
        header="Include/arm_nnfunctions.h",
        include=("Include",),
        beside=("Core/Include", "cmsis_core/Include"),  # CMSIS 5: contains CMSIS-NN 3; version 4 needs its headers
        sources=("Source/*/*[!f]??.c",),  # not the floats: *_f16.c, *_f32.c
        families=("cortex_m",),
        revision=r"\$Revision:\s*V\.?([\d.]+\d)",
        prefix="arm_",
        calls=cmsis_nn.calls,
    )
}
