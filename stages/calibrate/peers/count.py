"""Counts a peer's functions: its library compiled with -O2 and with -O3, many layers in one program, the smaller taken.

Its sources are compiled by the target's compiler and counted by the target's simulator, as everything else is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stages.base import StageError, no_progress
from stages.calibrate.cases import room_of
from stages.compile.defined import defined_names
from stages.compile.toolchain import Source, compile_sources, link
from stages.simulators.program import run_program
from stages.system.scratch import temporary_folder
from stages.targets.runtime import runtime_for

if TYPE_CHECKING:
    from stages.calibrate.peers import Peer
    from stages.calibrate.peers.call import Call
    from stages.calibrate.side_by_side import Network
    from stages.targets.spec import Target

OPTIMIZATIONS = ("-O2", "-O3")
_SCRATCH = 98_304
_ALIGNMENT = 16
_NO_ROOM = 100
_MAIN = """\
#include <stdint.h>
#include <string.h>

#include "{header}"
#include "bench.h"

extern const uint8_t data[];
#define SCRATCH {scratch}
#define NO_ROOM {no_room}
static _Alignas(16) uint8_t scratch[SCRATCH];
static _Alignas(16) int8_t output[{largest}];

{functions}

int main(void)
{{
    int file = board_open_write("outputs.bin");
    int status;
{calls}
    board_close(file);
    return 0;
}}
"""
_FUNCTION = """\
static int layer{number}(void)
{{
    int status = 0;
{lines}
    BENCH("{number}", {counted});
    return status;
}}
"""
_CALL = """\
    memset(output, 0, sizeof output);
    if ((status = layer{number}()) != 0)
        printf("REFUSED {number} %d\\n", status);
    board_write(file, output, {bytes});
"""


@dataclass(frozen=True)
class PeerCount:
    """What a peer's function takes; `differing` of `outputs` values are others than LiteRT's, by `largest` at most.

    `refused` says why it computed nothing, where it did not.
    """

    network: Network
    instructions: int
    outputs: int
    differing: int = 0
    largest: int = 0
    refused: str = ""


def count_peer(
    peer: Peer,
    folder: Path,
    networks: Sequence[Network],
    target: Target,
    *,
    progress: Callable[..., None] = no_progress,
) -> Iterator[PeerCount]:
    """Each network that this checkout of the peer has a function for.

    Raises StageError for what does not compile, link or run.
    """
    ways = [(network, calls) for network in networks if (calls := peer.calls(network))]
    found: dict[str, PeerCount] = {}
    runtime = runtime_for(target)
    sources = [Source(path) for path in peer.files(folder)]
    board = [Source(path) for path in (*runtime.sources, *runtime.console)]
    include = peer.include_folders(folder)
    for part, optimize in enumerate(OPTIMIZATIONS if ways else ()):
        with temporary_folder("peer") as build:

            def told(message: str, fraction: float, part: int = part) -> None:
                progress(message, (part + fraction) / len(OPTIMIZATIONS))

            flags = ("-std=gnu11", "-w", optimize)
            told(f"compiling {len(sources)} files of the peer, {optimize}", 0.0)
            objects = compile_sources(target, runtime, [*sources, *board], build / "peer", flags=flags, include=include)
            groups = list(_groups(_callable(ways, peer, objects), room_of(target).weights))
            for number, group in enumerate(groups):
                told(f"counting {len(group)} layers, {optimize}", (number + 1) / (len(groups) + 1))
                for one in _run(group, peer, target, objects, build / str(number), flags, include):
                    before = found.get(one.network.name)
                    if before is None or one.instructions < before.instructions:
                        found[one.network.name] = one
    yield from found.values()


def _callable(
    ways: Sequence[tuple[Network, Sequence[Call]]], peer: Peer, objects: Sequence[Path]
) -> list[tuple[Network, Call]]:
    """Of each network the first of its calls whose functions the objects define; networks without are left out."""
    defined = {name for path in objects for name in defined_names(path)}
    firsts = (
        (network, next((call for call in calls if call.functions(peer.prefix) <= defined), None))
        for network, calls in ways
    )
    return [(network, call) for network, call in firsts if call is not None]


def _groups(called: Sequence[tuple[Network, Call]], room: float) -> Iterator[list[tuple[Network, Call]]]:
    """The layers, in order, in groups whose data take half of the target's ROM, or are of one layer."""
    group: list[tuple[Network, Call]] = []
    size = 0
    for network, call in called:
        own = sum(array.nbytes + _ALIGNMENT for array in call.data.values())
        if group and size + own > min(room / 2, 2**21):
            yield group
            group, size = [], 0
        group.append((network, call))
        size += own
    if group:
        yield group


