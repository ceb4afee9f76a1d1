/* Types and arithmetic of log-mel spectra. */
#pragma once

#include <stdint.h>

#include "fixed_point.h"

#ifndef log_mel_leading_zeros /* of a number other than 0 */
#define log_mel_leading_zeros fl_leading_zeros
#endif
#define LOG_MEL_INLINE static inline __attribute__((always_inline))
#define LOG_MEL_APART static __attribute__((noinline)) /* not inlined: uses many registers */

/* Parameters; the formula is in stages/ir/arithmetic/mel.py.
 *
 *   pre_emphasis  15 bits; x[0] is the sample before the frame
 *   floor         the smallest result */
struct fl_log_mel {
    int32_t frame, fft_length, pre_emphasis, mels, floor, has_offset;
};

/* A frame: samples, their windows in the order of the kernel, and the left shift that they have room for. */
struct frame {
    const int16_t *x;
    const int32_t *window;
    int32_t size, pre_emphasis, shift;
};

struct log_mel_complex {
    int32_t re, im;
};

/* Two sums over a rising side: of the energies, and of the energies times weights. */
struct log_mel_side {
    int64_t total, rising;
};

LOG_MEL_INLINE int32_t high(int32_t a, int32_t b)
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
LOG_MEL_INLINE int32_t add_high(int32_t sum, int32_t a, int32_t b)
{
#ifdef __ARM_FEATURE_DSP
    int32_t y;
    __asm__("smmla %0, %1, %2, %3" : "=r"(y) : "r"(a), "r"(b), "r"(sum));
    return y;
#else
    return sum + high(a, b);
#endif
}
