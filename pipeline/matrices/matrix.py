"""`matrix:` in a recipe: one sub-recipe for each combination of the values on its axes.

    matrix:
      model: {kws: {zoo: ds_cnn}, ic: {zoo: resnet_8}}    values with names of their own ...
      target: [rv64-rvp, cortex-m4]                       ... or a list, named after its values
      stages.simulate.inputs.seed: [1, 2]                 any parameter of the recipe
      exclude:
        - {model: ic, target: "cortex-*"}
      include:
        - {target: cortex-m4, stages.compile.optimize: "-O3"}

The combinations are those of GitHub Actions: all of the axes, without what an entry of `exclude` matches; then each
entry of `include` is added to every combination whose values on the axes it does not change, and if there is none it is
a combination of its own. A sub-recipe is called after its values, in the order of the axes: `kws-rv64-rvp-seed_1`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import product
from math import prod
from pathlib import PurePath
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from pipeline.documents.document import YamlPath
from pipeline.documents.overrides import Override, model_entry, yaml_path
from pipeline.errors import RecipeError, list_known
from stages.messages import escape
from stages.messages.wording import did_you_mean
from stages.options.names import as_name, why_not
from stages.options.strict_model import mistake

MAX_COMBINATIONS = 5_000
_MOST_BEFORE_EXCLUDE = 200_000
MAX_AXES = 50
# How often an entry of `include` may be held against a combination.
_MOST_COMPARED = 5_000_000
_SETTINGS = ("include", "exclude")
# Values of the recipe as a whole; deeper ones are dotted paths.
_WHOLE = ("target", "model")


def _axis(value: Any) -> Any:
    form = "a list of values, or a mapping from names to values"
    if not isinstance(value, list | dict):
        raise PydanticCustomError("matrix", f"should be {form}")
    if not value:
        raise PydanticCustomError("matrix_empty", f"has no values; it should be {form}")
    for name in value if isinstance(value, dict) else ():
        if wrong := why_not(name):
            raise mistake(wrong, name, key=True)
    return value


Axis = Annotated[Any, BeforeValidator(_axis)]
Entries = Annotated[tuple[dict[str, Any], ...], Field(strict=False)]


class Matrix(BaseModel):
    """Axes: `target`, `model`, and any parameter by its dotted path, each with a list of values or a mapping from names
    to values. Every combination is a recipe."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)
    __pydantic_extra__: dict[str, Axis]

    target: Axis | None = Field(default=None, description="Targets of pipeline.yaml.")
    model: Axis | None = Field(default=None, description="Networks: model entries, zoo:NAME, or TFLite files.")
    include: Entries = Field(default=(), description="Values for combinations they agree with, or new combinations.")
    exclude: Entries = Field(default=(), description="Combinations to leave out; values are globs.")


class ErrorFactory(Protocol):
    """Makes the error at a path of the recipe (pipeline.recipes.loader.Sources.error)."""

    def __call__(self, message: str, path: YamlPath, *, key: bool = False, hint: str = "") -> RecipeError: ...


@dataclass(frozen=True)
class Point:
    """A value of a parameter: how names and tables call it, and where in the recipe it stands.

    A value from the command line has its `text` and no `place`.
    """

    key: str
    label: str
    value: Any
    place: YamlPath = ()
    text: str = ""

    @cached_property
    def override(self) -> Override:
        """The same as a value over those of the recipe."""
        return Override(self.text or f"{self.key}: {self.label}", yaml_path(self.key), self.value, self.place)


@dataclass(frozen=True)
class Combination:
    """One sub-recipe: its name after the recipe's, and its values."""

    name: str
    points: tuple[Point, ...]


def expand(
    matrix: Mapping[str, Any], given: Sequence[Override], fields: Sequence[str], error: ErrorFactory
) -> tuple[list[Combination], list[Override]]:
    """The combinations of a matrix (as written in YAML, of Matrix's form), and the overrides that they leave to apply.

    An override of an axis takes the place of its values, and drops entries of `include` that have others. `target=a,b`
    and `model=a,b` name several; `model=` may be a name on the axis. `fields` are the first words a dotted path may
    have. Raises RecipeError, also when nothing remains.
    """
    axes = {key: _points(key, values, error) for key, values in matrix.items() if key not in _SETTINGS}
    for key in axes:
        _check_key(key, ("matrix", key), [*_WHOLE, *_SETTINGS], fields, error)
    if len(axes) > MAX_AXES:
        raise error(f"the matrix has {len(axes):,} axes; {MAX_AXES} at most", ("matrix",), key=True)
    excluded = list(_exclusions(matrix.get("exclude") or (), axes, error))
    included = list(_inclusions(matrix.get("include") or (), axes, fields, error))
    rest: list[Override] = []
    replaced: dict[str, tuple[Point, ...]] = {}
    for override in given:
        key = ".".join(map(str, override.path))
        if key in axes:
            replaced[key] = _given_points(override, axes[key])
        else:
            rest.append(override)
            if key in _WHOLE:
                replaced[key] = (Point(key, "", override.value),)
    axes |= {key: points for key, points in replaced.items() if key in axes}
    allowed = {key: [point.value for point in points] for key, points in replaced.items()}
    included = [
        entry for entry in included if all(p.value in allowed[key] for key, p in entry.items() if key in allowed)
    ]
    grid = _grid(axes, excluded, error)
    _check_number(len(grid), included, error)
    found = list(_combinations(axes, grid, included))
    if not found:
        raise error("no combination remains", ("matrix",), key=True)
    return found, rest


