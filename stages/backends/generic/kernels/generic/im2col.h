/* Windows of an image as rows of a matrix. */
#pragma once

#include <stdint.h>

/* `pixel` is the distance of neighbouring pixels of a row. `channels` are gathered from each. `flip` is 0x80 to make uint8 int8; `fill` is
 * the (flipped) zero point.
 */
struct fl_im2col {
    int32_t height, width, channels, pixel;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t out_width, fill, flip;
};
void fl_im2col_nhwc(const void *x, int8_t *patch, int32_t first, int32_t count, const void *parameters);
void fl_im2col_nchw(const void *x, int8_t *patch, int32_t first, int32_t count, const void *parameters);
