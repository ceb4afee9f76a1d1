"""Builds and runs an emitted model with the firmware harness: inputs in, outputs and every layer's trace out."""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.targets.load import load_target
from stages.backends.targets.runtime import HARNESS
from stages.backends.targets.spec import Target
from stages.backends.toolchain.compiler import Source
from stages.ir.packed import unpack
from stages.ir.tensor_layout import Layout

ROOT = Path(__file__).resolve().parents[2]
_INPUTS_MAGIC, _TRACE = 0x4E494C46, 1


@dataclass(frozen=True)
class Inference:
    """`outputs` in the model's order; `traces` by tensor name, as NHWC; `instructions` for each layer."""

    outputs: list[np.ndarray]
    traces: dict[str, np.ndarray]
    instructions: list[int]


def target_named(name: str) -> Target:
    """A target of the project's pipeline.yaml."""
    return load_target(name)


def run_emitted(
    artifact: Path,
    target: Target,
    inferences: Sequence[Sequence[np.ndarray]],
    *,
    flags: Sequence[str] = ("-O1",),
    resets: Sequence[int] = (),
) -> list[Inference]:
    """Runs the emit artifact (a folder with src/ and model.json) on `target`, once for each list of inputs.

    `resets` are numbers of inferences before which a network with state is reset.
    """
    model = json.loads((artifact / "model.json").read_text())
    src = artifact / "src"
    files = [f for kind in ("c", "assembly", "trace") for f in model["sources"][kind]]
    arguments = {
        kind: ",".join(str(port["bytes"]) for port in model[f"{kind.lower()}s"]) for kind in ("INPUT", "OUTPUT")
    }
    header = struct.pack("<4IQ", _INPUTS_MAGIC, len(inferences), _TRACE, 0, 0)
    data = b""
    for number, inputs in enumerate(inferences):
        data += int(number in resets).to_bytes(4, "little") if "state" in model else b""
        data += b"".join(np.ascontiguousarray(x).tobytes() for x in inputs)
    run = compile_and_run_c(
        target,
        [Source(src / f, ("-std=c11",) if f.endswith(".c") else ()) for f in files],
        (HARNESS / "main.c").read_text(),
        include=[src],
        flags=[*flags, "-DMODEL_HOOK", *(f"-DHARNESS_{kind}_BYTES={sizes}" for kind, sizes in arguments.items())],
        files={"inputs.bin": header + data},
        outputs=["outputs.bin", "trace.bin", "counts.bin"],
    )
    outputs, traces = _Reader(run.files["outputs.bin"]), _Reader(run.files["trace.bin"])
    counts = np.frombuffer(run.files["counts.bin"], np.uint64).reshape(len(inferences), -1)
    return [
        Inference(
            [outputs.take(port["dtype"], port["shape"]) for port in model["outputs"]],
            traces.take_all(model["traces"], model.get("calls", ())),
            [int(count) for count in row[:-1]],
        )
        for row in counts
    ]


class _Reader:
    """Arrays one after the other in a file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, dtype: str, shape: Sequence[int], layout: str = "") -> np.ndarray:
        order = Layout(layout)
        return _array(self._bytes(order.bytes(shape, 8 * np.dtype(dtype).itemsize)), dtype, shape, order)

    def take_all(
        self, traces: Sequence[Mapping[str, Any]], calls: Sequence[Sequence[int]] = ()
    ) -> dict[str, np.ndarray]:
        """Traces by tensor name. `calls` of model.json: of layers by rows the values come in parts."""
        if not calls:
            return {t["tensor"]: self.take(t["dtype"], t["shape"], t["layout"]) for t in traces}
        parts: dict[str, list[np.ndarray]] = {t["tensor"]: [] for t in traces}
        for layer, *rows in calls:
            for t in traces:
                if t["layer"] == layer:
                    order = Layout(t["layout"])
                    size = rows[0] if rows else order.bytes(t["shape"], 8 * np.dtype(t["dtype"]).itemsize)
                    parts[t["tensor"]].append(self._bytes(size))
        return {
            t["tensor"]: _array(np.concatenate(parts[t["tensor"]]), t["dtype"], t["shape"], Layout(t["layout"]))
            for t in traces
        }

    def _bytes(self, size: int) -> np.ndarray:
        self.position += size
        return np.frombuffer(self.data, np.uint8, size, self.position - size)


def _array(data: np.ndarray, dtype: str, shape: Sequence[int], order: Layout) -> np.ndarray:
    return unpack(data if order.bits else data.view(dtype), order, shape, dtype=dtype)
