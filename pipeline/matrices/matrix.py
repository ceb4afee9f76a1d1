"""`matrix:` of a recipe: one variant for each combination of axis values.

    matrix:
      model: {kws: {zoo: ds_cnn}, ic: {zoo: resnet_8}}    a mapping from names to values ...
      target: [rv64-rvp, cortex-m4]                       ... or a list; values give the names
      stages.simulate.inputs.seed: [1, 2]                 any parameter of the recipe
      exclude:
        - {model: ic, target: "cortex-*"}
      include:
        - {target: cortex-m4, stages.compile.optimize: "-O3"}

Combinations follow GitHub Actions:

1. All combinations of axis values, except those that match an entry of `exclude`.
2. Each entry of `include` extends every combination that agrees with it on the axes. If none does, it adds a
   combination.

The name of a variant joins its values in the order of the axes: `kws-rv64-rvp-seed_1`.
"""

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
from stages.support.messages import escape
from stages.support.messages.wording import did_you_mean
from stages.support.options.names import as_name, invalid_name
from stages.support.options.strict_model import mistake

MAX_COMBINATIONS = 5_000
_MAX_BEFORE_EXCLUDE = 200_000
MAX_AXES = 50
# Limit for combinations times entries of `include`.
_MAX_COMPARISONS = 5_000_000
_SETTINGS = ("include", "exclude")
# Axes for top-level keys; other axes are dotted paths.
_TOP_LEVEL = ("target", "model")


def _axis(value: Any) -> Any:
    form = "a list of values, or a mapping from names to values"
    if not isinstance(value, list | dict):
        raise PydanticCustomError("matrix", f"should be {form}")
    if not value:
        raise PydanticCustomError("matrix_empty", f"has no values; it should be {form}")
    for name in value if isinstance(value, dict) else ():
        if wrong := invalid_name(name):
            raise mistake(wrong, name, key=True)
    return value


Axis = Annotated[Any, BeforeValidator(_axis)]
Entries = Annotated[tuple[dict[str, Any], ...], Field(strict=False)]


class Matrix(BaseModel):
    """Axes of a matrix; each combination of values is a variant.

    Axes are `target`, `model` and dotted paths, each with a list of values or a mapping from names to values.
    """

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)
    __pydantic_extra__: dict[str, Axis]

    target: Axis | None = Field(default=None, description="Targets of pipeline.yaml.")
    model: Axis | None = Field(default=None, description="Networks: model entries, zoo:NAME, or TFLite files.")
    include: Entries = Field(
        default=(), description="Additional values for matching combinations, or additional combinations."
    )
    exclude: Entries = Field(default=(), description="Combinations to remove; values are globs.")


class ErrorFactory(Protocol):
    """Function that returns the error for a path of the recipe (`Sources.error`)."""

    def __call__(self, message: str, path: YamlPath, *, key: bool = False, hint: str = "") -> RecipeError: ...


@dataclass(frozen=True)
class Point:
    """An axis value with its label in names and tables.

    path: position in the recipe; () for a value of the command line.
    text: the override as typed; '' for a value of the recipe.
    """

    key: str
    label: str
    value: Any
    path: YamlPath = ()
    text: str = ""

    @cached_property
    def override(self) -> Override:
        """The axis value as an override."""
        return Override(self.text or f"{self.key}: {self.label}", yaml_path(self.key), self.value, self.path)


@dataclass(frozen=True)
class Combination:
    """A variant: its name without the recipe's name, and its axis values."""

    name: str
    points: tuple[Point, ...]


def expand(
    matrix: Mapping[str, Any], overrides: Sequence[Override], fields: Sequence[str], error: ErrorFactory
) -> tuple[list[Combination], list[Override]]:
    """Return the combinations of a matrix and the overrides that are not on an axis.

    matrix: the YAML mapping, validated as Matrix.
    overrides: an override of an axis replaces the values of the axis and removes entries of `include` with other
        values. `target=a,b` and `model=a,b` give several values; `model=` may be a name on the axis.
    fields: top-level keys that a dotted path may start with.

    Raises RecipeError, also if no combination remains.
    """
    axes = {key: _points(key, values, error) for key, values in matrix.items() if key not in _SETTINGS}
    for key in axes:
        _check_key(key, ("matrix", key), [*_TOP_LEVEL, *_SETTINGS], fields, error)
    if len(axes) > MAX_AXES:
        raise error(f"the matrix has {len(axes):,} axes; the limit is {MAX_AXES}", ("matrix",), key=True)
    excluded = list(_exclusions(matrix.get("exclude") or (), axes, error))
    included = list(_inclusions(matrix.get("include") or (), axes, fields, error))
    remaining: list[Override] = []
    replaced: dict[str, tuple[Point, ...]] = {}
    for override in overrides:
        key = ".".join(map(str, override.path))
        if key in axes:
            replaced[key] = _override_points(override, axes[key])
        else:
            remaining.append(override)
            if key in _TOP_LEVEL:
                replaced[key] = (Point(key, "", override.value),)
    axes |= {key: points for key, points in replaced.items() if key in axes}
    allowed = {key: [point.value for point in points] for key, points in replaced.items()}
    included = [
        entry for entry in included if all(p.value in allowed[key] for key, p in entry.items() if key in allowed)
    ]
    grid = _grid(axes, excluded, error)
    _check_number(len(grid), included, error)
    combinations = list(_combinations(axes, grid, included))
    if not combinations:
        raise error("all combinations are excluded", ("matrix",), key=True)
    return combinations, remaining


