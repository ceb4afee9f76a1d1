"""Constants in the layouts that the rvp kernels read."""

from __future__ import annotations

from collections.abc import Callable

from stages.backends.riscv.kernels.rvp.one_rounding import OneRounding
from stages.backends.riscv.kernels.rvp.rounding import Rounders
from stages.support.lazy import np, npt

# Register j of a block holds this channel of the block (plus 4 in the upper lane): the order in which bytes are packed.
COLUMN_CHANNEL = (0, 2, 1, 3)
WIDE_MARK = -(1 << 31)
EXACT_SHIFT = 64  # what a rounder that is a shift is more than it


def lanes(word_bits: int) -> int:
    """Return the number of 32-bit lanes per register."""
    return word_bits // 32


def by_block(values: npt.NDArray[np.int64], word_bits: int, blocks: int) -> npt.NDArray[np.int64]:
    """[channels] -> [blocks, 4, lanes], channels in register order, zeros after the last."""
    lane_count = lanes(word_bits)
    block = 4 * lane_count
    padded = np.zeros(blocks * block, values.dtype)
    padded[: len(values)] = values
    return padded.reshape(blocks, lane_count, 4).transpose(0, 2, 1)[:, COLUMN_CHANNEL, :]


def gemm_params(
    bias: npt.NDArray[np.int64],
    multiplier: npt.NDArray[np.int32],
    rounder: Rounders,
    once: OneRounding | None,
    word_bits: int,
    blocks: int,
) -> npt.NDArray[np.int32]:
    """Return params of gemm_s8.S: int32 [blocks, 3, 4, lanes] of bias, multiplier, rounder.

    If all channels of a block round once (`once`), its first rounder is 0 and the next two are zero points, of
    registers 0 and 1 side by side, then of 2 and 3. Other blocks are short if every channel in them can be. The sign of
    a wide block's first rounder is set (upper lane on RV64).
    """

    def arrange(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return by_block(values, word_bits, blocks)

    params = _block_params(bias, multiplier, rounder, arrange)
    if once is None:
        return params
    params[params[:, 2, 0, -1] == 0, 2, 0, -1] = 1  # rounds to 0 as well
    scaled = arrange(once.multiplier)
    rounded_once = (scaled >= 0).all(axis=(1, 2))
    points = arrange(once.zero_point)
    pairs = points[:, 0::2] & 0xFFFF | points[:, 1::2] << 16
    none = np.zeros_like(pairs[:, :1])
    single = np.stack([arrange(bias + once.bias), scaled, np.concatenate([none, pairs, none], axis=1)], axis=1)
    params[rounded_once] = single[rounded_once].astype(np.int32)
    return params


def _block_params(
    bias: npt.NDArray[np.int64],
    multiplier: npt.NDArray[np.int32],
    rounder: Rounders,
    arrange: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]],
) -> npt.NDArray[np.int32]:
    """Return int32 [blocks, 3, registers, lanes]: bias, multiplier, rounder, by `arrange`."""
    short, wide = arrange(rounder.short), arrange(rounder.wide)
    is_wide = np.any(short < 0, axis=(1, 2))
    p = np.where(is_wide[:, None, None], wide, short)
    p[is_wide, 0, -1] += WIDE_MARK
    return np.stack([arrange(bias), arrange(multiplier.astype(np.int64)), p], axis=1).astype(np.int32)


