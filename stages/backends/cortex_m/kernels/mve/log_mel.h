/* Log-mel spectra of frames, and features of them, four numbers in a vector. */
#pragma once

#include "log_mel_functions.h"

FL_LOG_MELS(mve);

/* For each frame: y[c] = (bias[c] + sum of weights[c][i] * x[c * step + i], i < depth) >> shift[c], clamped. */
void mve_mel_features_8(const int32_t *x, const int16_t *weights, const int64_t *bias, const int32_t *shift,
                        const void *parameters, void *y, int32_t frames, int32_t size);
void mve_mel_features_16(const int32_t *x, const int16_t *weights, const int64_t *bias, const int32_t *shift,
                         const void *parameters, void *y, int32_t frames, int32_t size);
