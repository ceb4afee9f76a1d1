"""Recipes with one to three mistakes: in their values, in their keys, in their YAML, in their bytes."""

import copy
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import yaml

from pipeline.plugins.registry import default_registry
from tests.docs.test_snippets import USUAL, recipe_texts
from tests.fuzz import hostile
from tests.fuzz.mutate_bytes import damage
from tests.fuzz.mutate_model import Mutant
from tests.support.emitted import ROOT

# Stands in YAML where a number of many digits goes: Python writes no integer of more than 4,300.
_DIGITS = "@digits@"
_TINY: dict[str, Any] = {"op": "conv2d", "shape": [5, 6, 4], "out_channels": 8, "kernel": [3, 3]}
_RULE = {"match": {"op": "add", "name": "*", "shape": [4, 3]}, "part": "tensors", "region": "ram"}


@cache
def seed_recipes() -> list[dict[str, Any]]:
    """Recipes with every key: of the pages, of recipes/, and all options of the stages with their defaults."""
    stages = [stage for stage in default_registry() if stage.kind not in ("ptq", "count", "quantize")]
    defaults = {stage.kind: stage.config().model_dump(mode="json", exclude={"kind"}) for stage in stages}
    files = [yaml.safe_load(path.read_text()) for path in sorted(ROOT.glob("recipes/*.yaml"))]
    matrix = {"model": {"a": _TINY, "b": {"op": "relu", "shape": [9]}}, "target": ["host", "cortex-m4"]}
    matrix |= {"exclude": [{"model": "a", "target": "host"}], "stages.compile.optimize": ["-O2", "-O3"]}
    matrix["include"] = [{"target": "cortex-m4", "stages.simulate.inputs.seed": 7}]
    add = {"op": "add", "shape": [4, 3], "input": {"scale": 0.1, "zero_point": 3}, "activation": "relu"}
    tiny = {"schema": 1, "target": "host", "model": _TINY}
    return [
        *([tiny, {**tiny, "stages": defaults}] * 6),
        *([{**tiny, "model": add, "memory": {"arena_limit": "64K", "rules": [_RULE]}}] * 4),
        *([{"schema": 1, "extends": "digits_rvp", "matrix": matrix}] * 4),
        *(USUAL | yaml.safe_load(text) for text in recipe_texts()),
        *files,
    ]


def recipe_mutant(seed: int, index: int) -> Mutant:
    """Mutant `index` of a seed; the same numbers give the same bytes."""
    rng = Random(f"recipes {seed} {index}")
    name, data = _seed_recipe(rng)
    done = []
    kind = rng.random()
    if kind < 0.75:
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            mutation = rng.choice(TREE_MUTATIONS)
            changed = mutation(rng, data)
            data = changed if isinstance(changed, dict) else data
            done.append(mutation.__name__)
    text = _written(rng, data)
    if kind >= 0.65:
        mutation = rng.choice(TEXT_MUTATIONS)
        text = mutation(rng, text)
        done.append(mutation.__name__)
    text = text.replace(_DIGITS, rng.choice(["9", "-1", "0x"]) + "7" * rng.choice([30, 5000]))
    encoding = rng.choice(["utf-8"] * 30 + ["latin-1", "utf-16", "utf-8-sig", "utf-32"])
    raw = text.encode(encoding, errors="replace" if encoding == "latin-1" else "surrogatepass")
    if rng.random() < 0.06:
        what, raw = damage(rng, raw)
        done.append(what)
    return Mutant(f"{name}: {', '.join(done) or encoding}", raw)


def _seed_recipe(rng: Random) -> tuple[str, dict[str, Any]]:
    number = rng.randrange(len(seed_recipes()))
    data = copy.deepcopy(seed_recipes()[number])
    data.pop("name", None)  # which must be the file's name in recipes/ only
    return f"recipe {number}", data


def _written(rng: Random, data: dict[str, Any]) -> str:
    style = rng.choice([None, None, False, True])
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=rng.random() < 0.8, default_flow_style=style, width=100)


# ---- values and keys --------------------------------------------------------------------------------------------


def change_value(rng: Random, data: Any) -> None:
    holder, key = _place(rng, data)
    holder[key] = _value(rng, holder[key])


def drop_entry(rng: Random, data: Any) -> None:
    holder, key = _place(rng, data)
    del holder[key]


def change_key(rng: Random, data: Any) -> None:
    """A key misspelt, of another type, or hostile; its value stays."""
    holder, key = _place(rng, data)
    if isinstance(holder, dict):
        new: Any = rng.choice([None, True, 1, -1.5, "", hostile.text(rng), str(key)[:-1], f"{key}s", str(key).upper()])
        holder[new] = holder.pop(key)


def add_key(rng: Random, data: Any) -> None:
    """A key of some other place, or no key at all, in a mapping."""
    holders = [holder for holder in _holders(data) if isinstance(holder, dict)]
    keys = [key for seed in seed_recipes() for holder in _holders(seed) if isinstance(holder, dict) for key in holder]
    rng.choice(holders)[rng.choice([*keys, hostile.text(rng), None, 7])] = _value(rng, rng.choice([1, "host", [1, 2]]))


