/* The core's part of NE16's layers: it brings inputs into the engine's order, and requantizes the engine's sums to bytes. */
#pragma once

#include <stdint.h>

/* Windows of an image in HWC, column by column, for a convolution as a product for each pixel:
 *
 *   rows, columns        rows of the output; columns of a strip, which has all windows of an output row
 *   width, step          columns of a window, and from one to the next
 *   taps, channels       rows of a window, bytes of a pixel
 *   stride_y, stride_x   of windows in the image
 *   height, width_in     of the image, whose pixels are `pixel` bytes apart
 *   above, left          rows and columns of padding before it, of the value `pad`
 */
struct ne16_windows {
    int32_t rows, columns, width, step, taps, channels, stride_y, stride_x, height, width_in, pixel, above, left, pad;
};

/* `windows` are int32 numbers in the order of struct ne16_windows. Neighbouring windows share columns where they overlap
 * (step < width); a strip then has all columns from stride_x * x - left on, otherwise only the columns of windows. */
void ne16_gather(const void *image, void *strips, const int32_t *windows);

/* Sums, `channels` of each pixel one after the other, to 8 bits: clamp(M(sum) + zero_point, low, high), TFLite's
 * MultiplyByQuantizedMultiplier. Multipliers (int32), rounders (int32) and exponents (int8) lie at offsets in `constants`.
 */
struct ne16_requantizer {
    int32_t pixels, channels, to_pixel, zero_point, low, high, is_unsigned, single, multipliers, rounders, exponents;
};

/* `requantizer` are int32 numbers in the order of struct ne16_requantizer. */
void ne16_requantize(const void *sums, void *to, const void *constants, const int32_t *requantizer);

/* The same with RISC-V P (draft 0.9.11), for channels and to_pixel that are multiples of 4 and multipliers with a rounder. */
void ne16_requantize_rvp(const void *sums, void *to, const void *constants, const int32_t *requantizer);
