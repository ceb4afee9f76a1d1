"""`doit init FOLDER`: create a project with a recipe that runs."""

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pipeline.commands.command import JSON, Command, variables
from pipeline.documents.overrides import check_assignments, parse_overrides
from pipeline.documents.pyproject import pyproject_table
from pipeline.errors import PipelineError, RecipeError
from pipeline.plugins.registry import registry_of
from pipeline.project import DODO, PROJECT_FILE, RECIPES, Project, check_owner
from pipeline.recipes.json_schema import SCHEMA, schema_text
from pipeline.recipes.recipe_files import recipe_names
from pipeline.recipes.targets import load_targets, unknown_target_error
from stages.backends.targets.spec import Target
from stages.base import StageError
from stages.ir.models.graphs import graphs
from stages.ir.models.spec import models_in
from stages.ir.models.zoo.names import check
from stages.support.messages import escape
from stages.support.options.names import as_name
from stages.support.system.installation import INSTALLATION, is_clone
from stages.support.system.pathname import describe_path, located, variable_hint

VARIABLES = ("model", "target", "board")
_FILES = Path(__file__).with_name("files")
_MODELS = "models"
_OF_ONNX = """\
# Set unknown dimensions with shapes: {images: [1, 3, 96, 96]}. With layout: nhwc, inputs and outputs with four axes
# are images with channels last, and nothing is transposed at run time.
"""
_WORKFLOW = ".github/workflows/firmware.yml"
# Tools that compile the simulators' plug-ins, and one that Spike starts.
_PACKAGES = ("gcc", "g++", "device-tree-compiler")


class Init(Command):
    """`doit init FOLDER`."""

    name = "init"
    group = "start"
    examples = (
        ("my_project", "a project with a built-in model"),
        ("my_project model=net.tflite target=cortex-m4", "a project for a model of your own"),
    )
    names_shown = "FOLDER"
    comma_lists = False
    keys_help = (
        ("NAME", "the new folder; it may have other files"),
        ("model", "a .tflite or .onnx file, which is copied to models/, or zoo:NAME"),
        ("target", "core or board (`doit targets`); several become the matrix of the recipe"),
    )
    names = "folder"
    cmd_options = (JSON,)
    variables = VARIABLES
    doc_purpose = "create a project with a recipe that runs"
    doc_usage = "FOLDER [model=net.tflite] [target=…] [--json]"
    doc_description = "Writes pipeline.yaml, recipes/, dodo.py, .gitignore and a CI workflow. Overwrites nothing."

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        if len(named) != 1:
            raise PipelineError("doit init needs one folder, such as `doit init my_project`")
        written = new_project(Path(named[0]), **variables())
        if options["json"]:
            print(json.dumps({"folder": named[0], "files": written}))
            return 0
        folder = escape.name(named[0], 200)
        for path in written:
            print(escape.line(f"{folder}/{path}"))
        recipe = next(Path(path).stem for path in written if path.startswith(f"{RECIPES}/"))
        print(f"next: cd {shlex.quote(str(folder))} && doit run {recipe}")
        return 0


def new_project(folder: Path, *, model: str = "zoo:ds_cnn", target: str = "", board: str = "") -> list[str]:
    """Create a project in a folder, which may have other files. Returns the paths written.

    Several targets, separated by commas, become the matrix of the recipe; the default is rv64-rvp. `model` is a TFLite
    or ONNX file, which is copied, or `zoo:NAME`. Raises PipelineError; nothing is written then.
    """
    target = target or board or "rv64-rvp"
    check_assignments({"model": model, "target": target}.items(), VARIABLES)
    root = Path(folder).expanduser().absolute()
    if is_clone(root):
        raise PipelineError(f"{escape.name(str(folder), 200)} is a clone of Firmline, which is already a project")
    check_owner(Project(root))
    targets = load_targets(Project(root))
    named = known_targets(target, targets)
    content: dict[str, bytes] = {}
    entry = _model(model, root, content)
    name = _recipe_name(root)
    values = _recipe_values(name, named, entry) | {
        "packages": " ".join(
            sorted({*_PACKAGES, *(package for other in targets.values() for package in _packages(other))})
        ),
        "wheel": f"firmline-{pyproject_table('project')['version']}-py3-none-any.whl",
    }
    texts = {
        PROJECT_FILE: _fill_template("pipeline.yaml", values),
        f"{RECIPES}/{name}.yaml": _fill_template("recipe.yaml", values),
        DODO: _fill_template("dodo.py.txt", values),
        ".gitignore": _fill_template("gitignore", values),
        _WORKFLOW: _fill_template("workflow.yml", values),
        SCHEMA: schema_text(registry_of(Project(root))),
    }
    content = {path: text.encode() for path, text in texts.items()} | content
    shown = escape.name(str(folder), 200)
    existing = [path for path in content if (root / path).exists() or (root / path).is_symlink()]
    if existing:
        raise PipelineError(f"{shown}/{escape.name(existing[0], 200)} already exists", hint="nothing was written")
    write_files(root, content, f"{shown} cannot become a project")
    return list(content)


