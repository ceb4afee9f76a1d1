"""Counts a peer's functions: its library compiled with -O2 and with -O3, many layers in one program, the smaller taken.

Its sources are compiled by the target's compiler and counted by the target's simulator, as everything else is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stages.backends.simulators.program import run_program
from stages.backends.targets.runtime import runtime_for
from stages.backends.toolchain.compiler import Source, compile_sources, link
from stages.base import StageError, no_progress
from stages.compile.defined import Symbols
from stages.count.call import memory_of
from stages.support.system.scratch import temporary_folder

if TYPE_CHECKING:
    from stages.backends.targets.spec import Target
    from stages.delivery.bench.peers import Peer
    from stages.delivery.bench.peers.call import Call
    from stages.delivery.bench.side_by_side import Network

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
    tell: Callable[[str], None] = lambda line: None,
) -> Iterator[PeerCount]:
    """Each network that this checkout of the peer has a function for; what of it is of no use is told.

    Raises StageError where none of it compiles, and where it does not link.
    """
    ways = [(network, calls) for network in networks if (calls := peer.calls(network))]
    found: dict[str, PeerCount] = {}
    runtime = runtime_for(target)
    sources = peer.files(folder)
    board = [Source(path) for path in (*runtime.sources, *runtime.console)]
    include = peer.include_folders(folder)
    told: set[str] = set()

    def tell_once(line: str) -> None:
        if line not in told:
            told.add(line)
            tell(line)

    for part, optimize in enumerate(OPTIMIZATIONS if ways else ()):
        with temporary_folder("peer") as build:

            def at(message: str, fraction: float, part: int = part) -> None:
                progress(message, (part + fraction) / len(OPTIMIZATIONS))

            compiler = _Compiler(target, ("-std=gnu11", "-w", optimize), include)
            at(f"compiling {len(sources)} files of the peer, {optimize}", 0.0)
            library = _compiled(sources, peer, compiler, build, tell_once)
            symbols = _usable({path: Symbols.of(path) for path in library}, peer.prefix)
            objects = [*symbols, *compiler.objects(board, build / "board")]
            called = _callable(ways, peer, {name for one in symbols.values() for name in one.defined})
            if len(called) < len(networks):
                tell_once(f"it has no function for {len(networks) - len(called)} of {len(networks)} layers")
            groups = list(_groups(called, memory_of(target).weights))
            for number, group in enumerate(groups):
                at(f"counting {len(group)} layers, {optimize}", (number + 1) / (len(groups) + 1))
                for one in _run(group, Path(peer.header).name, compiler, objects, build / str(number)):
                    before = found.get(one.network.name)
                    if before is None or before.refused or (not one.refused and one.instructions < before.instructions):
                        found[one.network.name] = one
    yield from found.values()


@dataclass(frozen=True)
class _Compiler:
    """How the library and the programs around it are compiled."""

    target: Target
    flags: tuple[str, ...]
    include: Sequence[Path]

    def objects(self, sources: Sequence[Source], out: Path) -> list[Path]:
        runtime = runtime_for(self.target)
        return compile_sources(self.target, runtime, sources, out, flags=self.flags, include=self.include)


def _compiled(
    sources: Sequence[Path], peer: Peer, compiler: _Compiler, build: Path, tell: Callable[[str], None]
) -> list[Path]:
    """Objects of the library's files, without those that this compiler does not take."""
    try:
        return compiler.objects([Source(path) for path in sources], build / "library")
    except StageError as error:
        made, refused = _one_by_one(sources, compiler, build)
        if not made:
            beside = " and ".join(peer.beside)
            hint = f"headers are searched in {' and '.join(peer.include)}, and beside the checkout in {beside}"
            raise StageError(f"no file of the peer compiles: {error.message}", hint=hint) from error
    for line in refused:
        tell(line)
    return made


def _one_by_one(sources: Sequence[Path], compiler: _Compiler, build: Path) -> tuple[list[Path], list[str]]:
    """The objects that there are, and a line for each file that there is none of."""
    made, refused = [], []
    for number, path in enumerate(sources):
        try:
            made += compiler.objects([Source(path)], build / f"file{number}")
        except StageError as error:
            refused.append(f"{path.name} does not compile and is left out: {_last_line(error)}")
    return made, refused


def _usable(symbols: dict[Path, Symbols], prefix: str) -> dict[Path, Symbols]:
    """Without the objects that need functions of the library which none of the others defines."""
    while True:
        defined = {name for one in symbols.values() for name in one.defined}
        left = {
            path: one
            for path, one in symbols.items()
            if all(name in defined for name in one.needed if name.startswith(prefix))
        }
        if len(left) == len(symbols):
            return left
        symbols = left


def _callable(
    ways: Sequence[tuple[Network, Sequence[Call]]], peer: Peer, defined: set[str]
) -> list[tuple[Network, Call]]:
    """Of each network the first of its calls whose functions are defined; networks without are left out."""
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
    group: Sequence[tuple[Network, Call]], header: str, compiler: _Compiler, objects: Sequence[Path], folder: Path
) -> Iterator[PeerCount]:
    """Counts of a group in one program; where that does not come to its end, of each half: one layer is why."""
    folder.mkdir()
    main, blob = program(group, header)
    (folder / "data.bin").write_bytes(blob)
    (folder / "main.c").write_text(main)
    (folder / "data.S").write_text(
        f'.section .rodata\n.global data\n.balign {_ALIGNMENT}\ndata:\n.incbin "{folder / "data.bin"}"\n'
    )
    made = compiler.objects([Source(folder / "main.c"), Source(folder / "data.S")], folder / "obj")
    elf = folder / "peer.elf"
    link(compiler.target, runtime_for(compiler.target), [*made, *objects], elf)
    try:
        finished = run_program(elf, compiler.target, folder, timeout=600)
        failure = f"ended with status {finished.exit_code}" if finished.exit_code else ""
    except StageError as error:
        failure = _last_line(error)
    if not failure:
        yield from _counts(group, finished.output, (folder / "outputs.bin").read_bytes())
    elif len(group) == 1:
        yield PeerCount(group[0][0], 0, group[0][0].expected[0].size, refused=f"does not come to its end: {failure}")
    else:
        middle = len(group) // 2
        for name, half in (("a", group[:middle]), ("b", group[middle:])):
            yield from _run(half, header, compiler, objects, folder / name)


def _counts(group: Sequence[tuple[Network, Call]], output: str, outputs: bytes) -> Iterator[PeerCount]:
    counts, statuses = (_told(output, word) for word in ("COUNT", "REFUSED"))
    position = 0
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


def _last_line(error: StageError) -> str:
    return error.message.strip().splitlines()[-1].strip()
