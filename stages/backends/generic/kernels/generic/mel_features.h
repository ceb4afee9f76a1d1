/* Features of log-mel spectra, in portable C. */
#pragma once

#include <stdint.h>

/* For each frame: y[c] = (bias[c] + sum of weights[c][i] * x[c * step + i], i < depth) >> shift[c], clamped to low and
 * high. A frame of x has `size` values. */
void fl_mel_features_8(const int32_t *x, const int16_t *weights, const int64_t *bias, const int32_t *shift,
                       const void *parameters, void *y, int32_t frames, int32_t size);
void fl_mel_features_16(const int32_t *x, const int16_t *weights, const int64_t *bias, const int32_t *shift,
                        const void *parameters, void *y, int32_t frames, int32_t size);
