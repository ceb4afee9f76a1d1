/* A stand-in for a peer's library in tests: a few functions under the names that are called, written for readability only.
 * $Revision: V.11.2.0 */
#ifndef STANDIN_NNFUNCTIONS_H
#define STANDIN_NNFUNCTIONS_H

#include <stdint.h>

typedef struct { void *buf; int32_t size; } cmsis_nn_context;
typedef struct { int32_t n, h, w, c; } cmsis_nn_dims;
typedef struct { int32_t w, h; } cmsis_nn_tile;
typedef struct { int32_t min, max; } cmsis_nn_activation;
typedef struct { int32_t *multiplier, *shift; } cmsis_nn_per_channel_quant_params;
typedef struct {
    int32_t input_offset, output_offset;
    cmsis_nn_tile stride, padding, dilation;
    cmsis_nn_activation activation;
} cmsis_nn_conv_params;
typedef struct {
    cmsis_nn_tile stride, padding;
    cmsis_nn_activation activation;
} cmsis_nn_pool_params;

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *params, const cmsis_nn_dims *input,
                                                const cmsis_nn_dims *filter, const cmsis_nn_dims *output);
int arm_convolve_wrapper_s8(const cmsis_nn_context *context, const cmsis_nn_conv_params *params,
                            const cmsis_nn_per_channel_quant_params *quant, const cmsis_nn_dims *input_dims,
                            const int8_t *input, const cmsis_nn_dims *filter_dims, const int8_t *filter,
                            const cmsis_nn_dims *bias_dims, const int32_t *bias, const cmsis_nn_dims *output_dims,
                            int8_t *output);
int arm_elementwise_mul_s8(const int8_t *a, const int8_t *b, int32_t a_offset, int32_t b_offset, int8_t *output,
                           int32_t offset, int32_t multiplier, int32_t shift, int32_t least, int32_t most,
                           int32_t count);
int arm_elementwise_mul_s16(const int16_t *a, const int16_t *b, int32_t a_offset, int32_t b_offset, int16_t *output,
                            int32_t offset, int32_t multiplier, int32_t shift, int32_t least, int32_t most,
                            int32_t count);
int arm_max_pool_s8(const cmsis_nn_context *context, const cmsis_nn_pool_params *params,
                    const cmsis_nn_dims *input_dims, const int8_t *input, const cmsis_nn_dims *filter_dims,
                    const cmsis_nn_dims *output_dims, int8_t *output);
int arm_pad_s8(const int8_t *input, int8_t *output, int8_t value, const cmsis_nn_dims *size,
               const cmsis_nn_dims *before, const cmsis_nn_dims *after);

int arm_maximum_s8(const cmsis_nn_context *context, const int8_t *a, const cmsis_nn_dims *a_dims, const int8_t *b,
                   const cmsis_nn_dims *b_dims, int8_t *output, const cmsis_nn_dims *output_dims);

#endif
