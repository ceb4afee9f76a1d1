"""What tables of measurements have in common: entries by layer and kernel, each of one version of its kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from stages.kernels import registry
from stages.kernels.digest import kernel_digest

if TYPE_CHECKING:
    from stages.calibrate.cases import Case
    from stages.targets.spec import Target

WORK = "work"  # of a row: the layer's quantities, which are no measurement
_Entry = TypeVar("_Entry")


class Entries:
    """`layers` are rows by signature, each with an entry by variant: the kernel's name, and its parameters."""

    layers: dict[str, Any]

    def has(self, case: Case) -> bool:
        """Whether the case is measured."""
        return case.variant in self.layers.get(case.signature, {})

    def missing(self, cases: Iterable[Case]) -> list[Case]:
        """The cases without an entry."""
        return [case for case in cases if not self.has(case)]

    def entries(self) -> int:
        """Number of measurements."""
        return sum(len(row.keys() - {WORK}) for row in self.layers.values())


def stale_kernels(measured: Mapping[str, str], target: Target) -> tuple[str, ...]:
    """The kernels whose digest is another than when they were measured, or that the target has no more, sorted."""
    current = {name: kernel_digest(kernel) for name, kernel in registry.kernels_of(target).items()}
    return tuple(sorted(name for name, digest in measured.items() if current.get(name) != digest))


def without(layers: Mapping[str, Mapping[str, _Entry]], stale: Iterable[str]) -> dict[str, dict[str, _Entry]]:
    """The rows without entries of `stale` kernels; those with nothing left are none."""
    gone = frozenset(stale)
    rows = {
        signature: {name: entry for name, entry in row.items() if name.split(" ")[0] not in gone}
        for signature, row in layers.items()
    }
    return {signature: row for signature, row in rows.items() if row.keys() - {WORK}}
