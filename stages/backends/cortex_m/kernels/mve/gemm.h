/* Convolution and fully connected layers as products of matrices. */
#pragma once

#include <stdint.h>

/* Windows of `channels` neighbouring channels of an NHWC image. Pixels are `pixel` bytes apart, rows `line` bytes. `neighbours`: the
 * taps of a window's row are one run of bytes. Taps outside of the image are `fill`, the zero point as int8. `flip` is 0x80 to make
 * uint8 int8, else 0. `depth` elements are gathered into rows of `row` bytes; the other bytes of a row are arbitrary. */
struct mve_windows {
    int32_t height, width, channels;
    int32_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t out_width, pixel, line, neighbours, fill, flip, depth, row, weight_zero_point;
};

/* The windows of output pixels first, first + 1, ..., one in each row, as int8. Where the weights have a zero point,
 * offsets[i] is added to the sums of row i; otherwise offsets is not used. */
typedef void mve_gather(const void *x, int8_t *rows, int32_t *offsets, int32_t first, int32_t count, const int32_t *windows);

mve_gather mve_windows_s8, mve_windows_u8;

/* The windows of `count` neighbouring output pixels of a row, from `first` on, in one strip (strip.c): window i begins
 * i * row bytes after the first. Columns of a window, dilation_x is 1, are [kernel_x][kernel_y][channels]. Offsets are as above. */
mve_gather mve_strip_s8, mve_strip_u8;
