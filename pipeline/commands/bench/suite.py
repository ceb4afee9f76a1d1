"""What is measured, as declared in suite.yaml: rows, figures of peers, and which rows a ratio is taken of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from pipeline.documents.document import load_document
from stages.messages.wording import did_you_mean
from stages.options.names import Name
from stages.options.strict_model import StrictModel

SUITE = Path(__file__).with_name("suite.yaml")

Names = Annotated[tuple[str, ...], Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]


class Peer(StrictModel):
    """What somebody else needs for one inference of the same network; shown beside the row on each of `targets`.

    Exactly one of `value`, in units, and `per_mac`, in units per multiply-accumulate.
    """

    name: str
    targets: Names
    value: Count | None = None
    per_mac: Annotated[float, Field(gt=0)] | None = None
    unit: Literal["instructions", "cycles"] = "instructions"
    source: str = Field(description="Who measured it, and on what.")

    @model_validator(mode="after")
    def _one_figure(self) -> Peer:
        if (self.value is None) == (self.per_mac is None):
            raise ValueError("give a value, or per_mac")
        return self

    def units(self, macs: int) -> float:
        """The figure for a network of so many multiply-accumulates."""
        return self.value if self.value is not None else (self.per_mac or 0.0) * macs


class Row(StrictModel):
    """A network, measured on each of `targets` through `recipe`.

    `model` replaces the recipe's model entry. `file` does so too: a file inside the folder of real models, which is no
    part of the project; where it is absent the row is skipped. `stages` goes over the recipe's stage options. `at_most`
    bounds the instructions on a target (cycles, on a board with an accelerator): more fail `doit bench --check`.
    """

    name: Name
    recipe: str
    targets: Names
    model: dict[str, Any] | None = None
    file: str | None = None
    stages: dict[str, Any] = Field(default_factory=dict)
    peers: tuple[Peer, ...] = ()
    at_most: dict[str, Count] = Field(default_factory=dict)


class RowOn(StrictModel):
    """One row on one target."""

    row: str
    target: str


class Ratio(StrictModel):
    """Instructions of `numerator` by those of `denominator`; `sides` are what the two are called.

    Ratios of the same sides make one table. One below `at_least` fails `doit bench --check`.
    """

    name: str
    sides: tuple[str, str]
    numerator: RowOn
    denominator: RowOn
    at_least: Annotated[float, Field(gt=0)] | None = None


class Layers(StrictModel):
    """What `suite=layers` measures: matrices of one-operator models, each a class of layers, on these targets.

    no_slower  a target for each that may take more instructions than it on no layer: it has narrower registers
    """

    recipes: Names
    targets: Names
    no_slower: dict[str, str] = Field(default_factory=dict)


class Loose(StrictModel):
    """How the files of `--models` are measured: these have no row of their own."""

    recipe: str
    targets: Names


class Times(StrictModel):
    """What `--times` runs: a recipe, and a `set=` that changes one parameter of the tensorize stage."""

    recipe: str
    changed: str


class Suite(StrictModel):
    """The content of suite.yaml."""

    schema_version: Literal[1] = Field(alias="schema")
    rows: Annotated[tuple[Row, ...], Field(min_length=1)]
    ratios: tuple[Ratio, ...] = ()
    shown: tuple[RowOn, ...] = ()
    models: Loose
    layers: Layers
    times: Times

    def shows(self, id_: tuple[str, str]) -> bool:
        """Whether the row on the target is one of those that README.md has."""
        return any((one.row, one.target) == id_ for one in self.shown)


def load_suite(path: Path = SUITE) -> Suite:
    """The suite of a file. Raises RecipeError with the line that is wrong."""
    document = load_document(path, path.name)
    try:
        suite = Suite.model_validate(document.data)
    except ValidationError as error:
        # A misspelt key is also a missing one: the key that is there is the one to show.
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
        check(row.name in rows, f"row '{row.name}' is there twice", "rows", index, "name")
        check(bool(row.model and row.file), f"row '{row.name}' has a model and a file", "rows", index, "file")
        for number, peer in enumerate(row.peers):
            for target in peer.targets:
                message = f"row '{row.name}' is not measured on {target}"
                check(target not in row.targets, message, "rows", index, "peers", number, "targets")
        for target in row.at_most:
            message = f"row '{row.name}' is not measured on {target}"
            check(target not in row.targets, message, "rows", index, "at_most", target)
        rows[row.name] = row
    for index, one in enumerate(suite.shown):
        known = one.row in rows and one.target in rows[one.row].targets
        check(not known, f"row '{one.row}' is not measured on {one.target}", "shown", index)
    for index, ratio in enumerate(suite.ratios):
        for key, side in (("numerator", ratio.numerator), ("denominator", ratio.denominator)):
            guess = did_you_mean(side.row, rows)
            check(side.row not in rows, f"unknown row '{side.row}'{guess}", "ratios", index, key, "row")
            message = f"row '{side.row}' is not measured on {side.target}"
            check(side.target not in rows[side.row].targets, message, "ratios", index, key, "target")
    return suite


def peer_of(suite: Suite, side: RowOn) -> Peer | None:
    """The first peer in instructions that is shown beside a row on a target."""
    row = next(row for row in suite.rows if row.name == side.row)
    return next((peer for peer in row.peers if side.target in peer.targets and peer.unit == "instructions"), None)
