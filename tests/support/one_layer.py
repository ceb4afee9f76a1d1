"""Runs single layers natively, with AddressSanitizer and UndefinedBehaviorSanitizer on: a kernel's TIR, its C, or both.

Several layers go into one program, since compiling takes most of the time. Every buffer is a heap block of its exact
size, so that a read or write beyond a tensor, a constant or a scratch buffer ends the program.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from stages.emit.functions import ctype
from stages.emit.lower import CFunction, to_c
from stages.graph import LayerView
from stages.kernels.kernel import Kernel, KernelParams, Lowering
from stages.reference.integer import to_logical, to_physical
from stages.targets.spec import Target
from stages.tensorize.schedule import schedule

INCLUDE = Path(__file__).resolve().parents[2] / "stages" / "kernels" / "include"
FLAGS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@dataclass(frozen=True)
class Case:
    """A layer on data inputs in logical order. `tensorized` False runs the TIR alone, without the micro-kernels."""

    kernel: Kernel
    view: LayerView
    inputs: Sequence[np.ndarray]
    tensorized: bool = True
    params: KernelParams | None = None
    target: Target | None = None


@dataclass
class _Layer:
    case: Case
    lowering: Lowering
    constants: dict[str, np.ndarray]
    function: CFunction = field(init=False)


def run_layers(cases: Sequence[Case], keep: Path | None = None) -> list[np.ndarray]:
    """The first output of each case, in logical order. A sanitizer's complaint is an AssertionError with its text."""
    layers = [_lowered(case) for case in cases]
    functions, roles = {}, {}
    for number, layer in enumerate(layers):
        name = f"layer{number}"
        scheduled = layer.lowering.workload
        if layer.case.tensorized:
            scheduled = schedule(layer.lowering, layer.case.kernel.name, name)
        functions[name] = scheduled.with_attr("global_symbol", name)
        roles[name] = layer.lowering.roles
    for number, printed in enumerate(to_c(functions, roles).values()):
        layers[number].function = printed
    with tempfile.TemporaryDirectory() as folder:
        program = _build(layers, keep or Path(folder))
        data = b"".join(_input_bytes(layer) for layer in layers)
        done = subprocess.run([program], input=data, capture_output=True)
    if done.returncode:
        raise AssertionError(done.stderr.decode(errors="replace")[:4000])
    results, position = [], 0
    for layer in layers:
        out = layer.case.view.outputs[0]
        flat = np.frombuffer(done.stdout, out.dtype, out.elements, position)
        results.append(to_logical(flat, out))
        position += flat.nbytes
    assert position == len(done.stdout)
    return results


def _lowered(case: Case) -> _Layer:
    params = case.params or case.kernel.params()
    reason = case.kernel.why_not(case.view, case.target)  # type: ignore[arg-type]
    assert reason == "", reason
    lowering = case.kernel.lower(case.view, params, case.target)  # type: ignore[arg-type]
    return _Layer(case, lowering, dict(case.kernel.pack_for(case.view, params, case.target)))  # type: ignore[arg-type]


def _input_bytes(layer: _Layer) -> bytes:
    """The contents of the buffers that the program reads, in the order of the function's parameters."""
    parts = []
    for param in layer.function.params:
        kind, _, key = param.role.partition(":")
        if kind == "input":
            tensor = layer.case.view.inputs[int(key)]
            assert layer.case.inputs[int(key)].shape == tensor.shape
            array = to_physical(layer.case.inputs[int(key)], tensor)
        elif kind == "constant":
            array = np.ascontiguousarray(layer.constants[key])
        else:
            continue
        assert str(array.dtype) == param.dtype and array.nbytes == param.bytes, (param, array.dtype, array.shape)
        parts.append(array.tobytes())
    return b"".join(parts)


def _build(layers: Sequence[_Layer], folder: Path) -> Path:
    kernels = {layer.case.kernel.name: layer.case.kernel for layer in layers}.values()
    headers = sorted({str(kernel.folder / header) for kernel in kernels for header in kernel.headers})
    sources = sorted({kernel.folder / source for kernel in kernels for source in kernel.sources})
    lines = ["#include <math.h>", "#include <stdbool.h>", "#include <stdint.h>", "#include <stdio.h>"]
    lines += ["#include <stdlib.h>", "#include <string.h>", *(f'#include "{header}"' for header in headers)]
    main = ["int main(void)", "{"]
    for number, layer in enumerate(layers):
        parameters = ", ".join(f"{ctype(p.dtype)} *{p.name}" for p in layer.function.params)
        lines += [f"static void layer{number}({parameters})", "{", layer.function.body, "}"]
        main.append("{")
        for p in layer.function.params:
            main.append(f"{ctype(p.dtype)} *{p.name} = malloc({p.bytes});")
            if p.role.startswith(("input", "constant")):
                main.append(f"if (fread({p.name}, 1, {p.bytes}, stdin) != {p.bytes}) return 1;")
            else:
                main.append(f"memset({p.name}, 0x55, {p.bytes});")
        main.append(f"layer{number}({', '.join(p.name for p in layer.function.params)});")
        main += [f"fwrite({p.name}, 1, {p.bytes}, stdout);" for p in layer.function.params if p.role == "output:0"]
        main += [f"free({p.name});" for p in layer.function.params] + ["}"]
    (folder / "layers.c").write_text("\n".join([*lines, *main, "return 0;", "}", ""]))
    objects = [_object(source) for source in sources]
    program = folder / "layers"
    flags = [*FLAGS, *SANITIZERS, "-I", str(INCLUDE)]
    subprocess.run(["gcc", *flags, folder / "layers.c", *objects, "-o", program, "-lm"], check=True)
    return program


_objects = tempfile.TemporaryDirectory(prefix="firmline-kernels-")


def _object(source: Path) -> Path:
    """The compiled source; compiled once for each of its contents in a process."""
    text = b"".join(path.read_bytes() for path in [source, *source.parent.glob("*.h"), *INCLUDE.glob("*.h")])
    out = Path(_objects.name) / f"{source.stem}-{hashlib.sha256(text).hexdigest()[:16]}.o"
    if not out.exists():
        flags = [*FLAGS, *SANITIZERS, "-I", str(INCLUDE)]
        subprocess.run(["gcc", *flags, "-c", source, "-o", out], check=True)
    return out
