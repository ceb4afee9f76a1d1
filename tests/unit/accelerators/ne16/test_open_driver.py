"""The engine's open driver, pulp-nnx, on the simulated device: unmodified, from a checkout that the caller names."""

from pathlib import Path
from typing import Any

import pytest

from stages.backends.accelerators.ne16.job import Mode
from stages.backends.simulators.bench import compile_and_run_c
from stages.backends.toolchain.compiler import Source
from tests.support.ne16_jobs import L1, L1_BYTES, LaidOut, laid_out
from tests.support.ne16_target import log_lines, ne16_target

FOLDERS = ("inc", "ne16/bsp", "ne16/hal", "util")
FILES = ("src/pulp_nnx_ne16.c", "ne16/bsp/ne16_pulp_bsp.c", "ne16/hal/ne16.c", "ne16/hal/ne16_task.c")
UTILITIES = ("util/hwpe.c", "util/pulp_nnx_util.c")
# What the driver has from its SDK: the cluster's event unit, where it sleeps until a job ends.
SDK = """
#include <stdint.h>
static inline void eu_evt_maskWaitAndClr(unsigned events)
{
  uint32_t now;
  (void)events;
  __asm__ volatile("csrr %0, minstret" : "=r"(now));
}
"""
# No platform is the SDK's own simulator, for which the driver has a way of its own to wait.
PLATFORM = ("-D__PLATFORM__=1", "-DARCHI_PLATFORM_GVSOC=2")
SHAPES: list[tuple[Mode, dict[str, Any]]] = [
    ("conv3x3", {"h_out": 7, "w_out": 5, "ki": 35, "ko": 41, "padding": (1, 1, 1, 1)}),
    ("conv3x3", {"h_out": 4, "w_out": 6, "ki": 16, "ko": 32, "bits": 4, "output_bits": 32, "scale_bits": 0}),
    ("conv3x3", {"h_out": 6, "w_out": 4, "ki": 17, "ko": 8, "stride": 2, "padding": (1, 0, 0, 1)}),
    ("conv3x3", {"h_out": 5, "w_out": 7, "ki": 3, "ko": 10, "stride": 2, "padding": (1, 1, 1, 1)}),
    ("depthwise3x3", {"h_out": 8, "w_out": 3, "ki": 35, "padding": (1, 1, 1, 1)}),
    ("depthwise3x3", {"h_out": 4, "w_out": 5, "ki": 16, "stride": 2, "bits": 5, "padding": (1, 1, 1, 1)}),
    ("conv1x1", {"h_out": 7, "w_out": 4, "ki": 48, "ko": 33}),
    ("conv1x1", {"h_out": 1, "w_out": 1, "ki": 35, "ko": 64, "bits": 2}),
]


@pytest.fixture
def checkout(request: pytest.FixtureRequest) -> Path:
    """The folder given by --pulp-nnx."""
    given = request.config.getoption("--pulp-nnx")
    if not given:
        pytest.skip("the driver is no part of this repository: --pulp-nnx FOLDER names a checkout of it")
    folder = Path(given).expanduser().resolve()
    missing = [file for file in (*FILES, *UTILITIES) if not (folder / file).is_file()]
    assert not missing, f"{folder} has no {missing[0]}"
    return folder


def drawn_layers() -> list[LaidOut]:
    """With the driver's limits: rows and pixels one after the other, padding with zero, even strides of outputs."""
    common: dict[str, Any] = {"gap": 0, "pad_value": 0, "stream_in": False, "scale_width": 12, "scale_bits": 8}
    found = []
    for seed, (mode, shape) in enumerate(SHAPES):
        default: dict[str, Any] = {"stride": 1, "padding": (0, 0, 0, 0), "output_bits": 8}
        found.append(laid_out(seed, mode, **{**common, **default, **shape}))
    return found


