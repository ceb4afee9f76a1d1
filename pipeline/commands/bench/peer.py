"""`--peer NAME=PATH`: a checkout that the user names, whose functions are counted beside ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import PipelineError
from stages.messages import escape
from stages.messages.wording import did_you_mean

if TYPE_CHECKING:
    from stages.calibrate.side_by_side import Network
    from stages.targets.spec import Target

_ROUNDING = 1  # what outputs may be off by, where a peer rounds otherwise than LiteRT's reference kernels


@dataclass(frozen=True)
class AskedPeer:
    """A peer by its name, where its files are, and the families of targets that it is for."""

    name: str
    folder: Path
    families: tuple[str, ...]

    def figures(
        self,
        networks: Sequence[Network],
        target: Target,
        progress: Callable[..., None],
        tell: Callable[[str], None],
    ) -> dict[str, int]:
        """Instructions by the network's name; what computes something else is told, and left out. Raises StageError."""
        from stages.calibrate.peers import PEERS
        from stages.calibrate.peers.count import count_peer

        found = {}
        for one in count_peer(PEERS[self.name], self.folder, networks, target, progress=progress):
            name = one.network.name
            if one.refused:
                tell(f"  {name} on {target.name}: {self.name} {one.refused}; left out")
                continue
            if one.largest <= _ROUNDING:
                found[name] = one.instructions
            if one.differing:
                verdict = "" if name in found else "; left out"
                tell(
                    f"  {name} on {target.name}: {self.name} differs from LiteRT in {one.differing:,} of "
                    f"{one.outputs:,} values, by {one.largest} at most{verdict}"
                )
        return found


def asked_peer(text: str) -> AskedPeer | None:
    """What `--peer` says, None where it is not given. Raises PipelineError."""
    if not text:
        return None
    from stages.calibrate.peers import PEERS

    name, separator, place = text.partition("=")
    if not separator or not place:
        raise PipelineError(f"--peer {escape.name(text)}: write NAME=PATH, as in cmsis-nn=../CMSIS-NN")
    if name not in PEERS:
        guess = did_you_mean(name, PEERS)
        raise PipelineError(f"--peer: unknown peer '{escape.name(name)}'{guess}", hint=f"Known: {', '.join(PEERS)}")
    folder = Path(place).expanduser().resolve()
    header = folder / PEERS[name].header
    if not header.is_file():
        raise PipelineError(f"--peer {name}: there is no {PEERS[name].header} in {escape.name(place, 200)}")
    if not PEERS[name].files(folder):
        raise PipelineError(
            f"--peer {name}: there are no {', '.join(PEERS[name].sources)} in {escape.name(place, 200)}"
        )
    return AskedPeer(name, folder, PEERS[name].families)
