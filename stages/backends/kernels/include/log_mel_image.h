/* Log-mel spectrum from the FFT of a frame: triangles and logarithms. Kernels include this after they define
 *
 *   struct log_mel_spectrum                      bins 0 to N / 2 - 1
 *   log_mel_bin(z, k)                            real and imaginary part
 *   log_mel_energies(z, first, end, ramps)       sums of energies of bins [first, end): log_mel_side
 */
#pragma once

#include "log_mel_types.h"

LOG_MEL_INLINE int32_t leading_zeros64(uint64_t x)
{
    const uint32_t upper = (uint32_t)(x >> 32);
    return upper ? log_mel_leading_zeros(upper) : 32 + log_mel_leading_zeros((uint32_t)x);
}

/* Return the upper half of x << shift. */
LOG_MEL_INLINE uint32_t upper_half(uint64_t x, int32_t shift)
{
#if UINTPTR_MAX > UINT32_MAX
    return (uint32_t)(x << shift >> 32);
#else
    const uint32_t upper = (uint32_t)(x >> 32), lower = (uint32_t)x;
    return shift >= 32 ? lower << (shift - 32) : upper << shift | lower >> 1 >> (31 - shift);
#endif
}

/* Interpolate between two table entries; the low 25 bits of the mantissa are the position. */
LOG_MEL_INLINE int32_t line(const int32_t *entry, uint32_t mantissa)
{
    return add_high(entry[0], (entry[1] - entry[0]) * 128, (int32_t)(mantissa & 0x1FFFFFF));
}

/* Square root of 0 <= x < 2^62. */
LOG_MEL_INLINE uint32_t root(uint64_t x, const int32_t *roots)
{
    if (x == 0) {
        return 0;
    }
    const int32_t shift = leading_zeros64(x) & ~1;
    const uint32_t mantissa = upper_half(x, shift);
    const int32_t entry = (int32_t)(mantissa >> 25) - 32;
    return (uint32_t)line(roots + (entry < 0 ? 0 : entry), mantissa) >> ((shift >> 1) - 1);
}

/* Return log2(sum) - exponent with 16 fractional bits; INT32_MIN / 2 for 0. */
LOG_MEL_APART int32_t logarithm(uint64_t sum, int32_t exponent, const int32_t *table)
{
    if (sum == 0) {
        return -(1 << 30);
    }
    const int32_t zeros = leading_zeros64(sum);
    const uint32_t mantissa = upper_half(sum, zeros);
    return (63 - zeros - exponent) * 65536 + line(table + (mantissa >> 25) - 64, mantissa);
}

/* Add 2^exponent * mantissa to a sum below 2^62. If the result needs more than 62 bits, halve both. */
LOG_MEL_INLINE int32_t add_offset(uint64_t *sum, int32_t mantissa, int32_t exponent)
{
    const int32_t wide = exponent > 31 ? exponent - 31 : 0;
    *sum = wide > 62 ? 0 : *sum >> wide;
    *sum += exponent < 0 ? (uint64_t)mantissa >> (exponent < -31 ? 31 : -exponent)
                         : (uint64_t)mantissa << (exponent - wide);
    return wide;
}

/* Sums of magnitudes have 16 fractional bits. */
LOG_MEL_APART struct log_mel_side log_mel_magnitudes(const struct log_mel_spectrum *z, int32_t first, int32_t end,
                                                     const int32_t *ramps, const int32_t *roots)
{
    int64_t total = 0, rising = 0;
    for (int32_t k = first; k < end; k++) {
        const struct log_mel_complex bin = log_mel_bin(z, k);
        const int64_t energy = (int64_t)bin.re * bin.re + (int64_t)bin.im * bin.im;
        const uint32_t magnitude = root((uint64_t)energy, roots);
        total += magnitude;
        rising += (int64_t)magnitude * (ramps[k] >> 15);
    }
    return (struct log_mel_side){total * 65536, rising};
}

/* Compute y[mels]. `shift` is that of the samples; `ramps` are weights of bins, 31 bits. */
LOG_MEL_INLINE void log_mel_filters(const struct log_mel_spectrum *z, int32_t shift, const int32_t *table,
                                    const int32_t *edges, const int32_t *ramps, const int32_t *bias, int32_t *y,
                                    const struct fl_log_mel *p, int power)
{
    const int32_t exponent = power * shift, *const offset = bias + p->mels;
    int64_t before = 0;
    for (int32_t side = 0; side <= p->mels; side++) {
        const struct log_mel_side sums = power == 2
                                             ? log_mel_energies(z, edges[side], edges[side + 1], ramps)
                                             : log_mel_magnitudes(z, edges[side], edges[side + 1], ramps, table + 65);
        if (side > 0) {
            const int64_t both = before + sums.total - sums.rising;
            uint64_t sum = both > 0 ? (uint64_t)both : 0;
            int32_t wide = 0;
            if (p->has_offset) {
                wide = add_offset(&sum, offset[side - 1], offset[p->mels + side - 1] + exponent);
            }
            const int32_t value = logarithm(sum, exponent - wide, table) + bias[side - 1];
            y[side - 1] = value > p->floor ? value : p->floor;
        }
        before = sums.rising;
    }
}

/* Define the four functions: energies or magnitudes, without or with pre-emphasis. `spectrum_of` computes a frame's
 * spectrum and returns the shift. */
#define LOG_MEL_FUNCTION(name, spectrum_of, power, emphasized)                                                     \
    FL_LOG_MEL(name)                                                                                               \
    {                                                                                                              \
        const struct fl_log_mel *p = parameters;                                                                   \
        const struct log_mel_spectrum z = log_mel_spectrum_in(bins, p->fft_length / 2);                            \
        for (; frames > 0; frames--, x += p->frame + (emphasized), y += p->mels) {                                 \
            const int32_t shift = spectrum_of(&z, x, window, places, factors, p);                                  \
            log_mel_filters(&z, shift, table, edges, ramps, bias, y, p, power);                                    \
        }                                                                                                          \
    }
#define LOG_MEL_FUNCTIONS(prefix)                                                                                  \
    LOG_MEL_FUNCTION(prefix##_log_mel_power, spectrum_plain, 2, 0)                                                 \
    LOG_MEL_FUNCTION(prefix##_log_mel_magnitude, spectrum_plain, 1, 0)                                             \
    LOG_MEL_FUNCTION(prefix##_log_mel_power_emphasized, spectrum_emphasized, 2, 1)                                 \
    LOG_MEL_FUNCTION(prefix##_log_mel_magnitude_emphasized, spectrum_emphasized, 1, 1)