def gemm_weights(
    weights: npt.NDArray[np.int8], zero_point: int, run: int, word_bits: int, blocks: int
) -> npt.NDArray[np.int8]:
    """int8 [channels, depth] -> [blocks, chunks, 4, lanes, 4].

    Each run of `run` elements starts a new chunk. The zero point fills the rest of a run's last chunk, so that panel
    bytes there have no effect.
    """
    lane_count = lanes(word_bits)
    block = 4 * lane_count
    channels, depth = weights.shape
    run_chunks = -(-run // 4)
    runs = depth // run
    chunks = runs * run_chunks
    padded = np.full((blocks * block, runs, run_chunks * 4), zero_point, np.int8)
    padded[:channels, :, :run] = weights.reshape(channels, runs, run)
    split = padded.reshape(blocks, lane_count, 4, chunks, 4)[:, :, COLUMN_CHANNEL]
    return np.ascontiguousarray(split.transpose(0, 3, 2, 1, 4))


def on_diagonals(weights: npt.NDArray[np.int8], zero_point: int, groups: int, taps: int) -> npt.NDArray[np.int8]:
    """Place the weights of each group on the diagonal of a product of several groups.

    int8 [products, channels, taps * inputs of a group] -> [products, channels, taps * inputs of `groups` groups].
    Inputs of other groups get the zero point, which has no effect.
    """
    count, channels, depth = weights.shape
    by_group = weights.reshape(count, groups, channels // groups, taps, depth // taps)
    diagonal = np.full((*by_group.shape[:4], groups, by_group.shape[4]), zero_point, np.int8)
    for group in range(groups):
        diagonal[:, group, :, :, group] = by_group[:, group]
    return diagonal.reshape(count, channels, depth * groups)


def pointwise_params(
    weights: npt.NDArray[np.int8],
    run: int,
    bias: npt.NDArray[np.int64],
    multiplier: npt.NDArray[np.int32],
    rounder: Rounders,
    once: OneRounding,
    word_bits: int,
    blocks: int,
) -> npt.NDArray[np.int32]:
    """Return int32 [blocks, 3 + chunks, 4, lanes] of bias, weights, multiplier, rounder."""
    params = gemm_params(bias, multiplier, rounder, once, word_bits, blocks)
    words = gemm_weights(weights, 0, run, word_bits, blocks).view("<i4")[..., 0]
    return np.concatenate([params[:, :1], words, params[:, 1:]], axis=1)


def unit_groups(units: int) -> list[int]:
    """Return the sizes of the unit groups that dot_rows.S computes at a time."""
    return [8] * (units // 8) + [size for size in (units & 4, units & 3) if size]


def rows_params(
    bias: npt.NDArray[np.int64], multiplier: npt.NDArray[np.int32], rounder: Rounders, word_bits: int
) -> npt.NDArray[np.int32]:
    """Return params of dot_rows.S: int32 [quads, 3, 4] of bias, multiplier, rounder.

    Units are in order, zeros after the last. All units of a quad have short or all have wide roundings; the
    last lane of the quad's first register of rounders marks this.
    """

    def arrange(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.pad(values, (0, -len(values) % 4)).reshape(-1, 4 // lanes(word_bits), lanes(word_bits))

    return _block_params(bias, multiplier, rounder, arrange).reshape(-1, 3, 4)


def rows_weights(weights: npt.NDArray[np.int8], zero_point: int, word_bits: int) -> npt.NDArray[np.int8]:
    """int8 [units, depth] -> [units * steps * 4 * lanes]: groups of [steps, units, 4 * lanes].

    The zero point fills the end of the depth, so that activations read beyond it have no effect.
    """
    units, depth = weights.shape
    register = 4 * lanes(word_bits)
    padded = np.pad(weights, ((0, 0), (0, -depth % register)), constant_values=zero_point)
    steps = padded.reshape(units, -1, register)
    groups = np.split(steps, np.cumsum(unit_groups(units))[:-1])
    return np.concatenate([group.transpose(1, 0, 2).reshape(-1) for group in groups])


def run_weights(weights: npt.NDArray[np.int8], run: int, load_bytes: int) -> npt.NDArray[np.int8]:
    """int8 [outputs, depth] -> [outputs, runs, loads of a run * load_bytes], 0 after each run."""
    outputs, depth = weights.shape
    split = weights.reshape(outputs, depth // run, run)
    return np.pad(split, ((0, 0), (0, 0), (0, -run % load_bytes)))


def few_params(
    bias: npt.NDArray[np.int64], multiplier: npt.NDArray[np.int32], rounder: Rounders, word_bits: int
) -> npt.NDArray[np.int32]:
    """Return params of few_outputs.c: int32 [outputs, 3, lanes].

    Bias (lower lane), multiplier, rounder. The sign of the last lane's rounder marks a wide rounding. Where no wide one
    exists, the multiplier's sign marks it, and the rounder is the shift plus EXACT_SHIFT.
    """
    is_wide, is_exact = rounder.short < 0, rounder.wide < 0
    rounders = np.where(is_exact, rounder.shift + EXACT_SHIFT, np.where(is_wide, rounder.wide, rounder.short))
    params = np.repeat(np.stack([bias, multiplier.astype(np.int64), rounders], 1)[..., None], lanes(word_bits), 2)
    params[:, 0, 1:] = 0
    params[is_wide | is_exact, 2, -1] += WIDE_MARK
    params[is_exact, 1, -1] += WIDE_MARK
    return params.astype(np.int32)


def direct_params(
    bias: npt.NDArray[np.int64], multiplier: npt.NDArray[np.int32], rounder: Rounders, once: OneRounding, word_bits: int
) -> npt.NDArray[np.int32]:
    """Return params of direct_s8.S: int32 [halves, 3, 2, lanes] of bias, multiplier, rounder.

    Channels are whole blocks. A block is single, short or wide as a whole, marked in the first rounder of both halves.
    The second rounder of a half that is rounded once is its zero points.
    """
    blocks = len(bias) // (4 * lanes(word_bits))
    params = gemm_params(bias, multiplier, rounder, once, word_bits, blocks)
    is_wide, is_once = params[:, 2, 0, -1] < 0, params[:, 2, 0, -1] == 0
    params[is_wide, 2, 2, -1] |= WIDE_MARK
    params[~is_once & (params[:, 2, 2, -1] == 0), 2, 2, -1] = 1
    params[is_once, 2, 2:] = params[is_once, 2, 2:][:, ::-1]
    halves = params.reshape(blocks, 3, 2, 2, -1).transpose(0, 2, 1, 3, 4)
    return np.ascontiguousarray(halves).reshape(2 * blocks, 3, 2, -1)


def in_chunks(weights: npt.NDArray[np.int8], start: int, chunks: int) -> npt.NDArray[np.int8]:
    """int8 [channels, taps, columns, depth] -> [channels, taps, chunks, 4] from `start`."""
    channels, taps = weights.shape[:2]
    chunked = np.zeros((channels, taps, chunks * 4), np.int8)
    row = weights.reshape(channels, taps, -1)
    chunked[:, :, start : start + row.shape[2]] = row
    return chunked.reshape(channels, taps, chunks, 4)


def direct_weights(weights: npt.NDArray[np.int8], word_bits: int) -> npt.NDArray[np.int8]:
    """Return weights of direct_s8.S.

    int8 [channels, taps, columns, depth] -> [halves, columns * chunks, taps, 2, lanes, 4], 0 after the depth.
    """
    lane_count = lanes(word_bits)
    channels, taps, columns, depth = weights.shape
    blocks, chunks = channels // (4 * lane_count), -(-depth // 4)
    padded = np.zeros((channels, taps, columns, chunks * 4), np.int8)
    padded[..., :depth] = weights
    split = padded.reshape(blocks, lane_count, 4, taps, columns, chunks, 4)[:, :, COLUMN_CHANNEL]
    halves = split.reshape(blocks, lane_count, 2, 2, taps, columns, chunks, 4).transpose(0, 2, 5, 6, 4, 3, 1, 7)
    return np.ascontiguousarray(halves).reshape(2 * blocks, columns * chunks, taps, 2, lane_count, 4)


def clip_word(zero_point: int, lowest: int, highest: int, *, unsigned: bool) -> int:
    """Return the kernels' clip argument from the output's zero point and bounds: int32."""
    offset = 128 if unsigned else 0
    parts = [zero_point - offset, lowest - offset, highest - offset, 0x80 if unsigned else 0]
    word = sum((part & 0xFF) << (8 * index) for index, part in enumerate(parts))
    return word - (1 << 32) if word >= 1 << 31 else word


def depthwise_params(
    weights: npt.NDArray[np.int64],
    bias: npt.NDArray[np.int64],
    multiplier: npt.NDArray[np.int32],
    rounder: Rounders,
    once: OneRounding,
    word_bits: int,
    *,
    groups: list[list[int]],
    split: bool = False,
) -> npt.NDArray[np.int32]:
    """Return int32 [groups, 4, 6, lanes] for depthwise3x3_s8.S.

    Holds three rows of weights, bias, multiplier, rounder. `weights` are int8 values [3, 3 or 4, channels], `groups`
    the channels of each group. `split`: weights are sums of two int8; the rows of the second addends follow (9 instead
    of 6). A group whose channels all round once (`once`) is marked in the first multiplier and has zero points as
    rounders, in both halves of a lane. Other groups are short if every channel can be; a wide group is marked in the
    first rounder.
    """
    addend = np.clip(weights, -128, 127)
    columns = [*_rows(addend), bias, multiplier.astype(np.int64), rounder.short, *_rows(weights - addend), rounder.wide]
    points = once.zero_point & 0xFFFF | once.zero_point << 16
    params = _by_group(np.stack([*columns, bias + once.bias, once.multiplier, points]), groups, word_bits)
    is_once = (params[:, :, 11] >= 0).all(axis=(1, 2))
    is_wide = ~is_once & (params[:, :, 5] < 0).any(axis=(1, 2))
    params[is_wide, :, 5] = params[is_wide, :, 9]
    params[is_wide, 0, 5, -1] += WIDE_MARK
    params[is_once, :, 3:6] = params[is_once, :, 10:]
    params[is_once, 0, 4, -1] += WIDE_MARK
    return np.ascontiguousarray(params[:, :, : 9 if split else 6]).astype(np.int32)


def _by_group(
    values: npt.NDArray[np.int64], groups: list[list[int]], word_bits: int, behind: int = 0
) -> npt.NDArray[np.int64]:
    """[n, channels] -> [groups, 4, n, lanes]: channel 4 * lane + j at [j, :, lane]."""
    padded = np.full((len(values), len(groups), 4 * lanes(word_bits)), behind, np.int64)
    padded[:, :, : len(groups[0])] = values[:, np.array(groups)]
    return padded.reshape(len(values), len(groups), lanes(word_bits), 4).transpose(1, 3, 0, 2).copy()


def _rows(weights: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return [3, channels]: a window row in the bytes of a word.

    Weights are [3, 3 or 4, channels]. A missing fourth column is 0.
    """
    places = 8 * np.arange(weights.shape[1])[:, None]
    return ((weights & 0xFF) << places).sum(axis=1)


def window_params(
    weights: npt.NDArray[np.int64],
    bias: npt.NDArray[np.int64],
    multiplier: npt.NDArray[np.int32],
    rounder: Rounders,
    word_bits: int,
    *,
    starts: tuple[int, ...],
    groups: list[list[int]],
    split: bool,
) -> npt.NDArray[np.int32]:
    """Return int32 [groups, 4, 3 + words, lanes] for depthwise_window_sums.h.

    Holds bias, multiplier, rounder, words. `weights` are [rows, columns, channels]; `starts` are the first columns of a
    row's words (0 outside the window), `groups` the channels of each group. `split`: weights are sums of two int8; the
    rows of the second addends follow. The first rounder of a wide group carries the mark. If a channel has no wide
    rounding, the second rounder does too, and rounders are shifts plus EXACT_SHIFT.
    """
    addend = np.clip(weights, -128, 127)
    rows = [_words(part, starts) for part in ((addend, weights - addend) if split else (addend,))]
    return _with_roundings(bias, multiplier, rounder, np.concatenate(rows), groups, word_bits)


def taps_params(
    weights: npt.NDArray[np.int16],
    bias: npt.NDArray[np.int64],
    multiplier: npt.NDArray[np.int32],
    rounder: Rounders,
    word_bits: int,
    groups: list[list[int]],
) -> npt.NDArray[np.int32]:
    """Return int32 [groups, 3 + quads, 4, lanes] of bias, multiplier, rounder, weights.

    `weights` are int8 values [channels, taps], four taps per word; the rest is as in `window_params`.
    """
    taps = np.pad(weights.astype(np.int64) & 0xFF, ((0, 0), (0, -weights.shape[1] % 4)))
    words = (taps.reshape(len(weights), -1, 4) << (8 * np.arange(4))).sum(2).T
    params = _with_roundings(bias, multiplier, rounder, words, groups, word_bits)
    return np.ascontiguousarray(params.transpose(0, 2, 1, 3))


def quad_params(
    bias: npt.NDArray[np.int64],
    multiplier: npt.NDArray[np.int32],
    rounder: Rounders,
    quads: list[list[list[int]]],
    word_bits: int,
) -> npt.NDArray[np.int32]:
    """Return params of quads.c: int32 [quads, 4, 3, lanes]; `quads` are the channels by lane."""
    groups = [[channel for lane in quad for channel in lane] for quad in quads]
    none = np.zeros((0, len(bias)), np.int64)
    return _with_roundings(bias, multiplier, rounder, none, groups, word_bits)


def planes_params(
    pairs: npt.NDArray[np.int64],
    bias: npt.NDArray[np.int64],
    multiplier: npt.NDArray[np.int32],
    rounder: Rounders,
    once: OneRounding,
    word_bits: int,
    *,
    groups: list[list[int]],
    has_single: bool,
) -> npt.NDArray[np.int32]:
    """Return int32 [groups, 3 + words, 4, lanes] of bias, multiplier, rounder, weights.

    `pairs` are int8 values [words, 2, channels]. Register j uses bytes j % 2 and j % 2 + 2 of a word; a single tap
    (`has_single`: the first of the last word) uses byte j. A group whose channels all round once (`once`) is marked in
    the first multiplier; its first two rounders are zero points of registers 0 and 2, 1 and 3, side by side. The rest
    is as in `window_params`.
    """
    halves = pairs & 0xFF
    rows = halves[:, 0] | halves[:, 1] << 16
    params = _with_roundings(bias, multiplier, rounder, rows, groups, word_bits).transpose(0, 2, 1, 3).copy()
    columns = np.stack([bias + once.bias, once.multiplier, once.zero_point])
    single = _by_group(columns, groups, word_bits).transpose(0, 2, 1, 3).copy()
    is_once = (single[:, 1] >= 0).all(axis=(1, 2))
    single[:, 2, :2] = single[:, 2, :2] & 0xFFFF | single[:, 2, 2:] << 16
    single[is_once, 1, 0, -1] += WIDE_MARK
    params[is_once, :3] = single[is_once].astype(np.int32)
    places = np.tile(8 * (np.arange(4) % 2), (len(rows), 1))
    if has_single:
        places[-1] = 8 * np.arange(4)
    return np.concatenate((params[:, :3], params[:, 3:] << places[..., None]), axis=1, dtype=np.int32, casting="unsafe")


def _with_roundings(
    bias: npt.NDArray[np.int64],
    multiplier: npt.NDArray[np.int32],
    rounder: Rounders,
    rows: npt.NDArray[np.int64],
    groups: list[list[int]],
    word_bits: int,
) -> npt.NDArray[np.int32]:
    """Return int32 [groups, 4, 3 + rows, lanes] with marks: bias, multiplier, rounder, rows."""
    columns = [bias, multiplier.astype(np.int64), rounder.short, rounder.wide]
    params = _by_group(np.concatenate([columns, rows]), groups, word_bits)
    # Where there is no channel, the shift is by 0: one by -EXACT_SHIFT is not defined in C.
    shifts = _by_group(rounder.shift[None] + EXACT_SHIFT, groups, word_bits, EXACT_SHIFT)[:, :, 0]
    is_wide, is_exact = ((params[:, :, row] < 0).any(axis=(1, 2)) for row in (2, 3))
    params[is_wide, :, 2] = params[is_wide, :, 3]
    params[is_exact, :, 2] = shifts[is_exact]
    params[is_wide | is_exact, 0, 2, -1] += WIDE_MARK
    params[is_exact, 1, 2, -1] += WIDE_MARK
    return np.ascontiguousarray(np.delete(params, 3, axis=2)).astype(np.int32)


def _words(weights: npt.NDArray[np.int64], starts: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """[rows, columns, channels] -> [rows * words, channels]: four columns from each start on."""
    rows, columns, channels = weights.shape
    before = -min(starts)
    padded = np.zeros((rows, before + max(columns, max(starts) + 4), channels), np.int64)
    padded[:, before : before + columns] = weights & 0xFF
    words = [sum(padded[:, before + start + i] << (8 * i) for i in range(4)) for start in starts]
    return np.stack(words, axis=1).reshape(rows * len(starts), channels)
