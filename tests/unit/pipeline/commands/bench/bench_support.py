"""A small suite, and reports as the report stage writes them, so that `doit bench` is tested without a simulator."""

from pathlib import Path
from typing import Any

from pipeline.commands.bench.cases import Case
from pipeline.commands.bench.record import Record, record_of
from pipeline.commands.bench.suite import PublishedBaseline

SUITE = """\
schema: 1
rows:
  - name: net
    recipe: demo
    targets: [rv64-rvp, rv64-scalar]
    peers:
      - {name: RFC, targets: [rv64-rvp], value: 5000, source: their paper}
      - {name: Core, targets: [rv64-rvp], value: 3000, unit: cycles, source: its vendor}
  - name: net_fp32
    recipe: demo
    model: {zoo: ds_cnn, dtype: float32}
    targets: [rv64-scalar]
    peers: [{name: RFC, targets: [rv64-scalar], value: 20000, source: their paper}]
  - name: real
    recipe: demo
    file: folder/real.tflite
    targets: [rv64-rvp]
    at_most: {rv64-rvp: 1000}
ratios:
  - name: Net
    sides: [FP32, int8]
    numerator: {row: net_fp32, target: rv64-scalar}
    denominator: {row: net, target: rv64-rvp}
    at_least: 0.5
models: {recipe: demo, targets: [rv64-rvp, rv64-scalar]}
layers: {recipes: [layers/pooling], targets: [rv64-rvp]}
times: {recipe: demo, changed: stages.emit.unroll=2}
"""


def suite_file(folder: Path, text: str = SUITE) -> Path:
    path = folder / "suite.yaml"
    path.write_text(text)
    return path


def case(row: str = "net", target: str = "rv64-rvp", peers: tuple[PublishedBaseline, ...] = ()) -> Case:
    return Case(row, target, {}, "demo", peers)


def report(
    layers: tuple[tuple[str, int | None], ...] = (("conv", 600), ("softmax", 400)),
    *,
    rom: int = 10_000,
    ram: int = 2_000,
    mismatches: int = 0,
    sha256: str = "ab" * 32,
    relative: float | None = None,
    cycles: bool = False,
    share: float | None = None,
) -> dict[str, Any]:
    """A report.json with layers of these names and instructions, and 500 MACs in all.

    With `cycles` it is one of a board with an accelerator, whose outputs differ from LiteRT's by `share`.
    """
    counts = [count for _, count in layers]
    return {
        "model": {"name": "net", "sha256": sha256, "macs": 500},
        "verify": {
            "inputs": 2,
            "outputs_checked": 20,
            "mismatches": mismatches,
            "layers_checked": len(layers),
            "distance": None if share is None else {"outputs": {"share": share, "largest": 3.0}},
            "float": None if relative is None else {"max_relative": relative, "tolerance": 1e-4},
        },
        "instructions": {"total": None if None in counts else sum(count or 0 for count in counts)},
        "cycles": {"core": 300, "waiting": 700, "engine": 650, "dma": 90, "predicted": {"total": 990}}
        if cycles
        else None,
        "memory": {
            "arena_bytes": 1_500,
            "ram_bytes": ram,
            "rom_bytes": rom,
            "stack_bytes": 100,
            "weights_bytes": 7_000,
        },
        "layers": [
            {"name": name, "op": f"{name}_op", "kernel": "generic.any", "macs": 0, "instructions": count, "why": "x"}
            for name, count in layers
        ],
        "tools": {"tvm": "0.27", "compiler": "12.2.0"},
    }


def record(*args: Any, row: str = "net", target: str = "rv64-rvp", **kwargs: Any) -> Record:
    return record_of(case(row, target), report(*args, **kwargs))
