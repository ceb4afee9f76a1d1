"""`doit weights`: write the weights of a new model as a blob for existing firmware."""

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline.api import run_recipe
from pipeline.commands.command import JSON, Command, single_recipe, variables
from pipeline.commands.target_results import print_results
from pipeline.documents.overrides import RECIPE_VARIABLES
from pipeline.errors import PipelineError
from pipeline.keys.package_groups import install_group
from pipeline.plugins.registry import registry_of
from pipeline.project import Project, current_project
from pipeline.recipes.loader import LoadedRecipe, load_recipe
from stages.emit.blob import Blob, BlobError
from stages.emit.blob_differences import differences
from stages.support.messages import escape
from stages.support.system.atomic_write import write_atomically

_FIRMWARE, _TO = "firmware", "to"
_SHOWN = 5  # differences in a message


class Weights(Command):
    """`doit weights`."""

    name = "weights"
    group = "ship"
    examples = (
        ("my_recipe model=retrained.tflite", "a blob for the firmware of my_recipe"),
        ("my_recipe model=retrained.tflite firmware=release-1/weights.bin", "for firmware that was shipped before"),
    )
    keys_help = (
        ("firmware", "a blob that the firmware accepts; without it the firmware is that of the recipe as it is now"),
        ("to", "the file; default build/NAME/TARGET/weights/MODEL.bin"),
    )
    variables = RECIPE_VARIABLES
    names = "recipe"
    own_variables = (_FIRMWARE, _TO)
    doc_purpose = "write the weights of a new model as a blob for existing firmware"
    doc_usage = "NAME model=new.tflite [firmware=weights.bin] [to=FILE] [target=… set=…] [--json]"
    doc_description = (
        "The recipe has `emit: {weights: caller}`. The new model is verified with the code of the firmware before its "
        "blob is written. If it needs other code, nothing is written. docs/how-to/update_weights.md shows an update in "
        "the field."
    )
    cmd_options = (JSON,)

    def _perform(self, named: list[str], options: dict[str, Any]) -> int:
        values = {**self.own_values, **variables()}
        firmware, to = (values.pop(key, "").strip() for key in (_FIRMWARE, _TO))
        recipe = single_recipe(self.name, values, named)
        if not values.get("model", "").strip():
            raise PipelineError("doit weights needs model=FILE, the new network")
        project = current_project()
        print_results(
            values,
            lambda of_target, display: write_weights(recipe, of_target, firmware, to, project=project, display=display),
            _summary,
            as_json=options["json"],
            file=f"to={escape.name(to, 200)}: a blob is for one target" if to else "",
        )
        return 0


def write_weights(
    recipe: str,
    overrides: Mapping[str, str],
    firmware: str = "",
    to: str = "",
    *,
    project: Project,
    display: Any = None,
    store: Path | None = None,
) -> dict[str, Any]:
    """Verify the model of `overrides` with the firmware's code, and write its blob.

    firmware  path of a blob that the firmware accepts; '' for the firmware of the recipe with its own model
    to        path of the new file; '' for the default

    Returns {recipe, target, file, bytes, fingerprint, outputs: compared output values, reference}.
    Raises PipelineError with the differences if the new model needs other code; then nothing is written.
    """
    loaded = load_recipe(recipe, root=project, registry=registry_of(project), variables=dict(overrides))
    _check_recipe(loaded)
    accepted = _read_blob(project, firmware).fingerprint.hex() if firmware else ""
    where: dict[str, Any] = {"root": project, "display": display, "store": store, "install": install_group}
    where["record"] = False
    new = run_recipe(recipe, dict(overrides), until="emit", **where).artifacts["emit"]
    model = json.loads((new / "model.json").read_text())
    if not firmware or model["fingerprint"] != accepted:
        unchanged = {key: value for key, value in overrides.items() if key != "model"}
        old = run_recipe(recipe, unchanged, until="emit", **where).artifacts["emit"]
        expected = json.loads((old / "model.json").read_text())["fingerprint"]
        if model["fingerprint"] != (accepted or expected):
            raise _refusal(overrides["model"], old, new, other_firmware=bool(firmware) and accepted != expected)
    run = run_recipe(recipe, dict(overrides), until="verify", **where)
    verdict = json.loads((run.artifacts["verify"] / "verify.json").read_text())
    folder = Path("build") / loaded.recipe.name / loaded.variant / loaded.target.name / "weights"
    place = Path(to) if to else folder / f"{Path(overrides['model'].replace(':', '_')).stem}.bin"
    content = (new / "src/weights.bin").read_bytes()
    try:
        (project.root / place).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(project.root / place, content)
    except OSError as error:
        raise PipelineError(f"{escape.name(str(place))} cannot be written: {error.strerror}") from None
    return {
        "recipe": loaded.title,
        "target": loaded.target.name,
        "file": str(place),
        "bytes": len(content),
        "fingerprint": model["fingerprint"],
        "outputs": verdict["outputs_checked"],
        "reference": verdict["reference"],
    }


def _check_recipe(loaded: LoadedRecipe) -> None:
    options: Any = loaded.recipe.config("emit")
    if getattr(options, "weights", "") != "caller":
        raise PipelineError(
            f"the weights of recipe '{loaded.title}' are part of its code",
            hint="`stages: {emit: {weights: caller}}` makes them a blob (docs/how-to/update_weights.md)",
        )
    if "verify" not in loaded.sequence.names:
        raise PipelineError(
            f"recipe '{loaded.title}' has no stage verify", hint="a blob is verified before it is written"
        )


def _read_blob(project: Project, path: str) -> Blob:
    shown = escape.name(path)
    try:
        return Blob.unpacked((project.root / path).read_bytes())
    except OSError as error:
        raise PipelineError(f"firmware={shown} cannot be read: {error.strerror}") from None
    except BlobError as error:
        raise PipelineError(f"firmware={shown}: {error}") from None


def _refusal(model: str, old: Path, new: Path, *, other_firmware: bool) -> PipelineError:
    """Return the error for a model that needs other code than the firmware's."""
    lines = list(islice(differences(old, new), _SHOWN + 1))
    message = f"{escape.name(model)} needs other code than the firmware has"
    if other_firmware:
        lines = ["firmware= is a blob of another recipe, target or model, or recipe or Firmline changed since then"]
    if len(lines) > _SHOWN:
        lines[_SHOWN:] = ["…"]
    return PipelineError("\n".join([message, *lines]), hint="nothing was written; build and ship a new firmware")


def _summary(result: Mapping[str, Any]) -> list[str]:
    source = f"{result['recipe']} on {result['target']}, fingerprint {result['fingerprint'][:16]}"
    equal = f"0 mismatches in {result['outputs']:,} values against {result['reference']}"
    return [f"{result['file']}: {result['bytes']:,} bytes for {source}", f"verified with the firmware's code: {equal}"]
