/* TFLM's signal operators on frames of int16. */
#pragma once

#include <stdint.h>

/* y = x * weights >> 15; y = x for samples [first, last). `frames` frames of `size` samples. */
void mve_window(const int16_t *x, const int16_t *weights, int16_t *y, int32_t frames, int32_t size, int32_t first, int32_t last);

/* For each frame: compute the left shift that uses all bits, and apply it. */
void mve_scale_bits(const int16_t *x, int32_t *bits, int32_t frames, int32_t size, int32_t ignored);
void mve_scale_up(const int16_t *x, const int32_t *bits, int16_t *y, int32_t frames, int32_t size);

/* For each frame: the squared magnitudes of bins [start, end); other bins are 0. */
void mve_energy(const int16_t *x, uint32_t *y, int32_t frames, int32_t bins, int32_t start, int32_t end);

/* Spectrum of each frame, numbers + 1 pairs. `scratch` has `numbers` pairs. Without `padded`, a frame has 2 * numbers samples, or at
 * least three quarters of them (a multiple of 8) if `numbers` is a power of four. */
void mve_rfft(const int16_t *x, const uint16_t *places, const uint32_t *factors, int16_t *y, void *scratch, int32_t frames,
              int32_t size, int32_t numbers, int32_t padded);

/* Filter bank. parameters: frames, bins, channels; then first bin and number of bins of channels + 1 sections.
 * weights: for each section, its weights for channel s - 1, then for channel s. */
void mve_filter_bank(const uint32_t *x, const uint16_t *weights, const int32_t *parameters, uint64_t *y);
