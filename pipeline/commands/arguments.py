"""Arguments of all commands: the words `key=value`, for help, completion and errors.

    key=value   selects: recipe=, target=, model=, days=; several values are separated by commas
    --flag      switches: --check, --json
    NAME        is short for the command's main key

`--key value` and the plural `keys=` are accepted for `key=`, and `key=` for an option that takes a value.
"""

from collections.abc import Iterable, Mapping

# What each key selects. A command may describe its keys differently in `keys_help`.
KEYS: Mapping[str, str] = {
    "recipe": "recipes, as NAME",
    "target": "core or board instead of that of the recipe; target=a,b takes each in turn",
    "board": "the same as target=",
    "model": "model instead of that of the recipe: a .tflite or .onnx file, or zoo:NAME",
    "run_on": "run on a board behind a GDB server: gdb://HOST:PORT",
    "set": "other values of the recipe: set=stages.simulate.inputs.seed=3,stages.emit.weights=c",
    "executor": "where stages run: local, dask, or tls://HOST:PORT of a scheduler",
}
# Names that a command takes without a key.
NAMES: Mapping[str, str] = {
    "recipes": "recipes by name, glob or file; NAME:STAGE ends at a stage, NAME:VARIANT is a variant of a matrix",
    "recipe": "a recipe by name or file; NAME:VARIANT is a variant of a matrix",
    "targets": "cores and boards, with * and ?",
    "boards": "boards, with * and ?",
}


def key_of(typed: str, known: Iterable[str]) -> str:
    """Return the key that a typed name means, '' if unknown.

    `targets` and `dry-run` mean `target` and `dry_run`.
    """
    name = typed.replace("-", "_")
    known = tuple(known)
    return next((key for key in (name, name.removesuffix("s")) if key in known), "")


def spellings(known: Iterable[str]) -> list[str]:
    """Return all names that `key_of` accepts for these keys as `--name value`."""
    names = [spelling for key in known for spelling in (key, f"{key}s")]
    return [name.replace("_", "-") for name in names] + [name for name in names if "_" in name]
