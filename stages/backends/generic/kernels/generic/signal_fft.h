/* FFTs of real numbers, by KissFFT's arithmetic (stages/ir/arithmetic/kissfft.py). */
#ifndef FIRMLINE_GENERIC_SIGNAL_FFT_H
#define FIRMLINE_GENERIC_SIGNAL_FFT_H

#include <stdint.h>

/* frames   spectra to compute
 * samples  numbers of a frame; zeros follow up to the FFT's length
 * half     complex numbers: half of the length
 * radices  of `stages` stages, the innermost first */
struct fl_fft {
    int32_t frames, samples, half, stages, radices[16];
};

/* A frame to its spectrum of half + 1 pairs. table: `half` twiddles; real_table: those of the step from a complex to a
 * real FFT; order: the place of each number of the first stage. */
void fl_rfft_s16(const void *samples, void *spectrum, const void *table, const void *real_table, const uint16_t *order,
                 const void *parameters);
void fl_rfft_s32(const void *samples, void *spectrum, const void *table, const void *real_table, const uint16_t *order,
                 const void *parameters);
void fl_rfft_f32(const void *samples, void *spectrum, const void *table, const void *real_table, const uint16_t *order,
                 const void *parameters);

/* A spectrum to its samples; scratch holds `half` pairs. */
void fl_irfft_s16(const void *spectrum, void *samples, const void *table, const void *real_table, const uint16_t *order,
                  void *scratch, const void *parameters);
void fl_irfft_s32(const void *spectrum, void *samples, const void *table, const void *real_table, const uint16_t *order,
                  void *scratch, const void *parameters);
void fl_irfft_f32(const void *spectrum, void *samples, const void *table, const void *real_table, const uint16_t *order,
                  void *scratch, const void *parameters);

#endif
