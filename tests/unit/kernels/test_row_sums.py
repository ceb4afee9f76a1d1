"""Global pools by bands of rows: their C against the reference, for any bands and sizes."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from stages.backends.generic.kernels.generic.row_sums import RowSums
from stages.backends.kernels.folder import INCLUDE
from stages.backends.kernels.kernel import RowSumKernel
from stages.backends.kernels.places import kernel_file
from stages.backends.kernels.registry import row_sum_kernels
from stages.backends.simulators.bench import BenchRun, compile_and_run_c
from stages.backends.targets.load import load_target
from stages.ir.graph import LayerView, Mean, Pool2D
from stages.lower.codegen.lower import CFunction, to_c
from stages.lower.codegen.printer import ctype
from stages.tensorize.schedule import schedule
from tests.conformance.case import extremes
from tests.conformance.draw import Draw, image, middle, view, with_layouts, with_op

KERNEL = RowSums()
OPS = ("avg_pool2d", "max_pool2d", "mean")
HOST = load_target("host")
GUARD = 4  # sums behind the last channel that must not change; the host has sanitizers


def layer(draw: Draw, op: str, size: tuple[int, int, int], *, keep: bool = True) -> LayerView:
    height, width, channels = size
    count = height * width
    out = (1, 1, 1, channels) if keep else (1, channels)
    x = image("x", (1, *size), draw.dtype)
    if op == "mean":
        multiplier, shift = draw.multiplier(-2, 1)
        fields = {"axes": (1, 2), "count": count, "multiplier": multiplier, "shift": shift - count.bit_length()}
        mean = Mean(
            **draw.clamped(), **fields, input_zero_point=draw.zero_point(), rounding=draw.choose("double", "single")
        )
        return view(mean, [x], image("y", out, draw.dtype))
    stride = draw.choose((1, 1), (height, width))
    pool = Pool2D(op=op, kernel=(height, width), stride=stride, padding=(0, 0, 0, 0), **draw.clamped())  # type: ignore[arg-type]
    return view(pool, [x], image("y", (1, 1, 1, channels), draw.dtype))


@dataclass(frozen=True)
class Case:
    """A layer, the most rows of a band, and images [n, height, width, channels]."""

    view: LayerView
    rows: int
    images: np.ndarray

    @property
    def bands(self) -> list[int]:
        """Rows of each band; the last may be smaller."""
        height = self.view.inputs[0].shape[1]
        return [min(self.rows, height - first) for first in range(0, height, self.rows)]

    def expected(self) -> np.ndarray:
        """Outputs of the reference [n, channels]."""
        outputs = [self.view.op.compute(self.view, picture[None]) for picture in self.images]
        return np.stack(outputs).reshape(len(self.images), -1)


def cases(count: int) -> Iterator[Case]:
    """Values of the whole range, at its ends, and near the zero point, where averages have halves of both signs."""
    for number in range(count):
        draw = Draw(number, ("int8", "uint8")[number % 2])
        channels = draw.choose(1, 2, 3, 4, 6, 7, 8, 12, 13, 16, 37, 40)
        size = (draw.integer(1, 12), draw.integer(1, 9), channels)
        if number % 7 == 0:
            size = (23, 19, draw.integer(1, 5))  # sums beyond 16 bits
        drawn = layer(draw, OPS[number % 3], size, keep=draw.choose(True, False))
        near = middle(draw.dtype) + draw.rng.integers(-2, 3, (2, *size))
        images = [draw.array((2, *size)), near.astype(draw.dtype), *(x for (x,) in extremes(drawn.inputs))]
        rows = draw.choose(1, 2, draw.integer(1, size[0]), size[0])
        yield Case(drawn, min(rows, size[0]), np.concatenate(images))


def kernel_of(name: str) -> RowSumKernel:
    """Return the kernel that a target prefers."""
    return row_sum_kernels(load_target(name))[0]


def run(drawn: list[Case], name: str, *, tensorized: bool = True) -> tuple[BenchRun, list[np.ndarray]]:
    """Run all cases in one program, or their TIR alone; return it and the outputs of each case.

    Each buffer is an array of its exact size, so that the sanitizers of the host see accesses beyond it.
    """
    target, functions = load_target(name), c_functions(drawn, name, tensorized)
    kernel = kernel_of(name)
    headers, sources = (
        [kernel_file(kernel.folder.path, file) for file in files] for files in (kernel.headers, kernel.sources)
    )
    text = [f'#include "{header.name}"' for header in (Path("string.h"), Path("bench.h"), *headers)]
    for function in functions.values():
        arguments = ", ".join(f"{ctype(p.dtype)} *{p.name}" for p in function.params)
        text.append(f"static __attribute__((noinline)) void {function.name}({arguments})\n{{\n{function.body}}}")
    text.append('int main(void)\n{\nconst int file = board_open_write("y"), from = board_open_read("x");')
    for number, case in enumerate(drawn):
        text.append(program(number, case, functions, guard=0 if name == "host" else GUARD))
    text.append("board_close(file);\nreturn 0;\n}")
    data = b"".join(case.images.tobytes() for case in drawn)
    done = compile_and_run_c(
        *(target, sources, "\n".join(text)),
        include=[*{header.parent for header in headers}, INCLUDE],
        flags=("-O2", *([] if tensorized else ["-fwrapv", "-Wno-unused-parameter"])),
        files={"x": data},
        outputs=["y"],
    )
    outputs, position = [], 0
    for case in drawn:
        shape = (len(case.images), case.images.shape[3])
        size = int(np.prod(shape))
        outputs.append(np.frombuffer(done.files["y"], case.images.dtype, size, position).reshape(shape))
        position += size
    assert position == len(done.files["y"])
    return done, outputs


def c_functions(drawn: list[Case], name: str, tensorized: bool) -> dict[str, CFunction]:
    """Return the C of each case: `rows<case>_<rows>` of each size of a band, and `result<case>`."""
    lowerings, target, kernel = {}, load_target(name), kernel_of(name)
    for number, case in enumerate(drawn):
        for rows in set(case.bands):
            lowerings[f"rows{number}_{rows}"] = kernel.lower_rows(case.view, rows, target)
        lowerings[f"result{number}"] = kernel.lower_result(case.view, target)
    scheduled = {
        key: (schedule(lowering, kernel.name, key) if tensorized else lowering.workload).with_attr("global_symbol", key)
        for key, lowering in lowerings.items()
    }
    return to_c(scheduled, {key: lowering.roles for key, lowering in lowerings.items()})


def program(number: int, case: Case, functions: dict[str, CFunction], *, guard: int) -> str:
    """Return the C block that computes all images of a case. Outputs are wrong if one of `guard` sums changes."""
    _, width, channels = case.view.inputs[0].shape[1:]
    constants = KERNEL.pack(case.view, KERNEL.params())
    fields = ", ".join(map(str, constants["fields"]))
    lines = [f"static int32_t sums[{channels + guard}], fields[] = {{{fields}}}; static uint8_t y[{channels}];"]
    names = {"scratch:sums": "sums", "constant:fields": "fields", "output:0": "(void *)y"}
    calls = [f"memset(sums, {KERNEL.begin(case.view)}, sizeof sums);"]
    counted = [f"memset(sums, {KERNEL.begin(case.view)}, sizeof sums);"]
    for rows in sorted(set(case.bands)):
        lines.append(f"static uint8_t x{rows}[{rows * width * channels}];")
    for rows in case.bands:
        call = called(functions[f"rows{number}_{rows}"], names | {"input:0": f"(void *)x{rows}"})
        calls.append(f"board_read(from, x{rows}, sizeof x{rows});\n{call};")
    result = called(functions[f"result{number}"], names)
    first = called(functions[f"rows{number}_{case.rows}"], names | {"input:0": f"(void *)x{case.rows}"})
    counted += [f'BENCH("rows{number}", {first});', f'BENCH("result{number}", {result});']
    begun = f"(int32_t){KERNEL.begin(case.view) & 0xFF:#04x}{'%02x' % (KERNEL.begin(case.view) & 0xFF) * 3}u"
    check = f"for (int k = 0; k < {guard}; k++) y[0] ^= sums[{channels} + k] != {begun};"
    loop = [
        f"for (int n = 0; n < {len(case.images)}; n++) {{",
        *calls,
        f"{result};\n{check}\nboard_write(file, y, sizeof y);}}",
    ]
    return "\n".join(["{", *lines, *loop, *counted, "}"])


def called(function: CFunction, names: dict[str, str]) -> str:
    return f"{function.name}({', '.join(names[p.role] for p in function.params)})"


@pytest.mark.parametrize(("name", "count"), [("host", 42), ("cortex-m4", 21), ("cortex-m55", 42), ("rv32-rvp", 21)])
def test_any_bands_give_the_output_of_the_whole_image(name: str, count: int) -> None:
    """The estimates hold as well, where the target counts."""
    drawn = list(cases(count))
    assert [KERNEL.why_not_rows(case.view, HOST) for case in drawn] == [""] * count
    done, outputs = run(drawn, name)
    for number, (case, output) in enumerate(zip(drawn, outputs, strict=True)):
        np.testing.assert_array_equal(output, case.expected(), f"case {number}: {case.view.op}, bands {case.bands}")
        if name != "host":
            kernel = kernel_of(name)
            cost = {"rows": kernel.cost_rows(case.view, case.rows, HOST), "result": kernel.cost_result(case.view, HOST)}
            ratios = {what: value / done.counts[f"{what}{number}"] for what, value in cost.items()}
            error = kernel.estimate_error
            assert all(1 / error < ratio < error for ratio in ratios.values()), f"case {number}: {ratios}"


def test_the_tir_alone_computes_the_same() -> None:
    drawn = list(cases(21))
    for case, output in zip(drawn, run(drawn, "host", tensorized=False)[1], strict=True):
        np.testing.assert_array_equal(output, case.expected(), f"{case.view.op}, bands {case.bands}")


def test_layers_that_need_the_whole_image_are_refused() -> None:
    draw = Draw(0)
    pool, mean = (layer(draw, op, (4, 6, 3)) for op in ("avg_pool2d", "mean"))
    wide = layer(draw, "avg_pool2d", (4000, 4000, 1))
    assert KERNEL.why_not(pool, HOST) == "only for layers that run by rows"
    for refused, reason in (
        (with_op(pool, kernel=(4, 5)), "windows of 4x5 in an image of 4x6"),
        (with_op(pool, padding=(0, 1, 0, 1)), "more than one window, or padding"),
        (with_op(mean, axes=(1,)), r"a mean over the axes [1], not over height and width"),
        (with_op(mean, axes=(1, 2, 3)), r"a mean over the axes [1, 2, 3], not over height and width"),
        (with_layouts(pool, x="NCHW"), "tensor x is NCHW; this kernel is for NHWC"),
        (wide, "sums of 16,000,000 pixels; int32 holds 8,388,607"),
    ):
        assert KERNEL.why_not_rows(refused, HOST) == reason
    same = with_op(mean, axes=(-2, 1, 0))
    assert KERNEL.why_not_rows(same, HOST) == ""
