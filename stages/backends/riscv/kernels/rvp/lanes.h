/* Elements of 8 bits as 32-bit lanes, and back. */
#pragma once

#include "rvp_intrinsics.h"

/* 32-bit lanes: element j of each four neighbours is in lane[j]. */
struct lanes {
    rvp_word lane[4];
};

/* The constants of a layer's results, the same in every lane. */
struct epilogue {
    rvp_word multiplier, rounder;        /* 32-bit lanes */
    rvp_word zero_point;                 /* 16-bit lanes */
    rvp_word lowest, highest, flip;      /* bytes */
};

/* `clip` is as in gemm_s8.S. */
RVP_INLINE struct epilogue epilogue_of(int32_t multiplier, int32_t rounder, int32_t clip)
{
    return (struct epilogue){
        rvp_splat32(multiplier), rvp_splat32(rounder),     rvp_splat16((int8_t)clip),
        rvp_splat8(clip >> 8),   rvp_splat8(clip >> 16), rvp_splat8(clip >> 24),
    };
}

/* To the output's scale: both roundings, halves away from zero, the zero point and the bounds. */
RVP_INLINE rvp_word finish(struct lanes t, const struct epilogue *e)
{
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const rvp_word high = rvp_kwmmul_u(t.lane[j], e->multiplier);
        t.lane[j] = rvp_kwmmul_u(rvp_add32(high, rvp_sign32(high)), e->rounder);
    }
    const rvp_word even = rvp_kslli16_8(rvp_add16(rvp_pkbb16(t.lane[2], t.lane[0]), e->zero_point));
    const rvp_word odd = rvp_kslli16_8(rvp_add16(rvp_pkbb16(t.lane[3], t.lane[1]), e->zero_point));
    const rvp_word bytes = rvp_select_bits(rvp_splat16(0xff00), odd, even >> 8);
    return rvp_smin8(rvp_smax8(bytes, e->lowest), e->highest) ^ e->flip;
}

/* Writes the first `count` bytes of a register, at most all. */
RVP_INLINE void store_last(int8_t *y, rvp_word bytes, int count)
{
    if (count == RVP_WORD_BYTES) {
        rvp_store(y, bytes);
        return;
    }
    for (; count > 0; count--) {
        *y++ = (int8_t)bytes;
        bytes >>= 8;
    }
}