def select(
    matrix: Mapping[str, Any],
    overrides: Sequence[Override],
    default_target: str,
    fields: Sequence[str],
    error: ErrorFactory,
) -> tuple[list[Combination], list[Override]]:
    """As `expand`, but `target=` selects combinations if the matrix has these targets.

    Selecting also covers targets of `include`, which as axis values would be combined with all other axes.
    default_target: target of combinations without a target.
    """
    target_overrides = [override for override in overrides if override.text.startswith("target=")]
    if target_overrides:
        names = {
            name.strip() for override in target_overrides for name in str(override.value).split(",") if name.strip()
        }
        others = [override for override in overrides if override not in target_overrides]
        combinations, remaining = expand(matrix, others, fields, error)
        # set=target= overrides the target of all combinations.
        default_target = next(
            (str(override.value) for override in remaining if override.path == ("target",)), default_target
        )
        targets = [
            next((str(point.value) for point in combination.points if point.key == "target"), default_target)
            for combination in combinations
        ]
        if names <= set(targets):
            return [
                combination for combination, target in zip(combinations, targets, strict=True) if target in names
            ], remaining
    return expand(matrix, overrides, fields, error)


def _grid(
    axes: Mapping[str, tuple[Point, ...]], excluded: Sequence[Mapping[str, Any]], error: ErrorFactory
) -> list[dict[str, Point]]:
    """Return the combinations of the axes without the excluded ones; none without axes."""
    number = prod(map(len, axes.values()))
    if number > (_MAX_BEFORE_EXCLUDE if excluded else MAX_COMBINATIONS):
        before = " before `exclude`" if excluded else ""
        raise _too_many(number, before, error)
    # Globs are resolved to labels once, since every combination is compared with every entry.
    excluded_labels = [
        {key: {point.label for point in axes[key] if _matches(value, point)} for key, value in entry.items()}
        for entry in excluded
    ]
    all_points = (dict(zip(axes, points, strict=True)) for points in product(*axes.values()) if axes)
    return [
        points
        for points in all_points
        if not any(all(points[k].label in labels[k] for k in labels) for labels in excluded_labels)
    ]


def _too_many(number: int, before: str, error: ErrorFactory) -> RecipeError:
    most = _MAX_BEFORE_EXCLUDE if before else MAX_COMBINATIONS
    return error(f"the matrix has {number:,} combinations{before}; the limit is {most:,}", ("matrix",), key=True)


def _check_number(number: int, included: Sequence[Mapping[str, Point]], error: ErrorFactory) -> None:
    """Raise RecipeError for too many combinations, before any is loaded."""
    if number > MAX_COMBINATIONS:
        raise _too_many(number, "", error)
    if len(included) > MAX_COMBINATIONS:
        message = f"`include` has {len(included):,} entries; the limit is {MAX_COMBINATIONS:,}"
        raise error(message, ("matrix", "include"), key=True)
    if number * len(included) > _MAX_COMPARISONS:
        message = f"{number:,} combinations times {len(included):,} entries of `include` exceed {_MAX_COMPARISONS:,}"
        raise error(message, ("matrix", "include"), key=True)


def _combinations(
    axes: Mapping[str, tuple[Point, ...]],
    original: Sequence[Mapping[str, Point]],
    included: Sequence[Mapping[str, Point]],
) -> Iterator[Combination]:
    extended, added = [dict(points) for points in original], []
    for entry in included:
        matching = [n for n, points in enumerate(original) if _agrees(entry, points)]
        for n in matching:
            extended[n] |= entry
        if not matching:
            added.append({key: entry[key] for key in sorted(entry, key=[*axes, *entry].index)})
    names: set[str] = set()
    for n, points in enumerate([*extended, *added]):
        # Values added by include are not part of the name.
        keys = axes if n < len(extended) else points
        name = _unique(as_name("-".join(points[key].label for key in keys)) or "default", names)
        names.add(name)
        yield Combination(name, tuple(points.values()))


def _agrees(entry: Mapping[str, Point], points: Mapping[str, Point]) -> bool:
    return all(points[key].value == point.value for key, point in entry.items() if key in points)


