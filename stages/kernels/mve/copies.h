/* The functions of copies.S, which describes them. */
#ifndef FIRMLINE_MVE_COPIES_H
#define FIRMLINE_MVE_COPIES_H

#include <stdint.h>

void mve_copy_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step);
void mve_pick_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step, int32_t stride);
void mve_fill_rows(void *y, int32_t value, int32_t rows, int32_t bytes, int32_t step);

#endif