def select(
    matrix: Mapping[str, Any], given: Sequence[Override], usual: str, fields: Sequence[str], error: ErrorFactory
) -> tuple[list[Combination], list[Override]]:
    """`expand`; but `target=` selects where the matrix has these targets, also by an entry of `include` alone.

    `usual` is the target of combinations that have none. As new values of the axis, targets of `include` would be
    combined with all other axes.
    """
    wanted = [one for one in given if one.text.startswith("target=")]
    if wanted:
        names = {name.strip() for one in wanted for name in str(one.value).split(",") if name.strip()}
        others = [one for one in given if one not in wanted]
        combinations, rest = expand(matrix, others, fields, error)
        # A target that is set= for all has the last word.
        usual = next((str(one.value) for one in rest if one.path == ("target",)), usual)
        targets = [
            next((str(point.value) for point in one.points if point.key == "target"), usual) for one in combinations
        ]
        if names <= set(targets):
            return [one for one, target in zip(combinations, targets, strict=True) if target in names], rest
    return expand(matrix, given, fields, error)


def _grid(
    axes: Mapping[str, tuple[Point, ...]], excluded: Sequence[Mapping[str, Any]], error: ErrorFactory
) -> list[dict[str, Point]]:
    """The combinations of the axes without the excluded ones; with no axis, `include` alone adds some."""
    number = prod(map(len, axes.values()))
    if number > (_MOST_BEFORE_EXCLUDE if excluded else MAX_COMBINATIONS):
        before = ", before what `exclude` leaves out" if excluded else ""
        raise _too_many(number, before, error)
    # Labels are looked up instead of globs: a combination is compared with every entry.
    meant = [
        {key: {point.label for point in axes[key] if _is(value, point)} for key, value in entry.items()}
        for entry in excluded
    ]
    made = (dict(zip(axes, points, strict=True)) for points in product(*axes.values()) if axes)
    return [points for points in made if not any(all(points[k].label in labels[k] for k in labels) for labels in meant)]


def _too_many(number: int, before: str, error: ErrorFactory) -> RecipeError:
    most = _MOST_BEFORE_EXCLUDE if before else MAX_COMBINATIONS
    return error(f"the matrix has {number:,} combinations{before}; {most:,} at most", ("matrix",), key=True)


def _check_number(number: int, included: Sequence[Mapping[str, Point]], error: ErrorFactory) -> None:
    """Refuse a matrix of too many combinations before a recipe is made of one."""
    if number > MAX_COMBINATIONS:
        raise _too_many(number, "", error)
    if len(included) > MAX_COMBINATIONS:
        message = f"`include` has {len(included):,} entries; {MAX_COMBINATIONS:,} at most"
        raise error(message, ("matrix", "include"), key=True)
    if number * len(included) > _MOST_COMPARED:
        message = f"{number:,} combinations and {len(included):,} entries of `include` are too many to be held together"
        raise error(message, ("matrix", "include"), key=True)


def _combinations(
    axes: Mapping[str, tuple[Point, ...]],
    original: Sequence[Mapping[str, Point]],
    included: Sequence[Mapping[str, Point]],
) -> Iterator[Combination]:
    made, alone = [dict(points) for points in original], []
    for entry in included:
        fits = [n for n, points in enumerate(original) if _agrees(entry, points)]
        for n in fits:
            made[n] |= entry
        if not fits:
            alone.append({key: entry[key] for key in sorted(entry, key=[*axes, *entry].index)})
    names: set[str] = set()
    for n, points in enumerate([*made, *alone]):
        # What include adds does not rename a combination.
        keys = axes if n < len(made) else points
        name = _unique(as_name("-".join(points[key].label for key in keys)) or "default", names)
        names.add(name)
        yield Combination(name, tuple(points.values()))


def _agrees(entry: Mapping[str, Point], points: Mapping[str, Point]) -> bool:
    return all(points[key].value == point.value for key, point in entry.items() if key in points)


def _is(value: Any, point: Point) -> bool:
    """Whether an entry of exclude means a point: the same value, or a glob over its name."""
    return bool(value == point.value) or fnmatchcase(point.label, str(value))


