/* Micro-kernels in portable C11. None of them allocates, keeps state or has an array local.
 *
 * 8-bit tensors come as void pointers: one function serves int8 and uint8 where only bounds and offsets differ. What
 * does not change between the calls of a layer is in a constant structure of int32 values, which lies beside the
 * weights.
 *
 * `channels` holds three values for each output channel: bias, multiplier and shift. Zero points that are the same
 * for a whole channel are folded into the bias when the weights are packed.
 */
#ifndef FIRMLINE_GENERIC_H
#define FIRMLINE_GENERIC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { FL_BIAS, FL_MULTIPLIER, FL_SHIFT, FL_CHANNEL };

/* y[i * y_row + j * y_column] = requantize(bias[j] + sum over k of x[i * x_row + k] * (w[j][k] - weight_zero_point)),
 * w in panels of eight rows, see gemm.c. */
enum { FL_PANEL = 8 };
struct fl_gemm {
    int32_t x_row, y_row, y_column;
    int32_t weight_zero_point, zero_point, low, high, single_rounding;
};
void fl_gemm_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t rows, int32_t columns,
                int32_t depth, const void *parameters);

/* `pixel` is the distance of neighbours in a row of the image, `channels` how many are gathered from each. `flip` is
 * 0x80 for uint8, which becomes int8 by it; `fill` is the (flipped) zero point. */
struct fl_im2col {
    int32_t height, width, channels, pixel;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t out_width, fill, flip;
};
void fl_im2col_nhwc(const void *x, int8_t *patch, int32_t first, int32_t count, const void *parameters);
void fl_im2col_nchw(const void *x, int8_t *patch, int32_t first, int32_t count, const void *parameters);

/* `channels` counts output channels; each input channel feeds `multiplier` of them. */
struct fl_depthwise {
    int32_t height, width, out_height, out_width, channels, multiplier;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t y_pixel, y_channel;
    int32_t input_zero_point, weight_zero_point, zero_point, low, high, single_rounding;
};
/* A whole image of interleaved channels; w is (kernel_height, kernel_width, channels). */
void fl_depthwise_nhwc_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, const void *parameters);
void fl_depthwise_nhwc_u8(const uint8_t *x, const int8_t *w, const int32_t *channels, void *y, const void *parameters);
/* One output plane; w is (kernel_height, kernel_width), `channel` the three values of this plane. */
void fl_depthwise_nchw_s8(const int8_t *x, const int8_t *w, const int32_t *channel, void *y, const void *parameters);
void fl_depthwise_nchw_u8(const uint8_t *x, const int8_t *w, const int32_t *channel, void *y, const void *parameters);

/* Pooling of one image; the dilation is 1. Neighbours in a row are x_pixel (y_pixel) apart, channels x_channel
 * (y_channel). */
struct fl_pool {
    int32_t height, width, out_height, out_width, channels;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t x_pixel, x_channel, y_pixel, y_channel, low, high;
};
void fl_avg_pool_s8(const int8_t *x, void *y, const void *parameters);
void fl_avg_pool_u8(const uint8_t *x, void *y, const void *parameters);
void fl_max_pool_s8(const int8_t *x, void *y, const void *parameters);
void fl_max_pool_u8(const uint8_t *x, void *y, const void *parameters);

/* Element-wise on `count` elements; `step` is the distance of neighbours in an input, 0 for one value that is
 * repeated. */
struct fl_add {
    int32_t zero_point0, zero_point1, left_shift, multiplier0, shift0, multiplier1, shift1, sign;
    int32_t multiplier, shift, zero_point, low, high, single_rounding;
};
void fl_add_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters);
void fl_add_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters);

struct fl_mul {
    int32_t zero_point0, zero_point1, multiplier, shift, zero_point, low, high, single_rounding;
};
void fl_mul_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters);
void fl_mul_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, int32_t step0, int32_t step1,
               const void *parameters);

/* y = requantize(x - input_zero_point) */
struct fl_requantize {
    int32_t input_zero_point, multiplier, shift, zero_point, low, high, single_rounding;
};
void fl_requantize_s8(const int8_t *x, void *y, int32_t count, int32_t step, const void *parameters);
void fl_requantize_u8(const uint8_t *x, void *y, int32_t count, int32_t step, const void *parameters);

/* `count` means: y[i] = requantize(sum over a and b of x[i * x_step + a * step0 + b * step1] - offset) */
struct fl_mean {
    int32_t x_step, extent0, step0, extent1, step1;
    int32_t offset, multiplier, shift, zero_point, low, high, single_rounding;
};
void fl_mean_s8(const int8_t *x, void *y, int32_t count, const void *parameters);
void fl_mean_u8(const uint8_t *x, void *y, int32_t count, const void *parameters);

/* Softmax of one row whose elements are `x_step` (y_step) apart; exp is int32[256], by distance from the row's
 * maximum. */
void fl_softmax_s8(const int8_t *x, const int32_t *exp, void *y, int32_t count, int32_t x_step, int32_t y_step);
void fl_softmax_u8(const uint8_t *x, const int32_t *exp, void *y, int32_t count, int32_t x_step, int32_t y_step);

/* A row divided by its Euclidean norm; elements are `x_step` (y_step) apart. */
void fl_l2_normalize_s8(const int8_t *x, void *y, int32_t count, int32_t x_step, int32_t y_step,
                        int32_t input_zero_point);
void fl_l2_normalize_u8(const uint8_t *x, void *y, int32_t count, int32_t x_step, int32_t y_step,
                        int32_t input_zero_point);

/* float32 at the model's edges. `low` and `high` are the bounds of the 8-bit type. */
void fl_quantize(const float *x, void *y, int32_t count, int32_t step, float scale, int32_t zero_point, int32_t low,
                 int32_t high);
void fl_dequantize_s8(const int8_t *x, float *y, int32_t count, int32_t step, float scale, int32_t zero_point);
void fl_dequantize_u8(const uint8_t *x, float *y, int32_t count, int32_t step, float scale, int32_t zero_point);

#endif