def _run(
    group: Sequence[tuple[Network, Call]],
    peer: Peer,
    target: Target,
    objects: Sequence[Path],
    folder: Path,
    flags: Sequence[str],
    include: Sequence[Path],
) -> Iterator[PeerCount]:
    folder.mkdir()
    runtime = runtime_for(target)
    main, blob = program(group, Path(peer.header).name)
    (folder / "data.bin").write_bytes(blob)
    (folder / "main.c").write_text(main)
    (folder / "data.S").write_text(
        f'.section .rodata\n.global data\n.balign {_ALIGNMENT}\ndata:\n.incbin "{folder / "data.bin"}"\n'
    )
    own = [Source(folder / "main.c"), Source(folder / "data.S")]
    made = compile_sources(target, runtime, own, folder / "obj", flags=flags, include=include)
    elf = folder / "peer.elf"
    link(target, runtime, [*made, *objects], elf)
    finished = run_program(elf, target, folder, timeout=600)
    if finished.exit_code != 0:
        raise StageError(f"the peer's program ended with status {finished.exit_code}: {finished.output.strip()[-200:]}")
    counts, statuses = (_told(finished.output, word) for word in ("COUNT", "REFUSED"))
    outputs, position = (folder / "outputs.bin").read_bytes(), 0
    for number, (network, _) in enumerate(group):
        (expected,) = network.expected
        got = np.frombuffer(outputs, np.int8, expected.size, position).astype(int)
        position += expected.size
        distance = np.abs(got - expected.reshape(-1).astype(int))
        if number in statuses:
            yield PeerCount(network, 0, expected.size, refused=_refusal(statuses[number]))
            continue
        yield PeerCount(network, counts[number], expected.size, int((distance > 0).sum()), int(distance.max()))


def program(group: Sequence[tuple[Network, Call]], header: str) -> tuple[str, bytes]:
    """The program that runs a group, and the data that its constants and inputs are in."""
    blob = bytearray()
    functions, calls = [], []
    for number, (network, call) in enumerate(group):
        lines = []
        for name, array in call.data.items():
            blob += bytes(-len(blob) % _ALIGNMENT)
            kind = f"{array.dtype}_t"
            lines.append(f"const {kind} *const {name} = (const {kind} *)(data + {len(blob)});")
            blob += array.tobytes()
        lines += call.before
        indented = "\n".join(f"    {line}" for line in lines)
        functions.append(_FUNCTION.format(number=number, lines=indented, counted=call.counted))
        calls.append(_CALL.format(number=number, bytes=network.expected[0].size))
    largest = max(network.expected[0].size for network, _ in group)
    text = _MAIN.format(
        header=header,
        scratch=_SCRATCH,
        no_room=_NO_ROOM,
        largest=largest,
        functions="\n".join(functions),
        calls="".join(calls).rstrip(),
    )
    return text, bytes(blob)


def _told(output: str, word: str) -> dict[int, int]:
    """By the layer's number, what lines that begin with `word` say of it."""
    lines = (line.split() for line in output.splitlines() if line.startswith(f"{word} "))
    return {int(number): int(value) for _, number, value in lines}


def _refusal(status: int) -> str:
    return f"wants more scratch than {_SCRATCH:,} bytes" if status == _NO_ROOM else f"returned {status}"
