/* Log-mel spectrum of a frame:
 *
 *   x -> shift, window, first stage -> stages of radix 4 -> energy of each bin -> triangles -> logarithm
 *                                                        (all in place, in `bins`)
 */
#include "log_mel.h"

#include "elements.h"
#include "fixed_point.h"

#define NOINLINE static __attribute__((noinline)) /* not inlined: uses many registers */

/* A bin: a complex number of the FFT, then its energy. */
union bin {
    struct {
        int32_t re, im;
    };
    int64_t energy;
    uint32_t halves[2]; /* of the energy, the lower first */
};
struct complex {
    int32_t re, im;
};

INLINE int32_t high(int32_t a, int32_t b)
{
#ifdef __ARM_FEATURE_DSP
    int32_t y; /* GCC would use two registers for the product */
    __asm__("smmul %0, %1, %2" : "=r"(y) : "r"(a), "r"(b));
    return y;
#else
    return (int32_t)(((int64_t)a * b) >> 32);
#endif
}

/* sum + high(a, b) */
INLINE int32_t add_high(int32_t sum, int32_t a, int32_t b)
{
#ifdef __ARM_FEATURE_DSP
    int32_t y;
    __asm__("smmla %0, %1, %2, %3" : "=r"(y) : "r"(a), "r"(b), "r"(sum));
    return y;
#else
    return sum + high(a, b);
#endif
}

/* a * exp(-j angle) / 4; tables have 30 bits. */
INLINE struct complex turned(union bin a, int32_t cosine, int32_t sine)
{
    return (struct complex){add_high(high(a.re, cosine), a.im, sine), high(a.im, cosine) - high(a.re, sine)};
}

INLINE struct complex quarter(union bin a)
{
    return (struct complex){a.re >> 2, a.im >> 2};
}

/* Store the four outputs of radix 4, at a distance of `step`. */
INLINE void butterfly(union bin *z, int32_t step, struct complex a, struct complex b, struct complex c,
                      struct complex d)
{
    const int32_t sum_re = a.re + c.re, sum_im = a.im + c.im, diff_re = a.re - c.re, diff_im = a.im - c.im;
    const int32_t odd_re = b.re + d.re, odd_im = b.im + d.im, turn_re = b.im - d.im, turn_im = d.re - b.re;
    z[0].re = sum_re + odd_re;
    z[0].im = sum_im + odd_im;
    z[step].re = diff_re + turn_re;
    z[step].im = diff_im + turn_im;
    z[2 * step].re = sum_re - odd_re;
    z[2 * step].im = sum_im - odd_im;
    z[3 * step].re = diff_re - turn_re;
    z[3 * step].im = diff_im - turn_im;
}

struct frame {
    const int16_t *x;
    const int32_t *window;
    int32_t size, pre_emphasis, shift;
};

/* Return sample i with 15 fractional bits, shifted left. */
INLINE int32_t sample(const struct frame *f, int32_t i, int32_t shift, int emphasized)
{
    if (emphasized) {
        return (int32_t)((uint32_t)(f->x[i + 1] * 32768 - f->pre_emphasis * f->x[i]) << shift);
    }
    return (int32_t)((uint32_t)f->x[i] << (15 + shift));
}

/* Return samples 2 i and 2 i + 1 as a complex number. Samples after the frame are 0; `inside` skips the check. */
INLINE union bin pair(const struct frame *f, int32_t i, int emphasized, int inside)
{
    union bin z = {.energy = 0};
    if (inside || 2 * i < f->size) {
        z.re = high(sample(f, 2 * i, f->shift, emphasized), f->window[2 * i]);
    }
    if (inside || 2 * i + 1 < f->size) {
        z.im = high(sample(f, 2 * i + 1, f->shift, emphasized), f->window[2 * i + 1]);
    }
    return z;
}

INLINE uint32_t used_bits(const struct frame *f, int32_t i, int emphasized)
{
    const int32_t y = sample(f, i, 0, emphasized);
    return (uint32_t)(y ^ (y >> 31));
}

/* Return the largest left shift, 0 to 16, with which all samples fit. */
INLINE int32_t headroom(const struct frame *f, int emphasized)
{
    uint32_t used = 32767; /* at least 15 bits */
    int32_t i = 0;
    for (; i < f->size - 3; i += 4) {
        used |= used_bits(f, i, emphasized) | used_bits(f, i + 1, emphasized);
        used |= used_bits(f, i + 2, emphasized) | used_bits(f, i + 3, emphasized);
    }
    for (; i < f->size; i++) {
        used |= used_bits(f, i, emphasized);
    }
    return fl_leading_zeros(used) - 1;
}

