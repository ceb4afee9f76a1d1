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
    from stages.bench.side_by_side import Network
    from stages.targets.spec import Target

_CHECKOUT = "it is a checkout of the peer's own repository; docs/reference/layers.md says where one is to be had"
_ROUNDING = 1  # what outputs may be off by, where a peer rounds otherwise than LiteRT's reference kernels


@dataclass(frozen=True)
class AskedPeer:
    """A peer by its name, its header's revision, where its files are, and the families of targets that it is for."""

    name: str
    revision: str
    folder: Path
    families: tuple[str, ...]

    @property
    def title(self) -> str:
        """What its figures are kept and shown under; those of one version are not mixed with those of another."""
        return f"{self.name} (header {self.revision})" if self.revision else self.name

    def figures(
        self,
        networks: Sequence[Network],
        target: Target,
        progress: Callable[..., None],
        tell: Callable[[str], None],
    ) -> dict[str, int]:
        """Instructions by the network's name; what computes something else is told, and left out. Raises StageError."""
        from stages.bench.peers import PEERS
        from stages.bench.peers.count import count_peer

        found = {}
        counts = count_peer(
            PEERS[self.name],
            self.folder,
            networks,
            target,
            progress=progress,
            tell=lambda line: tell(f"  {self.name} on {target.name}: {line}"),
        )
        for one in counts:
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
    from stages.bench.peers import PEERS

    name, separator, place = text.partition("=")
    if not separator or not place:
        raise PipelineError(f"--peer {escape.name(text)}: write NAME=PATH, as in cmsis-nn=../CMSIS-NN")
    if name not in PEERS:
        guess = did_you_mean(name, PEERS)
        raise PipelineError(f"--peer: unknown peer '{escape.name(name)}'{guess}", hint=f"Known: {', '.join(PEERS)}")
    folder = Path(place).expanduser().resolve()
    header = folder / PEERS[name].header
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "is not there"
        raise PipelineError(f"--peer {name}: {escape.name(place, 200)} {what}", hint=_CHECKOUT)
    if not header.is_file():
        below = next((path.parent for path in sorted(folder.glob(f"*/{PEERS[name].header}"))), None)
        hint = _CHECKOUT if below is None else f"did you mean {escape.name(str(Path(place) / below.parent.name), 200)}?"
        raise PipelineError(f"--peer {name}: there is no {PEERS[name].header} in {escape.name(place, 200)}", hint=hint)
    if not PEERS[name].files(folder):
        message = f"--peer {name}: there are no {', '.join(PEERS[name].sources)} in {escape.name(place, 200)}"
        raise PipelineError(message, hint="a checkout that is whole has them")
    return AskedPeer(name, PEERS[name].revision_of(folder), folder, PEERS[name].families)