def move_value(rng: Random, data: Any) -> None:
    """A value where another stands."""
    (holder, key), (other, name) = _place(rng, data), _place(rng, data)
    holder[key] = copy.deepcopy(other[name])


def repeat_item(rng: Random, data: Any) -> None:
    """A list longer, up to some thousand items."""
    lists = [holder for holder in _holders(data) if isinstance(holder, list)]
    if lists:
        chosen = rng.choice(lists)
        chosen += [copy.deepcopy(rng.choice(chosen)) for _ in range(rng.choice([1, 2, 2000]))] if chosen else [1]


def nest(rng: Random, data: Any) -> None:
    holder, key = _place(rng, data)
    value = holder[key]
    for _ in range(rng.choice([3, 60])):
        value = [value] if rng.random() < 0.5 else {"a": value}
    holder[key] = value


TREE_MUTATIONS: tuple[Callable[[Random, Any], Any], ...] = (
    *([change_value] * 8),
    *(drop_entry, change_key, change_key, add_key, move_value, repeat_item, nest),
)


def _holders(data: Any) -> list[Any]:
    """All mappings and lists that are not empty."""
    if not isinstance(data, dict | list) or not data:
        return []
    values = data.values() if isinstance(data, dict) else data
    return [data, *(holder for value in values for holder in _holders(value))]


def _place(rng: Random, data: Any) -> tuple[Any, Any]:
    """A mapping and a key of it, or a list and an index; `data` has at least one."""
    holder = rng.choice(_holders(data) or [{"x": 0}])
    return holder, rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))


def _value(rng: Random, value: Any) -> Any:
    kind = rng.random()
    if kind < 0.3:
        return rng.choice(hostile.INTEGERS)
    if kind < 0.4:
        return rng.choice(hostile.FLOATS)
    if kind < 0.7:
        return hostile.text(rng)
    if kind < 0.85:
        return rng.choice([None, True, False, [], {}, [None], {"": None}, b"\x00\xff", _DIGITS])
    if isinstance(value, str):
        return rng.choice([value.upper(), value[:-1], value + value, f" {value} ", value.replace("-", "_")])
    return rng.choice([[value], str(value), value, {"x": value}, [value, value], [[value]]])


# ---- text -------------------------------------------------------------------------------------------------------

_LETTERS = ("\t", "\x00", "\x1b", "\ufeff", "\u2028", ":", "- ", "{", "]", "'", "&a ", "*a", "!", "#", "|", "%")
_BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9))
# Long lines, deep ones, aliases of themselves and of nothing, and types that YAML has beside its usual ones.
_ENDS = (
    *(f"x: {'y' * 100_000}\n", f"{'k' * 100_000}: 1\n", f"name: [{', '.join('a' * 30_000)}]\n", " " * 100_000 + "x"),
    *("x: " + "[" * 20_000, "x: " + "[" * 1000 + "]" * 1000, "x: " + "{a: " * 1000, "- " * 50),
    *("x: &x [*x]\n", "x: *nowhere\n", "<<: {a: 1}\n", "<<: 3\n", "memory: &m {<<: *m}\n", _BOMB),
    *("x: !!python/object/apply:os.getcwd []\n", "name: !!binary AAA\n", "stages: !!set {a, b}\n", "x: !x y\n"),
    *("memory: !!omap [a: 1]\n", "name: 2020-99-99\n", "name: !!int x\n", "x: !!bool x\n", "name: !<x> y\n"),
    *("...\nx", "\x00"),
)
_FILES = ("{text}---\n{text}", "%YAML 9.9\n---\n{text}", "", "---\n", "[]", "x", "1", "null")


def insert_letter(rng: Random, text: str) -> str:
    position = rng.randrange(len(text) + 1)
    return text[:position] + rng.choice(_LETTERS) + text[position:]


def drop_letters(rng: Random, text: str) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + text[start + rng.choice([1, 2, 9]) :]


def change_line(rng: Random, text: str) -> str:
    """A line twice, or indented."""
    lines = text.splitlines(keepends=True)
    number = rng.randrange(len(lines))
    lines[number] = rng.choice([lines[number], " ", "  ", "\t", "    "]) + lines[number]
    return "".join(lines)


def append_text(rng: Random, text: str) -> str:
    return text + rng.choice(_ENDS)


def replace_file(rng: Random, text: str) -> str:
    return rng.choice(_FILES).replace("{text}", text)


def line_ends(rng: Random, text: str) -> str:
    return text.replace("\n", rng.choice(["\r\n", "\r", "\n\n", " \n", "\x85"]))


TEXT_MUTATIONS: tuple[Callable[[Random, str], str], ...] = (
    *(insert_letter, insert_letter, insert_letter, drop_letters, drop_letters, change_line, change_line),
    *(append_text, append_text, append_text, replace_file, line_ends),
)