def _model(model: str, root: Path, content: dict[str, bytes]) -> dict[str, str]:
    """Return the recipe's model entry; a file outside of the project is added to `content`.

    A path with a variable stays as it is: runs read the variable as well.
    """
    (override,) = parse_overrides({"model": model})
    entry: dict[str, str] = override.value
    if "zoo" in entry:
        try:
            check(entry["zoo"])
        except ValueError as error:
            raise RecipeError(str(error)) from None
        return entry
    variable = variable_hint(entry["file"])
    path = located(entry["file"], root) if variable else Path(entry["file"]).expanduser().absolute()
    try:
        # Reading a pipe would block.
        if path.exists() and not path.is_file():
            raise not_a_file(model, path)
        data = path.read_bytes()
        if path.suffix.lower() != ".onnx":
            graphs(data, path.name)
    except OSError as error:
        raise RecipeError(f"model={escape.name(model, 200)}: cannot be read: {error.strerror}", hint=variable) from None
    except StageError as error:
        raise RecipeError(f"model={escape.name(model, 200)}: {error.message}", hint=error.hint) from None
    if variable:
        return entry
    place = place_of_model(path, root)
    if not path.is_relative_to(root):
        content[place] = data
    return {"file": place}


def not_a_file(text: str, path: Path) -> RecipeError:
    """Return the error for `model=text` if no file is at `path`."""
    kind = describe_path(path)
    hints = (models_in(path), variable_hint(text))
    message = f"model={escape.name(text, 200)}: {f'is {kind}, not a file' if kind else 'no such file'}"
    return RecipeError(message, hint="\n".join(filter(None, hints)))


def place_of_model(path: Path, root: Path) -> str:
    """Return the path of a model file in a project.

    It is unchanged if the file is inside. Otherwise it is the copy's path in models/.
    """
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else f"{_MODELS}/{path.name}"


def known_targets(text: str, targets: Mapping[str, Target]) -> list[Target]:
    """Return the targets of `a,b`, each once. Raises RecipeError for an unknown name."""
    names = dict.fromkeys(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in targets:
            raise unknown_target_error(name, targets)
    return [targets[name] for name in names]


def _recipe_name(root: Path) -> str:
    """Return the folder's name as a valid recipe name that no built-in recipe has."""
    name = as_name(root.resolve().name) or "network"
    return f"my_{name}" if name in recipe_names(INSTALLATION, abstract=True) else name


def _recipe_values(name: str, targets: Sequence[Target], entry: Mapping[str, str]) -> dict[str, str]:
    target = targets[0]
    base = base_recipe(target)
    other = targets[1].name if len(targets) > 1 else "host" if target.name != "host" else "rv32-scalar"
    extends = f"extends: {base}\n" if base else ""
    names = [target.name for target in targets] if len(targets) > 1 else [target.name, other]
    matrix = yaml.safe_dump({"matrix": {"target": names}}, default_flow_style=True, width=math.inf)
    of_onnx = entry.get("file", "").lower().endswith(".onnx")
    written = yaml.safe_dump(dict(entry), default_flow_style=True, allow_unicode=True, width=math.inf)
    return {
        "name": name,
        "what": escape.line(Path(*entry.values()).name),
        "target": target.name,
        "other": other,
        "matrix": "# " * (len(targets) < 2) + matrix.strip().removeprefix("{").removesuffix("}"),
        "extends": extends,
        "model": written.rstrip(),
        "reference": "ONNX Runtime" if of_onnx else "LiteRT",
        "onnx": _OF_ONNX if of_onnx else "",
    }


def base_recipe(target: Target) -> str:
    """Return the name of the built-in base recipe, '' for none.

    A core's base recipe is not used with an accelerator: its layouts may not suit the engine.
    """
    if target.accelerator is not None:
        name = f"{target.accelerator.kind}_base"
        return name if name in recipe_names(INSTALLATION, abstract=True) else ""
    # Use the layouts of the target's first kernel folder; generic kernels support all layouts.
    names = recipe_names(INSTALLATION, abstract=True)
    isa = target.kernels[0] if target.kernels[0] != "generic" else ""
    return next((f"{name}_base" for name in (isa, target.family) if isa and f"{name}_base" in names), "")


def _packages(target: Target) -> tuple[str, ...]:
    return (*target.compiler.packages, *target.simulator.packages)


def _fill_template(name: str, values: Mapping[str, str]) -> str:
    """Return a file of files/ with each `@name@` replaced.

    `$` and `{}` have other meanings in these files.
    """
    text = (_FILES / name).read_text(encoding="utf-8")
    return re.sub("@([a-z]+)@", lambda match: values[match[1]], text)


def write_files(root: Path, content: Mapping[str, bytes], failure: str) -> None:
    """Write new files, or none; missing folders are created.

    Raises PipelineError that begins with `failure`.
    """
    created: list[Path] = []
    try:
        for path, data in content.items():
            place = root / path
            missing = [folder for folder in place.parents if not folder.exists()]
            for folder in reversed(missing):
                folder.mkdir()
                created.append(folder)
            # Exclusive mode: never overwrite a file that appears meanwhile.
            with place.open("xb") as stream:
                created.append(place)
                stream.write(data)
    except OSError as error:
        for place in reversed(created):
            if place.is_dir():
                place.rmdir()
            else:
                place.unlink()
        raise PipelineError(f"{failure}: {error.strerror}", hint="nothing was written") from None
