/* Features of a log-mel spectrum. */
#ifndef FIRMLINE_GENERIC_MEL_FEATURES_H
#define FIRMLINE_GENERIC_MEL_FEATURES_H

#include <stdint.h>

/* y[c] = (bias[c] + sum of weights[c][i] * x[c * step + i], i < depth) >> shift[c], clamped to low and high. */
struct fl_mel_features {
    int32_t channels, depth, step, low, high;
};
void fl_mel_features_8(const int32_t *x, const int16_t *weights, const int64_t *bias, const int32_t *shift, void *y,
                       const void *parameters);
void fl_mel_features_16(const int32_t *x, const int16_t *weights, const int64_t *bias, const int32_t *shift, void *y,
                        const void *parameters);

#endif
