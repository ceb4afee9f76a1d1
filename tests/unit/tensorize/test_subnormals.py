"""Subnormal floats on a core whose vectors flush them to zero."""

from pathlib import Path

import numpy as np

from stages.backends.simulators.bench import compile_and_run_c
from stages.ir.models.builder import ModelBuilder
from tests.support.emitted import ROOT, Inference, target_named
from tests.support.stages_run import check_firmware, run_tflite

SHAPE = (1, 6, 6, 16)
MAGNITUDES = {"ordinary": 1.0, "square root": 1e-19, "subnormal": 4e-39}


def drawn(rng: np.random.Generator, shape: tuple[int, ...], magnitude: float) -> np.ndarray:
    """Normally distributed values; the first ones are the smallest normal and subnormal numbers, and a zero."""
    values = (rng.standard_normal(shape) * magnitude).astype(np.float32)
    if magnitude < 1e-30:
        values.flat[:4] = [1.17549435e-38, -1e-45, -0.0, 1.2e-38]
    return values


def network(rng: np.random.Generator) -> bytes:
    """Layers of two inputs: those with weights once for each magnitude."""
    b = ModelBuilder()
    x, y = b.input("x", SHAPE, "float32"), b.input("y", SHAPE, "float32")
    for name, size in MAGNITUDES.items():
        conv = b.conv2d(x, drawn(rng, (20, 3, 3, 16), size), activation="relu", name=f"{name}/conv")
        b.output(conv)
        b.output(b.conv2d(x, drawn(rng, (8, 1, 1, 16), size), drawn(rng, (8,), size), name=f"{name}/pointwise"))
        b.output(b.depthwise_conv2d(x, drawn(rng, (1, 3, 3, 16), size), name=f"{name}/depthwise"))
        b.output(b.fully_connected(x, drawn(rng, (24, 576), size), drawn(rng, (24,), size), name=f"{name}/dense"))
        b.output(b.fully_connected(x, drawn(rng, (3, 576), size), name=f"{name}/few"))
    for binary in (b.add, b.sub, b.mul):
        b.output(binary(x, y))
        b.output(binary(x, y, activation="relu", name=f"{binary.__name__}/relu"))
    b.output(b.avg_pool2d(x, (2, 2)))
    b.output(b.max_pool2d(x, (2, 2)))
    b.output(b.mean(x, (1, 2)))
    b.output(b.softmax(x))
    for unary in (b.relu, b.relu6, b.leaky_relu, b.hard_swish):
        b.output(unary(x))
    return b.build()


def recurrent(rng: np.random.Generator) -> bytes:
    """Layers with state. Their gates are so small that sigmoid is 0.5 and tanh(v) is v with every C library."""
    b, small = ModelBuilder(), MAGNITUDES["subnormal"]
    x = b.input("x", (1, 9, 16), "float32")

    def weights(*shape: int, size: float = small) -> np.ndarray:
        return drawn(rng, shape, size)

    b.output(b.lstm(x, weights(4, 8, 16), weights(4, 8, 8, size=0.2), weights(4, 8)))
    b.output(b.gru(x, weights(3, 8, 16), weights(3, 8, 8, size=0.2), weights(2, 3, 8)))
    b.output(b.rnn(x, weights(8, 16), weights(8, 8, size=0.2), weights(8)))
    row = b.emit("RESHAPE", [x, b.constant("shape", np.int32([9, 16]))], (9, 16), None, "row")
    b.output(b.svdf(row, weights(16, 16), weights(16, 4, size=0.2), activation="none"))
    return b.build()


def test_outputs_equal_litert_s(tmp_path: Path) -> None:
    """Inputs of each magnitude, and sums that cancel, with weights of each magnitude."""
    rng = np.random.default_rng(3)
    tflite = network(rng)
    inferences = [[drawn(rng, SHAPE, size), drawn(rng, SHAPE, size)] for size in MAGNITUDES.values()]
    nearly = drawn(rng, SHAPE, 1e-37)
    inferences.append([nearly, np.nextafter(nearly, np.float32(0))])
    flags = ("-O2", "-ftree-loop-vectorize", "-ftree-slp-vectorize")  # a recipe may add both
    check_firmware(tflite, tmp_path, inferences, target="cortex-m55", flags=flags)


def test_layers_with_state_equal_the_host_s(tmp_path: Path) -> None:
    """LiteRT adds their terms in another order, so another machine computes the expected outputs."""
    rng = np.random.default_rng(4)
    tflite = recurrent(rng)
    inferences = [[drawn(rng, (1, 9, 16), size)] for size in (1.0, 1e-4, 1.0)]

    def run(target: str) -> list[Inference]:
        (tmp_path / target).mkdir()
        return run_tflite(tflite, inferences, tmp_path / target, target=target, flags=("-O2",))

    expected, actual = run("host"), run("cortex-m55")
    for number, (host, m55) in enumerate(zip(expected, actual, strict=True)):
        for output, other in zip(m55.outputs, host.outputs, strict=True):
            assert np.abs(output).max() < 1e-20
            np.testing.assert_array_equal(output, other, f"inference {number}")


_FLAGS = r"""
#include <float.h>
#include <stdio.h>
#include "float_vectors.h"

WITH_FLOAT_VECTORS static void vectors(const float *restrict x, float *restrict y)
{
    for (int i = 0; i < 16; i++) {
        y[i] = x[i] * 0.5f;
    }
}

/* Flags and modes; another field decides about loops. */
static const uint32_t fields = 0x03c0009fu;

static uint32_t fpscr(void)
{
    uint32_t now;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(now));
    return now;
}

static unsigned run(float first, uint32_t before)
{
    float x[16] = {first}, y[16];
    __asm__ volatile("vmsr fpscr, %0" : : "r"((fpscr() & ~fields) | before));
    const uint32_t flags = fl_begin_vectors();
    vectors(x, y);
    const int flushed = fl_end_vectors(flags);
    return (unsigned)((fpscr() & fields) ^ before) | (flushed ? 1u << 31 : 0u);
}

int main(void)
{
    printf("%x %x %x %x\n", run(1.0f, 0x88u), run(1.0f, 0x01000007u), run(FLT_MIN / 2.0f, 0u), run(FLT_MIN, 0x80u));
    return 0;
}
"""


def test_flags_of_the_fpu_are_kept() -> None:
    """The flags that were set, and the modes, stay; flushed inputs (IDC) and results (UFC) are noticed and kept."""
    include = [ROOT / "stages/backends/kernels/include"]
    run = compile_and_run_c(target_named("cortex-m55"), [], _FLAGS, include=include, flags=("-O2", "-std=c11"))
    assert run.stdout.split() == ["0", "0", "80000080", "80000008"]
