#include "copies.h"

#include "copies_image.h"
#include "transpose_image.h"

void riscv_copy_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step)
{
    copies_copy_rows(y, x, rows, bytes, y_step, x_step);
}

void riscv_fill_rows(void *y, int32_t value, int32_t rows, int32_t bytes, int32_t step)
{
    copies_fill_rows(y, value, rows, bytes, step);
}

void riscv_nearest(void *y, const void *x, const int32_t *rows, const int32_t *columns, int32_t height, int32_t width,
                  int32_t bytes, int32_t x_step)
{
    copies_nearest(y, x, rows, columns, height, width, bytes, x_step);
}

/* Swaps the bytes of `mask` with the bytes of b that are `bits` bits lower. */
TRANSPOSE_INLINE void swap(transpose_word *a, transpose_word *b, transpose_word mask, int bits)
{
    const transpose_word differs = (*a ^ *b << bits) & mask;
    *a ^= differs;
    *b ^= differs >> bits;
}

/* Transposes 2x2 blocks of neighbours, then the 2x2 matrix of these blocks. */
TRANSPOSE_INLINE void transpose_lanes(transpose_word *a, transpose_word *b, transpose_word *c, transpose_word *d)
{
    const transpose_word odd = (transpose_word)0xff00ff00ff00ff00u, upper = (transpose_word)0xffff0000ffff0000u;
    swap(a, b, odd, 8);
    swap(c, d, odd, 8);
    swap(a, c, upper, 16);
    swap(b, d, upper, 16);
}

void riscv_copy_bytes(void *y, const void *x, int32_t rows, int32_t columns, int32_t y_row, int32_t y_column, int32_t x_row,
                     int32_t x_column)
{
    transpose_any(y, x, rows, columns, (struct transpose_steps){y_row, y_column, x_row, x_column});
}
