"""The HWlib on the simulated engine: any drawn convolution in one call, and what the core takes for it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stages.backends.accelerators.ne16.cycles import cycles
from stages.backends.accelerators.ne16.job import Mode, split
from stages.backends.accelerators.ne16.words import NAMES, blocks, words
from stages.backends.simulators.bench import BenchRun, compile_and_run_c
from stages.support.system.installation import INSTALLATION
from tests.support.ne16_jobs import L1, L1_BYTES, LaidOut, laid_out
from tests.support.ne16_target import ENGINE, log_lines, ne16_target

pytestmark = pytest.mark.skipif(shutil.which("riscv64-unknown-elf-gcc") is None, reason="no RISC-V compiler")
HWLIB = INSTALLATION / "stages/backends/accelerators/ne16/hwlib"
HEADERS = ("include/engine_clock.h", "include/requantize.h", "rvp/rvp_intrinsics.h")
MODES: tuple[Mode, ...] = ("conv3x3", "depthwise3x3", "conv1x1")
# Which tensor the words of a job count from.
FROM = {
    "input": ("infeat_ptr",),
    "output": ("outfeat_ptr",),
    "constants": ("weights_ptr", "scale_ptr", "scale_shift_ptr", "scale_bias_ptr", "parameters_ptr"),
    "residual": ("residual_ptr",),
}


def relative(raw: tuple[int, ...], bases: dict[str, int]) -> str:
    """The words with addresses from where tensors begin."""
    values = dict(zip(NAMES, raw, strict=True))
    for tensor, names in FROM.items():
        for name in names:
            values[name] = (values[name] - bases[tensor]) % (1 << 32)
    return "{" + ", ".join(f"{value:#x}u" for value in values.values()) + "}"


def calls(drawn: LaidOut) -> str:
    """The job in the library's calls; what is waited for is `last`."""
    job = drawn.job
    residual = job.extension.residual if job.extension is not None else None
    bases = {"input": job.input, "output": job.output, "constants": job.weights, "residual": residual or 0}
    pointers = ", ".join(f"(void *){bases[name]:#x}u" for name in ("input", "output", "constants"))
    name = ""
    if residual is not None:
        name, pointers = "_residual", f"{pointers}, (void *){residual:#x}u"
    if job.stride == 2:
        raw, numbers = blocks(job)
        listed = ", ".join(f"{number}u" for number in numbers)
        return (
            f"static const uint32_t w[] = {relative(raw, bases)}, b[] = {{{listed}}};\n"
            f'BENCH("job", last = ne16_start_blocks{name}(w, b, {pointers}));'
        )
    text = ""
    for part in split(job):
        text += f"{{ static const uint32_t w[] = {relative(words(part), bases)};\n"
        text += f'BENCH("job", last = ne16_start{name}(w, {pointers})); }}\n'
    return text


def run_library(main: str, **more: Any) -> BenchRun:
    include = (HWLIB, INSTALLATION / "stages/backends/kernels/include")
    return compile_and_run_c(ne16_target("tflite"), [HWLIB / "ne16.c"], main, include=include, **more)


def check(drawn: list[LaidOut]) -> None:
    body = "".join(
        f"{{ board_read(before, (void *){L1:#x}, {L1_BYTES}); {calls(one)} ne16_wait(last);\n"
        f"board_write(after, (void *){L1:#x}, {L1_BYTES}); }}\n"
        for one in drawn
    )
    main = f"""
#include "bench.h"
#include "ne16.h"
int main(void) {{
  const int before = board_open_read("l1.bin"), after = board_open_write("after.bin");
  int last = 0;
  ne16_init({ENGINE:#x});
  {body}
  return 0;
}}"""
    files = {"l1.bin": b"".join(one.l1 for one in drawn)}
    left = run_library(main, files=files, outputs=("after.bin", "devices.log"))
    after = left.files["after.bin"]
    for number, one in enumerate(drawn):
        assert after[number * L1_BYTES : (number + 1) * L1_BYTES] == one.after(), one.job
    jobs = [line for line in log_lines(left.files["devices.log"]) if line.unit == "ne16"]
    assert sum(line.until - line.since for line in jobs) == sum(cycles(one.job) for one in drawn)


