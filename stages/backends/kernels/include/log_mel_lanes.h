/* FFT of a frame for log-mel spectra, LM_LANES butterflies at a time. Real and imaginary parts are apart. Kernels define before:
 *
 *   lm_word, LM_LANES                 32-bit lanes of a register
 *   lm_load, lm_store                 LM_LANES contiguous numbers, aligned to a register
 *   lm_add, lm_sub, lm_high, lm_shift2, lm_shift1   per lane; high: the upper half of a product; shifts to the right, floor
 *   lm_places(places), lm_put(to, places, value)    store a lane at each of LM_LANES indices
 *   lm_load_two, lm_store_two         for transforms of two numbers, if LM_LANES is 4: lanes 0, 1, 8, 9
 *   lm_pairs(f, i, window, re, im, emphasized, inside)   samples 2 i and 2 i + 1 in windows, for LM_LANES values of i
 *   headroom_plain, headroom_emphasized
 *
 * Butterflies of the first stage read contiguous samples and write to digit-reversed places; later stages are in place:
 *
 *   size = 4:  z[g + j], z[g + 4 + j], z[g + 8 + j], z[g + 12 + j] for j = 0 to 3: a register each, with the factors of j
 *
 * factors: of each stage for each LM_LANES values of j, cosines and sines of the factors 1, 2 and 3.
 */
#pragma once

#include "log_mel_types.h"

struct log_mel_spectrum {
    int32_t *re, *im;
};

/* Computes the outputs of a butterfly from a, b + d, c, and (b - d) / j. */
#define LM_BUTTERFLY(put, step, a_re, a_im, odd_re, odd_im, c_re, c_im, turn_re, turn_im)                 \
    do {                                                                                                  \
        const lm_word sum_re = lm_add(a_re, c_re), diff_re = lm_sub(a_re, c_re);                          \
        put(re, 0, lm_add(sum_re, odd_re));                                                               \
        put(re, 2 * (step), lm_sub(sum_re, odd_re));                                                      \
        put(re, step, lm_add(diff_re, turn_re));                                                          \
        put(re, 3 * (step), lm_sub(diff_re, turn_re));                                                    \
        const lm_word sum_im = lm_add(a_im, c_im), diff_im = lm_sub(a_im, c_im);                          \
        put(im, 0, lm_add(sum_im, odd_im));                                                               \
        put(im, 2 * (step), lm_sub(sum_im, odd_im));                                                      \
        put(im, step, lm_add(diff_im, turn_im));                                                          \
        put(im, 3 * (step), lm_sub(diff_im, turn_im));                                                    \
    } while (0)

#define LM_PUT_PLACES(part, step, value) lm_put(part + (step), to, value)
#define LM_PUT(part, step, value) lm_store(part + (step), value)
#define LM_PUT_TWO(part, step, value) lm_store_two(part + (step), value)

LOG_MEL_INLINE void first_four(const struct log_mel_spectrum *z, const struct frame *f, const int32_t *window,
                               const uint16_t *places, int32_t i, int32_t apart, int emphasized, int inside)
{
    int32_t *const re = z->re, *const im = z->im;
    lm_word a_re, a_im, b_re, b_im, c_re, c_im, d_re, d_im;
    lm_pairs(f, i + apart, window + 2 * LM_LANES, &b_re, &b_im, emphasized, inside);
    lm_pairs(f, i + 3 * apart, window + 6 * LM_LANES, &d_re, &d_im, emphasized, inside);
    b_re = lm_shift2(b_re), b_im = lm_shift2(b_im), d_re = lm_shift2(d_re), d_im = lm_shift2(d_im);
    const lm_word odd_re = lm_add(b_re, d_re), turn_im = lm_sub(d_re, b_re);
    const lm_word odd_im = lm_add(b_im, d_im), turn_re = lm_sub(b_im, d_im);
    lm_pairs(f, i, window, &a_re, &a_im, emphasized, inside);
    lm_pairs(f, i + 2 * apart, window + 4 * LM_LANES, &c_re, &c_im, emphasized, inside);
    a_re = lm_shift2(a_re), a_im = lm_shift2(a_im), c_re = lm_shift2(c_re), c_im = lm_shift2(c_im);
    const lm_index to = lm_places(places + i);
    LM_BUTTERFLY(LM_PUT_PLACES, 1, a_re, a_im, odd_re, odd_im, c_re, c_im, turn_re, turn_im);
}

LOG_MEL_INLINE void first_two(const struct log_mel_spectrum *z, const struct frame *f, const int32_t *window,
                              const uint16_t *places, int32_t i, int32_t apart, int emphasized, int inside)
{
    lm_word a_re, a_im, b_re, b_im;
    lm_pairs(f, i, window, &a_re, &a_im, emphasized, inside);
    lm_pairs(f, i + apart, window + 2 * LM_LANES, &b_re, &b_im, emphasized, inside);
    a_re = lm_shift1(a_re), a_im = lm_shift1(a_im), b_re = lm_shift1(b_re), b_im = lm_shift1(b_im);
    const lm_index to = lm_places(places + i);
    lm_put(z->re, to, lm_add(a_re, b_re));
    lm_put(z->re + 1, to, lm_sub(a_re, b_re));
    lm_put(z->im, to, lm_add(a_im, b_im));
    lm_put(z->im + 1, to, lm_sub(a_im, b_im));
}

