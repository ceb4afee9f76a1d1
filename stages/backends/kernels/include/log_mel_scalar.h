/* Log-mel spectrum of a frame, a complex number at a time:
 *
 *   x -> shift, window, first stage -> stages of radix 4 -> spectrum of real samples -> triangles -> logarithm
 *                                                        (all in place, in `bins`)
 *
 * LOG_MEL_FUNCTIONS(prefix) defines the functions.
 */
#pragma once

#include "log_mel_types.h"

typedef struct log_mel_complex complex_number;
typedef uint32_t __attribute__((may_alias)) word;

struct log_mel_spectrum {
    complex_number *bins;
};

LOG_MEL_INLINE complex_number log_mel_bin(const struct log_mel_spectrum *z, int32_t k)
{
    return z->bins[k];
}

LOG_MEL_APART struct log_mel_side log_mel_energies(const struct log_mel_spectrum *z, int32_t first, int32_t end,
                                                   const int32_t *ramps)
{
    int64_t total = 0, rising = 0;
    const complex_number *bin = z->bins + first, *const last = z->bins + end;
#pragma GCC unroll 2
    for (const int32_t *ramp = ramps + first; bin < last; bin++, ramp++) {
        const int32_t re = bin->re, im = bin->im;
        total += (int64_t)re * re;
        total += (int64_t)im * im;
        rising += (int64_t)high(re, *ramp) * re;
        rising += (int64_t)high(im, *ramp) * im;
    }
    return (struct log_mel_side){total, rising * 2};
}

#include "log_mel_image.h"

/* a * exp(-j angle) / 4; tables have 30 bits. */
LOG_MEL_INLINE complex_number turned(complex_number a, int32_t cosine, int32_t sine)
{
    return (complex_number){add_high(high(a.re, cosine), a.im, sine), high(a.im, cosine) - high(a.re, sine)};
}

LOG_MEL_INLINE complex_number quarter(complex_number a)
{
    return (complex_number){a.re >> 2, a.im >> 2};
}

/* Store the four outputs of radix 4, at a distance of `step`. */
LOG_MEL_INLINE void butterfly(complex_number *z, int32_t step, complex_number a, complex_number b, complex_number c,
                              complex_number d)
{
    const int32_t sum_re = a.re + c.re, sum_im = a.im + c.im, diff_re = a.re - c.re, diff_im = a.im - c.im;
    const int32_t odd_re = b.re + d.re, odd_im = b.im + d.im, turn_re = b.im - d.im, turn_im = d.re - b.re;
    z[0] = (complex_number){sum_re + odd_re, sum_im + odd_im};
    z[step] = (complex_number){diff_re + turn_re, diff_im + turn_im};
    z[2 * step] = (complex_number){sum_re - odd_re, sum_im - odd_im};
    z[3 * step] = (complex_number){diff_re - turn_re, diff_im - turn_im};
}

/* Return sample i with 15 fractional bits, shifted left. */
LOG_MEL_INLINE int32_t sample(const struct frame *f, int32_t i, int32_t shift, int emphasized)
{
    if (emphasized) {
        return (int32_t)((uint32_t)(f->x[i + 1] * 32768 - f->pre_emphasis * f->x[i]) << shift);
    }
    return (int32_t)((uint32_t)f->x[i] << (15 + shift));
}

/* Return samples 2 i and 2 i + 1 as a complex number. Samples after the frame are 0; `inside` skips the check. */
LOG_MEL_INLINE complex_number pair(const struct frame *f, int32_t i, int emphasized, int inside)
{
    complex_number z = {0, 0};
    if (inside || 2 * i < f->size) {
        z.re = high(sample(f, 2 * i, f->shift, emphasized), f->window[2 * i]);
    }
    if (inside || 2 * i + 1 < f->size) {
        z.im = high(sample(f, 2 * i + 1, f->shift, emphasized), f->window[2 * i + 1]);
    }
    return z;
}

/* Return the largest left shift, 0 to 16, with which all samples fit. */
LOG_MEL_INLINE int32_t headroom_plain(const struct frame *f)
{
    uint32_t used = 0; /* x ^ x << 1 of each sample: its highest bit is one above those that the sample uses */
    int32_t i = 0;
    if (((uintptr_t)f->x & 3) == 0) {
        const word *x = (const word *)(const void *)f->x;
        for (; i < f->size - 7; i += 8, x += 4) { /* bit 0 of each half matters to no sample */
            used |= (x[0] ^ x[0] << 1) | (x[1] ^ x[1] << 1) | (x[2] ^ x[2] << 1) | (x[3] ^ x[3] << 1);
        }
        used = (used | used >> 16) & 0xffff;
    }
    for (; i < f->size; i++) {
        used |= ((uint32_t)f->x[i] ^ (uint32_t)f->x[i] << 1) & 0xffff;
    }
    return fl_leading_zeros((used >> 1 << 15) | 32767) - 1;
}

