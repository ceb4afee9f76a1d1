"""The content of suite.yaml: rows, published figures of baselines, ratios."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from pipeline.documents.document import load_document
from stages.support.messages.wording import did_you_mean
from stages.support.options.names import Name
from stages.support.options.strict_model import StrictModel

SUITE = Path(__file__).with_name("suite.yaml")

Names = Annotated[tuple[str, ...], Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]


class PublishedBaseline(StrictModel):
    """A published figure of another tool for the same network, shown beside a row.

    Exactly one of `value` (in `unit`) and `per_mac` (`unit` per multiply-accumulate).
    """

    name: str
    targets: Names
    value: Count | None = None
    per_mac: Annotated[float, Field(gt=0)] | None = None
    unit: Literal["instructions", "cycles"] = "instructions"
    source: str = Field(description="Who measured it, and on what.")

    @model_validator(mode="after")
    def _one_figure(self) -> PublishedBaseline:
        if (self.value is None) == (self.per_mac is None):
            raise ValueError("needs either value or per_mac")
        return self

    def units(self, macs: int) -> float:
        """Return the figure for a network with this many multiply-accumulates."""
        return self.value if self.value is not None else (self.per_mac or 0.0) * macs


class Row(StrictModel):
    """A network, measured on each target with `recipe`.

    model    replaces the recipe's model
    file     replaces it by a file of the models folder; the row is skipped if the file is missing
    stages   override the recipe's stage options
    at_most  limits of instructions (of cycles, with an accelerator) by target, for `doit bench --check`
    note     shown instead of figures of other tools where there are none
    """

    name: Name
    recipe: str
    targets: Names
    model: dict[str, Any] | None = None
    file: str | None = None
    stages: dict[str, Any] = Field(default_factory=dict)
    peers: tuple[PublishedBaseline, ...] = ()
    at_most: dict[str, Count] = Field(default_factory=dict)
    note: str = ""


class RowOn(StrictModel):
    """A row on a target."""

    row: str
    target: str


class Ratio(StrictModel):
    """Instructions of `numerator` divided by those of `denominator`; `sides` are their titles.

    Ratios with the same sides form one table. `doit bench --check` fails for a ratio below `at_least`.
    """

    name: str
    sides: tuple[str, str]
    numerator: RowOn
    denominator: RowOn
    at_least: Annotated[float, Field(gt=0)] | None = None


class Layers(StrictModel):
    """Measurements of `suite=layers`: matrix recipes of one-operator models, and targets.

    no_slower  target -> a target with narrower registers; no layer may be slower on the first than on the second
    """

    recipes: Names
    targets: Names
    no_slower: dict[str, str] = Field(default_factory=dict)


class ModelFiles(StrictModel):
    """Options for the files of `model=`."""

    recipe: str
    targets: Names


class Times(StrictModel):
    """Runs of `--times`: a recipe, and a `set=` that changes a parameter of tensorize."""

    recipe: str
    changed: str


class Suite(StrictModel):
    """The content of suite.yaml."""

    schema_version: Literal[1] = Field(alias="schema")
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]
    ratios: tuple[Ratio, ...] = ()
    shown: tuple[RowOn, ...] = ()
    models: ModelFiles
    layers: Layers
    times: Times

    def shows(self, id_: tuple[str, str]) -> bool:
        """Return whether README.md shows the row on the target."""
        return any((shown_row.row, shown_row.target) == id_ for shown_row in self.shown)


def load_suite(path: Path = SUITE) -> Suite:
    """Read a suite. Raises RecipeError with the wrong line."""
    document = load_document(path, path.name)
    try:
        suite = Suite.model_validate(document.data)
    except ValidationError as error:
        # A misspelled key also makes a missing one: report the misspelled key.
        detail = max(error.errors(include_url=False), key=lambda d: (len(d["loc"]), d["type"] == "extra_forbidden"))
        place, unknown = detail["loc"], detail["type"] == "extra_forbidden"
        where = ".".join(map(str, place))
        message = f"unknown key '{place[-1]}'" if unknown else f"{where}: {detail['msg'].removeprefix('Input ')}"
        raise document.error(message, place, key=unknown) from None

    def check(wrong: bool, message: str, *place: str | int) -> None:
        if wrong:
            raise document.error(message, place)

    rows: dict[str, Row] = {}
    for index, row in enumerate(suite.rows):
        check(row.name in rows, f"row '{row.name}' exists twice", "rows", index, "name")
        check(bool(row.model and row.file), f"row '{row.name}' has a model and a file", "rows", index, "file")
        for number, peer in enumerate(row.peers):
            for target in peer.targets:
                message = f"row '{row.name}' is not measured on {target}"
                check(target not in row.targets, message, "rows", index, "peers", number, "targets")
        for target in row.at_most:
            message = f"row '{row.name}' is not measured on {target}"
            check(target not in row.targets, message, "rows", index, "at_most", target)
        rows[row.name] = row
    for index, shown_row in enumerate(suite.shown):
        known = shown_row.row in rows and shown_row.target in rows[shown_row.row].targets
        check(not known, f"row '{shown_row.row}' is not measured on {shown_row.target}", "shown", index)
    for index, ratio in enumerate(suite.ratios):
        for key, side in (("numerator", ratio.numerator), ("denominator", ratio.denominator)):
            guess = did_you_mean(side.row, rows)
            check(side.row not in rows, f"unknown row '{side.row}'{guess}", "ratios", index, key, "row")
            message = f"row '{side.row}' is not measured on {side.target}"
            check(side.target not in rows[side.row].targets, message, "ratios", index, key, "target")
    return suite


def published_baseline(suite: Suite, side: RowOn) -> PublishedBaseline | None:
    """Return the first published baseline in instructions for a row on a target, or None."""
    row = next(row for row in suite.rows if row.name == side.row)
    return next((peer for peer in row.peers if side.target in peer.targets and peer.unit == "instructions"), None)
