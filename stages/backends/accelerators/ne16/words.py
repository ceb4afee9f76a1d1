"""The 24 words that describe an NE16 job, and their fields.

Order and fields are those of the engine's registers from 0x20 on. The extension (extension.py) uses bits and words that
NE16 leaves unused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import cast

from stages.backends.accelerators.ne16.job import (
    ADDRESS_SPACE,
    SUBTILE_KI,
    SUBTILE_PIXELS,
    Extension,
    Job,
    Mode,
    Padding,
    Refused,
    split,
)

WORDS = 24
NAMES = (
    "weights_ptr", "infeat_ptr", "outfeat_ptr", "scale_ptr", "scale_shift_ptr", "scale_bias_ptr",
    "infeat_d0_stride", "infeat_d1_stride", "residual_ptr",
    "outfeat_d0_stride", "outfeat_d1_stride", "outfeat_d2_stride",
    "weights_d0_stride", "weights_d1_stride", "parameters_ptr",
    "rem_ko_ki", "rem_ho_wo", "rem_hi_wi", "number_ko_ki", "number_ho_wo",
    "padding", "weight_offset", "filter_mask", "conf0",
)  # fmt: skip
MODES: tuple[Mode, ...] = ("conv3x3", "depthwise3x3", "conv1x1")
BITS = (8, 16, 32)
_BEAT = 32  # bytes that the output's innermost stride steps by
_PLANE = 2  # bytes of 16 input channels at one tap

NORMALIZE, STRIDE_2, STREAM_IN, SIGNED, SHIFTS, BIAS = 1 << 4, 1 << 8, 1 << 14, 1 << 23, 1 << 24, 1 << 25
SIGNED_INPUT, TFLITE, ROUNDS_ONCE, RESIDUAL = 1 << 26, 1 << 27, 1 << 28, 1 << 29


def words(job: Job) -> tuple[int, ...]:
    """Return the words of a job that the engine computes as one. Raise Refused for others."""
    _check(job)
    three = job.kernel == 3
    ki, last_ki = _tiles(job.ki, SUBTILE_KI)
    ko, last_ko = _tiles(job.ko, job.channels)
    # With stride 2 the engine computes at stride 1 and writes the corners.
    rows, columns = ((n - 1) * job.stride + 1 for n in (job.h_out, job.w_out))
    (ho, last_ho), (wo, last_wo) = _tiles(rows, SUBTILE_PIXELS), _tiles(columns, SUBTILE_PIXELS)
    pad = job.padding
    # Of the last patch's 5 rows the last 3 - last_ho reach no output: padding begins that much earlier.
    bottom = pad.bottom + SUBTILE_PIXELS - last_ho if pad.bottom else 0
    right = pad.right + SUBTILE_PIXELS - last_wo if pad.right else 0
    plane = _PLANE * job.kernel**2
    extension = job.extension
    register_values = (
        job.weights,
        job.input - pad.top * job.input_row - pad.left * job.input_pixel,
        job.output,
        job.scale or 0,
        job.shifts or 0,
        job.bias or 0,
        job.input_pixel,
        job.input_row,
        (extension.residual if extension else None) or 0,
        _BEAT,
        job.output_pixel // job.stride,
        job.output_row // job.stride,
        plane if three else plane * job.weight_bits,
        0 if job.mode == "depthwise3x3" else plane * job.weight_bits * ki,
        (extension.parameters if extension else None) or 0,
        last_ko << 16 | last_ki,
        last_ho << 16 | last_wo,
        last_ho + job.kernel - 1 << 16 | last_wo + job.kernel - 1,
        ko << 16 | ki,
        ho << 16 | wo,
        pad.top << 28 | right << 24 | bottom << 20 | pad.left << 16 | job.pad_value & 0xFF,
        job.weight_offset,
        0,
        _conf0(job),
    )
    return tuple(word % ADDRESS_SPACE for word in register_values)


def blocks(job: Job) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return a job of stride 2 for `ne16_start_blocks` (hwlib/ne16.h): words and block numbers.

    Raise Refused for a job that the engine cannot compute.
    """
    parts = [*split(job)]
    first, last = words(parts[0]), words(parts[-1])
    registers = dict(zip(NAMES, first, strict=True))
    at_end = dict(zip(NAMES, last, strict=True))
    # A block in the middle has two rows and columns; fields of edges are those of the first and the last.
    subtile = (SUBTILE_PIXELS << 16) + SUBTILE_PIXELS
    registers["rem_ho_wo"], registers["rem_hi_wi"] = subtile, subtile + ((job.kernel - 1) * 0x10001)
    registers["padding"] = first[NAMES.index("padding")] & 0xF00F_FFFF | at_end["padding"] & 0x0FF0_0000
    numbers = (
        -(-job.h_out // 2),
        -(-job.w_out // 2),
        4 * job.input_row,
        4 * job.input_pixel,
        2 * job.output_row,
        2 * job.output_pixel,
        at_end["rem_ho_wo"],
        at_end["rem_hi_wi"],
    )
    return tuple(registers.values()), numbers


def _conf0(job: Job) -> int:
    conf0 = job.weight_bits - 1 | MODES.index(job.mode) << 5 | BITS.index(job.scale_bits) << 12 | job.shift << 16
    conf0 |= BITS.index(job.output_bits) << 21
    extension = job.extension
    flags = {
        NORMALIZE: job.scale is not None,
        STRIDE_2: job.stride == 2,
        STREAM_IN: job.stream_in,
        SIGNED: job.signed,
        SHIFTS: job.shifts is not None,
        BIAS: job.bias is not None,
        SIGNED_INPUT: extension is not None and extension.signed_input,
        TFLITE: extension is not None and extension.parameters is not None,
        ROUNDS_ONCE: extension is not None and extension.rounds_once,
        RESIDUAL: extension is not None and extension.residual is not None,
    }
    return conf0 | sum(flag for flag, on in flags.items() if on)


def _tiles(size: int, tile: int) -> tuple[int, int]:
    """Return the number of tiles, and the size of the last."""
    return -(-size // tile), (size - 1) % tile + 1


def _check(job: Job) -> None:
    for wrong, why in chain(_wrong_sizes(job), _wrong_arithmetic(job)):
        if wrong:
            raise Refused(f"{job.mode} {job.h_out}x{job.w_out}x{job.ki}->{job.ko}: {why}")


def _wrong_sizes(job: Job) -> Iterator[tuple[bool, str]]:
    """Return limits of the engine's geometry, and whether the job exceeds each."""
    sizes, most = (job.h_out, job.w_out, job.ki, job.ko), job.kernel // 2 * 2
    yield min(sizes) < 1 or max(sizes) > SUBTILE_PIXELS * 0xFFFF, "a size below 1 or above 196,605"
    yield job.mode == "depthwise3x3" and job.ki != job.ko, "depthwise needs as many output as input channels"
    yield job.stride not in (1, 2), f"a stride of {job.stride}; 1 or 2"
    yield not all(0 <= n <= most for n in job.padding), f"padding of {tuple(job.padding)}; 0 to {most}"
    yield not job.is_whole, "too large for one job; use split()"
    distances = [s for n, s in ((job.w_out, job.output_pixel), (job.h_out, job.output_row)) if n > 1]
    yield job.stride == 2 and any(s % 2 for s in distances), "stride 2 needs output pixels at even distances"


def _wrong_arithmetic(job: Job) -> Iterator[tuple[bool, str]]:
    """Return limits of the engine's arithmetic, and whether the job exceeds each."""
    extension = job.extension or Extension()
    tflite = extension.parameters is not None
    low, high = (-128, 127) if extension.signed_input else (0, 255)
    yield not low <= job.pad_value <= high, f"a padding value of {job.pad_value}; {low} to {high}"
    yield not 2 <= job.weight_bits <= 8, f"weights of {job.weight_bits} bits; 2 to 8"
    yield not -256 <= job.weight_offset <= 255, f"a weight offset of {job.weight_offset}; -256 to 255"
    yield job.output_bits not in BITS, f"output of {job.output_bits} bits; 8, 16 or 32"
    yield job.scale_bits not in BITS, f"scales of {job.scale_bits} bits; 8, 16 or 32"
    yield not 0 <= job.shift <= 31, f"a shift of {job.shift}; 0 to 31"
    if job.scale is None:
        yield job.output_bits != 32, "sums are written in 32 bits"
        yield job.bias is not None or job.shifts is not None, "bias and shifts need a scale"
    yield job.mode == "depthwise3x3" and job.stream_in, "depthwise with stream-in ignores the weight offset"
    few = job.ko <= job.channels
    yield job.stream_in and job.output_bits != 32 and not few, "stream-in into narrow outputs is limited to 32 channels"
    if tflite:
        is_complete = None not in (job.scale, job.shifts, job.bias) and (job.scale_bits, job.output_bits) == (32, 8)
        yield not is_complete, "the TFLite requantizer needs 32-bit multipliers, shifts, a bias and 8-bit outputs"
    else:
        lone = job.shifts is not None and job.bias is None
        yield job.scale_bits == 16 and lone, "16-bit scales with a shift for each channel need a bias"
        more = extension.rounds_once or extension.residual is not None
        yield more, "single rounding and a residual need the TFLite requantizer"


@dataclass(frozen=True)
class Task:
    """Fields of the words. Counts are of subtiles; `last_…` is the size of the last."""

    raw: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.raw) != WORDS:
            raise ValueError(f"{len(self.raw)} words; a job has {WORDS}")

    def word(self, name: str) -> int:
        """Return a word by its name in NAMES."""
        return self.raw[NAMES.index(name)]

    def flag(self, bit: int) -> bool:
        """Return whether the bit of conf0 is set."""
        return bool(self.word("conf0") & bit)

    @property
    def mode(self) -> Mode:
        """Kind of convolution."""
        return MODES[self.word("conf0") >> 5 & 3]

    @property
    def depthwise(self) -> bool:
        """Whether each output channel reads one input channel."""
        return self.mode == "depthwise3x3"

    @property
    def kernel(self) -> int:
        """Rows and columns of the kernel: 1 or 3."""
        return 1 if self.mode == "conv1x1" else 3

    @property
    def weight_bits(self) -> int:
        """Bits of a weight, 1 to 8."""
        return (self.word("conf0") & 7) + 1

    @property
    def weight_offset(self) -> int:
        """The offset in nine bits. The sign is bit 31."""
        word = self.word("weight_offset")
        return (word & 0xFF) - (word >> 31 << 8)

    @property
    def output_bits(self) -> int:
        """Bits of an output: 32 for sums that are not requantized."""
        return BITS[self.word("conf0") >> 21 & 3] if self.flag(NORMALIZE) else 32

    @property
    def scale_bits(self) -> int:
        """Bits of a channel's multiplier."""
        return BITS[self.word("conf0") >> 12 & 3]

    @property
    def shift(self) -> int:
        """Right shift of requantization."""
        return self.word("conf0") >> 16 & 31

    @property
    def channel_tile(self) -> int:
        """Output channels of a full subtile."""
        return 16 if self.depthwise else 32

    @property
    def ko(self) -> tuple[int, int]:
        """Number of output channel subtiles, and channels of the last one."""
        count, last = self._halves("number_ko_ki", "rem_ko_ki", 0)
        return count, last or self.channel_tile

    @property
    def ki(self) -> tuple[int, int]:
        """Subtiles of input channels, and the channels of the last one."""
        count, last = self._halves("number_ko_ki", "rem_ko_ki", 1)
        return count, last or SUBTILE_KI

    @property
    def rows(self) -> tuple[int, int]:
        """Subtiles of output rows, and the rows of the last one."""
        count, last = self._halves("number_ho_wo", "rem_ho_wo", 0)
        return count, last or SUBTILE_PIXELS

    @property
    def columns(self) -> tuple[int, int]:
        """Subtiles of output columns, and the columns of the last one."""
        count, last = self._halves("number_ho_wo", "rem_ho_wo", 1)
        return count, last or SUBTILE_PIXELS

    @property
    def patch(self) -> tuple[int, int]:
        """Rows and columns of the last patch that are not zero."""
        word = self.word("rem_hi_wi")
        full = SUBTILE_PIXELS + self.kernel - 1
        return (word >> 16) or full, (word & 0xFFFF) or full

    @property
    def padding(self) -> Padding:
        """Padding rows and columns at each edge."""
        word = self.word("padding")
        top, right, bottom, left = (word >> bit & 15 for bit in (28, 24, 20, 16))
        return Padding(top, right, bottom, left)

    @property
    def pad_value(self) -> int:
        """Eight bits of activation, signed as the activations are."""
        value = self.word("padding") & 0xFF
        return value - 256 if self.flag(SIGNED_INPUT) and value > 127 else value

    def _halves(self, number: str, last: str, half: int) -> tuple[int, int]:
        bit = 0 if half else 16
        return self.word(number) >> bit & 0xFFFF, self.word(last) >> bit & 0xFFFF


def task(registers: Sequence[int]) -> Task:
    """Return the fields of 24 words."""
    return Task(cast("tuple[int, ...]", tuple(int(word) % ADDRESS_SPACE for word in registers)))