def calls(drawn: LaidOut) -> str:
    """A layer through the driver's interface, from its sizes and addresses to the end of the last job."""
    job, (h_in, w_in, _) = drawn.job, drawn.x.shape
    pad, stride = job.padding, job.stride
    pads = f"{pad.top}, {pad.bottom}, {pad.left}, {pad.right}"
    inputs = f"{w_in}, {job.ki}, {job.input_row}, {job.input_pixel}"
    outputs = f"{job.h_out}, {job.w_out}, {job.ko}, {job.output_row}, {job.output_pixel}"
    source = f"{job.input}u, {w_in}, {job.input_pixel}, {pad.top}, {pad.left}"
    size = f"{job.h_out}, {job.w_out}"
    kernel = f"{job.kernel}, {job.kernel}"
    lines = [
        "ne16_task_init(&task);",
        f"ne16_task_set_op_to_conv(&task, {job.kernel}, {int(job.mode == 'depthwise3x3')}, {stride});",
        f"ne16_task_set_bits(&task, 8, {job.output_bits}, {job.weight_bits});",
        f"ne16_task_set_weight_offset(&task, weightOffsetModeLayerWise, {job.weight_offset});",
        f"ne16_task_set_dims(&task, {inputs}, {outputs}, {pads});"
        if stride == 1
        else f"ne16_task_set_dims_stride2x2(&task, {h_in}, {inputs}, {outputs}, {kernel}, {pads});",
        f"ne16_task_set_addr_conv(&task, {source}, {job.output}u, {job.weights}u);",
    ]
    if job.scale is not None:
        norm = f"normMode{job.scale_bits}Bit, {int(job.bias is not None)}, {int(job.shifts is not None)}"
        function = "quantFunctionIdentity" if job.signed else "quantFunctionRelu"
        lines += [
            f"ne16_task_set_norm_quant(&task, (ne16_quant_t){{{job.shift}, {function}, 0}}, (ne16_norm_t){{{norm}}});",
            f"ne16_task_set_addr_norm_quant(&task, {job.scale}u, {job.shifts or 0}u, {job.bias or 0}u);",
        ]
    lines += [
        "ne16_nnx_dispatch_wait(dev);",
        "if (ne16_nnx_dispatch(dev, &task)) return 1;"
        if stride == 1
        else f"ne16_nnx_dispatch_stride2x2(dev, &task, {w_in}, {job.ki}, {size}, {job.ko}, {kernel});",
        "ne16_nnx_resolve_wait(dev, &task);",
    ]
    return "\n".join(lines)


def test_layers_of_every_kind(checkout: Path, tmp_path: Path) -> None:
    """Convolutions of stride 1 and 2, depthwise, pointwise: all of L1 is as defined."""
    (tmp_path / "pmsis.h").write_text(SDK)
    drawn = drawn_layers()
    body = "\n".join(
        f"board_read(before, (void *){L1:#x}, {L1_BYTES});\n{calls(one)}\n"
        f"board_write(after, (void *){L1:#x}, {L1_BYTES});"
        for one in drawn
    )
    main = f"""
#include "bench.h"
#include "pulp_nnx_ne16.h"
int main(void)
{{
  const int before = board_open_read("l1.bin"), after = board_open_write("after.bin");
  const ne16_dev_t *dev = ne16_pulp_get_dev();
  ne16_pulp_conf_t conf = {{.max_stall = 8}};
  ne16_task_t task;
  ne16_nnx_init(dev, &conf);
{body}
  ne16_nnx_term(dev);
  return 0;
}}"""
    left = compile_and_run_c(
        ne16_target(),
        [Source(checkout / file) for file in (*FILES, *UTILITIES)],
        main,
        include=[*(checkout / folder for folder in FOLDERS), tmp_path],
        flags=("-O2", "-w", *PLATFORM),
        files={"l1.bin": b"".join(one.l1 for one in drawn)},
        outputs=("after.bin", "devices.log"),
    )
    for number, one in enumerate(drawn):
        after = left.files["after.bin"][number * L1_BYTES : (number + 1) * L1_BYTES]
        assert after == one.after(), (number, one.job)
    log = log_lines(left.files["devices.log"])
    assert {line.name for line in log if line.unit == "warn-ne16"} <= {"outputs whose sum or product wrapped"}
    assert sum(line.unit == "ne16" for line in log) > len(drawn)
