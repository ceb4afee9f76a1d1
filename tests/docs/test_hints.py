"""Commands and lines of recipes in messages mean something: all texts of the code that have one are tried.

A text may have `…` or `...` where a user's value goes, or a name in capitals; these are filled in.
"""

import ast
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from pipeline.errors import PipelineError
from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import load_recipes
from stages.support.system.installation import INSTALLATION as ROOT
from tests.docs.test_commands import mistake

# Parts of recipes, by their outermost key: where they stand.
PARTS: dict[str, tuple[str, ...]] = {
    "model": ("model",),
    "matrix": ("matrix",),
    "stages": ("stages",),
    "quantize": ("stages", "quantize"),
    "simulate": ("stages", "simulate"),
    "data": ("stages", "quantize", "data"),
    "encoding": ("stages", "simulate", "inputs", "encoding"),
}
# Other parts that a part needs in a complete example.
BESIDE: dict[str, Any] = {
    "data": {"stages": {"quantize": {"mode": "calibrate"}}},
    "encoding": {"stages": {"simulate": {"inputs": {"files": ["a.npy"]}}}},
    "model": {"model": {"file": "net.onnx"}},
}
FILLED = (
    (r"\{…: \[(?:…|\.\.\.)\]\}", "{target: [host]}"),
    (r"\{…shapes: \{…\}\}", "{shapes: {x: [1, 2]}}"),
    (r"data: (?:…|\.\.\.)", "data: {random: {}}"),
    (r"files: \[\.\.\.\]", "files: [a.npy]"),
    (r"file: \.\.\.", "file: net.tflite"),
    (r"dtype: …", "dtype: int8"),
    (r"scale: \.\.\.", "scale: 0.5"),
    (r"zero_point: \.\.\.", "zero_point: 3"),
    (r"op: (?:NAME|name|…)", "op: softmax, shape: [4]"),
)
COMMAND = re.compile(r"`(doit [^`]+)`|^(?:[^`]*: |such as )?(doit [a-z][^`,;]*)$")


def texts(path: Path) -> Iterator[str]:
    """The texts of a module but for docstrings; `…` stands for what is computed."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    apart = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            apart |= {id(part) for part in ast.walk(node)} - {id(node)}
    for node in ast.walk(tree):
        if id(node) in apart:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def told() -> tuple[tuple[str, str], ...]:
    """Module and text, of all of the code."""
    modules = sorted(path for folder in ("pipeline", "stages") for path in (ROOT / folder).rglob("*.py"))
    return tuple((str(path.relative_to(ROOT)), text) for path in modules for text in texts(path))


def parts(text: str) -> Iterator[str]:
    """`key: {…}` of a recipe in a text, the outermost ones."""
    at = 0
    while found := re.compile(rf"\b(?:{'|'.join(PARTS)}): (?=\{{)").search(text, at):
        depth, at = 0, found.end()
        while at < len(text) and (depth or at == found.end()):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield text[found.start() : at]


def recipe_of(part: str) -> dict[str, Any]:
    """A recipe with the part of one, whose placeholders are filled in."""
    for pattern, value in FILLED:
        part = re.sub(pattern, value, part)
    ((key, value),) = yaml.safe_load(part).items()
    if key == "model" and "op" in value:
        made: dict[str, Any] = {"schema": 1, "target": "host"}
    else:
        made = {"schema": 1, "target": "host", "model": {"file": "net.tflite"}, **deepcopy(BESIDE.get(key, {}))}
    if key == "matrix":
        del made["target"]
    place = made
    for name in PARTS[key][:-1]:
        place = place.setdefault(name, {})
    last = PARTS[key][-1]
    place[last] = {**place[last], **value} if isinstance(place.get(last), dict) else value
    return made


def test_lines_of_recipes_are_taken() -> None:
    found = [(module, part) for module, text in told() for part in parts(text)]
    assert len(found) > 10
    wrong = {}
    for module, part in found:
        try:
            load_recipes(recipe_of(part), root=ROOT, registry=default_registry())
        except (PipelineError, yaml.YAMLError) as error:
            wrong[f"{module}: {part}"] = str(error)
    assert wrong == {}


def test_commands_mean_something() -> None:
    matches = [(module, found) for module, text in told() for found in COMMAND.finditer(text)]
    commands = [(module, (found[1] or found[2]).removeprefix("doit ").strip()) for module, found in matches]
    assert len(commands) > 30
    wrong = {}
    for module, typed in commands:
        words = typed.replace("…", "NAME").replace("...", "NAME")
        if not words.startswith("NAME") and (fault := mistake(words, recipes=False)):
            wrong[f"{module}: doit {typed}"] = fault
    assert wrong == {}
