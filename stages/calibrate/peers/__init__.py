"""What functions of others take for the layers that `doit bench suite=layers` measures, from a checkout of the user's.

Nothing of theirs is here: a module for each says how its functions are called, in C written for the layers at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages.calibrate.peers import cmsis_nn

if TYPE_CHECKING:
    from stages.calibrate.peers.call import Call
    from stages.calibrate.side_by_side import Network


@dataclass(frozen=True)
class Peer:
    """A library.

    header    the file, below its folder, that declares its functions
    include   folders for the compiler, below its folder
    sources   globs of its C files
    families  of targets that it is for
    call      how it computes a network, None where it has no function for that
    """

    header: str
    include: tuple[str, ...]
    sources: tuple[str, ...]
    families: tuple[str, ...]
    call: Callable[[Network], Call | None]

    def files(self, folder: Path) -> list[Path]:
        """Its sources in a checkout."""
        return sorted({path for glob in self.sources for path in folder.glob(glob)})


PEERS: Mapping[str, Peer] = {
    "cmsis-nn": Peer("Include/arm_nnfunctions.h", ("Include",), ("Source/*/*.c",), ("cortex_m",), cmsis_nn.call)
}
