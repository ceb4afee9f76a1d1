"""The result of one board, and the order of the results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

FITS, TOO_LARGE, REFUSED, NOT_MEASURED, CRASHED = "fits", "does not fit", "refused", "not measured", "crashed"
_ORDER = (FITS, TOO_LARGE, REFUSED, NOT_MEASURED, CRASHED)


@dataclass(frozen=True)
class Row:
    """The result of a board. Figures are None if they are unknown.

    verdict       FITS, TOO_LARGE, REFUSED (a stage cannot build the network for this board), NOT_MEASURED (a tool is
                  missing), or CRASHED (a fault of a stage)
    *_bytes       RAM and ROM as `doit run` reports them; `available` is all memory of the board for each. RAM has the
                  measured stack. For a board that does not fit, they are the linker's sizes, with the reserved stack
    missing_*     bytes above the capacity, 0 for a board that fits
    regions       as in sizes.json, with the reserved stack and the lengths of the board
    estimated_*   of one inference. `least` and `most` bound the time in ms and the energy in µJ; `estimated_ms` and
                  `estimated_uj` are None if the board's wait states are not known. Energy needs the board's power
    timing        source of the cycles: a timing model, or an accelerator; '' without cycles
    accuracy      of the timing model on silicon (stages/backends/timing/accuracy.py), None if it was not compared
    instructions  of one inference: counted, or (without a simulation) expected for its layers
    expected_instructions  of its layers, by tensorize's costs
    arena_bytes   the arena
    arena_limit   the `memory.arena_limit` without which the network does not fit
    extra         with `arena_limit`: expected additional instructions, as a share
    reason        the message of an error or of a missing simulation, else ''
    """

    board: str
    core: str
    title: str
    verdict: str
    ram_bytes: int | None = None
    ram_available_bytes: int | None = None
    rom_bytes: int | None = None
    rom_available_bytes: int | None = None
    missing_ram_bytes: int | None = None
    missing_rom_bytes: int | None = None
    regions: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    instructions: int | None = None
    estimated_cycles: int | None = None
    clock_hz: int | None = None
    estimated_ms: float | None = None
    least_ms: float | None = None
    most_ms: float | None = None
    estimated_uj: float | None = None
    least_uj: float | None = None
    most_uj: float | None = None
    timing: str = ""
    accuracy: Mapping[str, Any] | None = None
    expected_instructions: int | None = None
    arena_bytes: int | None = None
    arena_limit: int | None = None
    extra: float | None = None
    reason: str = ""

    @property
    def missing(self) -> int:
        """Missing bytes of RAM and ROM."""
        return (self.missing_ram_bytes or 0) + (self.missing_rom_bytes or 0)

    @property
    def fullest(self) -> float:
        """The used share of the fullest memory."""
        return max((need / has for need, has, _ in needs(self.regions)), default=0.0)


def needs(regions: Iterable[Mapping[str, Any]]) -> list[tuple[int, int, bool]]:
    """Return needed bytes, available bytes and `written` of each memory.

    `regions` are from sizes.json; regions that are the same memory count together.
    """
    regions = list(regions)
    return [
        (
            sum(other["used"] for other in regions if region["name"] in (other["name"], other["same_as"])),
            region["length"],
            region["written"],
        )
        for region in regions
        if not region["same_as"]
    ]


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Return the rows in the order in which a board is chosen.

    1. Boards that fit: the fastest first, a range by its longest time; then those without an estimated time, the one
       with the most headroom first.
    2. Boards that do not fit: the fewest missing bytes first.
    3. Other boards, by name.
    """

    def key(row: Row) -> tuple[Any, ...]:
        longest = row.estimated_ms or row.most_ms
        time = (longest is None, longest or 0.0, row.fullest) if row.verdict == FITS else ()
        return (_ORDER.index(row.verdict), time, row.missing or float("inf"), row.board)

    return sorted(rows, key=key)


def as_record(row: Row) -> dict[str, Any]:
    """Return the row as JSON, with units in the names."""
    regions = [
        {
            "name": region["name"],
            "written": region["written"],
            "used_bytes": region["used"],
            "length_bytes": region["length"],
            "same_as": region["same_as"],
        }
        for region in row.regions
    ]
    return {**asdict(row), "regions": regions}