def test_drawn_jobs() -> None:
    check([laid_out(seed, mode, tflite=bool(seed % 2), gap=2 * (seed % 3)) for seed in range(4) for mode in MODES])


def test_stride_two_in_blocks() -> None:
    """One row or column of blocks, halves of blocks, and each edge."""
    common: dict[str, Any] = {"stride": 2, "pad_value": 77, "ki": 3, "ko": 4, "scale_bits": 0, "stream_in": False}
    edges = [(0, 0, 0, 0), (1, 1, 1, 1), (2, 0, 1, 0), (0, 2, 2, 1)]
    sizes = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 4), (5, 7), (4, 9), (6, 1)]
    check(
        [laid_out(1, "conv3x3", h_out=h, w_out=w, padding=edge, **common) for h, w in sizes for edge in edges]
        + [laid_out(seed, mode, h_out=5, w_out=6, stride=2, tflite=True) for seed in range(3) for mode in MODES]
    )


def test_a_wait_ends_with_its_job_and_not_with_the_next() -> None:
    """Of two jobs the first is waited for: one is there then, none after the second."""
    drawn = laid_out(2, "conv1x1", stride=1, h_out=6, w_out=6, ki=16, ko=32, scale_bits=0, stream_in=False, gap=0)
    bases = {"input": drawn.job.input, "output": drawn.job.output, "constants": drawn.job.weights, "residual": 0}
    pointers = ", ".join(f"(void *){bases[name]:#x}u" for name in ("input", "output", "constants"))
    main = f"""
#include "bench.h"
#include "ne16.h"
#define JOBS() (__builtin_popcount(*(volatile uint32_t *){ENGINE + 0x0C:#x}))
static const uint32_t w[] = {relative(words(drawn.job), bases)};
int main(void) {{
  ne16_init({ENGINE:#x});
  const int first = ne16_start(w, {pointers});
  const int second = ne16_start(w, {pointers});
  const int before = JOBS();
  ne16_wait(first);
  const int between = JOBS();
  ne16_wait(second);
  printf("%d %d %d", before, between, JOBS());
  return 0;
}}"""
    assert run_library(main).stdout.split() == ["2", "1", "0"]


def test_what_the_core_takes() -> None:
    """A job: its words and a trigger. A block of stride 2: far below the 209 instructions of the open driver."""
    main = """
#include "bench.h"
#include "ne16.h"
/* An engine that is memory: every ACQUIRE is 0, a context at once. */
static uint32_t registers[0x1100 / 4];
static const uint32_t words[24], small[8] = {2, 40}, large[8] = {4, 40};
int main(void) {
  static char l1[4];
  ne16_init((uintptr_t)(registers + 0x1000 / 4));
  BENCH("job", ne16_start(words, l1, l1, l1));
  BENCH("residual", ne16_start_residual(words, l1, l1, l1, l1));
  BENCH("small", ne16_start_blocks(words, small, l1, l1, l1));
  BENCH("large", ne16_start_blocks(words, large, l1, l1, l1));
  BENCH("wait", ne16_wait(1));
  BENCH("last", ne16_wait(2 + 80 + 160)); /* STATUS is 0: none is there, whatever RUNNING_JOB says */
  return 0;
}"""
    counts = run_library(main).counts
    each = (counts["large"] - counts["small"]) / 80
    assert counts["job"] <= 100 and counts["residual"] <= 100 and max(counts["wait"], counts["last"]) <= 25
    assert each <= 25


def test_the_whole_library_is_plain_c_with_the_headers_it_names(tmp_path: Path) -> None:
    """As docs/explanation/ne16.md says what to copy; any C11 compiler takes it, and leaves out what is for P."""
    for file in (*HWLIB.iterdir(), *(INSTALLATION / "stages/backends/kernels" / header for header in HEADERS)):
        shutil.copy(file, tmp_path)
    told = (INSTALLATION / "docs/explanation/ne16.md").read_text()
    assert all(f"`{header}`" in told for header in HEADERS)
    flags = ("-std=c11", "-Wall", "-Wextra", "-Wno-pointer-to-int-cast", "-Werror", "-DENGINE_CLOCK_OFF")
    for source in sorted(tmp_path.glob("*.c")):
        subprocess.run(["gcc", *flags, "-c", source, "-o", tmp_path / "object.o"], check=True, cwd=tmp_path)
