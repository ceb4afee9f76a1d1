#include "mul.h"

#include "dsp.h"

/* Bytes 0 and 2 of x as 16 bits, with or without sign, added to halves. */
DSP_INLINE uint32_t even_added(uint32_t halves, uint32_t x, int is_unsigned)
{
    uint32_t sum;
    if (is_unsigned) {
        __asm__("uxtab16 %0, %1, %2" : "=r"(sum) : "r"(halves), "r"(x));
    } else {
        __asm__("sxtab16 %0, %1, %2" : "=r"(sum) : "r"(halves), "r"(x));
    }
    return sum;
}

/* The same of bytes 1 and 3. */
DSP_INLINE uint32_t odd_added(uint32_t halves, uint32_t x, int is_unsigned)
{
    uint32_t sum;
    if (is_unsigned) {
        __asm__("uxtab16 %0, %1, %2, ror #8" : "=r"(sum) : "r"(halves), "r"(x));
    } else {
        __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(sum) : "r"(halves), "r"(x));
    }
    return sum;
}

/* Products of the lower and of the upper halves. */
DSP_INLINE int32_t low_product(uint32_t a, uint32_t b)
{
    int32_t product;
    __asm__("smulbb %0, %1, %2" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

DSP_INLINE int32_t high_product(uint32_t a, uint32_t b)
{
    int32_t product;
    __asm__("smultt %0, %1, %2" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

DSP_INLINE uint32_t scaled(int32_t product, const struct arm_dsp_mul *v)
{
    return (uint32_t)dsp_smmlar(dsp_smmlar(product, v->doubled, product), v->rounder, v->zero_point);
}

/* Two results, of the halves of a and b, clipped to 0...255. */
DSP_INLINE uint32_t two(uint32_t a, uint32_t b, const struct arm_dsp_mul *v)
{
    const uint32_t low = scaled(low_product(a, b), v), high = scaled(high_product(a, b), v);
    return dsp_usat16_8(dsp_low_halves(low, high));
}

DSP_INLINE uint32_t clamped(uint32_t bytes, const struct arm_dsp_mul *v)
{
    return dsp_uadd8(dsp_uqsub8(bytes, (uint32_t)v->floor), (uint32_t)v->low);
}

/* A run, four elements at a time. If `repeats`, `one` has the single element of x1 in both halves. */
DSP_INLINE void run(const uint8_t *x0, const uint8_t *x1, uint8_t *y, const struct arm_dsp_mul *v, int repeats, int is_unsigned)
{
    const uint32_t zero0 = (uint32_t)v->zero0, zero1 = (uint32_t)v->zero1, first = *x1 | (uint32_t)*x1 << 16;
    const uint32_t one = even_added(zero1, first, is_unsigned);
    int32_t left = v->rows.count;
    for (; left >= 4; left -= 4) {
        const uint32_t a = dsp_load(x0), b = repeats ? 0 : dsp_load(x1);
        const uint32_t even = two(even_added(zero0, a, is_unsigned), repeats ? one : even_added(zero1, b, is_unsigned), v);
        const uint32_t odd = two(odd_added(zero0, a, is_unsigned), repeats ? one : odd_added(zero1, b, is_unsigned), v);
        dsp_store(y, clamped(even | odd << 8, v));
        x0 += 4;
        x1 += repeats ? 0 : 4;
        y += 4;
    }
    for (; left > 0; left--) {
        const uint32_t b = repeats ? one : even_added(zero1, *x1++, is_unsigned);
        const uint32_t result = scaled(low_product(even_added(zero0, *x0++, is_unsigned), b), v);
        *y++ = (uint8_t)clamped(dsp_usat16_8(result), v);
    }
}

DSP_INLINE void mul(const uint8_t *x0, const uint8_t *x1, uint8_t *y, const int32_t *fields, int repeats, int is_unsigned)
{
    const struct arm_dsp_mul v = *(const struct arm_dsp_mul *)fields; /* local copy: y may alias it */
    for (int32_t rows = v.rows.rows; rows > 0; rows--) {
        run(x0, x1, y, &v, repeats, is_unsigned);
        x0 += v.rows.row0;
        x1 += v.rows.row1;
        y += v.rows.y_row;
    }
}

void arm_dsp_mul_each_s8(const void *x0, const void *x1, void *y, const int32_t *fields)
{
    mul(x0, x1, y, fields, 0, 0);
}

void arm_dsp_mul_each_u8(const void *x0, const void *x1, void *y, const int32_t *fields)
{
    mul(x0, x1, y, fields, 0, 1);
}

void arm_dsp_mul_one_s8(const void *x0, const void *x1, void *y, const int32_t *fields)
{
    mul(x0, x1, y, fields, 1, 0);
}

void arm_dsp_mul_one_u8(const void *x0, const void *x1, void *y, const int32_t *fields)
{
    mul(x0, x1, y, fields, 1, 1);
}
