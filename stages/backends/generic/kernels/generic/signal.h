/* TFLM's signal operators on frames of samples, energies and channels. */
#pragma once

#include <stdint.h>

/* y = x * weights >> shift, clamped to int16; `frames` frames of `size` samples. */
void fl_signal_window(const int16_t *x, const int16_t *weights, int16_t *y, int32_t frames, int32_t size, int32_t shift);

/* For each frame: compute the left shift that uses all bits, and apply it. */
void fl_signal_scale_bits(const int16_t *x, int32_t *bits, int32_t frames, int32_t size, int32_t ignored);
void fl_signal_scale_up(const int16_t *x, const int32_t *bits, int16_t *y, int32_t frames, int32_t size);

/* For each frame: the squared magnitudes of bins [start, end); other bins are 0. */
void fl_signal_energy(const int16_t *x, uint32_t *y, int32_t frames, int32_t bins, int32_t start, int32_t end);

/* Filter bank. parameters: frames, bins, channels; then first bin and number of
 * bins of channels + 1 sections. weights: for each bin of section s, its weights for channels s - 1 and s. */
void fl_signal_filter_bank(const uint32_t *x, const int16_t *weights, uint64_t *y, const int32_t *parameters);
/* The same for weights below 0. */
void fl_signal_filter_bank_signed(const uint32_t *x, const int16_t *weights, uint64_t *y, const int32_t *parameters);

/* Rounded square roots, shifted right by the bits of each frame. */
void fl_signal_square_root(const uint64_t *x, const int32_t *bits, uint32_t *y, int32_t frames, int32_t channels);

/* parameters: frames, channels, smoothing and 1 - smoothing of even, then of odd channels, smoothing_bits, bits, clamping. */
void fl_signal_noise_estimate(const uint32_t *x, uint32_t *noise, uint32_t *y, const int32_t *parameters);
void fl_signal_subtract_noise(const uint32_t *x, const uint32_t *noise, uint32_t *y, int32_t count,
                              int32_t smoothing_bits, int32_t bits, int32_t least);

/* Gain control. gains: 3 values, then 4 per octave. */
void fl_signal_pcan(const uint32_t *x, const uint32_t *noise, const int16_t *gains, uint32_t *y, int32_t count,
                    int32_t snr_shift);

/* Logarithms; table: log2(1 + i / 128) - i / 128 in 16 fractional bits. */
void fl_signal_log(const uint32_t *x, const uint16_t *table, int16_t *y, int32_t count, int32_t scale,
                   int32_t correction_bits);
