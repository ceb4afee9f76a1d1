/* Log-mel spectrum of a frame:
 *
 *   x -> shift, window, first stage -> stages of radix 4 -> energy of each bin -> triangles -> logarithm
 *                                                        (all in place, in `bins`)
 */
#include "log_mel.h"

#include "elements.h"
#include "fixed_point.h"

/* A bin: a complex number of the FFT, then its energy. */
union bin {
    struct {
        int32_t re, im;
    };
    int64_t energy;
};
struct complex {
    int32_t re, im;
};

INLINE int32_t high(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b) >> 32);
}

/* a * exp(-j angle) / 4; tables have 30 bits. */
INLINE struct complex turned(union bin a, int32_t cosine, int32_t sine)
{
    return (struct complex){high(a.re, cosine) + high(a.im, sine), high(a.im, cosine) - high(a.re, sine)};
}

INLINE struct complex quarter(union bin a)
{
    return (struct complex){a.re >> 2, a.im >> 2};
}

/* The four outputs of radix 4, `step` apart. */
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

/* Sample i with 15 bits after the point. */
INLINE int32_t sample(const struct frame *f, int32_t i, int emphasized)
{
    return emphasized ? f->x[i + 1] * 32768 - f->pre_emphasis * f->x[i] : f->x[i] * 32768;
}

INLINE int32_t windowed(const struct frame *f, int32_t i, int emphasized)
{
    return high((int32_t)((uint32_t)sample(f, i, emphasized) << f->shift), f->window[i]);
}

/* Samples 2 i and 2 i + 1 as a complex number; zeros follow the frame. */
INLINE union bin pair(const struct frame *f, int32_t i, int emphasized)
{
    union bin z = {.energy = 0};
    if (2 * i < f->size) {
        z.re = windowed(f, 2 * i, emphasized);
        z.im = 2 * i + 1 < f->size ? windowed(f, 2 * i + 1, emphasized) : 0;
    }
    return z;
}

/* The left shift, 0 to 16, after which all samples fit. */
INLINE int32_t headroom(const struct frame *f, int emphasized)
{
    uint32_t used = 32767; /* at least 15 bits */
    for (int32_t i = 0; i < f->size; i++) {
        const int32_t y = sample(f, i, emphasized);
        used |= (uint32_t)(y ^ (y >> 31));
    }
    return fl_leading_zeros(used) - 1;
}

