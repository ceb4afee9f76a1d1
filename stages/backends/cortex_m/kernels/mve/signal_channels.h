/* TFLM's signal operators on channels. */
#pragma once

#include <stdint.h>

/* parameters: frames, channels, smoothing and 1 - smoothing of even, then of odd channels, smoothing_bits, bits, clamping. */
void mve_signal_noise_estimate(const uint32_t *x, uint32_t *noise, uint32_t *y, const int32_t *parameters);
void mve_signal_subtract_noise(const uint32_t *x, const uint32_t *noise, uint32_t *y, int32_t count, int32_t smoothing_bits,
                               int32_t bits, int32_t least);

/* Gain control. gains: 3 values, then 4 per octave. */
void mve_signal_pcan(const uint32_t *x, const uint32_t *noise, const int16_t *gains, uint32_t *y, int32_t count, int32_t snr_shift);

/* Logarithms; table: log2(1 + i / 128) - i / 128 in 16 fractional bits. */
void mve_signal_log(const uint32_t *x, const uint16_t *table, int16_t *y, int32_t count, int32_t scale, int32_t correction_bits);
