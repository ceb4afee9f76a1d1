"""The shared float networks quantized on their real inputs, beside the int8 files that others published of them:

    python -m tests.float_models [--targets rv64-rvp,cortex-m4] [--folder build/float_models]

For each network the instructions of one inference, how far the integers are from the float network on the inputs (the
share of the same class, the noise of the outputs), and the firmware's verdict. The networks are those of the folder
FIRMLINE_MODELS, or of ../shared/models beside the repository; without them there is nothing to show. A minute for each.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.api import run_recipe
from stages.models.tflite_reader import read
from stages.ptq.compare import Comparison, compare
from stages.ptq.constants import narrow_constants, with_float_constants
from stages.ptq.data import Sample, evaluation
from stages.ptq.quantizer import Quantized
from stages.ptq.stage import PtqConfig
from stages.reference import Reference
from stages.samples.named import files_named
from stages.system.installation import INSTALLATION as ROOT


@dataclass(frozen=True)
class Network:
    """A float file, the int8 file of the same network, and inputs: `encoding` says how numbers stand in these."""

    name: str
    floats: str
    integers: str
    inputs: str
    encoding: dict[str, Any] | None


NETWORKS = (
    Network("kws", "kws_ref_model_float32", "kws_ref_model", "aww", None),
    Network("vww", "vww_96_float", "vww_96_int8", "vww", None),
    Network(
        *("ic", "pretrainedResnet", "pretrainedResnet_quant", "resnet"),
        {"dtype": "int8", "scale": 1.0, "zero_point": -128},
    ),
    Network("ad", "ad01_fp32", "ad01_int8", "toycar", None),
)
COLUMNS = ("network", "target", "verify", "instructions", "published", "class", "published", "SNR", "published")


def main() -> int:
    """Prints the table; exit code 1 without networks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default="rv64-rvp")
    parser.add_argument("--folder", default="build/float_models", help="where the runs leave what they make")
    given = parser.parse_args()
    models = Path(os.environ.get("FIRMLINE_MODELS") or ROOT.parent / "shared/models").resolve()
    networks = [network for network in NETWORKS if (models / f"float/{network.floats}.tflite").exists()]
    if not networks:
        print(f"no float networks in {models}/float; FIRMLINE_MODELS names the folder", file=sys.stderr)
        return 1
    rows = [
        row(network, target, models, Path(given.folder)) for network in networks for target in given.targets.split(",")
    ]
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    for cells in rows:
        print("| " + " | ".join(cells) + " |")
    return 0


def row(network: Network, target: str, models: Path, build: Path) -> tuple[str, ...]:
    """One line of the table: the float file through calibration to firmware, and the published file to firmware."""
    base = "rvp_base" if "rvp" in target else "cortex_m_base"
    inputs = {"random": 1, "seed": 1, "extremes": False}
    data = {"files": [f"{models}/inputs/{network.inputs}/input/*.bin"], "encoding": network.encoding}
    recipe = {"schema": 1, "extends": base, "target": target}
    ours = run_recipe(
        {
            **recipe,
            "name": f"{network.name}_float",
            "model": {"file": f"{models}/float/{network.floats}.tflite"},
            "stages": {"quantize": {"mode": "calibrate", "data": data}, "simulate": {"inputs": inputs}},
        },
        build=build,
    ).report
    theirs = run_recipe(
        {
            **recipe,
            "name": f"{network.name}_published",
            "model": {"file": f"{models}/mlperf_tiny/{network.integers}.tflite"},
            "stages": {"simulate": {"inputs": inputs}},
        },
        build=build,
    ).report
    assert ours is not None and theirs is not None
    found = ours["quantization"]
    other = published(network, models)
    return (
        *(network.name, target, f"{ours['verify']['mismatches']} of {ours['verify']['outputs_checked']:,}"),
        *(f"{ours['instructions']['total']:,}", f"{theirs['instructions']['total']:,}"),
        *_classes(network, found["accuracy"]["agree"], other.agree / other.samples),
        *(f"{found['snr']:.1f} dB", f"{other.outputs.snr:.1f} dB"),
    )


def _classes(network: Network, *shares: float) -> list[str]:
    """How often the class is that of the float network; an autoencoder has none."""
    return ["" if network.name == "ad" else f"{share:.0%}" for share in shares]


def published(network: Network, models: Path) -> Comparison:
    """How far the published int8 file is from the float one on the same inputs."""
    data = (models / f"float/{network.floats}.tflite").read_bytes()
    info = read(data)
    if narrow_constants(info):
        data = with_float_constants(data, info)
    reference = Reference(data)
    given = {"files": [f"{models}/inputs/{network.inputs}/input/*.bin"], "encoding": network.encoding}
    options = PtqConfig.model_validate({"mode": "calibrate", "data": {"random": {}}, "evaluate": given})
    files = files_named(given["files"], ROOT, ())
    samples: list[Sample] | None = evaluation(options, {f"evaluate: {k}": v for k, v in files.items()}, reference.info)
    assert samples is not None
    integers = (models / f"mlperf_tiny/{network.integers}.tflite").read_bytes()
    return compare(reference, Quantized(integers, read(integers), {}), samples, lambda number: None)


if __name__ == "__main__":
    sys.exit(main())
