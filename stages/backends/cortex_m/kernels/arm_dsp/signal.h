/* TFLM's signal operators on frames of int16. */
#pragma once

#include <stdint.h>

/* y = x * weights >> 14; no product exceeds int16. `frames` frames of `size` samples. */
void arm_dsp_window(const int16_t *x, const int16_t *weights, int16_t *y, int32_t frames, int32_t size);

/* For each frame: compute the left shift that uses all bits, and apply it. */
void arm_dsp_scale_bits(const int16_t *x, int32_t *bits, int32_t frames, int32_t size, int32_t ignored);
void arm_dsp_scale_up(const int16_t *x, const int32_t *bits, int16_t *y, int32_t frames, int32_t size);

/* For each frame: the squared magnitudes of bins [start, end); other bins are 0. */
void arm_dsp_energy(const int16_t *x, uint32_t *y, int32_t frames, int32_t bins, int32_t start, int32_t end);

/* Spectrum of each frame, numbers + 1 pairs. `padded` is scratch for `numbers` pairs, or y (include/rfft16_image.h). */
void arm_dsp_rfft(const int16_t *x, const uint16_t *places, const uint32_t *factors, int16_t *y, void *padded, int32_t frames,
                  int32_t size, int32_t numbers);

/* Filter bank. parameters: frames, bins, channels; then first bin and number of bins of channels + 1 sections.
 * weights: for each bin, its weights for channels s - 1 and s. */
void arm_dsp_signal_filter_bank(const uint32_t *x, const int16_t *weights, uint64_t *y, const int32_t *parameters);