/* `inside` butterflies read samples of the frame only; for later ones, samples after the frame are 0. */
LOG_MEL_INLINE int32_t first_stage(const struct log_mel_spectrum *spectrum, const struct frame *frame,
                                   const uint16_t *places, int32_t points, int emphasized)
{
    const struct log_mel_spectrum bins = *spectrum, *const z = &bins; /* in registers */
    const struct frame local = *frame, *const f = &local;
    const int32_t *window = f->window;
    const int32_t radix = fl_leading_zeros((uint32_t)points) & 1 ? 4 : 2, apart = points / radix;
    const int32_t inside = f->size / 2 - (radix - 1) * apart - (LM_LANES - 1);
    int32_t i = 0;
    if (radix == 4) {
        for (; i < inside; i += LM_LANES, window += 8 * LM_LANES)
            first_four(z, f, window, places, i, apart, emphasized, 1);
        for (; i < apart; i += LM_LANES, window += 8 * LM_LANES)
            first_four(z, f, window, places, i, apart, emphasized, 0);
    } else {
        for (; i < inside; i += LM_LANES, window += 4 * LM_LANES)
            first_two(z, f, window, places, i, apart, emphasized, 1);
        for (; i < apart; i += LM_LANES, window += 4 * LM_LANES)
            first_two(z, f, window, places, i, apart, emphasized, 0);
    }
    return radix;
}

LOG_MEL_APART int32_t first_stage_plain(const struct log_mel_spectrum *z, const struct frame *f, const uint16_t *places,
                                        int32_t points)
{
    return first_stage(z, f, places, points, 0);
}

LOG_MEL_APART int32_t first_stage_emphasized(const struct log_mel_spectrum *z, const struct frame *f, const uint16_t *places,
                                             int32_t points)
{
    return first_stage(z, f, places, points, 1);
}

#define LM_TURNED(load, step, w, to_re, to_im)                                                        \
    const lm_word re##w = load(re + (step)), im##w = load(im + (step));                                \
    const lm_word cosine##w = lm_load(factors + (2 * w - 2) * LM_LANES);                               \
    const lm_word sine##w = lm_load(factors + (2 * w - 1) * LM_LANES);                                 \
    const lm_word to_re = lm_add(lm_high(re##w, cosine##w), lm_high(im##w, sine##w));                  \
    const lm_word to_im = lm_sub(lm_high(im##w, cosine##w), lm_high(re##w, sine##w))

#define LM_JOIN(load, put, step)                                                                      \
    do {                                                                                              \
        LM_TURNED(load, step, 1, b_re, b_im);                                                         \
        LM_TURNED(load, 3 * (step), 3, d_re, d_im);                                                   \
        const lm_word odd_re = lm_add(b_re, d_re), turn_im = lm_sub(d_re, b_re);                      \
        const lm_word odd_im = lm_add(b_im, d_im), turn_re = lm_sub(b_im, d_im);                      \
        LM_TURNED(load, 2 * (step), 2, c_re, c_im);                                                   \
        const lm_word a_re = lm_shift2(load(re)), a_im = lm_shift2(load(im));                         \
        LM_BUTTERFLY(put, step, a_re, a_im, odd_re, odd_im, c_re, c_im, turn_re, turn_im);            \
    } while (0)

/* Join transforms of `size` numbers. Returns the factors of the next stage. */
LOG_MEL_APART const int32_t *next_stage(const struct log_mel_spectrum *z, const int32_t *factors, int32_t points, int32_t size)
{
    int32_t *const all_re = z->re, *const all_im = z->im, *const end = all_re + points;
    for (int32_t j = 0; j < size; j += LM_LANES, factors += 6 * LM_LANES) {
        int32_t *re = all_re + j, *im = all_im + j;
        for (; re < end; re += 4 * size, im += 4 * size)
            LM_JOIN(lm_load, LM_PUT, size);
    }
    return factors;
}

#if LM_LANES == 4
/* The same for size 2, two groups of 8 at a time. */
LOG_MEL_APART const int32_t *second_stage_of_two(const struct log_mel_spectrum *z, const int32_t *factors, int32_t points)
{
    int32_t *re = z->re, *im = z->im, *const end = re + points;
    for (; re < end; re += 16, im += 16)
        LM_JOIN(lm_load_two, LM_PUT_TWO, 2);
    return factors + 6 * LM_LANES;
}
#endif

LOG_MEL_INLINE const int32_t *later_stages(const struct log_mel_spectrum *z, const int32_t *factors, int32_t points, int32_t size)
{
#if LM_LANES == 4
    if (size == 2) {
        factors = second_stage_of_two(z, factors, points);
        size = 8;
    }
#endif
    for (; size < points; size *= 4)
        factors = next_stage(z, factors, points, size);
    return factors;
}
