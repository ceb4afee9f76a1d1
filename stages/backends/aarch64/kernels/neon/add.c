/* Addition and subtraction of 8-bit tensors with different scales, 16 elements at a time. */
#include "elementwise.h"

/* An input's scale, in every lane. `lowered` has all bits set where a right shift follows: halves are lowered before it. */
struct scale {
    int32x4_t left, multiplier, shift, lowered;
};

struct sixteen {
    int32x4_t a, b, c, d;
};

NEON_INLINE struct scale scale_of(int32_t left, int32_t multiplier, int32_t shift)
{
    return (struct scale){vdupq_n_s32(left), vdupq_n_s32(multiplier), vdupq_n_s32(shift), vdupq_n_s32(-(shift < 0))};
}

NEON_INLINE int32x4_t scaled(int32x4_t x, struct scale s)
{
    const int32x4_t high = vqrdmulhq_s32(vshlq_s32(x, s.left), s.multiplier);
    return vrshlq_s32(vsraq_n_s32(high, vandq_s32(high, s.lowered), 31), s.shift);
}

/* Sixteen elements without their zero point, on the common scale. */
NEON_INLINE struct sixteen widened(uint8x16_t x, uint8x16_t zero_point, struct scale s, int is_unsigned)
{
    int16x8_t low, high;
    if (is_unsigned) {
        low = vreinterpretq_s16_u16(vsubl_u8(vget_low_u8(x), vget_low_u8(zero_point)));
        high = vreinterpretq_s16_u16(vsubl_high_u8(x, zero_point));
    } else {
        const int8x16_t value = vreinterpretq_s8_u8(x), zero = vreinterpretq_s8_u8(zero_point);
        low = vsubl_s8(vget_low_s8(value), vget_low_s8(zero));
        high = vsubl_high_s8(value, zero);
    }
    return (struct sixteen){scaled(vmovl_s16(vget_low_s16(low)), s), scaled(vmovl_high_s16(low), s),
                            scaled(vmovl_s16(vget_low_s16(high)), s), scaled(vmovl_high_s16(high), s)};
}

NEON_INLINE int32x4_t sum(int32x4_t a, int32x4_t b, int32x4_t multiplier, int32x4_t shift, int subtract)
{
    return neon_scale_halves(subtract ? vsubq_s32(a, b) : vaddq_s32(a, b), multiplier, shift);
}

NEON_INLINE uint8x16_t added(uint8x16_t x0, uint8x16_t x1, const struct neon_add *v, int is_unsigned, int subtract)
{
    const struct sixteen s0 = widened(x0, vdupq_n_u8((uint8_t)v->zero_point0),
                                      scale_of(v->left_shift, v->multiplier0, v->shift0), is_unsigned);
    const struct sixteen s1 = widened(x1, vdupq_n_u8((uint8_t)v->zero_point1),
                                      scale_of(v->left_shift, v->multiplier1, v->shift1), is_unsigned);
    const int32x4_t m = vdupq_n_s32(v->multiplier), s = vdupq_n_s32(v->shift);
    return neon_narrow_16(sum(s0.a, s1.a, m, s, subtract), sum(s0.b, s1.b, m, s, subtract), sum(s0.c, s1.c, m, s, subtract),
                          sum(s0.d, s1.d, m, s, subtract), &v->output);
}

/* If the count is not a multiple of 16, the last 16 elements overlap the others. They are computed first and stored last, because y may be
 * the memory of an input.
 */
NEON_INLINE void add(const uint8_t *x0, const uint8_t *x1, uint8_t *y, int32_t count, const struct neon_add *parameters,
                     int is_unsigned, int subtract)
{
    const struct neon_add v = *parameters; /* local copy: y may alias it */
    const uint8x16_t last = added(vld1q_u8(x0 + count - 16), vld1q_u8(x1 + count - 16), &v, is_unsigned, subtract);
    for (int32_t i = 0; i < count - 16; i += 16) {
        vst1q_u8(y + i, added(vld1q_u8(x0 + i), vld1q_u8(x1 + i), &v, is_unsigned, subtract));
    }
    vst1q_u8(y + count - 16, last);
}

void neon_add_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, const void *parameters)
{
    add((const uint8_t *)x0, (const uint8_t *)x1, y, count, parameters, 0, 0);
}

void neon_add_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, const void *parameters)
{
    add(x0, x1, y, count, parameters, 1, 0);
}

void neon_sub_s8(const int8_t *x0, const int8_t *x1, void *y, int32_t count, const void *parameters)
{
    add((const uint8_t *)x0, (const uint8_t *)x1, y, count, parameters, 0, 1);
}

void neon_sub_u8(const uint8_t *x0, const uint8_t *x1, void *y, int32_t count, const void *parameters)
{
    add(x0, x1, y, count, parameters, 1, 1);
}
