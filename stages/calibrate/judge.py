"""How well kernels are chosen: what is chosen by a core's costs beside the best there is, all of it measured.

The best is what tensorize chooses once it knows what every kernel takes for every form and layout of the layer. What is
judged is what it chooses with `measure: close`: by costs, and by measurements of what these leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stages.base import StageError, no_progress
from stages.calibrate.drawn import described
from stages.calibrate.measure import measure
from stages.calibrate.settle import settle
from stages.calibrate.side_by_side import Network
from stages.calibrate.tuning import Tuning, compared, setting_for, wanted
from stages.layout.rules import LayoutConfig
from stages.tensorize import TensorizeConfig
from stages.tensorize.costs import CostTable

if TYPE_CHECKING:
    from stages.calibrate.cases import Case
    from stages.calibrate.side_work import Begin
    from stages.models.spec import OpModel
    from stages.targets.spec import Target

TOLERANCE = 0.05


@dataclass(frozen=True)
class Judged:
    """A layer: instructions of what is chosen and of the best, and how the best is computed otherwise.

    `by_costs` is what would be chosen if nothing was measured for it, `changes_by_costs` how the best is computed
    otherwise than that; `measured` how many calls were measured.
    """

    layer: str
    chosen: int
    best: int
    changes: tuple[str, ...]
    by_costs: int
    changes_by_costs: tuple[str, ...]
    measured: int

    @property
    def behind(self) -> float:
        """By how much the best is missed: 0.05 for five percent."""
        return self.chosen / self.best - 1 if self.best else 0.0

    @property
    def behind_by_costs(self) -> float:
        """The same if nothing was measured for the layer."""
        return self.by_costs / self.best - 1 if self.best else 0.0


def judge(
    specs: Sequence[OpModel],
    target: Target,
    costs: CostTable | None,
    *,
    progress: Callable[..., None] = no_progress,
    begin: Begin | None = None,
) -> list[Judged]:
    """All layers that the target can compute, the worst first; `begin` as of `measure`.

    Raises StageError for a kernel that is not exact.
    """
    config, known = TensorizeConfig(measure="close"), Tuning(Path(), target.core)
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
    for case, instructions in measure([*cases.values()], target, progress=progress, begin=begin):
        known.add(case, instructions)

    def measured(wanted: Sequence[Case]) -> Iterator[tuple[Case, int]]:
        """What is known of these; what has another form than any that was weighed is measured now."""
        missing = [case for case in wanted if not known.has(case)]
        for case, instructions in measure(missing, target, begin=begin):
            known.add(case, instructions)
        yield from ((case, known.layers[case.signature][case.variant]) for case in wanted)

    found = []
    for number, network in enumerate(networks):
        progress(f"judging {len(networks)} layers", number / len(networks))
        settled = settle(network.graph, setting, measured)
        by_costs, best, otherwise = compared(network.graph, target, config, costs, known)
        table = replace(costs or CostTable(), settled=settled)
        chosen, _, changes = compared(network.graph, target, config, table, known)
        measurements = sum(map(len, settled.values()))
        found.append(Judged(network.name, chosen, best, changes, by_costs, otherwise, measurements))
    return sorted(found, key=lambda one: (-one.behind, one.layer))
