/* Features of a log-mel spectrum: 64-bit sums of products. */
#include "mel_features.h"

#include "elements.h"

INLINE void features(const int32_t *x, const int16_t *weights, const int64_t *bias, const int32_t *shift, void *y,
                     const struct fl_mel_features *p, int bytes)
{
    for (int32_t c = 0; c < p->channels; c++) {
        int64_t sum = bias[c];
#pragma GCC unroll 4
        for (int32_t m = 0; m < p->depth; m++) {
            sum += (int64_t)x[m] * weights[m];
        }
        sum >>= shift[c];
        const int32_t value = sum < p->low ? p->low : sum > p->high ? p->high : (int32_t)sum;
        if (bytes == 1) {
            ((uint8_t *)y)[c] = (uint8_t)value;
        } else {
            ((int16_t *)y)[c] = (int16_t)value;
        }
        weights += p->depth;
        x += p->step;
    }
}

void fl_mel_features_8(const int32_t *x, const int16_t *weights, const int64_t *bias, const int32_t *shift, void *y,
                       const void *parameters)
{
    features(x, weights, bias, shift, y, parameters, 1);
}

void fl_mel_features_16(const int32_t *x, const int16_t *weights, const int64_t *bias, const int32_t *shift, void *y,
                        const void *parameters)
{
    features(x, weights, bias, shift, y, parameters, 2);
}
