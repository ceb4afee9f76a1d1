/* Declarations of the functions in copies.S; see there. */
#pragma once

#include <stdint.h>

/* `rows` runs of `bytes` > 0 neighbours; each begins y_step (x_step) bytes after the one before. */
void arm_dsp_copy_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step);

/* `rows` runs of `bytes` > 0 times `value`. */
void arm_dsp_fill_rows(void *y, int32_t value, int32_t rows, int32_t bytes, int32_t step);
