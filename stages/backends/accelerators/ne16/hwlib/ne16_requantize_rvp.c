#include "ne16_core.h"

#if defined(__riscv_xlen) && __riscv_xlen == 32
#include "rvp_intrinsics.h"

/* Four channels of all pixels: their multipliers and rounders stay in registers. A rounder is p of
 * (t * p + 2^31) >> 32, which rounds t as TFLite does (stages/backends/kernels/rounding.py).
 *
 * Results are int8 first: saturation clamps to -128 to 127. For uint8 and other bounds, the zero point flips the top bits
 * before, and `flip` flips them back after.
 */
struct lanes {
    rvp_word zero_point, low, high, flip;
};

RVP_INLINE rvp_word scaled(int32_t sum, int32_t multiplier, int32_t rounder, int single)
{
    const rvp_word first = single ? (rvp_word)(uint32_t)((int64_t)sum * multiplier >> 32)
                                  : rvp_kwmmul_u((rvp_word)(uint32_t)sum, (rvp_word)(uint32_t)multiplier);
    return rvp_smmul_u(first, (rvp_word)(uint32_t)rounder);
}

struct scales {
    int32_t m0, m1, m2, m3, r0, r1, r2, r3;
};

RVP_INLINE struct scales scales_at(const int32_t *m, const int32_t *r)
{
    return (struct scales){m[0], m[1], m[2], m[3], r[0], r[1], r[2], r[3]};
}

RVP_INLINE void put_four(const int32_t *sum, uint8_t *to, const struct scales s, const struct lanes by, int single,
                         int clamps)
{
    const int32_t s0 = sum[0], s1 = sum[1], s2 = sum[2], s3 = sum[3];
    const rvp_word even = rvp_pack(scaled(s0, s.m0, s.r0, single), scaled(s2, s.m2, s.r2, single));
    const rvp_word odd = rvp_pack(scaled(s1, s.m1, s.r1, single), scaled(s3, s.m3, s.r3, single));
    const rvp_word e = rvp_kslli16_8(rvp_add16(even, by.zero_point)), o = rvp_kslli16_8(rvp_add16(odd, by.zero_point));
    rvp_word bytes = rvp_select_bits(rvp_splat16(0xff00), o, e >> 8);

    if (clamps)
        bytes = rvp_smin8(rvp_smax8(bytes, by.low), by.high);
    *(rvp_memory *)(void *)to = bytes ^ by.flip;
}

RVP_INLINE void four(const int32_t *sum, uint8_t *to, const int32_t *m, const int32_t *r,
                     const struct ne16_requantizer *v, const struct lanes *by, int single, int clamps)
{
    const struct scales s = scales_at(m, r);
    const struct lanes lanes = *by;
    const int32_t step = v->channels, to_pixel = v->to_pixel;

    for (int32_t left = v->pixels; left > 0; left--, sum += step, to += to_pixel)
        put_four(sum, to, s, lanes, single, clamps);
}

/* A single pixel: no register keeps a value for the next pixel. */
RVP_INLINE void one(const int32_t *sum, uint8_t *to, const int32_t *m, const int32_t *r, int32_t channels,
                    const struct lanes *by, int single, int clamps)
{
    const struct lanes lanes = *by;

    for (const uint8_t *end = to + channels; to != end; sum += 4, to += 4, m += 4, r += 4)
        put_four(sum, to, scales_at(m, r), lanes, single, clamps);
}

RVP_INLINE void all(const int32_t *sums, uint8_t *to, const char *constants, const struct ne16_requantizer *v,
                    const struct lanes *by, int single, int clamps)
{
    const int32_t *m = (const int32_t *)(const void *)(constants + v->multipliers);
    const int32_t *r = (const int32_t *)(const void *)(constants + v->rounders);

    if (v->pixels == 1) {
        one(sums, to, m, r, v->channels, by, single, clamps);
        return;
    }
    for (int32_t c = 0; c < v->channels; c += 4)
        four(sums + c, to + c, m + c, r + c, v, by, single, clamps);
}

void ne16_requantize_rvp(const void *sums, void *to, const void *constants, const int32_t *requantizer)
{
    const struct ne16_requantizer *v = (const struct ne16_requantizer *)requantizer;
    const int32_t lowered = v->is_unsigned ? 128 : 0;
    const struct lanes by = {
        rvp_splat16(v->zero_point - lowered),
        rvp_splat8(v->low - lowered),
        rvp_splat8(v->high - lowered),
        rvp_splat8(lowered),
    };
    const int clamps = v->high - v->low != 255;

    if (v->single) {
        all(sums, to, constants, v, &by, 1, 1);
    } else if (clamps) {
        all(sums, to, constants, v, &by, 0, 1);
    } else {
        all(sums, to, constants, v, &by, 0, 0);
    }
}
#endif
