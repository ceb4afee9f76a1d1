"""How well kernels are chosen: what is chosen by a core's costs beside the best there is, all of it measured.

The best is what tensorize chooses once it knows what every kernel takes for every form and layout of the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages.base import StageError, no_progress
from stages.calibrate.drawn import described
from stages.calibrate.measure import measure
from stages.calibrate.side_by_side import Network
from stages.calibrate.tuning import Tuning, compared, setting_for, wanted
from stages.layout.rules import LayoutConfig
from stages.tensorize import TensorizeConfig

if TYPE_CHECKING:
    from stages.calibrate.cases import Case
    from stages.models.spec import OpModel
    from stages.targets.spec import Target
    from stages.tensorize.costs import CostTable

TOLERANCE = 0.05


@dataclass(frozen=True)
class Judged:
    """A layer: instructions of what is chosen and of the best, and how the best is computed otherwise."""

    layer: str
    chosen: int
    best: int
    changes: tuple[str, ...]

    @property
    def behind(self) -> float:
        """By how much the best is missed: 0.05 for five percent."""
        return self.chosen / self.best - 1 if self.best else 0.0


def judge(
    specs: Sequence[OpModel],
    target: Target,
    costs: CostTable | None,
    *,
    progress: Callable[..., None] = no_progress,
) -> list[Judged]:
    """All layers that the target can compute, the worst first. Raises StageError for a kernel that is not exact."""
    config, known = TensorizeConfig(), Tuning(Path(), target.core)
    networks: list[Network] = []
    cases: dict[tuple[str, str], Case] = {}
    setting = setting_for(target, config, costs, None)
    for number, spec in enumerate(specs):
        progress(f"preparing {len(specs)} layers", number / len(specs))
        try:
            network = Network.of(described(spec), spec, LayoutConfig(), config)
            for case in wanted(network.graph, setting):
                cases.setdefault((case.signature, case.variant), case)
        except StageError:  # a window that does not fit its image
            continue
        networks.append(network)
    for case, instructions in measure([*cases.values()], target, progress=progress):
        known.add(case, instructions)
    found = []
    for network in networks:
        before, now, changes = compared(network.graph, target, config, costs, known)
        found.append(Judged(network.name, before, now, changes))
    return sorted(found, key=lambda one: (-one.behind, one.layer))
