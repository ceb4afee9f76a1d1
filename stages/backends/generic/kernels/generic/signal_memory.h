/* TFLM's signal operators with state. */
#pragma once

#include <stdint.h>

/* streams  independent sequences
 * frames   of one run and one stream, of `size` samples
 * step     samples from one frame to the next
 * kept     samples of the state of a stream
 * unset    frames after a reset that are 0 */
struct fl_framer {
    int32_t streams, frames, size, step, kept, unset;
};

/*  state: kept samples | x: step samples     y = the first `size` samples of both; the last `kept` become the state
 *
 * A layer without kept samples or without a count may pass any pointer. */
void fl_signal_framer(const int16_t *x, void *samples, void *counts, int16_t *y, const void *parameters);
void fl_signal_framer_valid(void *counts, void *y, const void *parameters);

/*  state:  tail of the sum, size - step         y = the first `step` sums of state + x, clamped; the other sums become the state */
void fl_signal_overlap_add_s16(const int16_t *x, void *samples, int16_t *y, const void *parameters);
void fl_signal_overlap_add_f32(const float *x, void *samples, float *y, const void *parameters);

/* count     rows of one run
 * channels  of a row
 * rows      of a stack; `left` copies of the first row precede it
 * step      rows from one stack to the next */
struct fl_stacker {
    int32_t count, channels, rows, left, step;
};

/* state: the last rows - 1 rows; available: 0 before the first row, else 1 + the number of waiting rows */
void fl_signal_stacker(const int16_t *x, void *samples, void *counts, int16_t *y, const void *parameters);
void fl_signal_stacker_valid(void *counts, void *y, const void *parameters);
