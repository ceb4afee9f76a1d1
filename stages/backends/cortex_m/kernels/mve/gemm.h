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

/* Declarations of the functions in gemm.S; see there. */
typedef void mve_gemm(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, int32_t rows, int32_t blocks,
                      const int32_t *fields, const int32_t *offsets);

mve_gemm mve_gemm_exact_whole, mve_gemm_exact_rest, mve_gemm_exact_short;
mve_gemm mve_gemm_lowered_whole, mve_gemm_lowered_rest, mve_gemm_lowered_short;
mve_gemm mve_gemm_single_whole, mve_gemm_single_rest, mve_gemm_single_short;
mve_gemm mve_gemm_shifted_whole, mve_gemm_shifted_rest, mve_gemm_shifted_short;
mve_gemm mve_gemm_exact_whole_offsets, mve_gemm_exact_rest_offsets, mve_gemm_exact_short_offsets;
mve_gemm mve_gemm_lowered_whole_offsets, mve_gemm_lowered_rest_offsets, mve_gemm_lowered_short_offsets;
mve_gemm mve_gemm_single_whole_offsets, mve_gemm_single_rest_offsets, mve_gemm_single_short_offsets;
mve_gemm mve_gemm_shifted_whole_offsets, mve_gemm_shifted_rest_offsets, mve_gemm_shifted_short_offsets;

/* Functions of pixels.S. */
mve_gemm mve_pixels_exact, mve_pixels_lowered;

/* Declarations of the functions in columns.S; see there. */
typedef void mve_columns(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, int32_t rows, int32_t columns,
                         const int32_t *fields, const int32_t *offsets);

mve_columns mve_columns_exact, mve_columns_lowered, mve_columns_single, mve_columns_shifted;
mve_columns mve_columns_exact_offsets, mve_columns_lowered_offsets, mve_columns_single_offsets, mve_columns_shifted_offsets;
