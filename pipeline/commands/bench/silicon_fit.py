"""`doit bench suite=silicon --fit`: fit timing models' open parameters to rows marked fit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import PipelineError
from pipeline.project import Project
from pipeline.terminal.table import Table
from stages.backends.targets.load import family_files
from stages.backends.targets.spec import Target
from stages.backends.targets.timing import TimingModel, decoders
from stages.backends.timing.fit import CountedRun, fit, with_values, written
from stages.support.messages.stage_error import StageError

_COLUMNS = ("timing model", "parameter", "before", "fitted", "tried", "source")


@dataclass(frozen=True)
class FitProgram:
    """A program whose target's timing model is fitted; `elf` returns its linked file.

    It takes `published` cycles on the chip.
    """

    name: str
    target: Target
    published: float
    elf: Callable[[], Path]


def fit_models(
    programs: Sequence[FitProgram], project: Project, show: Callable[[float, str], None]
) -> tuple[dict[str, TimingModel], Table]:
    """Fit the timing models; return them by name, and a table of the parameters.

    Writes the figures into their files. In a project of a user it prints them.

    Raises PipelineError if no model has both open parameters and programs.
    """
    from stages.delivery.bench.silicon.run import fit_row

    models = {program.target.timing: program.target.timing_model for program in programs}
    opened = {name: model for name, model in models.items() if model is not None and _is_open(model)}
    rows: dict[str, list[CountedRun]] = {name: [] for name in opened}
    if not rows:
        hint = "mark rows of silicon.yaml with `fit: true`, and name checkouts of their programs with peer="
        raise PipelineError("--fit: no row marked fit has a program, and a model with parameters to try", hint=hint)
    for number, program in enumerate(programs):
        if program.target.timing in rows:
            show(number / len(programs), program.name)
            try:
                rows[program.target.timing].append(fit_row(program.elf(), program.target, program.published))
            except StageError as error:
                raise PipelineError(f"{program.name}: {error.message}") from None
    fitted: dict[str, TimingModel] = {}
    cells: list[tuple[str, ...]] = []
    for name, model in opened.items():
        show(1, f"{name}: {len(rows[name])} rows")
        values = fit(model, rows[name])
        if project.is_standalone:
            _write(model, values, project.installation)
        else:
            print(entry(name, values))
        fitted[name] = TimingModel(**{**dict(with_values(model, values)), "name": name})
        for parameter, value in values.items():
            stated = model.parameters[parameter]
            tried = ", ".join(f"{candidate:g}" for candidate in stated.candidates)
            cells.append((name, parameter, f"{stated.cycles[1]:g}", f"{value:g}", tried, stated.source))
    return fitted, Table(_COLUMNS, tuple(cells), (True,) * len(cells))


def _is_open(model: TimingModel) -> bool:
    return any(parameter.candidates for parameter in model.parameters.values())


def entry(name: str, values: Mapping[str, float]) -> str:
    """Return a model with the fitted figures, for `timings:` of a project's pipeline.yaml."""
    figures = ", ".join(f"{parameter}: {{cycles: {value:g}}}" for parameter, value in values.items())
    return f"timings:\n  {name}-fitted: {{like: {name}, parameters: {{{figures}}}}}"


def _write(model: TimingModel, values: Mapping[str, float], installation: Path) -> None:
    family = decoders()[model.instructions]
    (path,) = (path for path in family_files(installation) if path.match(f"{family}/timing.yaml"))
    path.write_text(written(path.read_text(encoding="utf-8"), model.name, values), encoding="utf-8")
