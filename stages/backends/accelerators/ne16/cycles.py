"""Cycles of an NE16 job in closed form.

The figures are from the cost model of MATCH for GAP9. They agree with silicon (MLPerf Tiny) for networks that wait for
the engine. A subtile (3x3 output pixels, 32 output channels) costs, for each 16 input channels: loading the patch, the
weight offset, the products; and once: normalization, and writing the outputs. Incomplete subtiles and incomplete groups
of input channels cost as much as full ones. The figures of the extension are assumptions (extension.py).
"""

from collections.abc import Sequence
from math import ceil

from stages.backends.accelerators.ne16 import extension
from stages.backends.accelerators.ne16.job import SUBTILE_PIXELS, Job, split
from stages.backends.accelerators.ne16.words import (
    BIAS,
    NORMALIZE,
    RESIDUAL,
    SHIFTS,
    STREAM_IN,
    TFLITE,
    Task,
    task,
    words,
)

_PIXELS = SUBTILE_PIXELS**2
_LOAD, _LOAD_1X1 = 31, 19
_OFFSET, _PRODUCTS, _UPDATE = 6, 6, 2
_SHIFT, _SCALE, _BIAS = 8, 9, 8
_OUT_BEFORE, _OUT_AFTER, _BEAT_BITS = 3, 1, 256


def cycles(job: Job) -> int:
    """Return the cycles of a job, summed over the jobs that the engine splits it into."""
    if job.is_whole:
        return cycles_of(words(job))
    if job.stride == 1:
        return sum(map(cycles, split(job)))
    # All blocks of 2x2 output pixels cost the same.
    first = next(iter(split(job)))
    return -(-job.h_out // 2) * -(-job.w_out // 2) * cycles_of(words(first))


def cycles_of(raw: Sequence[int]) -> int:
    """Return the cycles of a job from its 24 words."""
    job = task(raw)
    (tiles, last), rows, columns = job.ko, job.rows[0], job.columns[0]
    once = extension.BLOCK_CYCLES if job.flag(TFLITE) else 0
    return once + rows * columns * ((tiles - 1) * _subtile(job, job.channel_tile) + _subtile(job, last))


def _subtile(job: Task, channels: int) -> int:
    """Return the cycles of 3x3 output pixels of that many output channels."""
    if job.depthwise:
        sums = _LOAD + _OFFSET + channels + _PRODUCTS + channels * job.weight_bits + _UPDATE
    elif job.kernel == 3:
        sums = job.ki[0] * (_LOAD + _OFFSET + _PRODUCTS + channels * job.weight_bits + _UPDATE)
    else:
        sums = job.ki[0] * (_LOAD_1X1 + _OFFSET + _PRODUCTS + channels + _UPDATE)
    if job.flag(STREAM_IN):
        sums += _PIXELS * ceil(channels / 8)
    written = _OUT_BEFORE + _PIXELS * ceil(channels * job.output_bits / _BEAT_BITS) + _OUT_AFTER
    return sums + _normalize(job, channels) + written


def _normalize(job: Task, channels: int) -> int:
    if not job.flag(NORMALIZE):
        return 0
    step_cycles = _SCALE + ceil(channels * job.scale_bits // 8 / 4)
    if job.flag(SHIFTS):
        step_cycles += _SHIFT
    if job.flag(BIAS):
        step_cycles += _BIAS + ceil(channels / 8)
    if job.flag(TFLITE):
        step_cycles += extension.ROUNDING_CYCLES
    if job.flag(RESIDUAL):
        step_cycles += extension.residual_cycles(channels)
    return step_cycles
