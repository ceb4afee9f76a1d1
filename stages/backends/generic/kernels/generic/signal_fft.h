/* FFTs of real numbers, by KissFFT's arithmetic (stages/ir/arithmetic/kissfft.py). */
#pragma once

#include <stdint.h>

/* frames   spectra to compute
 * samples  numbers of a frame, padded with zeros to the length of the FFT
 * half     complex numbers: half of the length
 * radices  of `stages` stages, the innermost first */
struct fl_fft {
    int32_t frames, samples, half, stages, radices[16];
};

/* Compute the spectrum of a frame, half + 1 pairs. table: `half` twiddles. real_table: twiddles of the step from a
 * complex to a real FFT. order: input index of each number of the first stage. */
void fl_rfft_s16(const void *samples, void *spectrum, const void *table, const void *real_table, const uint16_t *order,
                 const void *parameters);
void fl_rfft_s32(const void *samples, void *spectrum, const void *table, const void *real_table, const uint16_t *order,
                 const void *parameters);
void fl_rfft_f32(const void *samples, void *spectrum, const void *table, const void *real_table, const uint16_t *order,
                 const void *parameters);

/* Compute the samples of a spectrum. scratch has `half` pairs. */
void fl_irfft_s16(const void *spectrum, void *samples, const void *table, const void *real_table, const uint16_t *order,
                  void *scratch, const void *parameters);
void fl_irfft_s32(const void *spectrum, void *samples, const void *table, const void *real_table, const uint16_t *order,
                  void *scratch, const void *parameters);
void fl_irfft_f32(const void *spectrum, void *samples, const void *table, const void *real_table, const uint16_t *order,
                  void *scratch, const void *parameters);
