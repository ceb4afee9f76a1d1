"""Count a baseline library's functions with -O2 and -O3; keep the smaller count.

The target's compiler compiles the library, and the target's simulator counts many layers in one program.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stages.backends.simulators.program import run_program
from stages.backends.targets.runtime import runtime_for
from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import Source, compile_sources, link
from stages.base import StageError, no_progress
from stages.compile.symbols import Symbols
from stages.count.call import memory_of
from stages.delivery.bench.baselines import BaselineLibrary
from stages.delivery.bench.baselines.call import Call
from stages.delivery.bench.networks import Network
from stages.support.system.scratch import temporary_folder

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
static _Alignas(16) uint8_t output_bytes[{largest}];

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
    {dtype}_t *const output = ({dtype}_t *)output_bytes;
{lines}
    BENCH("{number}", {counted});
    return status;
}}
"""
_CALL = """\
    memset(output_bytes, 0, sizeof output_bytes);
    if ((status = layer{number}()) != 0)
        printf("REFUSED {number} %d\\n", status);
    board_write(file, output_bytes, {bytes});
"""


@dataclass(frozen=True)
class BaselineCount:
    """Instructions of a baseline for a network, and its deviation from LiteRT.

    `differing` of `outputs` values differ, by `largest` at most. `refused` is the reason if it computed nothing.
    """

    network: Network
    instructions: int
    outputs: int
    differing: int = 0
    largest: int = 0
    refused: str = ""


def count_baseline(
    baseline: BaselineLibrary,
    folder: Path,
    networks: Sequence[Network],
    target: Target,
    *,
    progress: Callable[..., None] = no_progress,
    report: Callable[[str], None] = lambda line: None,
) -> Iterator[BaselineCount]:
    """Yield the count of each network that this checkout supports.

    `report` gets a message for each unusable file.

    Raises StageError if no file compiles, or if linking fails.
    """
    supported = [(network, calls) for network in networks if (calls := baseline.calls(network))]
    best: dict[str, BaselineCount] = {}
    runtime = runtime_for(target)
    sources = baseline.files(folder)
    board = [Source(path) for path in (*runtime.sources, *runtime.console)]
    include = baseline.include_folders(folder)
    reported: set[str] = set()

    def report_once(line: str) -> None:
        if line not in reported:
            reported.add(line)
            report(line)

    for attempt, optimize in enumerate(OPTIMIZATIONS if supported else ()):
        with temporary_folder("peer") as build:

            def advance(message: str, fraction: float, attempt: int = attempt) -> None:
                progress(message, (attempt + fraction) / len(OPTIMIZATIONS))

            compiler = _Compiler(target, ("-std=gnu11", "-w", optimize), include)
            advance(f"compiling {len(sources)} files of the baseline, {optimize}", 0.0)
            library = _compiled(sources, baseline, compiler, build, report_once)
            symbols = _usable({path: Symbols.of(path) for path in library}, baseline.prefix)
            objects = [*symbols, *compiler.objects(board, build / "board")]
            called = _callable(supported, baseline, {name for result in symbols.values() for name in result.defined})
            if len(called) < len(networks):
                report_once(f"no function for {len(networks) - len(called)} of {len(networks)} layers")
            groups = list(_groups(called, memory_of(target).weights))
            for group_number, group in enumerate(groups):
                advance(f"counting {len(group)} layers, {optimize}", (group_number + 1) / (len(groups) + 1))
                header = Path(baseline.header).name
                for result in _run(group, header, compiler, objects, build / str(group_number)):
                    name = result.network.name
                    best[name] = _better(best.get(name, result), result)
    yield from best.values()


def _better(first: BaselineCount, second: BaselineCount) -> BaselineCount:
    """Return the smaller of two counts of a network; `second` if `first` computed nothing."""
    if first.refused:
        return second
    return second if not second.refused and second.instructions < first.instructions else first


@dataclass(frozen=True)
class _Compiler:
    """Compiler settings of the library and of the programs that call it."""

    target: Target
    flags: tuple[str, ...]
    include: Sequence[Path]

    def objects(self, sources: Sequence[Source], out: Path) -> list[Path]:
        """Compile the sources and return the object files."""
        runtime = runtime_for(self.target)
        return compile_sources(self.target, runtime, sources, out, flags=self.flags, include=self.include)


def _compiled(
    sources: Sequence[Path], baseline: BaselineLibrary, compiler: _Compiler, build: Path, report: Callable[[str], None]
) -> list[Path]:
    """Return the objects of the library's files.

    Files that do not compile are reported and skipped.
    """
    try:
        return compiler.objects([Source(path) for path in sources], build / "library")
    except StageError as error:
        objects, refused = _one_by_one(sources, compiler, build)
        if not objects:
            beside = " and ".join(baseline.beside)
            hint = f"searched for headers in {' and '.join(baseline.include)}, and next to the checkout in {beside}"
            raise StageError(f"no file of the baseline compiles: {error.message}", hint=hint) from error
    for line in refused:
        report(line)
    return objects


