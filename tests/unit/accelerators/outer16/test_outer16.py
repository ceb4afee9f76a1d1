"""outer16 from descriptor to device: drawn layers in drawn tiles through the C library, bytes and cycles; misuse."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from stages.backends.accelerators.accelerator import Parameters, Pointer, Strides, Table
from stages.backends.accelerators.outer16 import Outer16
from stages.backends.accelerators.tiles import Tile, reads, tiles
from stages.backends.simulators.bench import BenchRun, compile_and_run_c
from stages.backends.targets.attached import DEVICES_LOG
from stages.backends.targets.load import load_target
from stages.base import StageError
from stages.ir.graph import LayerView
from stages.support.system.installation import INSTALLATION
from tests.conformance.draw import Draw
from tests.conformance.operators.conv2d import conv2d
from tests.conformance.operators.depthwise_conv2d import depthwise
from tests.conformance.operators.fully_connected import fully_connected
from tests.conformance.operators.windows import any_window
from tests.support.ne16_target import log_lines

ENGINE = Outer16(Parameters())
HWLIB = INSTALLATION / "stages/backends/accelerators/outer16/hwlib"
L1, L1_BYTES = 0x1000_0000, 128 << 10
COUNT = 24


def blocked(image: np.ndarray, fill: int) -> np.ndarray:
    """Rows, columns, channels as NCHW16c: blocks, rows, columns, 16; `fill` where a block is filled up."""
    rows, columns, channels = image.shape
    whole = np.full((rows, columns, -(-channels // 16) * 16), fill, np.int8)
    whole[..., :channels] = image
    return whole.reshape(rows, columns, -1, 16).transpose(2, 0, 1, 3)


def drawn(seed: int) -> tuple[LayerView, np.ndarray]:
    """A layer with weights, and its input in logical order."""
    draw, blocks = Draw(seed), ("NCHW16c", "NCHW16c")
    inputs, outputs = draw.integer(1, 40), draw.integer(1, 40)
    if seed % 3 == 0:
        view = conv2d(draw, any_window(draw), inputs, outputs, layouts=blocks)
    elif seed % 3 == 1:
        view = depthwise(draw, any_window(draw), inputs, layouts=blocks)
    else:
        view = fully_connected(draw, 1, inputs, outputs, weight_type=("int8", 0), rounding="single")
    return view, draw.array(view.inputs[0].shape)


@dataclass(frozen=True)
class Run:
    """A tile with what it reads in L1: calls in C, and where the output begins."""

    view: LayerView
    tile: Tile
    l1: bytes
    call: str
    output: int

    def result(self, l1: bytes) -> np.ndarray:
        """The tile's output, as rows, columns, channels."""
        rows, columns, channels = len(self.tile.rows), _columns(self.view), len(self.tile.channels)
        size = -(-channels // 16) * rows * columns * 16
        found = np.frombuffer(l1, np.int8)[self.output : self.output + size].reshape(-1, rows, columns, 16)
        return found.transpose(1, 2, 0, 3).reshape(rows, columns, -1)[..., :channels]

    @property
    def untouched(self) -> np.ndarray:
        """Bytes of L1 that are no output."""
        rest = np.ones(L1_BYTES, bool)
        rows, columns, channels = len(self.tile.rows), _columns(self.view), len(self.tile.channels)
        for block in range(-(-channels // 16)):
            first = self.output + block * rows * columns * 16
            lanes = rest[first : first + rows * columns * 16].reshape(-1, 16)
            lanes[:, : channels - 16 * block] = False
        return rest


def _columns(view: LayerView) -> int:
    return view.outputs[0].shape[2] if len(view.outputs[0].shape) == 4 else 1


def laid_out(view: LayerView, x: np.ndarray, tile: Tile) -> Run:
    """Noise in L1, and in it what the tile reads."""
    rng = np.random.default_rng(1)
    l1 = rng.integers(0, 256, L1_BYTES).astype(np.uint8)
    (part,) = reads(view, tile)
    image = x.reshape(-1, x.shape[-2] if x.ndim == 4 else 1, x.shape[-1])
    cut = image[part.rows.first : part.rows.end, :, part.channels.first : part.channels.end]
    constants = ENGINE.constants(view, tile.channels)
    assert constants.size == ENGINE.constant_bytes(view, tile.channels)
    rows, columns = len(tile.rows), _columns(view)
    places, at = {}, 32
    for role, content in (("input:0", blocked(cut, 77)), ("constants", constants)):
        raw = np.frombuffer(np.ascontiguousarray(content).tobytes(), np.uint8)
        l1[at : at + raw.size] = raw
        places[role] = at
        at += -(-raw.size // 16) * 16 + 16
    places["output:0"] = at
    strides = Strides((cut.shape[0] * cut.shape[1] * 16,), rows * columns * 16)
    call = ENGINE.calls(view, tile, strides).start
    words, *pointers = call.arguments
    assert isinstance(words, Table) and call.function == "outer16_start"
    values = ", ".join(f"{word % (1 << 32):#x}u" for word in words.values)
    given = ", ".join(
        f"(void *){L1 + places[one.role] + one.offset:#x}u" for one in pointers if isinstance(one, Pointer)
    )
    text = f"static const uint32_t w[] = {{{values}}}; last = outer16_start(w, {given});"
    return Run(view, tile, l1.tobytes(), text, places["output:0"])


def program(runs: list[Run], body: str, **more: Any) -> BenchRun:
    """Runs C on the target, with the calls of each run as `case`s of `start(number)`."""
    cases = "".join(f"case {number}: {{ {run.call} break; }}\n" for number, run in enumerate(runs))
    main = f"""
#include <stdint.h>
#include <stdio.h>
#include "bench.h"
#include "outer16.h"
static int start(int number) {{ int last = 0; switch (number) {{ {cases} }} return last; }}
static inline void now(void) {{ uint32_t t; __asm__ volatile("csrr %0, minstret" : "=r"(t)); (void)t; }}
int main(void) {{
  static const uint32_t bytes = {L1_BYTES};
  const int in = board_open_read("l1.bin"), out = board_open_write("after.bin");
  void *const l1 = (void *){L1:#x};
  outer16_init(0x00201000u);
  (void)in, (void)out, (void)bytes, (void)l1, (void)start;
{body}
  return 0;
}}
"""
    include = [HWLIB, INSTALLATION / "stages/backends/kernels/include"]
    files = {"l1.bin": b"".join(run.l1 for run in runs)}
    target = load_target("rv32-outer16")
    return compile_and_run_c(target, [HWLIB / "outer16.c"], main, include=include, files=files, **more)


def test_drawn_layers_in_tiles_are_exact_and_take_what_the_closed_form_says() -> None:
    runs, expected = [], []
    for seed in range(COUNT):
        view, x = drawn(seed)
        assert ENGINE.why_not(view) == ""
        whole = view.op.compute(view, x)
        cut = tiles(view, 1 + seed % 5, 16 * (1 + seed % 2))
        some = [cut[0], cut[len(cut) // 2], cut[-1]]
        assert len(np.unique(whole)) > 4 or whole.size < 20
        for tile in dict.fromkeys(some):
            runs.append(laid_out(view, x, tile))
            rows = whole.reshape(-1, _columns(view), whole.shape[-1])[tile.rows.first : tile.rows.end]
            expected.append(rows[..., tile.channels.first : tile.channels.end])
    body = f"""
  for (int i = 0; i < {len(runs)}; i++) {{
    board_read(in, l1, bytes);
    outer16_wait(start(i));
    board_write(out, l1, bytes);
  }}"""
    left = program(runs, body, outputs=("after.bin", DEVICES_LOG)).files
    took = [line.until - line.since for line in log_lines(left[DEVICES_LOG]) if line.unit == "outer16"]
    assert took == [ENGINE.cycles(run.view, run.tile) for run in runs]
    for number, (run, values) in enumerate(zip(runs, expected, strict=True)):
        after = left["after.bin"][number * L1_BYTES : (number + 1) * L1_BYTES]
        np.testing.assert_array_equal(run.result(after), values)
        before = np.frombuffer(run.l1, np.uint8)
        assert np.array_equal(np.frombuffer(after, np.uint8)[run.untouched], before[run.untouched])


def one() -> Run:
    view, x = drawn(0)
    return laid_out(view, x, tiles(view, 2, 16)[0])


def test_two_jobs_are_queued_and_the_core_takes_as_long_as_is_planned() -> None:
    run = one()
    body = """
  board_read(in, l1, bytes);
  start(0);
  int job = start(0);
  outer16_wait(job - 1);
  outer16_wait(job);
  printf("%d %u\\n", job, (unsigned)((volatile uint32_t *)0x00201000u)[18]);
  BENCH("start", job = start(0));
  outer16_wait(job);
"""
    left = program([run], body, outputs=(DEVICES_LOG,))
    assert left.stdout.splitlines()[0] == "2 2"
    first, second, _ = [line for line in log_lines(left.files[DEVICES_LOG]) if line.unit == "outer16"]
    assert (second.since, second.until) == (first.until, first.until + ENGINE.cycles(run.view, run.tile))
    assert left.counts["start"] == pytest.approx(ENGINE.core(run.view, run.tile).start, abs=12)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("((volatile uint32_t *)0x201000u)[17] = 0;", "outer16 START: a job without pixels, channels or windows"),
        ("start(0); (void)*(volatile uint8_t *)OUT;", "the core reads OUT, which outer16 job 0 has not written yet"),
        ("start(0); *(volatile uint8_t *)IN = 1;", "the core writes IN, which outer16 job 0 still reads"),
        (
            "start(0); start(0); now(); ((volatile uint32_t *)0x201000u)[17] = 0;",
            "outer16 START: two jobs are there already",
        ),
        ("start(1);", "outer16 OUTPUT: "),
        ("(void)*(volatile uint32_t *)0x201030u;", "load from an address without memory"),
    ],
)
def test_misuse_is_reported(body: str, told: str) -> None:
    run = one()
    outside = run.call.replace(f"{L1 + run.output:#x}u", f"{L1 + L1_BYTES - 16:#x}u")
    beyond = Run(run.view, run.tile, b"", outside, 0)
    places = {"OUT": f"{L1 + run.output:#x}", "IN": f"{L1 + 32:#x}"}
    for name, place in places.items():
        body, told = re.sub(rf"\b{name}\b", place, body), re.sub(rf"\b{name}\b", place, told)
    with pytest.raises(StageError, match=re.escape(told)):
        program([run, beyond], f"board_read(in, l1, bytes);\n{body}\n")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"groups": 2}, "2 groups of channels; the engine is for one"),
        ({"rounding": "floor"}, "rounding floor; the engine has single and double"),
        ({"stride": (1, 300)}, "a window value of 300; registers hold 255"),
        ({"weight_zero_point": 3}, "weights are not int8 constants with zero point 0"),
    ],
)
def test_layers_that_it_does_not_compute(changed: dict[str, Any], reason: str) -> None:
    view, _ = drawn(0)
    layer = view.layer.model_copy(update={"op": view.op.model_copy(update=changed)})
    assert ENGINE.why_not(LayerView(layer, view.tensors, view.arrays)) == reason
