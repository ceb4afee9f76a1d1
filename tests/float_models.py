"""The shared float networks quantized on their real inputs, beside the int8 files that others published of them:

    python -m tests.float_models [--targets rv64-rvp,cortex-m4] [--folder build/float_models]

For each network, with its recipe in recipes/float, the instructions of one inference, how far the integers are from the
float network on the inputs (the share of the same class, the noise of the outputs), and the firmware's verdict. The
networks are those of the folder FIRMLINE_MODELS, or of ../shared/models beside the repository; without them there is
nothing to show. Some ten seconds for each.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from pipeline.api import run_recipe
from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import load_recipe
from stages.models.spec import FileModel
from stages.models.tflite_reader import read
from stages.options.quantization import EvaluationData, QuantizeOptions
from stages.ptq.compare import Comparison, compare
from stages.ptq.constants import narrow_constants, with_float_constants
from stages.ptq.data import evaluation, external_files
from stages.ptq.quantizer import Quantized
from stages.reference import Reference
from stages.system.installation import INSTALLATION as ROOT
from stages.system.pathname import located


@dataclass(frozen=True)
class Network:
    """The name before `_ptq` of a recipe in recipes/float, and the published int8 file of the same network."""

    name: str
    published: str

    @property
    def recipe(self) -> str:
        return f"float/{self.name}_ptq"

    @property
    def integers(self) -> str:
        return f"${{FIRMLINE_MODELS:-../shared/models}}/mlperf_tiny/{self.published}.tflite"


NETWORKS = (
    Network("kws", "kws_ref_model"),
    Network("vww", "vww_96_int8"),
    Network("ic", "pretrainedResnet_quant"),
    Network("ad", "ad01_int8"),
)
COLUMNS = ("network", "target", "verify", "instructions", "published", "class", "published", "SNR", "published")


def main() -> int:
    """Prints the table; exit code 1 without networks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default="rv64-rvp")
    parser.add_argument("--folder", default="build/float_models", help="where the runs leave what they make")
    given = parser.parse_args()
    networks = [network for network in NETWORKS if located(network.integers, ROOT).exists()]
    if not networks:
        print(f"there is no {NETWORKS[0].integers}; FIRMLINE_MODELS names the folder", file=sys.stderr)
        return 1
    rows = [row(network, target, Path(given.folder)) for network in networks for target in given.targets.split(",")]
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for cells in rows:
        print("| " + " | ".join(cells) + " |")
    return 0


def row(network: Network, target: str, build: Path) -> tuple[str, ...]:
    """One line of the table: the float file through calibration to firmware, and the published file to firmware."""
    ours = run_recipe(network.recipe, {"target": target}, build=build).report
    file = {"file": network.integers}
    recipe = {"schema": 1, "name": f"{network.name}_published", "extends": f"float/{network.name}_float", "model": file}
    theirs = run_recipe(recipe, {"target": target}, build=build).report
    assert ours is not None and theirs is not None
    found, other = ours["quantization"], published(network)
    return (
        *(network.name, target, f"{ours['verify']['mismatches']} of {ours['verify']['outputs_checked']:,}"),
        *(f"{ours['instructions']['total']:,}", f"{theirs['instructions']['total']:,}"),
        *_classes(network, found["accuracy"]["agree"], other.agree / other.samples),
        *(f"{found['snr']:.1f} dB", f"{other.outputs.snr:.1f} dB"),
    )


def _classes(network: Network, *shares: float) -> list[str]:
    """How often the class is that of the float network; an autoencoder has none."""
    return ["" if network.name == "ad" else f"{share:.0%}" for share in shares]


def published(network: Network) -> Comparison:
    """How far the published int8 file is from the float one on the recipe's inputs."""
    recipe = load_recipe(network.recipe, root=ROOT, registry=default_registry()).recipe
    assert isinstance(recipe.model, FileModel)
    data = located(recipe.model.file, ROOT).read_bytes()
    info = read(data)
    if narrow_constants(info):
        data = with_float_constants(data, info)
    reference = Reference(data)
    options = recipe.config("quantize")
    assert isinstance(options, QuantizeOptions) and options.data is not None
    judged = EvaluationData(files=options.data.files, encoding=options.data.encoding)
    options = options.model_copy(update={"evaluate": judged})
    samples = evaluation(options, external_files(options, ROOT), reference.info)
    assert samples is not None
    integers = located(network.integers, ROOT).read_bytes()
    return compare(reference, Quantized(integers, read(integers), {}), samples, lambda number: None)


if __name__ == "__main__":
    sys.exit(main())
