/* TFLM's signal operators that remember samples. */
#ifndef FIRMLINE_GENERIC_SIGNAL_MEMORY_H
#define FIRMLINE_GENERIC_SIGNAL_MEMORY_H

#include <stdint.h>

/* streams  independent sequences
 * frames   of one run and one stream, of `size` samples
 * step     samples from one frame to the next
 * kept     samples of the state of a stream
 * unset    frames after a reset that are 0 */
struct fl_framer {
    int32_t streams, frames, size, step, kept, unset;
};

/*  state: kept samples | x: step samples     y = the first `size` of both; the state becomes their last `kept`
 *
 * A layer without samples to keep, or without a count, passes any pointer. */
void fl_signal_framer(const int16_t *x, void *samples, void *counts, int16_t *y, const void *parameters);
void fl_signal_framer_valid(void *counts, void *y, const void *parameters);

/*  state:  tail of the sum, size - step         y = the first `step` of state + x, clamped; the state becomes the rest */
void fl_signal_overlap_add_s16(const int16_t *x, void *samples, int16_t *y, const void *parameters);
void fl_signal_overlap_add_f32(const float *x, void *samples, float *y, const void *parameters);

/* count     rows of one run
 * channels  of a row
 * rows      of a stack; before the first row lie `left` copies of it
 * step      rows from one stack to the next */
struct fl_stacker {
    int32_t count, channels, rows, left, step;
};

/* state: the last rows - 1 rows; available: 0 before the first row, else 1 and the rows that were not stacked */
void fl_signal_stacker(const int16_t *x, void *samples, void *counts, int16_t *y, const void *parameters);
void fl_signal_stacker_valid(void *counts, void *y, const void *parameters);

#endif
