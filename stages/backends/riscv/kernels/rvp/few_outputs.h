/* Convolution with few output channels on NHWC images: four pixels at a time, with the lanes along the depth. */
#pragma once

#include <stdint.h>

struct rvp_few_outputs {
    int32_t height, width, channels; /* of the input */
    int32_t out_height, out_width, outputs;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, top, left;
    int32_t fill;      /* value of the padding: the input's zero point */
    int32_t clip;      /* as in gemm_s8.S */
    int32_t runs;      /* runs of a window: elements of a run are neighbours in the image */
    int32_t run_bytes;
    int32_t in_place;  /* whether windows inside the image can be read there: pixels are whole registers, or lanes */
};

/* One image, int8 or uint8; params and weights are as in few_outputs.c, layer is a struct rvp_few_outputs. scratch: four
 * windows, each run in whole registers.
 */
typedef void rvp_few_outputs_kernel(const void *x, const int8_t *weights, const int32_t *params, void *out,
                                    int8_t *scratch, const int32_t *layer);

rvp_few_outputs_kernel rvp_few_outputs_s8, rvp_few_outputs_u8;

/* RV64, pixels that are whole lanes: runs are whole lanes too, of weights and in scratch. */
rvp_few_outputs_kernel rvp_few_outputs_lanes_s8, rvp_few_outputs_lanes_u8;