LOG_MEL_INLINE int32_t headroom_emphasized(const struct frame *f)
{
    uint32_t used = 32767; /* at least 15 bits */
    for (int32_t i = 0; i < f->size; i++) {
        const int32_t y = sample(f, i, 0, 1);
        used |= (uint32_t)(y ^ (y >> 31));
    }
    return fl_leading_zeros(used) - 1;
}

/* Radix 4 or 2 of pairs at a distance of `apart`. */
LOG_MEL_INLINE void first_butterfly(complex_number *z, const struct frame *f, int32_t from, int32_t apart, int32_t radix,
                                    int emphasized, int inside)
{
    const complex_number a = pair(f, from, emphasized, inside), b = pair(f, from + apart, emphasized, inside);
    if (radix == 2) {
        z[0] = (complex_number){(a.re >> 1) + (b.re >> 1), (a.im >> 1) + (b.im >> 1)};
        z[1] = (complex_number){(a.re >> 1) - (b.re >> 1), (a.im >> 1) - (b.im >> 1)};
    } else {
        const complex_number c = pair(f, from + 2 * apart, emphasized, inside);
        const complex_number d = pair(f, from + 3 * apart, emphasized, inside);
        butterfly(z, 1, quarter(a), quarter(b), quarter(c), quarter(d));
    }
}

/* The first stage. Groups read points in digit-reversed order. */
LOG_MEL_INLINE void first_stage(complex_number *z, const struct frame *f, int32_t points, int32_t radix, int emphasized)
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

/* Join transforms of `size` points. The cosine of entry k is the sine of entry k + points / 2, a quarter of the circle. */
LOG_MEL_APART void next_stage(complex_number *z, const int32_t *sines, int32_t points, int32_t size)
{
    const int32_t turn = points / (2 * size);
    for (complex_number *a = z; a < z + points; a += 4 * size) {
        butterfly(a, size, quarter(a[0]), quarter(a[size]), quarter(a[2 * size]), quarter(a[3 * size]));
    }
    const int32_t *first = sines, *second = sines, *third = sines;
    for (complex_number *start = z + 1; start < z + size; start++) {
        first += turn;
        second += 2 * turn;
        third += 3 * turn;
        const int32_t cosines[] = {first[points / 2], second[points / 2], third[points / 2]};
        const int32_t factors[] = {*first, *second, *third};
        for (complex_number *a = start; a < z + points; a += 4 * size) {
            const complex_number b = turned(a[size], cosines[0], factors[0]);
            const complex_number c = turned(a[2 * size], cosines[1], factors[1]);
            const complex_number d = turned(a[3 * size], cosines[2], factors[2]);
            butterfly(a, size, quarter(a[0]), b, c, d);
        }
    }
}

/* Compute the real samples' spectrum in bins 1 to points - 1 from the FFT of pairs. */
LOG_MEL_APART void real_spectrum(complex_number *z, const int32_t *sines, int32_t points)
{
    const int32_t *sine = sines, *cosine = sines + points / 2;
    complex_number *low = z, *upper = z + points;
    do {
        const complex_number a = *++low, b = *--upper;
        const int32_t even_re = a.re + b.re, even_im = a.im - b.im;
        const complex_number turn = turned((complex_number){a.im + b.im, b.re - a.re}, *++cosine, *++sine);
        *upper = (complex_number){(even_re >> 2) - turn.re, (even_im >> 2) - turn.im};
        *low = (complex_number){turn.re + (even_re >> 2), turn.im + (even_im >> 2)};
    } while (low < upper);
}

LOG_MEL_INLINE int32_t spectrum(const struct log_mel_spectrum *spectrum, const int16_t *x, const int32_t *window,
                                const int32_t *sines, const struct fl_log_mel *p, int emphasized)
{
    complex_number *const z = spectrum->bins;
    const int32_t points = p->fft_length / 2;
    struct frame f = {x, window, p->frame, p->pre_emphasis, 0};
    f.shift = emphasized ? headroom_emphasized(&f) : headroom_plain(&f);
    int32_t size = 2; /* radix of the first stage: 2 if the number of points is not a power of 4 */
    if (fl_leading_zeros((uint32_t)points) & 1) {
        size = 4;
        first_stage(z, &f, points, 4, emphasized);
    } else {
        first_stage(z, &f, points, 2, emphasized);
    }
    for (; size < points; size *= 4) {
        next_stage(z, sines, points, size);
    }
    real_spectrum(z, sines, points);
    return f.shift;
}

LOG_MEL_APART int32_t spectrum_plain(const struct log_mel_spectrum *z, const int16_t *x, const int32_t *window,
                                     const uint16_t *places, const int32_t *sines, const struct fl_log_mel *p)
{
    (void)places;
    return spectrum(z, x, window, sines, p, 0);
}

LOG_MEL_APART int32_t spectrum_emphasized(const struct log_mel_spectrum *z, const int16_t *x, const int32_t *window,
                                          const uint16_t *places, const int32_t *sines, const struct fl_log_mel *p)
{
    (void)places;
    return spectrum(z, x, window, sines, p, 1);
}

LOG_MEL_INLINE struct log_mel_spectrum log_mel_spectrum_in(void *bins, int32_t points)
{
    (void)points;
    return (struct log_mel_spectrum){bins};
}
