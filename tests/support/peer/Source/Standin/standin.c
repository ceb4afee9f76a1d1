#include "arm_nnfunctions.h"

static int32_t clamp(int32_t value, int32_t least, int32_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* gemmlowp's rounding, twice: of the doubled high half, and of what is shifted out. */
static int32_t requantize(int32_t value, int32_t multiplier, int32_t shift)
{
    int64_t product = (int64_t)(value * (1 << (shift > 0 ? shift : 0))) * multiplier;
    int32_t high = (int32_t)((product + (product >= 0 ? 1 << 30 : 1 - (1 << 30))) / (1ll << 31));
    int32_t right = shift < 0 ? -shift : 0;
    int32_t mask = (int32_t)((1u << right) - 1), rest = high & mask;
    return (high >> right) + (rest > (mask >> 1) + (high < 0));
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *params, const cmsis_nn_dims *input,
                                                const cmsis_nn_dims *filter, const cmsis_nn_dims *output)
{
    (void)params, (void)input, (void)output;
    return filter->c > 64 ? 1 << 24 : 0;
}

int arm_convolve_wrapper_s8(const cmsis_nn_context *context, const cmsis_nn_conv_params *params,
                            const cmsis_nn_per_channel_quant_params *quant, const cmsis_nn_dims *input_dims,
                            const int8_t *input, const cmsis_nn_dims *filter_dims, const int8_t *filter,
                            const cmsis_nn_dims *bias_dims, const int32_t *bias, const cmsis_nn_dims *output_dims,
                            int8_t *output)
{
    (void)context, (void)bias_dims;
    if (filter_dims->c != input_dims->c)
        return -1;
    for (int y = 0; y < output_dims->h; y++)
        for (int x = 0; x < output_dims->w; x++)
            for (int o = 0; o < output_dims->c; o++) {
                int32_t sum = bias[o];
                for (int i = 0; i < filter_dims->h; i++)
                    for (int j = 0; j < filter_dims->w; j++) {
                        int row = y * params->stride.h - params->padding.h + i * params->dilation.h;
                        int column = x * params->stride.w - params->padding.w + j * params->dilation.w;
                        if (row < 0 || row >= input_dims->h || column < 0 || column >= input_dims->w)
                            continue;
                        const int8_t *at = input + (row * input_dims->w + column) * input_dims->c;
                        const int8_t *w = filter + ((o * filter_dims->h + i) * filter_dims->w + j) * filter_dims->c;
                        for (int c = 0; c < filter_dims->c; c++)
                            sum += (at[c] + params->input_offset) * w[c];
                    }
                sum = requantize(sum, quant->multiplier[o], quant->shift[o]) + params->output_offset;
                *output++ = (int8_t)clamp(sum, params->activation.min, params->activation.max);
            }
    return 0;
}

int arm_elementwise_mul_s8(const int8_t *a, const int8_t *b, int32_t a_offset, int32_t b_offset, int8_t *output,
                           int32_t offset, int32_t multiplier, int32_t shift, int32_t least, int32_t most,
                           int32_t count)
{
    for (int i = 0; i < count; i++) {
        int32_t product = (a[i] + a_offset) * (b[i] + b_offset);
        output[i] = (int8_t)clamp(requantize(product, multiplier, shift) + offset, least, most);
    }
    return 0;
}

int arm_elementwise_mul_s16(const int16_t *a, const int16_t *b, int32_t a_offset, int32_t b_offset, int16_t *output,
                            int32_t offset, int32_t multiplier, int32_t shift, int32_t least, int32_t most,
                            int32_t count)
{
    for (int i = 0; i < count; i++) {
        int32_t product = (a[i] + a_offset) * (b[i] + b_offset);
        output[i] = (int16_t)clamp(requantize(product, multiplier, shift) + offset, least, most);
    }
    return 0;
}

/* b has the shape of a, or one pixel of it. */
int arm_maximum_s8(const cmsis_nn_context *context, const int8_t *a, const cmsis_nn_dims *a_dims, const int8_t *b,
                   const cmsis_nn_dims *b_dims, int8_t *output, const cmsis_nn_dims *output_dims)
{
    (void)context, (void)output_dims;
    int count = a_dims->n * a_dims->h * a_dims->w * a_dims->c, repeated = b_dims->n * b_dims->h * b_dims->w * b_dims->c;
    for (int i = 0; i < count; i++)
        output[i] = a[i] > b[i % repeated] ? a[i] : b[i % repeated];
    return 0;
}

int arm_max_pool_s8(const cmsis_nn_context *context, const cmsis_nn_pool_params *params,
                    const cmsis_nn_dims *input_dims, const int8_t *input, const cmsis_nn_dims *filter_dims,
                    const cmsis_nn_dims *output_dims, int8_t *output)
{
    (void)context;
    for (int y = 0; y < output_dims->h; y++)
        for (int x = 0; x < output_dims->w; x++)
            for (int c = 0; c < input_dims->c; c++) {
                int32_t most = -128;
                for (int i = 0; i < filter_dims->h; i++)
                    for (int j = 0; j < filter_dims->w; j++) {
                        int row = y * params->stride.h - params->padding.h + i;
                        int column = x * params->stride.w - params->padding.w + j;
                        if (row < 0 || row >= input_dims->h || column < 0 || column >= input_dims->w)
                            continue;
                        int8_t value = input[(row * input_dims->w + column) * input_dims->c + c];
                        most = value > most ? value : most;
                    }
                *output++ = (int8_t)clamp(most, params->activation.min, params->activation.max);
            }
    return 0;
}

/* Wrong on purpose: it pads with one more than it is told. */
int arm_pad_s8(const int8_t *input, int8_t *output, int8_t value, const cmsis_nn_dims *size,
               const cmsis_nn_dims *before, const cmsis_nn_dims *after)
{
    for (int y = -before->h; y < size->h + after->h; y++)
        for (int x = -before->w; x < size->w + after->w; x++)
            for (int c = 0; c < size->c; c++) {
                int inside = y >= 0 && y < size->h && x >= 0 && x < size->w;
                *output++ = (int8_t)(inside ? input[(y * size->w + x) * size->c + c] : value + 40);
            }
    return 0;
}