def _exclusions(
    entries: Sequence[Mapping[str, Any]], axes: Mapping[str, tuple[Point, ...]], error: ErrorFactory
) -> Iterator[Mapping[str, Any]]:
    for number, entry in enumerate(entries):
        if not entry:
            raise error("an entry that names no axis would exclude everything", ("matrix", "exclude", number))
        for key, value in entry.items():
            place: YamlPath = ("matrix", "exclude", number, key)
            if key not in axes:
                raise error(
                    f"no axis '{escape.name(key)}'{did_you_mean(key, axes)}",
                    place,
                    key=True,
                    hint=list_known("axes", axes),
                )
            if not any(_is(value, point) for point in axes[key]):
                labels = [point.label for point in axes[key]]
                message = f"no value '{_label(key, value)}' on axis {key}{did_you_mean(_label(key, value), labels)}"
                raise error(message, place, hint=list_known("values", labels))
        yield entry


def _inclusions(
    entries: Sequence[Mapping[str, Any]],
    axes: Mapping[str, tuple[Point, ...]],
    fields: Sequence[str],
    error: ErrorFactory,
) -> Iterator[dict[str, Point]]:
    for number, entry in enumerate(entries):
        points = {}
        for key, value in entry.items():
            place: YamlPath = ("matrix", "include", number, key)
            _check_key(key, place, [*_WHOLE, *axes], fields, error)
            named = next((point for point in axes.get(key, ()) if value in (point.label, point.value)), None)
            points[key] = named or Point(key, _label(key, value), _value(key, value), place)
        yield points


def _check_key(key: str, place: YamlPath, known: Sequence[str], fields: Sequence[str], error: ErrorFactory) -> None:
    first, dot, _ = key.partition(".")
    if key in _WHOLE or (dot and first in fields and all(key.split("."))):
        return
    guess = did_you_mean(first, fields) if dot else did_you_mean(key, known)
    keys = ", ".join(map(escape.name, dict.fromkeys(known)))
    raise error(
        f"unknown key '{escape.name(key)}'{guess}", place, key=True, hint=f"known keys: {keys}, or a path as in set="
    )


def _points(key: str, values: Any, error: ErrorFactory) -> tuple[Point, ...]:
    """The points of an axis, of which no two have the same value."""
    points: list[Point] = []
    labels: set[str] = set()
    known: dict[str, str] = {}
    for place, value in values.items() if isinstance(values, dict) else enumerate(values):
        made = _value(key, value)
        same = json.dumps(made, sort_keys=True)
        label = str(place) if isinstance(values, dict) else _label(key, value, place)
        if same in known:
            message = f"matrix.{escape.name(key)}: has this value twice, first as {known[same]}"
            raise error(message, ("matrix", key, place))
        label = known[same] = _unique(label, labels)
        labels.add(label)
        points.append(Point(key, label, made, ("matrix", key, place)))
    return tuple(points)


def _given_points(override: Override, points: Sequence[Point]) -> tuple[Point, ...]:
    """The points that the command line gives for an axis; those that are on it keep their names."""
    key = points[0].key
    if key not in _WHOLE or "=" not in override.text or override.text.startswith("set="):
        values = [override.value]
    else:
        names = override.text.partition("=")[2].split(",")
        values = [name.strip() for name in names if name.strip()] or [override.value]
    found: list[Point] = []
    for value in values:
        made = _value(key, value)
        same = next((point for point in points if value == point.label or made == point.value), None)
        chosen = same or Point(key, _label(key, value), made)
        if all(point.label != chosen.label for point in found):
            found.append(Point(key, chosen.label, chosen.value, text=override.text))
    return tuple(found)


def _value(key: str, value: Any) -> Any:
    """A model may be given as on the command line."""
    return model_entry(value) if key == "model" and isinstance(value, str) else value


def _label(key: str, value: Any, place: Any = "") -> str:
    """How a value is called: a target by its name, a network by its source, another by the last word of its path."""
    if key == "model":
        text = _model_label(_value(key, value))
    elif key == "target":
        text = str(value)
    elif isinstance(value, bool) or value is None:
        text = f"{key.rpartition('.')[2]}_{'null' if value is None else str(value).lower()}"
    elif isinstance(value, str | int | float):
        text = f"{key.rpartition('.')[2]}_{str(value).strip('-')}"
    else:
        text = f"{key.rpartition('.')[2]}_{place}"
    return as_name(text) or "value"


def _model_label(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    name = next((str(value[source]) for source in ("zoo", "op", "file", "url") if source in value), "model")
    name = PurePath(name).stem if "file" in value or "url" in value else name
    dtype = value.get("dtype", "int8")
    return name if dtype == "int8" else f"{name}_{dtype}"


def _unique(name: str, taken: Set[str]) -> str:
    number, made = 1, name
    while made in taken:
        number += 1
        made = f"{name}_{number}"
    return made