/* Radix 4 or 2 of pairs at a distance of `apart`. */
INLINE void first_butterfly(union bin *z, const struct frame *f, int32_t from, int32_t apart, int32_t radix,
                            int emphasized, int inside)
{
    const union bin a = pair(f, from, emphasized, inside), b = pair(f, from + apart, emphasized, inside);
    if (radix == 2) {
        z[0].re = (a.re >> 1) + (b.re >> 1);
        z[0].im = (a.im >> 1) + (b.im >> 1);
        z[1].re = (a.re >> 1) - (b.re >> 1);
        z[1].im = (a.im >> 1) - (b.im >> 1);
    } else {
        const union bin c = pair(f, from + 2 * apart, emphasized, inside);
        const union bin d = pair(f, from + 3 * apart, emphasized, inside);
        butterfly(z, 1, quarter(a), quarter(b), quarter(c), quarter(d));
    }
}

/* The first stage. Groups read points in digit-reversed order. */
INLINE void first_stage(union bin *z, const struct frame *f, int32_t points, int32_t radix, int emphasized)
{
    const int32_t apart = points / radix;
    const int32_t inside = f->size / 2 - (radix - 1) * apart; /* later groups end after the frame */
    int32_t from = 0;
    for (int32_t to = 0; to < points; to += radix) {
        if (from < inside) {
            first_butterfly(z + to, f, from, apart, radix, emphasized, 1);
        } else {
            first_butterfly(z + to, f, from, apart, radix, emphasized, 0);
        }
        int32_t digit = apart / 4;
        from += digit;
        while (digit > 0 && from >= 4 * digit) { /* carry to the next lower digit */
            from -= 4 * digit;
            digit /= 4;
            from += digit;
        }
    }
}

/* Shift, window and first stage; returns its radix, 2 if the number of points is not a power of 4. */
INLINE int32_t begin(union bin *z, struct frame *f, int32_t points, int emphasized)
{
    f->shift = headroom(f, emphasized);
    if (fl_leading_zeros((uint32_t)points) & 1) {
        first_stage(z, f, points, 4, emphasized);
        return 4;
    }
    first_stage(z, f, points, 2, emphasized);
    return 2;
}

NOINLINE int32_t begin_plain(union bin *z, struct frame *f, int32_t points)
{
    return begin(z, f, points, 0);
}

NOINLINE int32_t begin_emphasized(union bin *z, struct frame *f, int32_t points)
{
    return begin(z, f, points, 1);
}

/* Join transforms of `size` points. The cosine of entry k is the sine of entry k + points / 2, a quarter of the circle. */
NOINLINE void next_stage(union bin *z, const int32_t *sines, int32_t points, int32_t size)
{
    const int32_t turn = points / (2 * size);
    for (union bin *a = z; a < z + points; a += 4 * size) {
        butterfly(a, size, quarter(a[0]), quarter(a[size]), quarter(a[2 * size]), quarter(a[3 * size]));
    }
    for (union bin *group = z; group < z + points; group += 4 * size) {
        const int32_t *first = sines, *second = sines, *third = sines;
        for (union bin *a = group + 1; a < group + size; a++) {
            first += turn;
            second += 2 * turn;
            third += 3 * turn;
            const struct complex b = turned(a[size], first[points / 2], *first);
            const struct complex c = turned(a[2 * size], second[points / 2], *second);
            const struct complex d = turned(a[3 * size], third[points / 2], *third);
            butterfly(a, size, quarter(a[0]), b, c, d);
        }
    }
}

/* Compute the energies of bins 1 to points - 1 from the FFT of pairs of real samples. */
NOINLINE void energies(union bin *z, const int32_t *sines, int32_t points)
{
    const int32_t *cosines = sines + points / 2;
    for (int32_t k = 1; k <= points / 2; k++) {
        const union bin a = z[k], b = z[points - k];
        const int32_t even_re = (a.re >> 2) + (b.re >> 2), even_im = (a.im >> 2) - (b.im >> 2);
        const int32_t odd_re = (a.im >> 1) + (b.im >> 1), odd_im = (b.re >> 1) - (a.re >> 1);
        const int32_t turn_re = (int32_t)(((int64_t)odd_re * cosines[k] + (int64_t)odd_im * sines[k]) >> 31);
        const int32_t turn_im = (int32_t)(((int64_t)odd_im * cosines[k] + (int64_t)-odd_re * sines[k]) >> 31);
        const int32_t low_re = even_re + turn_re, low_im = even_im + turn_im;
        const int32_t high_re = even_re - turn_re, high_im = even_im - turn_im;
        z[k].energy = (int64_t)low_re * low_re + (int64_t)low_im * low_im;
        z[points - k].energy = (int64_t)high_re * high_re + (int64_t)high_im * high_im;
    }
}

INLINE int32_t leading_zeros64(uint64_t x)
{
    const uint32_t upper = (uint32_t)(x >> 32);
    return upper ? fl_leading_zeros(upper) : 32 + fl_leading_zeros((uint32_t)x);
}

