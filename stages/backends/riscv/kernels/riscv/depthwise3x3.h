/* Depthwise 3x3 convolution of 8-bit images on RISC-V without SIMD instructions. */
#pragma once

#include <stdint.h>

/* One axis of the images: pixels of the input and the output, pixels between windows, padding before the first, and bytes between pixels of
 * each.
 */
struct riscv_side {
    int32_t size, out, stride, before, x_step, y_step;
};

/* Lines of windows run along one axis; `across` is the other axis. On 64 bits, sums of up to nine products are in
 * [floor, floor + 2^20); on 32 bits `floor` is 0. Each input channel feeds `multiplier` output channels. */
struct riscv_depthwise3x3 {
    struct riscv_side along, across;
    int32_t channels, multiplier, x_channel, y_channel;
    int32_t input_zero_point, weight_zero_point, floor, zero_point, low, high;
};

/* One image; windows step by one pixel or by two along lines. w is (channels, along, across); the `channels` are as in
 * generic/channels.h, with the input's zero point in the bias. Layers for rectified.h have separate functions. */
void riscv_depthwise3x3_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, const void *parameters);
void riscv_depthwise3x3_u8(const uint8_t *x, const int8_t *w, const int32_t *channels, void *y, const void *parameters);
void riscv_depthwise3x3_stride2_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y,
                                   const void *parameters);
void riscv_depthwise3x3_stride2_u8(const uint8_t *x, const int8_t *w, const int32_t *channels, void *y,
                                   const void *parameters);
void riscv_depthwise3x3_rectified_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y,
                                     const void *parameters);
void riscv_depthwise3x3_rectified_u8(const uint8_t *x, const int8_t *w, const int32_t *channels, void *y,
                                     const void *parameters);
void riscv_depthwise3x3_stride2_rectified_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y,
                                             const void *parameters);
void riscv_depthwise3x3_stride2_rectified_u8(const uint8_t *x, const int8_t *w, const int32_t *channels, void *y,
                                             const void *parameters);
