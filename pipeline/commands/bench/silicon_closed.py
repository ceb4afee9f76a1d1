"""Published figures of closed code beside Firmline's stored estimates.

Both are for the same network on the same chip.
"""

import json
from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Any

from pipeline.commands.fit.request import request_of
from pipeline.errors import PipelineError
from pipeline.plugins.registry import registry_of
from pipeline.recipes.silicon import load_silicon
from pipeline.recipes.targets import load_targets
from pipeline.runs.session import Session
from pipeline.runs.workspace import Workspace
from pipeline.terminal.table import Table
from stages.backends.targets.spec import Target
from stages.backends.timing.silicon import CLOSED
from stages.report.estimate import amount, energy_text, estimated_cycles, short

#: Networks of the zoo, by their names in MLPerf Tiny.
NETWORKS = {
    "kws": "ds_cnn",
    "vww": "mobilenet_v1_0.25_96_vww",
    "ic": "resnet_8",
    "ad": "autoencoder",
    "ic02": "resnet_8_large",
    "sww": "ds_cnn_1d",
}
_COLUMNS = ("chip", "closed tool", "network", "ms", "µJ", "Firmline, est. ms", "est. µJ")
_LAST = "simulate"


def closed_table(chips: Collection[str], workspace: Workspace) -> Table:
    """Return a line per row of closed code on these chips.

    Shows stored estimates; computes none.

    Tools differ in what they compute, so the table has no ratio.
    """
    silicon, targets = load_silicon(workspace.project), load_targets(workspace.project)
    cells = []
    estimates: dict[tuple[str, str], Mapping[str, Any] | None] = {}
    for row in silicon.measurements:
        if row.code != CLOSED or row.chip not in chips:
            continue
        chip = silicon.chips[row.chip]
        target = targets.get(chip.board or row.chip)
        ms = short(1000 * silicon.cycles(row) / (row.clock or chip.clock)) if row.has_time else ""
        energy = short(row.energy_uj) if row.energy_uj else ""
        key = (row.chip, row.run)
        if target is not None and key not in estimates:
            estimates[key] = _stored(row.run, target, workspace)
        estimate = estimates.get(key)
        ours = ("no board" if target is None else "not run", "")
        if estimate is not None:
            ours = (amount(estimate, "milliseconds"), energy_text(estimate).removesuffix(" µJ"))
        cells.append((row.chip, row.version, row.run, ms, energy, *ours))
    return Table(_COLUMNS, tuple(cells), (True,) * len(cells))


def _stored(network: str, target: Target, workspace: Workspace) -> Mapping[str, Any] | None:
    """Return the estimate of `doit fit model=zoo:… BOARD`, None if it has not run."""
    project = workspace.project
    if network not in NETWORKS:
        return None
    try:
        request = request_of([target.name], {"model": f"zoo:{NETWORKS[network]}"}, project, registry_of(project))
        plan = workspace.planner.plan(request.load(target, project, workspace.registry), _LAST)
    except PipelineError:  # a tool is missing, so that nothing is stored
        return None
    with closing(Session(workspace, plan, None, _LAST, record=False)) as session:
        if not all(map(session.is_done, plan)):
            return None
        counts = json.loads((session.folders[_LAST] / "counts.json").read_text())
    estimate = estimated_cycles(counts, target.model_dump(mode="json"))
    return estimate if estimate is not None and estimate["most_milliseconds"] is not None else None
