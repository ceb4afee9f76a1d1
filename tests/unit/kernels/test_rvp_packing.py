"""The rvp kernels' short requantization is exact wherever packing chooses it; constants lie where they are read."""

from __future__ import annotations

import numpy as np
import pytest

from stages.arithmetic.fixed_point import multiply_by_quantized_multiplier
from stages.kernels.eight_bit import Range
from stages.kernels.rvp import packing, rounding
from stages.kernels.rvp.one_rounding import OneRounding
from stages.kernels.rvp.strips import group_channels
from stages.kernels.rvp.window_lines import Words
from stages.simulators.spike.rvp_model import compute

LOW, HIGH = -128, 127


def signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def instruction(name: str, a: int, b: int) -> int:
    """One lane of a P instruction, by the model of the specification."""
    return signed(compute(name, 32, rs1=a & 0xFFFFFFFF, rs2=b & 0xFFFFFFFF)[0])


def as_kernel(acc: int, multiplier: int, rounder: int, zero_point: int, *, wide: bool) -> int:
    """What gemm_s8.S and depthwise3x3_s8.S do with one accumulator, instruction by instruction."""
    t = instruction("kwmmul.u", acc, multiplier)
    if wide:
        t = signed(compute("sclip32", 32, rs1=instruction("kwmmul.u", t - (t < 0), rounder) & 0xFFFFFFFF, imm=14)[0])
    else:
        t = instruction("smmul.u", t, rounder)
    narrow = (t & 0xFFFF) + zero_point
    return int(np.clip((narrow + 0x8000 & 0xFFFF) - 0x8000, LOW, HIGH))


def never(channels: int) -> OneRounding:
    """Channels that are rounded twice."""
    zeros = np.zeros(channels, np.int64)
    return OneRounding(zeros - 1, zeros, zeros)


def near_halves(low: int, high: int, multiplier: int, shift: int, rng: np.random.Generator) -> np.ndarray:
    """Accumulators whose scaled value lies on a half or next to it, the bounds, and any others."""
    scale = multiplier / 2.0 ** (31 - shift)
    halves = rng.integers(-300, 300, 60) + 0.5
    close = np.round(halves / scale).astype(np.int64)[:, None] + np.arange(-2, 3)
    found = np.concatenate([close.ravel(), rng.integers(low, high + 1, 40), [low, high, 0, -1, 1]])
    return found[(found >= low) & (found <= high)]


@pytest.mark.parametrize("shift", range(-31, 0))
def test_both_roundings_equal_the_reference_for_every_shift(shift):
    rng = np.random.default_rng(-shift)
    chosen = {"short": 0, "wide": 0}
    for multiplier in (1 << 30, (1 << 31) - 1, *rng.integers(1 << 30, 1 << 31, 3)):
        for reach in (1, 100, 1 << 14, 1 << 22, 1 << 29):
            middle = int(rng.integers(-reach, reach)) * int(rng.integers(0, 2))
            low, high = max(middle - reach, -(1 << 31)), min(middle + reach, (1 << 31) - 1)
            m, s = np.array([multiplier], np.int32), np.array([shift], np.int32)
            rounder = rounding.rounders(m, s, Range(np.array([low]), np.array([high])))
            zero_point = int(rng.integers(-128, 128))
            acc = near_halves(low, high, int(multiplier), shift, rng)
            scaled = multiply_by_quantized_multiplier(acc, m, s, "double")
            expected = np.clip(scaled + zero_point, LOW, HIGH)
            for kind, values in (("short", rounder.short), ("wide", rounder.wide)):
                if values[0] < 0:
                    continue
                chosen[kind] += 1
                wide = kind == "wide"
                got = [as_kernel(int(a), int(multiplier), int(values[0]), zero_point, wide=wide) for a in acc]
                np.testing.assert_array_equal(got, expected, f"{kind} shift {shift} range [{low}, {high}]")
    assert chosen["wide"] == 25
    assert shift == -1 or chosen["short"] > 5, "the short way must be usual, or it gains nothing"


def test_a_result_beyond_16_bits_is_wide():
    """An accumulator of 2^30 scaled by 1/4 wraps when it is narrowed without saturation."""
    m, s = np.array([1 << 30, 1 << 30], np.int32), np.array([-2, -2], np.int32)
    rounder = rounding.rounders(m, s, Range(np.array([0, 0]), np.array([1 << 30, 1 << 17])))
    assert rounder.short[0] == -1
    assert rounder.short[1] > 0


