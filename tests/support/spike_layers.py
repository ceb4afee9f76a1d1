"""Runs single layers on a target's simulator, several in one program: with their micro-kernels or as TIR alone."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stages.compile.toolchain import Source
from stages.emit.functions import ctype
from stages.emit.lower import CFunction, to_c
from stages.graph import LayerView
from stages.kernels.kernel import Kernel, KernelParams
from stages.reference.integer import run_layer, to_physical
from stages.simulators.bench import compile_and_run_c
from stages.targets.spec import Target
from stages.tensorize.schedule import schedule

INCLUDE = Path(__file__).resolve().parents[2] / "stages" / "kernels" / "include"

_MAIN = """
static int differing(const uint8_t *got, const uint8_t *wanted, int count)
{
    int differ = 0;
    for (int i = 0; i < count; i++)
        differ += got[i] != wanted[i];
    return differ;
}
"""


@dataclass(frozen=True)
class LayerRun:
    """How many output bytes differ from the integer reference, and the instructions of the layer."""

    name: str
    differing: int
    instructions: int


@dataclass(frozen=True)
class SpikeCase:
    """A layer with inputs in logical order. `tensorized` False runs the workload's TIR without the micro-kernels."""

    name: str
    kernel: Kernel
    view: LayerView
    inputs: Sequence[np.ndarray]
    tensorized: bool = True
    params: KernelParams | None = None


def run_on_spike(cases: Sequence[SpikeCase], target: Target, keep: Path | None = None) -> list[LayerRun]:
    """All `cases` in one program for `target`, compared there with the integer reference."""
    functions, roles, constants = {}, {}, {}
    for number, case in enumerate(cases):
        params = case.params or case.kernel.params()
        assert case.kernel.why_not(case.view, target) == "", case.name
        lowering = case.kernel.lower(case.view, params, target)
        name = f"layer{number}"
        scheduled = schedule(lowering, case.kernel.name, name) if case.tensorized else lowering.workload
        functions[name] = scheduled.with_attr("global_symbol", name)
        roles[name] = lowering.roles
        constants[name] = case.kernel.pack_for(case.view, params, target)
    with tempfile.TemporaryDirectory(prefix="firmline-layers-") as temporary:
        folder = keep or Path(temporary)
        printed = to_c(functions, roles)
        return _run(cases, target, list(printed.values()), list(constants.values()), folder)


def _run(
    cases: Sequence[SpikeCase],
    target: Target,
    functions: Sequence[CFunction],
    constants: Sequence[dict[str, np.ndarray]],
    folder: Path,
) -> list[LayerRun]:
    kernels = {case.kernel.name: case.kernel for case in cases}.values()
    headers = sorted({str(kernel.folder / header) for kernel in kernels for header in kernel.headers})
    sources = sorted({kernel.folder / source for kernel in kernels for source in kernel.sources})
    lines = ["#include <stdbool.h>", "#include <stdint.h>", "#include <string.h>", '#include "bench.h"']
    lines += [*(f'#include "{header}"' for header in headers), _MAIN]
    main, data = ["int main(void)", "{"], [".data"]

    def embed(name: str, array: np.ndarray) -> None:
        (folder / name).write_bytes(np.ascontiguousarray(array).tobytes())
        data.append(f'.balign 16\n.globl {name}\n{name}: .incbin "{folder / name}"')

    for number, (case, function, packed) in enumerate(zip(cases, functions, constants, strict=True)):
        parameters = ", ".join(f"{ctype(p.dtype)} *{p.name}" for p in function.params)
        lines.append(f"static __attribute__((noinline)) void layer{number}({parameters})\n{{\n{function.body}\n}}")
        arguments = []
        for p in function.params:
            kind, _, key = p.role.partition(":")
            name = f"d{number}_{p.name}"
            arguments.append(name)
            if kind in ("input", "constant"):
                if kind == "constant":
                    array = packed[key]
                else:
                    array = to_physical(case.inputs[int(key)], case.view.inputs[int(key)])
                assert array.nbytes == p.bytes and str(array.dtype) == p.dtype, (case.name, p)
                embed(name, array)
                lines.append(f"extern {ctype(p.dtype)} {name}[];")
            else:
                lines.append(f"static {ctype(p.dtype)} {name}[{p.bytes}] __attribute__((aligned(16)));")
            if kind == "output":
                result = name
        out = case.view.outputs[0]
        embed(f"expected{number}", to_physical(run_layer(case.view, case.inputs), out))
        lines.append(f"extern uint8_t expected{number}[];")
        call = f"layer{number}({', '.join(arguments)})"
        main.append(f'BENCH("{number}", {call});')
        main.append(f'bench_report("differ{number}", differing((uint8_t *){result}, expected{number}, {out.bytes}));')
    (folder / "data.S").write_text("\n".join([*data, ""]))
    run = compile_and_run_c(
        target,
        [*(Source(source) for source in sources), Source(folder / "data.S")],
        "\n".join([*lines, *main, "return 0;", "}", ""]),
        include=[INCLUDE, *sorted({kernel.folder for kernel in kernels})],
        flags=("-O2", "-Wno-unused-parameter", "-Wno-unused-variable"),
    )
    return [
        LayerRun(case.name, run.counts[f"differ{number}"], run.counts[str(number)]) for number, case in enumerate(cases)
    ]
