/* Converts sums in 32-bit lanes to bytes, for C. */
#pragma once

#include "rvp_intrinsics.h"

/* How a group of channels is requantized: rounding.py. EXACT is for any shift, one lane after the other. */
enum rounding { SHORT, WIDE, EXACT };

/* From the marks in the group's first two rounders: packing.py. */
RVP_INLINE enum rounding rounding_of(rvp_word first, rvp_word second)
{
    return (intptr_t)first >= 0 ? SHORT : (intptr_t)second >= 0 ? WIDE : EXACT;
}

RVP_INLINE rvp_word without_mark(rvp_word rounder)
{
    return rounder & ((rvp_word)-1 >> 1);
}

/* Scales one lane, saturated to 15 bits; the rounder is the shift plus 64. It is shifted left, multiplied as kwmmul.u does, and
 * shifted right with halves away from zero.
 */
static int32_t scale_lane(int32_t sum, int32_t multiplier, int32_t rounder)
{
    const int shift = (rounder & 127) - 64, left = shift > 0 ? shift : 0;
    int64_t x = ((int64_t)(int32_t)((uint32_t)sum << left) * multiplier + ((int64_t)1 << 30)) >> 31;
    if (shift < 0) {
        x = (x + ((int64_t)1 << (-shift - 1)) - (x < 0)) >> -shift;
    }
    const int64_t most = (1 << 14) - 1;
    return (int32_t)(x > most ? most : x < -most - 1 ? -most - 1 : x);
}

RVP_INLINE rvp_word scale_sum(rvp_word sum, rvp_word multiplier, rvp_word rounder, enum rounding rounding)
{
    if (rounding == EXACT) {
        rvp_word scaled = (uint32_t)scale_lane((int32_t)sum, (int32_t)multiplier, (int32_t)rounder);
#if __riscv_xlen == 64
        const int32_t upper = scale_lane((int32_t)(sum >> 32), (int32_t)(multiplier >> 32), (int32_t)(rounder >> 32));
        scaled |= (rvp_word)(uint32_t)upper << 32;
#endif
        return scaled;
    }
    const rvp_word high = rvp_kwmmul_u(sum, multiplier);
    if (rounding == WIDE) {
        return rvp_sclip32_14(rvp_kwmmul_u(rvp_add32(high, rvp_sign32(high)), rounder));
    }
    return rvp_smmul_u(high, rounder);
}

/* Four scaled sums plus the zero point (in every 16-bit lane), saturated to int8: the bytes of each lane in order. */
RVP_INLINE rvp_word narrow_sums(rvp_word c0, rvp_word c1, rvp_word c2, rvp_word c3, rvp_word zero_point)
{
    const rvp_word even = rvp_kslli16_8(rvp_add16(rvp_pkbb16(c2, c0), zero_point));
    const rvp_word odd = rvp_kslli16_8(rvp_add16(rvp_pkbb16(c3, c1), zero_point));
    return rvp_select_bits(rvp_splat16(0xff00), odd, even >> 8);
}
