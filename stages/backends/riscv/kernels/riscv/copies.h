/* Copies of runs of bytes at any alignment, and of bytes that are not consecutive. RISC-V cores trap on unaligned words. */
#pragma once

#include <stdint.h>

/* `rows` runs of `bytes` > 0 neighbours; each begins y_step (x_step) bytes after the one before; steps
 * of a single row are its bytes, or 0. Bytes that share a word of y with them are read, and written as they are. */
void riscv_copy_rows(void *y, const void *x, int32_t rows, int32_t bytes, int32_t y_step, int32_t x_step);

/* `rows` runs of `bytes` > 0 times `value`. */
void riscv_fill_rows(void *y, int32_t value, int32_t rows, int32_t bytes, int32_t step);

/* An image of height by width pixels of `bytes` bytes. Pixel (i, j) is the pixel at row rows[i] and column columns[j] of x, whose rows have
 * x_step bytes.
 */
void riscv_nearest(void *y, const void *x, const int32_t *rows, const int32_t *columns, int32_t height, int32_t width,
                   int32_t bytes, int32_t x_step);

/* y[r * y_row + c * y_column] = x[r * x_row + c * x_column], r < rows, c < columns. */
void riscv_copy_bytes(void *y, const void *x, int32_t rows, int32_t columns, int32_t y_row, int32_t y_column,
                      int32_t x_row, int32_t x_column);
