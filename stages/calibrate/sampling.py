"""What is kept of a kernel whose code changed and whose instructions, it seems, did not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.calibrate.cases import Case
    from stages.calibrate.table import Table

EVERY = 10
# What counts move by with the other layers of a firmware, whose addresses take more or fewer instructions.
_FEW, _SHARE = 4, 0.001


@dataclass
class Sample:
    """Of each stale kernel the cases that were measured before, and of these one in ten, from the first on."""

    _cases: dict[str, list[Case]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, missing: Iterable[Case]) -> Sample:
        made = cls()
        for case in missing:
            if case.kernel.name in table.stale and table.instructions_of(case) is not None:
                made._cases.setdefault(case.kernel.name, []).append(case)
        return made

    @property
    def cases(self) -> list[Case]:
        """What to measure."""
        return [case for group in self._cases.values() for case in group[::EVERY]]

    def keep(self, table: Table, measured: Iterable[tuple[Case, int]]) -> None:
        """Enters what was measured, and of kernels that took what they took before all that they took before."""
        changed = set()
        for case, instructions in measured:
            table.add(case, instructions)
            before = table.instructions_of(case)
            if before is None or abs(instructions - before) > max(_FEW, _SHARE * before):
                changed.add(case.kernel.name)
        for name in self._cases.keys() - changed:
            for case in self._cases[name]:
                before = table.instructions_of(case)
                if before is not None:
                    table.add(case, before)
