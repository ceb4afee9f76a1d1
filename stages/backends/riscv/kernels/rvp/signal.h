/* TFLM's signal operators on frames of int16. */
#ifndef FIRMLINE_RVP_SIGNAL_H
#define FIRMLINE_RVP_SIGNAL_H

#include <stdint.h>

/* y = x * weights >> 15; y = x for samples [first, last). `frames` frames of `size` samples. */
void rvp_window(const int16_t *x, const int16_t *weights, int16_t *y, int32_t frames, int32_t size, int32_t first, int32_t last);

/* How far each frame can be shifted left, and the shift. */
void rvp_scale_bits(const int16_t *x, int32_t *bits, int32_t frames, int32_t size);
void rvp_scale_up(const int16_t *x, const int32_t *bits, int16_t *y, int32_t frames, int32_t size);

/* Squared magnitudes of the bins [start, end) of each frame, zeros for others. */
void rvp_energy(const int16_t *x, uint32_t *y, int32_t frames, int32_t bins, int32_t start, int32_t end);

/* Each frame to its spectrum, numbers + 1 pairs; `padded` has room for `numbers` pairs, or is y (include/rfft16_image.h). */
void rvp_rfft(const int16_t *x, const uint16_t *places, const uint32_t *factors, int16_t *y, void *padded, int32_t frames,
              int32_t size, int32_t numbers);

/* RV64: the same for spectra that do not begin at a register. scratch has numbers + 2 pairs, and `numbers` more if frames are padded. */
void rvp_rfft_apart(const int16_t *x, const uint16_t *places, const uint32_t *factors, int16_t *y, void *scratch, int32_t frames,
                    int32_t size, int32_t numbers, int32_t padded);

/* Sections of pairs of bins. parameters: frames, bins, channels; for each of channels + 1 sections its first bin and its
 * number of bins. weights: for each bin its weight for channel s - 1, and that for channel s. */
void rvp_signal_filter_bank(const uint32_t *x, const int16_t *weights, uint64_t *y, const int32_t *parameters);

#endif
