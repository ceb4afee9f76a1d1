"""Log-mel spectrum of frames in integers: block floating point with 32-bit mantissas.

Frame x int16, N points of the FFT, `high(a, b)` = floor(a * b / 2**32), floors everywhere:

  y[i] = x[i] * 2**15                                   without pre-emphasis
  y[i] = x[i] * 2**15 - c * x[i - 1]                    with it; c has 15 bits, and the frame begins with x[-1]
  s    = the left shift, 0 to 16, after which each y fits 32 bits
  v[i] = high(y[i] * 2**s, window[i])                   window: 30 bits; |v| is at most 2**29
  X[k] = sum of v[i] * exp(-2j pi i k / N) / N          `spectrum`
  E[k] = re**2 + im**2 (power 2), or its root (power 1, `root`)
  S[m] = sum of E[k] * weight[m, k]                     triangles, `_filtered`
  L[m] = max((log2(S[m] + offset[m]) - power * s) * 2**16 + bias[m], floor)    16 bits after the point

`bias` holds the constant factors: scales of samples, FFT and filters. `log2` and `root` interpolate in tables.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from stages.ir.arrays import Array
from stages.support.lazy import np

POINT = 16  # bits after the point of logarithms
WEIGHT_BITS = 16
MOST_SHIFT = 16  # of a frame
_LINES = 25  # bits between two entries of a table


@dataclass(frozen=True)
class LogMel:
    """Constants of a log-mel spectrum.

    fft_length    power of two
    pre_emphasis  c, with 15 bits; None: none
    power         2: sums of squares; 1: sums of magnitudes
    window        int32[frame], |w| <= 2**30
    edges         int32[mels + 2]: first spectrum bin of each rising side, then the end; 1 <= bin < fft_length / 2
    ramps         int32[bins], weights of rising sides, 16 bits. The previous filter falls by 1 minus these
    bias          int32[mels], 16 bits after the point
    offset        int32[2, mels]: mantissas, exponents of 2; None: no offset
    floor         the smallest result
    """

    fft_length: int
    pre_emphasis: int | None
    power: int
    window: Array
    edges: Array
    ramps: Array
    bias: Array
    offset: Array | None
    floor: int

    def of(self, frames: Array) -> Array:
        """Return the spectrum int32[n, mels] of frames int16[n, samples]."""
        x = frames.astype(np.int64)
        y = (x << 15) if self.pre_emphasis is None else (x[:, 1:] << 15) - self.pre_emphasis * x[:, :-1]
        used = _bit_length(np.bitwise_or.reduce(y ^ (y >> 63), axis=1))
        shift = MOST_SHIFT - np.maximum(used - 15, 0)
        real, imaginary = spectrum(_high(y << shift[:, None], self.window.astype(np.int64)), self.fft_length)
        sums = self._filtered(real, imaginary)
        exponents = (self.power * shift)[:, None]
        logarithms = self._logarithms(sums, exponents) + self.bias
        return np.asarray(np.maximum(logarithms, self.floor), np.int32)

    def _filtered(self, real: Array, imaginary: Array) -> Array:
        """Return sums int64[n, mels], at least 0; of magnitudes with 16 bits after the point.

        A rising side weights energies as 2 * (high(re, w) * re + high(im, w) * im), where w has 31 bits.
        """
        energy = real * real + imaginary * imaginary
        weights = np.zeros(energy.shape[1], np.int64)
        weights[self.edges[0] : self.edges[-1]] = self.ramps
        if self.power == 2:
            w = weights << (31 - WEIGHT_BITS)
            weighted = 2 * (_high(real, w) * real + _high(imaginary, w) * imaginary)
        else:
            magnitude = root(energy)
            weighted, energy = magnitude * weights, magnitude << WEIGHT_BITS
        sides = []
        for first, end in pairwise(self.edges):
            rising = weighted[:, first:end].sum(axis=1)
            sides.append((rising, energy[:, first:end].sum(axis=1) - rising))
        return np.asarray(np.maximum(np.stack([up[0] + down[1] for up, down in pairwise(sides)], axis=1), 0))

    def _logarithms(self, sums: Array, exponents: Array) -> Array:
        """Return log2(sums + offset) - exponents with 16 bits after the point."""
        if self.offset is not None:
            mantissas, shifts = self.offset.astype(np.int64)
            shifts = shifts + exponents
            wide = np.maximum(shifts - 31, 0)  # beyond 62 bits the sums move instead
            sums = (sums >> np.minimum(wide, 63)) + np.where(
                shifts >= 0, mantissas << np.clip(shifts, 0, 31), mantissas >> np.clip(-shifts, 0, 31)
            )
            exponents = exponents - wide
        return np.where(sums > 0, log2(np.maximum(sums, 1)) - (exponents << POINT), -(1 << 30))


def spectrum(values: Array, length: int) -> tuple[Array, Array]:
    """Return real and imaginary parts of the FFT / `length` in bins 0 to length / 2 - 1.

    values  int64[n, at most `length`], |v| <= 2**29; zeros follow

    Pairs of values are the complex input of an FFT of half the length: one stage of radix 2 if needed, then stages of
    radix 4. Each stage divides by its radix, so that 32 bits are enough. Twiddles have 30 bits.
    """
    half = length // 2
    padded = np.zeros((len(values), length), np.int64)
    padded[:, : values.shape[1]] = values
    order = digit_reversed(half)
    a, b = padded[:, 0::2][:, order], padded[:, 1::2][:, order]
    size = 1
    for radix in radices(half):
        a, b = _stage(a, b, radix, size, length)
        size *= radix
    k = np.arange(1, half // 2 + 1)
    cosine, sine = _turns(length, k)
    c, d = a[:, half - k], b[:, half - k]
    a, b = a[:, k], b[:, k]
    even, odd = ((a + c) >> 2, (b - d) >> 2), (b + d, c - a)
    turned = _high(odd[0], cosine) + _high(odd[1], sine), _high(odd[1], cosine) - _high(odd[0], sine)
    # Bin half - k has the imaginary part with the other sign: its square is the same.
    lower, upper = ([e + sign * t for e, t in zip(even, turned, strict=True)] for sign in (1, -1))
    zero = np.zeros((len(values), 1), np.int64)
    real, imaginary = (
        np.concatenate([zero, low, high[:, -2::-1]], axis=1) for low, high in zip(lower, upper, strict=True)
    )
    return real, imaginary


def radices(points: int) -> tuple[int, ...]:
    """Return the radices of the stages of an FFT; `points` is a power of two."""
    bits = points.bit_length() - 1
    return (2,) * (bits % 2) + (4,) * (bits // 2)


def sines(length: int) -> Array:
    """Return sin(2 pi i / length) with 30 bits, int32[length]."""
    return np.asarray(np.rint(np.sin(2 * np.pi * np.arange(length) / length) * (1 << 30)), np.int32)


def log2(x: Array) -> Array:
    """Return log2 of x >= 1 with 16 bits after the point: a line between 65 entries."""
    bits = _bit_length(x)
    mantissa = (x << (63 - bits)) >> 31  # 32 bits, the highest is 1
    return np.asarray(((bits - 1) << POINT) + _line(logarithms(), (mantissa >> _LINES) - 64, mantissa))


def root(x: Array) -> Array:
    """Return the square root of 0 <= x < 2**62: a line between 97 entries."""
    bits = _bit_length(x)
    shift = (62 - bits) & ~1
    mantissa = (x << shift) >> 30
    return np.asarray(_line(roots(), np.maximum((mantissa >> _LINES) - 32, 0), mantissa) >> (shift >> 1))


def logarithms() -> Array:
    """Return log2(1 + i / 64) for i from 0 to 64, with 16 bits after the point."""
    return np.asarray(np.rint(np.log2(1 + np.arange(65) / 64) * (1 << POINT)), np.int32)


def roots() -> Array:
    """Return sqrt(i / 128) * 2**31 for i from 32 to 128, at most 2**31 - 1."""
    return np.asarray(np.minimum(np.rint(np.sqrt(np.arange(32, 129) / 128) * 2.0**31), 2.0**31 - 1), np.int32)


def _line(table: Array, entry: Array, mantissa: Array) -> Array:
    """Interpolate between two entries; the lower bits of the mantissa are the position."""
    start = table.astype(np.int64)[entry]
    rise = table.astype(np.int64)[entry + 1] - start
    return np.asarray(start + ((rise * (mantissa & ((1 << _LINES) - 1))) >> _LINES))


@cache
def digit_reversed(points: int) -> Array:
    """Return each value's input index before stage 1, int64[points]: digits reversed."""
    position, index, span = np.arange(points), np.zeros(points, np.int64), points
    for radix in radices(points):
        span //= radix
        index += position % radix * span
        position = position // radix
    return index


