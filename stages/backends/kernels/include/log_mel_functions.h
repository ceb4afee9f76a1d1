/* Log-mel spectra of frames. */
#pragma once

#include <stdint.h>

/* Compute y[frames][mels] of x[frames][frame], with 16 fractional bits.
 *
 *   table    65 logarithms, and for magnitudes also 97 roots
 *   bias     rows of `mels`: biases; with offsets also their mantissas and exponents
 *   places, window, factors  as the kernel packs them
 *   bins     scratch for fft_length / 2 complex numbers, and one more
 * Variants: power or magnitude, without or with pre-emphasis. */
#define FL_LOG_MEL(name)                                                                                           \
    void name(const int16_t *x, const int32_t *window, const uint16_t *places, const int32_t *factors,             \
              const int32_t *table, const int32_t *edges, const int32_t *ramps, const int32_t *bias,               \
              const void *parameters, int32_t *y, void *bins, int32_t frames)
#define FL_LOG_MELS(prefix)                                                                                        \
    FL_LOG_MEL(prefix##_log_mel_power);                                                                            \
    FL_LOG_MEL(prefix##_log_mel_magnitude);                                                                        \
    FL_LOG_MEL(prefix##_log_mel_power_emphasized);                                                                 \
    FL_LOG_MEL(prefix##_log_mel_magnitude_emphasized)