def _one_by_one(sources: Sequence[Path], compiler: _Compiler, build: Path) -> tuple[list[Path], list[str]]:
    """Compile each file by itself.

    Return the objects, and a message for each file that does not compile.
    """
    objects, refused = [], []
    for number, path in enumerate(sources):
        try:
            objects += compiler.objects([Source(path)], build / f"file{number}")
        except StageError as error:
            refused.append(f"{path.name} does not compile and is skipped: {_last_line(error)}")
    return objects, refused


def _usable(symbols: dict[Path, Symbols], prefix: str) -> dict[Path, Symbols]:
    """Drop objects that need library functions which no other object defines."""
    while True:
        defined = {name for table in symbols.values() for name in table.defined}
        usable = {
            path: table
            for path, table in symbols.items()
            if all(name in defined for name in table.needed if name.startswith(prefix))
        }
        if len(usable) == len(symbols):
            return usable
        symbols = usable


def _callable(
    supported: Sequence[tuple[Network, Sequence[Call]]], baseline: BaselineLibrary, defined: set[str]
) -> list[tuple[Network, Call]]:
    """Return each network's first call whose functions are all defined.

    Drops networks without such a call.
    """
    selected = (
        (network, next((call for call in calls if call.functions(baseline.prefix) <= defined), None))
        for network, calls in supported
    )
    return [(network, call) for network, call in selected if call is not None]


def _groups(called: Sequence[tuple[Network, Call]], rom_bytes: float) -> Iterator[list[tuple[Network, Call]]]:
    """Yield the calls in order, in groups whose data fit half of the target's ROM.

    A group has at least one call.
    """
    group: list[tuple[Network, Call]] = []
    size = 0
    for network, call in called:
        call_bytes = sum(array.nbytes + _ALIGNMENT for array in call.data.values())
        if group and size + call_bytes > min(rom_bytes / 2, 2**21):
            yield group
            group, size = [], 0
        group.append((network, call))
        size += call_bytes
    if group:
        yield group


def _run(
    group: Sequence[tuple[Network, Call]], header: str, compiler: _Compiler, objects: Sequence[Path], folder: Path
) -> Iterator[BaselineCount]:
    """Count a group in one program.

    If the program fails, count each half, to isolate the layer that fails.
    """
    folder.mkdir()
    main, blob = program(group, header)
    (folder / "data.bin").write_bytes(blob)
    (folder / "main.c").write_text(main)
    (folder / "data.S").write_text(
        f'.section .rodata\n.global data\n.balign {_ALIGNMENT}\ndata:\n.incbin "{folder / "data.bin"}"\n'
    )
    main_objects = compiler.objects([Source(folder / "main.c"), Source(folder / "data.S")], folder / "obj")
    elf = folder / "peer.elf"
    link(compiler.target, runtime_for(compiler.target), [*main_objects, *objects], elf)
    try:
        finished = run_program(elf, compiler.target, folder, timeout=600)
        failure = f"ended with status {finished.exit_code}" if finished.exit_code else ""
    except StageError as error:
        failure = _last_line(error)
    if not failure:
        yield from _counts(group, finished.output, (folder / "outputs.bin").read_bytes())
    elif len(group) == 1:
        yield BaselineCount(group[0][0], 0, group[0][0].expected[0].size, refused=f"does not finish: {failure}")
    else:
        middle = len(group) // 2
        for name, half in (("a", group[:middle]), ("b", group[middle:])):
            yield from _run(half, header, compiler, objects, folder / name)


def _counts(group: Sequence[tuple[Network, Call]], output: str, outputs: bytes) -> Iterator[BaselineCount]:
    counts, statuses = (_numbers(output, keyword) for keyword in ("COUNT", "REFUSED"))
    position = 0
    for number, (network, _) in enumerate(group):
        (expected,) = network.expected
        actual = np.frombuffer(outputs, expected.dtype, expected.size, position).astype(int)
        position += expected.nbytes
        distance = np.abs(actual - expected.reshape(-1).astype(int))
        if number in statuses:
            yield BaselineCount(network, 0, expected.size, refused=_refusal(statuses[number]))
            continue
        yield BaselineCount(network, counts[number], expected.size, int((distance > 0).sum()), int(distance.max()))


def program(group: Sequence[tuple[Network, Call]], header: str) -> tuple[str, bytes]:
    """Return the C program that runs a group, and the blob with its constants and inputs."""
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
        output = network.expected[0]
        functions.append(_FUNCTION.format(number=number, dtype=output.dtype, lines=indented, counted=call.counted))
        calls.append(_CALL.format(number=number, bytes=output.nbytes))
    largest = max(network.expected[0].nbytes for network, _ in group)
    text = _MAIN.format(
        header=header,
        scratch=_SCRATCH,
        no_room=_NO_ROOM,
        largest=largest,
        functions="\n".join(functions),
        calls="".join(calls).rstrip(),
    )
    return text, bytes(blob)


def _numbers(output: str, keyword: str) -> dict[int, int]:
    """Parse lines `KEYWORD layer value` into values by layer number."""
    lines = (line.split() for line in output.splitlines() if line.startswith(f"{keyword} "))
    return {int(number): int(value) for _, number, value in lines}


def _refusal(status: int) -> str:
    return f"needs more scratch than {_SCRATCH:,} bytes" if status == _NO_ROOM else f"returned {status}"


def _last_line(error: StageError) -> str:
    return error.message.strip().splitlines()[-1].strip()
