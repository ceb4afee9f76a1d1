/* Features of log-mel spectra. Kernels include this after they define mel_weight, the type of weights, and
 * mel_sum(sum, x, weights, depth), which adds `depth` products to a sum of 64 bits. MEL_ROW(depth): weights in a row. */
#pragma once

#include <stdint.h>

#ifndef MEL_ROW
#define MEL_ROW(depth) (depth)
#endif

struct fl_mel_features {
    int32_t channels, depth, step, low, high;
};

#define MEL_FEATURES(name, number)                                                                             \
    void name(const int32_t *x, const mel_weight *weights, const int64_t *bias, const int32_t *shift,          \
              const void *parameters, void *y, int32_t frames, int32_t size)                                   \
    {                                                                                                          \
        const struct fl_mel_features *p = parameters;                                                          \
        number *to = y;                                                                                        \
        for (; frames > 0; frames--, x += size) {                                                              \
            const mel_weight *w = weights;                                                                     \
            for (int32_t c = 0; c < p->channels; c++, w += MEL_ROW(p->depth)) {                                \
                const int64_t sum = mel_sum(bias[c], x + c * p->step, w, p->depth) >> shift[c];                \
                *to++ = (number)(sum < p->low ? p->low : sum > p->high ? p->high : (int32_t)sum);              \
            }                                                                                                  \
        }                                                                                                      \
    }
