"""The useful tiling candidates of a layer, with their cycles."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stages.backends.accelerators.tiles import Tile
from stages.ir.graph import LayerView
from stages.lower.offload.interleave import interleave
from stages.lower.offload.machine import Machine, aligned
from stages.lower.offload.program import Transfer
from stages.lower.offload.runs import runs
from stages.lower.offload.schedule import program
from stages.lower.offload.tile_costs import TileCosts
from stages.lower.offload.tiling import TilingCandidate, tiling_candidates, with_more_constant_buffers
from stages.lower.offload.timeline import alone
from stages.lower.offload.windows import gather

Residence = tuple[bool, ...]
"""Whether each input lies in L1, and whether the output does."""
_SIMULATED = 8  # candidates of each residence, from the fastest to the smallest by an estimate


@dataclass(frozen=True)
class Option:
    """A tiling candidate and its cycles; no other option is both smaller and faster.

    With `ahead` constants are transferred before the layer, which costs nothing here.
    """

    candidate: TilingCandidate
    cycles: int
    ahead: bool

    @property
    def bytes(self) -> int:
        """Bytes of L1 while the layer runs."""
        return self.candidate.bytes

    @property
    def ahead_bytes(self) -> int:
        """Bytes of L1 while the layer before it runs."""
        return self.candidate.ahead_bytes if self.ahead else 0


def options(view: LayerView, machine: Machine) -> Mapping[Residence, tuple[Option, ...]]:
    """Return the options by residence, the fastest first. Empty if no tile fits."""
    by_residence: dict[Residence, list[TilingCandidate]] = {}
    tiles = TileCosts(view, machine.accelerator)
    for candidate in tiling_candidates(view, machine.accelerator, machine.bytes, tiles):
        by_residence.setdefault((*candidate.resident_inputs, candidate.resident_output), []).append(candidate)
    results = {}
    for residence, candidates in by_residence.items():
        capacity = machine.bytes - _resident_bytes(view, residence)
        able = [candidate for candidate in candidates if candidate.bytes <= capacity]
        if able:
            results[residence] = _options(view, able, machine, capacity, tiles)
    return results


def smallest(view: LayerView, machine: Machine) -> int:
    """Return the bytes of L1 that the smallest tile needs, with single buffers."""
    candidates = tiling_candidates(view, machine.accelerator, 1 << 62, TileCosts(view, machine.accelerator))
    not_resident = [
        candidate for candidate in candidates if not any((*candidate.resident_inputs, candidate.resident_output))
    ]
    return min(sum(aligned(stream.bytes) for stream in candidate.streams) for candidate in not_resident)


def _more_constants(candidate: TilingCandidate, capacity: int, tiles: TileCosts) -> list[TilingCandidate]:
    """Return the candidate with more constant buffers, if the core reads them after the engine."""
    if not any(tiles.core(tile).after for tile in candidate.tiles):
        return []
    return [variant for variant in with_more_constant_buffers(candidate) if variant.bytes <= capacity]


def _options(
    view: LayerView, able: Sequence[TilingCandidate], machine: Machine, capacity: int, tiles: TileCosts
) -> tuple[Option, ...]:
    estimated = sorted(
        ((_estimate(view, candidate, machine, tiles), candidate.bytes, n) for n, candidate in enumerate(able))
    )
    best = _best(estimated)
    count = min(len(best), _SIMULATED)
    spread = {position * (len(best) - 1) // max(count - 1, 1) for position in range(count)}
    chosen = [able[best[position][2]] for position in sorted(spread)]
    if machine.dma is not None:
        chosen += [variant for candidate in chosen for variant in _more_constants(candidate, capacity, tiles)]
    results = []
    for candidate in chosen:
        results.append(
            Option(candidate, alone(program(view, candidate, machine, sketch=tiles), machine).cycles, ahead=False)
        )
        if machine.dma is not None and candidate.ahead_bytes:
            early = program(view, candidate, machine, during=-1, sketch=tiles)
            results.append(Option(candidate, alone(early, machine, before=True).cycles, ahead=True))
    return tuple(sorted(results, key=lambda option: (option.cycles, option.bytes, option.ahead_bytes)))


def _best(estimated: Iterable[tuple[float, int, int]]) -> list[tuple[float, int, int]]:
    """Return entries, sorted by cost, that need fewer bytes than all cheaper ones."""
    frontier: list[tuple[float, int, int]] = []
    for entry in estimated:
        if not frontier or entry[1] < frontier[-1][1]:
            frontier.append(entry)
    return frontier


def _estimate(view: LayerView, candidate: TilingCandidate, machine: Machine, tiles: TileCosts) -> float:
    """Return cycles: the busiest unit, plus the first content of each stream and the last tile."""
    core = [tiles.core(tile) for tile in candidate.tiles]
    works = sum(item.before + item.start + item.after + 60 for item in core)
    engine = sum(tiles.cycles(tile) for tile in candidate.tiles)
    dma, first = 0.0, 0.0
    for stream in candidate.streams:
        if stream.name.startswith("scratch"):
            continue
        gathered = _gathered(view, candidate.tiles[0], machine) if stream.name == "input:0" else ()
        if gathered:
            cycles = float(sum(item.times * machine.transfer_cost(item) for item in gathered))
            dma += cycles * stream.contents
            first += cycles
            continue
        per_run = machine.dma.run_cycles if machine.dma else 0
        fixed = machine.dma.fixed_cycles if machine.dma else 0
        rate = machine.dma.bytes_per_cycle if machine.dma else 4
        count = _run_count(view, candidate, stream.name)
        cycles = fixed + per_run * count + stream.bytes / rate
        dma += cycles * stream.contents
        first += cycles
    if machine.dma is None or (len(candidate.tiles) > 1 and all(stream.slots == 1 for stream in candidate.streams)):
        return engine + dma + works
    return max(engine, dma, works) + first + core[0].before + core[-1].after


def _gathered(view: LayerView, tile: Tile, machine: Machine) -> tuple[Transfer, ...]:
    """Return the transfers that gather or interleave a tile's input, if the layer does."""
    accelerator = machine.accelerator
    if accelerator.reads_windows(view):
        return gather(view, tile, "", machine.transfer_cost)
    pieces = accelerator.reads_pieces(view)
    return tuple(interleave(view, tile, "", pieces)) if pieces else ()


def _run_count(view: LayerView, candidate: TilingCandidate, stream: str) -> int:
    return runs(view.outputs[0], candidate.tiles[0]).count if stream == "output:0" else 1


def _resident_bytes(view: LayerView, residence: Residence) -> int:
    *inputs, output = residence
    names = {tensor.name: tensor.bytes for tensor, resident in zip(view.inputs, inputs, strict=True) if resident}
    names |= {view.outputs[0].name: view.outputs[0].bytes} if output else {}
    return sum(aligned(count) for count in names.values())
