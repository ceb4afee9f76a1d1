/* Windows of an image as rows of a matrix. */
#ifndef FIRMLINE_GENERIC_IM2COL_H
#define FIRMLINE_GENERIC_IM2COL_H

#include <stdint.h>

/* `pixel` is the distance of neighbours in a row of the image, `channels` how many are gathered from each. `flip` is
 * 0x80 for uint8, which becomes int8 by it; `fill` is the (flipped) zero point. */
struct fl_im2col {
    int32_t height, width, channels, pixel;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t out_width, fill, flip;
};
void fl_im2col_nhwc(const void *x, int8_t *patch, int32_t first, int32_t count, const void *parameters);
void fl_im2col_nchw(const void *x, int8_t *patch, int32_t first, int32_t count, const void *parameters);

#endif
