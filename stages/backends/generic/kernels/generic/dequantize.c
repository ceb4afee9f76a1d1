/* DEQUANTIZE to float32. */
#include "dequantize.h"

#include "elements.h"
#include "float_bits.h"
#include "float_vectors.h"

INLINE void dequantize(const uint8_t *x, float *y, int32_t count, int32_t step, float scale, int32_t zero_point,
                       int is_unsigned)
{
    const uint32_t bits = bits_of(scale);
    const int by_bits = SOFT_FLOAT && has_products(bits);
    for (int32_t i = 0; i < count; i++) {
        const int32_t centred = load(x, is_unsigned) - zero_point;
        y[i] = by_bits ? product(centred, bits) : scale * (float)centred;
        x += step;
    }
}

WITHOUT_FLOAT_VECTORS
void fl_dequantize_s8(const int8_t *x, float *y, int32_t count, int32_t step, float scale, int32_t zero_point)
{
    dequantize((const uint8_t *)x, y, count, step, scale, zero_point, 0);
}

WITHOUT_FLOAT_VECTORS
void fl_dequantize_u8(const uint8_t *x, float *y, int32_t count, int32_t step, float scale, int32_t zero_point)
{
    dequantize(x, y, count, step, scale, zero_point, 1);
}