/* The first stage: radix 2 if the number of points is not a power of 4. Groups read points in order of reversed digits. */
INLINE void first_stage(union bin *z, const struct frame *f, int32_t points, int emphasized)
{
    const int32_t radix = fl_leading_zeros((uint32_t)points) & 1 ? 4 : 2, apart = points / radix;
    int32_t from = 0;
    for (int32_t to = 0; to < points; to += radix) {
        const union bin a = pair(f, from, emphasized), b = pair(f, from + apart, emphasized);
        if (radix == 2) {
            z[to].re = (a.re >> 1) + (b.re >> 1);
            z[to].im = (a.im >> 1) + (b.im >> 1);
            z[to + 1].re = (a.re >> 1) - (b.re >> 1);
            z[to + 1].im = (a.im >> 1) - (b.im >> 1);
        } else {
            const union bin c = pair(f, from + 2 * apart, emphasized), d = pair(f, from + 3 * apart, emphasized);
            butterfly(z + to, 1, quarter(a), quarter(b), quarter(c), quarter(d));
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

INLINE void next_stage(union bin *z, const int32_t *sines, int32_t points, int32_t size)
{
    const int32_t *cosines = sines + points / 2; /* a quarter of the circle, 2 * points entries */
    const int32_t turn = points / (2 * size);
    for (union bin *a = z; a < z + points; a += 4 * size) {
        butterfly(a, size, quarter(a[0]), quarter(a[size]), quarter(a[2 * size]), quarter(a[3 * size]));
    }
    for (int32_t j = 1; j < size; j++) {
        const int32_t k = j * turn;
        const int32_t cos1 = cosines[k], cos2 = cosines[2 * k], cos3 = cosines[3 * k];
        const int32_t sin1 = sines[k], sin2 = sines[2 * k], sin3 = sines[3 * k];
        for (union bin *a = z + j; a < z + points; a += 4 * size) {
            butterfly(a, size, quarter(a[0]), turned(a[size], cos1, sin1), turned(a[2 * size], cos2, sin2),
                      turned(a[3 * size], cos3, sin3));
        }
    }
}

/* Energies of bins 1 to points - 1 of the real samples, from the transform of their pairs. */
INLINE void energies(union bin *z, const int32_t *sines, int32_t points)
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

/* A line from an entry to the next; the lower 25 bits of the mantissa are the position. */
INLINE int32_t line(const int32_t *entry, uint32_t mantissa)
{
    return entry[0] + (int32_t)(((int64_t)(entry[1] - entry[0]) * (mantissa & 0x1FFFFFF)) >> 25);
}

/* Square root of 0 <= x < 2^62. */
INLINE uint32_t root(uint64_t x, const int32_t *roots)
{
    const int32_t shift = (leading_zeros64(x) - 2) & ~1;
    const uint32_t mantissa = (uint32_t)(x << shift >> 30);
    const int32_t entry = (int32_t)(mantissa >> 25) - 32;
    return (uint32_t)line(roots + (entry < 0 ? 0 : entry), mantissa) >> (shift >> 1);
}

/* log2(sum) - exponent with 16 bits after the point; INT32_MIN / 2 for 0. */
INLINE int32_t logarithm(uint64_t sum, int32_t exponent, const int32_t *table)
{
    if (sum == 0) {
        return -(1 << 30);
    }
    const int32_t zeros = leading_zeros64(sum);
    const uint32_t mantissa = (uint32_t)(sum << zeros >> 32);
    return (63 - zeros - exponent) * 65536 + line(table + (mantissa >> 25) - 64, mantissa);
}

/* Add 2^exponent * mantissa to a sum below 2^62; where it needs more than 62 bits, halve both. */
INLINE int32_t add_offset(uint64_t *sum, int32_t mantissa, int32_t exponent)
{
    const int32_t wide = exponent > 31 ? exponent - 31 : 0;
    *sum = wide > 62 ? 0 : *sum >> wide;
    *sum += exponent < 0 ? (uint64_t)mantissa >> (exponent < -31 ? 31 : -exponent)
                         : (uint64_t)mantissa << (exponent - wide);
    return wide;
}

INLINE void log_mel(const int16_t *x, const int32_t *window, const int32_t *sines, const int32_t *table,
                    const int32_t *edges, const uint16_t *ramps, const int32_t *bias, const int32_t *offset,
                    int64_t *bins, int32_t *y, const struct fl_log_mel *p, int power, int emphasized)
{
    union bin *z = (union bin *)bins;
    struct frame f = {x, window, p->frame, p->pre_emphasis, 0};
    const int32_t points = p->fft_length / 2;
    f.shift = headroom(&f, emphasized);
    first_stage(z, &f, points, emphasized);
    for (int32_t size = fl_leading_zeros((uint32_t)points) & 1 ? 4 : 2; size < points; size *= 4) {
        next_stage(z, sines, points, size);
    }
    energies(z, sines, points);
    const int32_t exponent = power * f.shift;
    uint64_t before = 0;
    for (int32_t side = 0; side <= p->mels; side++) {
        uint64_t total = 0, low = 0, upper = 0;
        for (int32_t k = edges[side]; k < edges[side + 1]; k++) {
            const uint32_t weight = *ramps++;
            const uint64_t energy = (uint64_t)z[k].energy;
            if (power == 2) {
                low += (uint64_t)(uint32_t)energy * weight;
                upper += (energy >> 32) * weight;
                total += energy;
            } else {
                const uint32_t magnitude = root(energy, table + 65);
                low += (uint64_t)magnitude * weight;
                total += (uint64_t)magnitude << 16;
            }
        }
        const uint64_t rising = power == 2 ? (low >> 16) + (upper << 16) : low;
        if (side > 0) {
            uint64_t sum = before + total - rising;
            int32_t wide = 0;
            if (p->has_offset) {
                wide = add_offset(&sum, offset[side - 1], offset[p->mels + side - 1] + exponent);
            }
            const int32_t value = logarithm(sum, exponent - wide, table) + bias[side - 1];
            y[side - 1] = value > p->floor ? value : p->floor;
        }
        before = rising;
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
