/* Windows of an image as rows of a matrix, for products of matrices. */
#ifndef FIRMLINE_RVV_WINDOWS_H
#define FIRMLINE_RVV_WINDOWS_H

#include <stdint.h>

/* Positions of windows in an NHWC image. `fill` is the value of padding, as int8. `flip` is 0x80 to make uint8 int8, else 0.
 * `row` is the length of a row, padded with zeros. */
struct rvv_windows {
    int32_t height, width, channels;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t out_width, fill, flip, row;
};

/* The windows of output pixels first, first + 1, ..., one in each row. */
void rvv_windows(const void *x, int8_t *rows, int32_t first, int32_t count, const void *windows);

#endif