@pytest.mark.parametrize("shift", range(-31, -1))
def test_rounding_once_equals_the_reference(shift):
    rng = np.random.default_rng(-shift)
    for multiplier in rng.integers(1 << 30, 1 << 31, 4):
        m, s = np.array([multiplier], np.int32), np.array([shift], np.int32)
        rounder = rounding.rounders_once(m, s, Range(np.array([-(1 << 15)]), np.array([1 << 15])))
        acc = near_halves(-(1 << 15), 1 << 15, int(multiplier), shift, rng)
        expected = np.clip(multiply_by_quantized_multiplier(acc, m, s, "single"), LOW, HIGH)
        high = [int(a) * int(multiplier) >> 32 for a in acc]  # smmul
        ways = [("kwmmul.u", int(rounder.wide[0]))] + [("smmul.u", int(p)) for p in rounder.short if p >= 0]
        for name, p in ways:
            got = np.clip([instruction(name, t, p) for t in high], LOW, HIGH)
            np.testing.assert_array_equal(got, expected, f"{name} shift {shift}")


@pytest.mark.parametrize("word_bits", [64, 32])
def test_weights_and_parameters_lie_where_the_kernels_read_them(word_bits):
    """Channel 4 * lane + {0, 2, 1, 3}[j] of a block is in lane `lane` of register j; runs start new chunks."""
    rng = np.random.default_rng(1)
    lanes, channels, run, runs = word_bits // 32, 11, 6, 3
    weights = rng.integers(-127, 128, (channels, run * runs)).astype(np.int8)
    blocks = -(-channels // (4 * lanes))
    packed = packing.gemm_weights(weights, 7, run, word_bits, blocks)
    bias = rng.integers(-99, 99, channels)
    multiplier = np.full(channels, 1 << 30, np.int32)
    short = np.full(channels, 1 << 24)
    short[5] = -1
    params = packing.gemm_params(bias, multiplier, rounding.Rounders(short, short * 2, short), None, word_bits, blocks)
    for channel in range(channels):
        block, lane, j = channel // (4 * lanes), channel % (4 * lanes) // 4, (0, 2, 1, 3).index(channel % 4)
        for k in range(run * runs):
            chunk = k // run * 2 + k % run // 4
            assert packed[block, chunk, j, lane, k % run % 4] == weights[channel, k]
        assert params[block, 0, j, lane] == bias[channel]
    assert (packed[0, 1, :, :, 2:] == 7).all(), "behind a run's end stands the zero point"
    wide_block = 5 // (4 * lanes)
    marks = params[:, 2, 0, -1] < 0
    assert marks.tolist() == [block == wide_block for block in range(len(params))]
    assert (params[wide_block, 2, 1] == 1 << 25).all(), "a wide block has wide rounders throughout"


@pytest.mark.parametrize("word_bits", [64, 32])
def test_direct_weights_and_parameters_lie_in_halves_of_blocks(word_bits):
    """Channel 4 * lane + 2 * j + h of a block is in lane `lane` of register j of half h; each pixel starts a chunk."""
    rng = np.random.default_rng(2)
    lanes, channels, taps, columns, depth = word_bits // 32, 16, 3, 2, 6
    weights = rng.integers(-127, 128, (channels, taps, columns, depth)).astype(np.int8)
    packed = packing.direct_weights(weights, word_bits)
    bias = rng.integers(-99, 99, channels)
    multiplier = rng.integers(1 << 30, 1 << 31, channels).astype(np.int32)
    short = np.full(channels, 1 << 24)
    short[9] = -1
    params = packing.direct_params(
        bias, multiplier, rounding.Rounders(short, short * 2, short), never(channels), word_bits
    )
    for channel in range(channels):
        block, lane, j, h = channel // (4 * lanes), channel % (4 * lanes) // 4, channel % 4 // 2, channel % 2
        for t, u, c in np.ndindex(taps, columns, depth):
            assert packed[2 * block + h, u * 2 + c // 4, t, j, lane, c % 4] == weights[channel, t, u, c]
        assert params[2 * block + h, 0, j, lane] == bias[channel]
        assert params[2 * block + h, 1, j, lane] == multiplier[channel]
    assert (packed[:, 1::2, :, :, :, 2:] == 0).all(), "behind a pixel's channels stands 0"
    marks = params[:, 2, 0, -1] < 0
    assert marks.tolist() == [half // 2 == 9 // (4 * lanes) for half in range(len(params))], "in both halves"
    assert (params[marks, 2, 1] == 1 << 25).all(), "a wide block has wide rounders throughout"


@pytest.mark.parametrize("units", [1, 4, 6, 8, 15, 21])
@pytest.mark.parametrize("word_bits", [64, 32])
def test_rows_lie_in_groups_of_units_that_exist_and_parameters_in_quads(word_bits, units):
    """A register holds weights of one unit; registers of a group's units are neighbours, step after step."""
    rng = np.random.default_rng(units)
    lanes, register, depth = word_bits // 32, word_bits // 8, 21
    weights = rng.integers(-127, 128, (units, depth)).astype(np.int8)
    packed = packing.rows_weights(weights, 7, word_bits)
    bias = rng.integers(-99, 99, units)
    multiplier = rng.integers(1 << 30, 1 << 31, units).astype(np.int32)
    short = np.full(units, 1 << 24)
    wide = short * 2
    short[units // 2] = -1
    params = packing.rows_params(bias, multiplier, rounding.Rounders(short, wide, short), word_bits)
    steps = -(-depth // register)
    assert packed.size == units * steps * register, "no unit is padded"
    assert sum(packing.unit_groups(units)) == units
    first = 0
    for size in packing.unit_groups(units):
        group = packed[first * steps * register :][: size * steps * register].reshape(steps, size, register)
        rows = group.transpose(1, 0, 2).reshape(size, -1)
        np.testing.assert_array_equal(rows[:, :depth], weights[first : first + size])
        assert (rows[:, depth:] == 7).all(), "behind the row's end stands the zero point"
        first += size
    np.testing.assert_array_equal(params[:, 0].reshape(-1)[:units], bias)
    np.testing.assert_array_equal(params[:, 1].reshape(-1)[:units], multiplier)
    marks = params[:, 2, lanes - 1] < 0
    assert marks.tolist() == [quad == units // 2 // 4 for quad in range(-(-units // 4))]
    rounders = (params[:, 2] & 0x7FFFFFFF).reshape(-1)[:units]
    expected = np.where(marks.repeat(4)[:units], 1 << 25, 1 << 24)
    np.testing.assert_array_equal(rounders, expected, "a wide quad has wide rounders throughout")


def test_depthwise_weights_that_need_nine_bits_are_sums_of_two_int8():
    weights = np.zeros((3, 3, 8), np.int64)
    weights[1, 2, 4], weights[0, 0, 1] = 254, -255
    channel = np.ones(8, np.int64)
    rounder = rounding.Rounders(channel, channel, channel)
    params = packing.depthwise_params(
        weights, channel, channel.astype(np.int32), rounder, never(8), 64, groups=[[*range(8)]], split=True
    )
    assert params.shape == (1, 4, 9, 2)

    def tap(j: int, lane: int, row: int, column: int) -> int:
        addends = [int(params[0, j, base + row, lane]) >> (8 * column) & 0xFF for base in (0, 6)]
        return sum(value - 256 if value > 127 else value for value in addends)

    assert tap(0, 1, 1, 2) == 254  # channel 4: j 0, upper lane
    assert tap(1, 0, 0, 0) == -255
    assert tap(2, 0, 1, 1) == 0


@pytest.mark.parametrize("word_bits", [32, 64])
@pytest.mark.parametrize(("stride", "columns"), [(s, k) for s in (1, 2) for k in range(1, 12)])
def test_words_of_a_depthwise_window_are_its_taps_shifted_to_where_outputs_begin(word_bits, stride, columns):
    """Each output of a word finds its window in the words it reaches, and zeros beside it."""
    rng = np.random.default_rng(columns)
    weights = rng.integers(-128, 128, (2, columns, 5))
    zeros = np.zeros(5, np.int64)
    words, groups = Words(stride, columns), group_channels(5, word_bits // 32)
    rounder, starts = rounding.Rounders(zeros, zeros, zeros), words.starts
    made = packing.window_params(weights, zeros, zeros, rounder, word_bits, starts=starts, groups=groups, split=False)
    assert made.shape == (len(groups), 4, 3 + 2 * len(starts), word_bits // 32)
    rows = np.ascontiguousarray(made[0, 2, 3:, 0]).view(np.int8).reshape(2, len(starts), 4)  # of channel 2
    width = 4 * words.reach
    for output in range(4):
        # With stride 2 outputs 2 and 3 have the words of 0 and 1, one word of the line further on.
        first, skipped = (output, 0) if stride == 1 else (output % 2 * 2, output // 2 * 4)
        found = np.zeros((2, width), np.int64)
        for word in range(skipped // 4, words.reach):
            if 4 * word - skipped - first in starts:
                found[:, 4 * word : 4 * word + 4] = rows[:, starts.index(4 * word - skipped - first)]
        expected = np.zeros((2, width), np.int64)
        expected[:, output * stride : output * stride + columns] = weights[:, :, 2]
        assert np.array_equal(found, expected)


def test_the_last_group_of_channels_begins_within_the_one_before():
    assert group_channels(19, 2) == [[*range(8)], [*range(8, 16)], [*range(11, 19)]]
    assert group_channels(3, 2) == [[0, 1, 2]]


def test_a_group_with_a_channel_that_is_not_scaled_down_is_rounded_by_shifts():
    """Two marks, and rounders that are the channels' shifts; the other group has the usual ones."""
    multiplier, shift = np.full(16, 1 << 30, np.int32), np.full(16, -9, np.int32)
    shift[3] = 2
    bound = np.full(16, 1 << 20, np.int64)
    rounder = rounding.rounders(multiplier, shift, Range(-bound, bound), any_shift=True)
    zeros, weights = np.zeros(16, np.int64), np.zeros((1, 1, 16), np.int64)
    made = packing.window_params(
        weights, zeros, multiplier, rounder, 64, starts=(0,), groups=group_channels(16, 2), split=False
    )
    marks = made[:, :, 2, -1] < 0
    assert marks.tolist() == [[True, True, False, False], [False] * 4]
    shifts = (made[0, :, 2].T.reshape(-1) & 127) - packing.EXACT_SHIFT
    assert shifts.tolist() == shift[:8].tolist()


@pytest.mark.parametrize("word_bits", [64, 32])
def test_what_is_rounded_once_is_marked_by_a_rounder_of_0_and_has_zero_points_in_pairs(word_bits):
    """Only blocks of which all channels are; a rounder of 0 of others is 1, which rounds to 0 too."""
    channels, zeros = 24, np.zeros(24, np.int64)
    lanes, multiplier = word_bits // 32, np.full(24, 1 << 30, np.int32)
    rounder = rounding.Rounders(zeros, zeros + 1, zeros)
    points = np.arange(channels) * 100 - 1000
    once = OneRounding(np.arange(channels) + 5, np.arange(channels) * 7, points)
    once.multiplier[9] = -1
    made = packing.gemm_params(zeros, multiplier, rounder, once, word_bits, channels // (4 * lanes))
    direct = packing.direct_params(zeros, multiplier, rounder, once, word_bits)
    depthwise = packing.depthwise_params(
        np.zeros((3, 3, channels), np.int64),
        zeros,
        multiplier,
        rounder,
        once,
        word_bits,
        groups=group_channels(channels, lanes),
    )
    halves = direct.reshape(-1, 2, 3, 2, lanes)
    for channel in range(channels):
        block, lane = channel // (4 * lanes), channel % (4 * lanes) // 4
        j, h = (0, 2, 1, 3).index(channel % 4), channel % 2
        words = (
            made[block, :, j, lane],
            halves[block, h, :, channel % 4 // 2, lane],
            depthwise[block, channel % 4, 3:, lane],
        )
        if block == 9 // (4 * lanes):
            assert made[block, 2, 0, -1] == halves[block, h, 2, 0, -1] == 1
            assert [word[1] for word in words] == [1 << 30] * 3
            continue
        assert [word[0] for word in words] == [channel * 7] * 3
        assert [word[1] & 0x7FFFFFFF for word in words] == [channel + 5] * 3
        assert (made[block, 2, 0] == 0).all()
        assert (halves[block, h, 2, 0] == 0).all()
        assert depthwise[block, 0, 4, -1] < 0
        pair = made[block, 2, 1 + j // 2, lane], halves[block, h, 2, 1, lane], depthwise[block, channel % 4, 5, lane]
        assert [np.int32(word).view(np.uint32) >> 16 * (channel % 4 // 2) & 0xFFFF for word in pair] == [
            points[channel] & 0xFFFF
        ] * 3
