/* Log-mel spectrum of a frame. */
#ifndef FIRMLINE_GENERIC_LOG_MEL_H
#define FIRMLINE_GENERIC_LOG_MEL_H

#include <stdint.h>

/* Constants of a log-mel spectrum; the formula is in stages/ir/arithmetic/mel.py.
 *
 *   pre_emphasis  15 bits; x[0] is the sample before the frame
 *   floor         the smallest result */
struct fl_log_mel {
    int32_t frame, fft_length, pre_emphasis, mels, floor, has_offset;
};

/* Compute y[mels] of x[frame], with 16 fractional bits. `sines` is sin(2 pi i / fft_length) with 30 bits. The table
 * has 65 logarithms, and for magnitudes also 97 roots. `bins` is scratch for fft_length / 2 bins.
 * Variants: power or magnitude, without or with pre-emphasis. `offset` has two rows and is read if has_offset. */
#define FL_LOG_MEL(name)                                                                                               \
    void name(const int16_t *x, const int32_t *window, const int32_t *sines, const int32_t *table,                     \
              const int32_t *edges, const uint16_t *ramps, const int32_t *bias, const int32_t *offset,               \
              int64_t *bins, int32_t *y, const void *parameters)
FL_LOG_MEL(fl_log_mel_power);
FL_LOG_MEL(fl_log_mel_magnitude);
FL_LOG_MEL(fl_log_mel_power_emphasized);
FL_LOG_MEL(fl_log_mel_magnitude_emphasized);

#endif
