/* Matrix product of int8 rows and weights, requantized to 8 bits, on RISC-V without SIMD instructions. */
#pragma once

#include <stdint.h>

/* Rows of x are x_row bytes apart, rows of y y_row, columns of y y_column. `depth` is the length of a row, on 32 bits padded to whole
 * groups (panels32.h). `rectified` selects rectified.h.
 */
struct riscv_gemm {
    int32_t x_row, y_row, y_column;
    int32_t row, depth, zero_point, low, high, rectified;
};

/* y[i, j] = requantize(bias[j] + sum over k of x[i, k] * w[j, k]) with two roundings; w in panels, see panels32.h and
 * panels64.h. `packed` takes three words for each element of a row on 32 bits, on 64 two of 64 bits. */
void riscv_gemm_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t *packed, int32_t rows,
                   int32_t columns, const void *parameters);

/* The windows of an image as rows. `planes` is 1 if the channels of a pixel are consecutive, else the number of planes. `channels`
 * consecutive channels are read for each tap (of a plane 1). `pixel` is the distance of pixels. `fill` is the byte of padding;
 * `is_unsigned`: the image is uint8, which becomes int8.
 */
struct riscv_windows {
    int32_t height, width, channels, pixel, planes;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t out_width, fill, is_unsigned;
};

/* The same with the window of output pixel i as row i of x. `outside` takes a byte for each tap and channel of a row of a
 * window. */
void riscv_windows_s8(const void *x, const int8_t *w, const int32_t *channels, void *y, int32_t *packed, int8_t *outside,
                      int32_t pixels, int32_t columns, const void *parameters, const void *windows);
