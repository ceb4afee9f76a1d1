/* Requantization of vectors, exact to the bit with the reference. neon_requantize.h describes the arithmetic. */
#pragma once

#include <arm_neon.h>

#define NEON_INLINE static inline __attribute__((always_inline))

/* As in neon_requantize.h. */
enum { NEON_HALVES, NEON_SHIFTS, NEON_ONCE };

NEON_INLINE int32x4_t neon_scale_halves(int32x4_t x, int32x4_t multiplier, int32x4_t shift)
{
    const int32x4_t high = vqrdmulhq_s32(x, multiplier);
    return vrshlq_s32(vsraq_n_s32(high, high, 31), shift);
}

NEON_INLINE int32x4_t neon_scale_shifts(int32x4_t x, int32x4_t multiplier, int32x4_t shift)
{
    const int32x4_t none = vdupq_n_s32(0);
    const int32x4_t high = vqrdmulhq_s32(vshlq_s32(x, vmaxq_s32(shift, none)), multiplier);
    const int32x4_t lowered = vsraq_n_s32(high, vandq_s32(high, vshrq_n_s32(shift, 31)), 31);
    return vrshlq_s32(lowered, vminq_s32(shift, none));
}

/* `shift` is the operator's minus 31. */
NEON_INLINE int32x4_t neon_scale_once(int32x4_t x, int32x4_t multiplier, int32x4_t shift)
{
    const int64x2_t low = vmull_s32(vget_low_s32(x), vget_low_s32(multiplier));
    const int64x2_t high = vmull_high_s32(x, multiplier);
    const int64x2_t low_shift = vmovl_s32(vget_low_s32(shift)), high_shift = vmovl_high_s32(shift);
    return vmovn_high_s64(vmovn_s64(vrshlq_s64(low, low_shift)), vrshlq_s64(high, high_shift));
}

NEON_INLINE int32x4_t neon_scale(int32x4_t x, int32x4_t multiplier, int32x4_t shift, int mode)
{
    if (mode == NEON_HALVES) {
        return neon_scale_halves(x, multiplier, shift);
    }
    return mode == NEON_SHIFTS ? neon_scale_shifts(x, multiplier, shift) : neon_scale_once(x, multiplier, shift);
}

/* Zero point, lowest and highest value as int8, and the byte that is xored into each result: 0x80 for uint8, else 0. */
struct neon_output {
    int16_t zero_point[8];
    int8_t low[16], high[16];
    uint8_t flip[16];
};

NEON_INLINE uint8x16_t neon_finish_16(int16x8_t a, int16x8_t b, const struct neon_output *o)
{
    const int16x8_t zero_point = vld1q_s16(o->zero_point);
    const int8x16_t narrow = vqmovn_high_s16(vqmovn_s16(vqaddq_s16(a, zero_point)), vqaddq_s16(b, zero_point));
    const int8x16_t clamped = vminq_s8(vmaxq_s8(narrow, vld1q_s8(o->low)), vld1q_s8(o->high));
    return veorq_u8(vreinterpretq_u8_s8(clamped), vld1q_u8(o->flip));
}

NEON_INLINE uint8x8_t neon_finish_8(int16x8_t a, const struct neon_output *o)
{
    const int8x8_t narrow = vqmovn_s16(vqaddq_s16(a, vld1q_s16(o->zero_point)));
    const int8x8_t clamped = vmin_s8(vmax_s8(narrow, vld1_s8(o->low)), vld1_s8(o->high));
    return veor_u8(vreinterpret_u8_s8(clamped), vld1_u8(o->flip));
}

/* Scaled sums to 16 bytes. Intermediate saturation has no other effect than the final clamp. */
NEON_INLINE uint8x16_t neon_narrow_16(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d, const struct neon_output *o)
{
    return neon_finish_16(vqmovn_high_s32(vqmovn_s32(a), b), vqmovn_high_s32(vqmovn_s32(c), d), o);
}

NEON_INLINE uint8x8_t neon_narrow_8(int32x4_t a, int32x4_t b, const struct neon_output *o)
{
    return neon_finish_8(vqmovn_high_s32(vqmovn_s32(a), b), o);
}
