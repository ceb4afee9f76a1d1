"""`doit bench suite=silicon --fit`: fit the open parameters of timing models to the rows marked fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import PipelineError
from pipeline.terminal.table import Table
from stages.backends.targets.load import family_files
from stages.backends.targets.timing import TimingModel, decoders
from stages.backends.timing.fit import fit, with_values, written
from stages.support.messages.stage_error import StageError

if TYPE_CHECKING:
    from pipeline.commands.bench.silicon import Row
    from pipeline.runs.workspace import Workspace
    from stages.backends.timing.fit import Row as Counted

_COLUMNS = ("timing model", "parameter", "before", "fitted", "tried", "source")


def fit_models(
    rows: Sequence[Row],
    elf_of: Callable[[Row], Path],
    workspace: Workspace,
    show: Callable[[float, str], None],
) -> tuple[list[Row], Table]:
    """Fit the models of the rows and write their files. Returns the rows with the new models, and what has changed.

    `elf_of` returns the linked program of a row. Raises PipelineError if no model has both open parameters and rows.
    """
    from stages.delivery.bench.silicon.run import fit_row

    counted: dict[str, list[Counted]] = {}
    to_fit = [row for row in rows if row.measurement.fit and _is_open(row)]
    for number, row in enumerate(to_fit):
        assert row.target is not None
        show(number / len(to_fit), row.name)
        try:
            counted.setdefault(row.target.timing, []).append(fit_row(elf_of(row), row.target, row.published))
        except StageError as error:
            raise PipelineError(f"{row.name}: {error.message}") from None
    if not counted:
        raise PipelineError("--fit: no row marked fit has a timing model with parameters to try")
    models = {row.target.timing: row.target.timing_model for row in to_fit if row.target is not None}
    fitted: dict[str, TimingModel] = {}
    cells: list[tuple[str, ...]] = []
    for name, of_model in counted.items():
        model = models[name]
        assert model is not None
        show(1, f"{name}: {len(of_model)} rows")
        values = fit(model, of_model)
        _write(model, values, workspace.project.installation)
        fitted[name] = TimingModel(**{**dict(with_values(model, values)), "name": name})
        for parameter, value in values.items():
            one = model.parameters[parameter]
            tried = ", ".join(f"{candidate:g}" for candidate in one.candidates)
            cells.append((name, parameter, f"{one.cycles[1]:g}", f"{value:g}", tried, one.source))
    return [_with_model(row, fitted) for row in rows], Table(_COLUMNS, tuple(cells), (True,) * len(cells))


def _is_open(row: Row) -> bool:
    model = None if row.target is None else row.target.timing_model
    return model is not None and any(parameter.candidates for parameter in model.parameters.values())


def _write(model: TimingModel, values: Mapping[str, float], installation: Path) -> None:
    family = decoders()[model.instructions]
    (path,) = (path for path in family_files(installation) if path.match(f"{family}/timing.yaml"))
    path.write_text(written(path.read_text(encoding="utf-8"), model.name, values), encoding="utf-8")


def _with_model(row: Row, fitted: Mapping[str, TimingModel]) -> Row:
    if row.target is None or row.target.timing not in fitted:
        return row
    return replace(row, target=row.target.model_copy(update={"timing_model": fitted[row.target.timing]}))