/* Return the upper half of x << shift. */
INLINE uint32_t upper_half(uint64_t x, int32_t shift)
{
    const uint32_t upper = (uint32_t)(x >> 32), lower = (uint32_t)x;
    return shift >= 32 ? lower << (shift - 32) : upper << shift | lower >> 1 >> (31 - shift);
}

/* Interpolate between two table entries; the low 25 bits of the mantissa are the position. */
INLINE int32_t line(const int32_t *entry, uint32_t mantissa)
{
    return add_high(entry[0], (entry[1] - entry[0]) * 128, (int32_t)(mantissa & 0x1FFFFFF));
}

/* Square root of 0 <= x < 2^62. */
INLINE uint32_t root(uint64_t x, const int32_t *roots)
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
NOINLINE int32_t logarithm(uint64_t sum, int32_t exponent, const int32_t *table)
{
    if (sum == 0) {
        return -(1 << 30);
    }
    const int32_t zeros = leading_zeros64(sum);
    const uint32_t mantissa = upper_half(sum, zeros);
    return (63 - zeros - exponent) * 65536 + line(table + (mantissa >> 25) - 64, mantissa);
}

/* Add 2^exponent * mantissa to a sum below 2^62. If the result needs more than 62 bits, halve both. */
INLINE int32_t add_offset(uint64_t *sum, int32_t mantissa, int32_t exponent)
{
    const int32_t wide = exponent > 31 ? exponent - 31 : 0;
    *sum = wide > 62 ? 0 : *sum >> wide;
    *sum += exponent < 0 ? (uint64_t)mantissa >> (exponent < -31 ? 31 : -exponent)
                         : (uint64_t)mantissa << (exponent - wide);
    return wide;
}

/* Return two sums over a rising side: of the energies, and of energies times weights. */
struct side {
    uint64_t total, rising;
};

NOINLINE struct side side_of_energies(const union bin *bin, const union bin *end, const uint16_t *ramps)
{
    uint64_t total = 0, low = 0, upper = 0;
    for (; bin < end; bin++) {
        const uint32_t ramp = *ramps++;
        total += (uint64_t)bin->energy;
        low += (uint64_t)bin->halves[0] * ramp;
        upper += (uint64_t)bin->halves[1] * ramp;
    }
    return (struct side){total, (low >> 16) + (upper << 16)};
}

/* The same for magnitudes; their sums have 16 fractional bits. */
NOINLINE struct side side_of_magnitudes(const union bin *bin, const union bin *end, const uint16_t *ramps,
                                        const int32_t *roots)
{
    uint64_t total = 0, rising = 0;
    for (; bin < end; bin++) {
        const uint32_t magnitude = root((uint64_t)bin->energy, roots);
        total += magnitude;
        rising += (uint64_t)magnitude * *ramps++;
    }
    return (struct side){total << 16, rising};
}

INLINE void log_mel(const int16_t *x, const int32_t *window, const int32_t *sines, const int32_t *table,
                    const int32_t *edges, const uint16_t *ramps, const int32_t *bias, const int32_t *offset,
                    int64_t *bins, int32_t *y, const struct fl_log_mel *p, int power, int emphasized)
{
    union bin *z = (union bin *)bins;
    struct frame f = {x, window, p->frame, p->pre_emphasis, 0};
    const int32_t points = p->fft_length / 2;
    int32_t size = emphasized ? begin_emphasized(z, &f, points) : begin_plain(z, &f, points);
    for (; size < points; size *= 4) {
        next_stage(z, sines, points, size);
    }
    energies(z, sines, points);
    const int32_t exponent = power * f.shift;
    uint64_t before = 0;
    for (int32_t side = 0; side <= p->mels; side++) {
        const union bin *first = z + edges[side], *end = z + edges[side + 1];
        const struct side sums = power == 2 ? side_of_energies(first, end, ramps)
                                            : side_of_magnitudes(first, end, ramps, table + 65);
        ramps += end - first;
        if (side > 0) {
            uint64_t sum = before + sums.total - sums.rising;
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

FL_LOG_MEL(fl_log_mel_power)
{
    log_mel(x, window, sines, table, edges, ramps, bias, offset, bins, y, parameters, 2, 0);
}

FL_LOG_MEL(fl_log_mel_magnitude)
{
    log_mel(x, window, sines, table, edges, ramps, bias, offset, bins, y, parameters, 1, 0);
}

FL_LOG_MEL(fl_log_mel_power_emphasized)
{
    log_mel(x, window, sines, table, edges, ramps, bias, offset, bins, y, parameters, 2, 1);
}

FL_LOG_MEL(fl_log_mel_magnitude_emphasized)
{
    log_mel(x, window, sines, table, edges, ramps, bias, offset, bins, y, parameters, 1, 1);
}
