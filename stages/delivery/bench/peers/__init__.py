"""What functions of others take for the layers that `doit bench suite=layers` measures, from a checkout of the user's.

Nothing of theirs is here: a module for each says how its functions are called, in C written for the layers at hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages.delivery.bench.peers import cmsis_nn

if TYPE_CHECKING:
    from stages.delivery.bench.peers.call import Call
    from stages.delivery.bench.side_by_side import Network


@dataclass(frozen=True)
class Peer:
    """A library.

    header    the file, below its folder, that declares its functions
    include   folders for the compiler, below its folder
    beside    more of them, where there are such: what older versions need of the checkout that they were a part of
    sources   globs of its C files
    families  of targets that it is for
    revision  what its header has of it, which tells versions apart
    prefix    of the names of its functions
    calls     how it computes a network, the newest way first; none where it has no function for that
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
        """Its sources in a checkout."""
        return sorted({path for glob in self.sources for path in folder.glob(glob)})

    def revision_of(self, folder: Path) -> str:
        """The revision of a checkout's header, '' where it has none."""
        found = re.search(self.revision, (folder / self.header).read_text(encoding="utf-8", errors="replace"))
        return found[1] if found else ""

    def include_folders(self, folder: Path) -> list[Path]:
        """What the compiler searches for its headers."""
        beside = (folder.parent / name for name in self.beside)
        return [*(folder / name for name in self.include), *(place for place in beside if place.is_dir())]


PEERS: Mapping[str, Peer] = {
    "cmsis-nn": Peer(
        header="Include/arm_nnfunctions.h",
        include=("Include",),
        beside=("Core/Include", "cmsis_core/Include"),  # of CMSIS 5, which CMSIS-NN 3 was a part of and 4 builds on
        sources=("Source/*/*.c",),
        families=("cortex_m",),
        revision=r"\$Revision:\s*V\.?([\d.]+\d)",
        prefix="arm_",
        calls=cmsis_nn.calls,
    )
}
