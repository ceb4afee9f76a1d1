#include "copies.h"

#include "depthwise_pixels.h"
#include "copies_image.h"
#include "transpose_image.h"

void rvp_copy_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step)
{
    copies_copy_rows(y, x, rows, bytes, y_step, x_step);
}

void rvp_fill_rows(void *y, int32_t value, int32_t rows, int32_t bytes, int32_t step)
{
    copies_fill_rows(y, value, rows, bytes, step);
}

void rvp_nearest(void *y, const void *x, const int32_t *rows, const int32_t *columns, int32_t height, int32_t width,
                int32_t bytes, int32_t x_step)
{
    copies_nearest(y, x, rows, columns, height, width, bytes, x_step);
}

TRANSPOSE_INLINE void transpose_lanes(transpose_word *a, transpose_word *b, transpose_word *c, transpose_word *d)
{
    transpose(a, b, c, d);
}

void rvp_copy_bytes(void *y, const void *x, int32_t rows, int32_t columns, int32_t y_row, int32_t y_column, int32_t x_row,
                   int32_t x_column)
{
    transpose_any(y, x, rows, columns, (struct transpose_steps){y_row, y_column, x_row, x_column});
}
