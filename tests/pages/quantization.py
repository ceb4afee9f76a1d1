"""Figures of docs/how-to/quantization.md: search of `digits_ptq`, recipes in recipes/float, published int8 files.

The last two need the networks of FIRMLINE_MODELS, or of ../shared/models; without them their tables stay.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.api import run_recipe
from pipeline.commands.search import Measurement, search
from pipeline.plugins.registry import default_registry
from pipeline.recipes.loader import load_recipe
from stages.ir.models.spec import FileModel
from stages.ir.models.tflite_reader import read
from stages.ir.reference import Reference
from stages.ptq.compare import Comparison, compare
from stages.ptq.constants import narrow_constants, with_float_constants
from stages.ptq.data import evaluation, external_files
from stages.ptq.quantizer import Quantized
from stages.quantize.options import EvaluationData, QuantizeOptions
from stages.support.system.installation import INSTALLATION as ROOT
from stages.support.system.pathname import located
from tests.pages.tables import Row, rewritten

PAGE = ROOT / "docs/how-to/quantization.md"
SEARCHED, TARGET = "digits_ptq", "rv64-rvp"


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


def of_search(found: Sequence[Measurement]) -> Callable[[Row], Row]:
    """Rows of the candidates that the table has."""
    by_name = {one.candidate.name: one for one in found}

    def figures(row: Row) -> Row:
        one = by_name[row[0]]
        assert not one.error, one.error
        return row[0], f"{one.loss:.2f}", f"{one.snr:.1f}", f"{one.instructions:,}", f"{one.ram:,}", f"{one.rom:,}"

    return figures


def of_recipe(row: Row) -> Row:
    """A row of a recipe in recipes/float: its target, what is not int8, instructions, RAM, ROM and noise."""
    recipe, _, what, *_ = row
    done = run_recipe(recipe.strip("`"))
    report = done.report
    assert report is not None
    numbers = (report["instructions"]["total"], report["memory"]["ram_bytes"], report["memory"]["rom_bytes"])
    found = report["quantization"]
    noise = f"{found['snr']:.1f} dB" if found else ""
    return recipe, done.target, what, *(f"{number:,}" for number in numbers), noise


def of_network(row: Row) -> Row:
    """The float file through calibration to firmware on TARGET, beside the int8 file that others published."""
    network = next(one for one in NETWORKS if one.name == row[0])
    ours = run_recipe(network.recipe, {"target": TARGET}, build=ROOT / "build").report
    file = {"file": network.integers}
    recipe = {"schema": 1, "name": f"{network.name}_published", "extends": f"float/{network.name}_float", "model": file}
    theirs = run_recipe(recipe, {"target": TARGET}, build=ROOT / "build").report
    assert ours is not None and theirs is not None
    found, other = ours["quantization"], published(network)
    return (
        *(network.name, f"{ours['verify']['mismatches']} of {ours['verify']['outputs_checked']:,}"),
        *(f"{ours['instructions']['total']:,}", f"{theirs['instructions']['total']:,}"),
        *_classes(network, found["accuracy"]["agree"], other.agree / other.samples),
        *(f"{found['snr']:.1f} dB", f"{other.outputs.snr:.1f} dB"),
    )


def _classes(network: Network, *shares: float) -> list[str]:
    """How often the class is that of the float network; an autoencoder has none."""
    return ["no classes" if network.name == "ad" else f"{100 * share:.0f} %" for share in shares]


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


def there() -> bool:
    """Whether the networks of recipes/float are on this machine."""
    return all(located(network.integers, ROOT).exists() for network in NETWORKS)


def renewed(page: str) -> str:
    """The page with the figures of today."""
    found, _ = search(SEARCHED)
    page = rewritten(page, "candidate", of_search(found))
    if not there():
        print(f"{PAGE.name}: there is no {NETWORKS[0].integers}; two tables stay as they are", file=sys.stderr)
        return page
    page = rewritten(page, "recipe", of_recipe)
    return rewritten(page, "network | mismatches against LiteRT", of_network)