def _stage(a: Array, b: Array, radix: int, size: int, length: int) -> tuple[Array, Array]:
    """Return real and imaginary parts after joining `radix` transforms of `size` points."""
    n, half = a.shape
    a, b = (part.reshape(n, -1, radix, size) for part in (a, b))
    scale = radix >> 1  # the logarithm of the radix
    parts = [(a[:, :, 0] >> scale, b[:, :, 0] >> scale)]
    j = np.arange(size)
    for q in range(1, radix):
        real, imaginary = a[:, :, q], b[:, :, q]
        cosine, sine = _turns(length, j * q * length // (radix * size))
        turned = _high(real, cosine) + _high(imaginary, sine), _high(imaginary, cosine) - _high(real, sine)
        direct = real >> scale, imaginary >> scale
        parts.append((np.where(j == 0, direct[0], turned[0]), np.where(j == 0, direct[1], turned[1])))
    if radix == 2:
        (r0, i0), (r1, i1) = parts
        outputs = [(r0 + r1, i0 + i1), (r0 - r1, i0 - i1)]
    else:
        (r0, i0), (r1, i1), (r2, i2), (r3, i3) = parts
        outputs = [
            (r0 + r2 + (r1 + r3), i0 + i2 + (i1 + i3)),
            (r0 - r2 + (i1 - i3), i0 - i2 - (r1 - r3)),
            (r0 + r2 - (r1 + r3), i0 + i2 - (i1 + i3)),
            (r0 - r2 - (i1 - i3), i0 - i2 + (r1 - r3)),
        ]
    joined = (np.stack(values, axis=2).reshape(n, half) for values in zip(*outputs, strict=True))
    return next(joined), next(joined)


def _turns(length: int, k: Array) -> tuple[Array, Array]:
    """Return cosine and sine of 2 pi k / length with 30 bits."""
    table = sines(length).astype(np.int64)
    return table[(k + length // 4) % length], table[k % length]


def _high(a: Array, b: Array) -> Array:
    """Return the upper 32 bits of products of 32-bit integers."""
    return (a * b) >> 32


def _bit_length(x: Array) -> Array:
    """Return the bits of 0 <= x < 2**63, 0 for 0."""
    bits = np.zeros(x.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        is_long = x >> step > 0
        bits += step * is_long
        x = np.where(is_long, x >> step, x)
    return bits + (x > 0)