def _matches(value: Any, point: Point) -> bool:
    """Return whether a value of `exclude` matches a point, by value or as a glob of its label."""
    return bool(value == point.value) or fnmatchcase(point.label, str(value))


def _exclusions(
    entries: Sequence[Mapping[str, Any]], axes: Mapping[str, tuple[Point, ...]], error: ErrorFactory
) -> Iterator[Mapping[str, Any]]:
    for number, entry in enumerate(entries):
        if not entry:
            raise error("an empty entry would exclude everything", ("matrix", "exclude", number))
        for key, value in entry.items():
            path: YamlPath = ("matrix", "exclude", number, key)
            if key not in axes:
                raise error(
                    f"no axis '{escape.name(key)}'{did_you_mean(key, axes)}",
                    path,
                    key=True,
                    hint=list_known("axes", axes),
                )
            if not any(_matches(value, point) for point in axes[key]):
                labels = [point.label for point in axes[key]]
                message = f"no value '{_label(key, value)}' on axis {key}{did_you_mean(_label(key, value), labels)}"
                raise error(message, path, hint=list_known("values", labels))
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
            path: YamlPath = ("matrix", "include", number, key)
            _check_key(key, path, [*_TOP_LEVEL, *axes], fields, error)
            named = next((point for point in axes.get(key, ()) if value in (point.label, point.value)), None)
            points[key] = named or Point(key, _label(key, value), _value(key, value), path)
        yield points


def _check_key(key: str, path: YamlPath, known: Sequence[str], fields: Sequence[str], error: ErrorFactory) -> None:
    first, dot, _ = key.partition(".")
    if key in _TOP_LEVEL or (dot and first in fields and all(key.split("."))):
        return
    guess = did_you_mean(first, fields) if dot else did_you_mean(key, known)
    keys = ", ".join(map(escape.name, dict.fromkeys(known)))
    raise error(
        f"unknown key '{escape.name(key)}'{guess}", path, key=True, hint=f"known keys: {keys}, or a path as in set="
    )


def _points(key: str, values: Any, error: ErrorFactory) -> tuple[Point, ...]:
    """Return the points of an axis. Raises RecipeError for duplicate values."""
    points: list[Point] = []
    labels: set[str] = set()
    known: dict[str, str] = {}
    for name_or_index, value in values.items() if isinstance(values, dict) else enumerate(values):
        axis_value = _value(key, value)
        canonical = json.dumps(axis_value, sort_keys=True)
        label = str(name_or_index) if isinstance(values, dict) else _label(key, value, name_or_index)
        if canonical in known:
            message = f"matrix.{escape.name(key)}: duplicate value, already used as {known[canonical]}"
            raise error(message, ("matrix", key, name_or_index))
        label = known[canonical] = _unique(label, labels)
        labels.add(label)
        points.append(Point(key, label, axis_value, ("matrix", key, name_or_index)))
    return tuple(points)


def _override_points(override: Override, points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points of an override of an axis; known values keep their labels."""
    key = points[0].key
    if key not in _TOP_LEVEL or "=" not in override.text or override.text.startswith("set="):
        values = [override.value]
    else:
        names = override.text.partition("=")[2].split(",")
        values = [name.strip() for name in names if name.strip()] or [override.value]
    chosen: dict[str, Point] = {}
    for value in values:
        axis_value = _value(key, value)
        known = next((point for point in points if value == point.label or axis_value == point.value), None)
        label = known.label if known else _label(key, value)
        chosen.setdefault(label, Point(key, label, known.value if known else axis_value, text=override.text))
    return tuple(chosen.values())


def _value(key: str, value: Any) -> Any:
    """Return an axis value; text for a model becomes a model entry."""
    return model_entry(value) if key == "model" and isinstance(value, str) else value


def _label(key: str, value: Any, index: Any = "") -> str:
    """Return the label of a value: target, model source, or last path part and value."""
    if key == "model":
        text = _model_label(_value(key, value))
    elif key == "target":
        text = str(value)
    elif isinstance(value, bool) or value is None:
        text = f"{key.rpartition('.')[2]}_{'null' if value is None else str(value).lower()}"
    elif isinstance(value, str | int | float):
        text = f"{key.rpartition('.')[2]}_{str(value).strip('-')}"
    else:
        text = f"{key.rpartition('.')[2]}_{index}"
    return as_name(text) or "value"


def _model_label(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    name = next((str(value[source]) for source in ("zoo", "op", "file", "url") if source in value), "model")
    name = PurePath(name).stem if "file" in value or "url" in value else name
    dtype = value.get("dtype", "int8")
    return name if dtype == "int8" else f"{name}_{dtype}"


def _unique(name: str, names: Set[str]) -> str:
    number, candidate = 1, name
    while candidate in names:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
