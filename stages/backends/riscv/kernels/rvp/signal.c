/* TFLM's signal operators on frames of int16, a register at a time. */
#include "signal.h"

#include "auto_scale.h"
#include "rvp_intrinsics.h"

enum { HALVES = RVP_WORD_BYTES / 2 };

void rvp_window(const int16_t *x, const int16_t *weights, int16_t *y, int32_t frames, int32_t size, int32_t first, int32_t last)
{
    for (; frames > 0; frames--) {
        const int16_t *const start = x, *w = weights;
        int16_t *const to = y;
        for (const int16_t *const end = x + (size & -4 * HALVES); x != end; x += 4 * HALVES, w += 4 * HALVES, y += 4 * HALVES) {
#pragma GCC unroll 4
            for (int i = 0; i < 4 * HALVES; i += HALVES)
                rvp_store(y + i, rvp_khm16(rvp_load(x + i), rvp_load(w + i)));
        }
        for (const int16_t *const end = start + size; x != end;)
            *y++ = (int16_t)(*x++ * *w++ >> 15);
        for (int32_t i = first; i < last; i++)
            to[i] = start[i];
    }
}

/* Return the largest of all halves that are 0 or more. */
RVP_INLINE int32_t largest_half(rvp_word most)
{
#if __riscv_xlen == 64
    most = rvp_smax16(most, most >> 32);
#endif
    return (int16_t)rvp_smax16(most, most >> 16);
}

RVP_INLINE int32_t least_half(rvp_word least)
{
#if __riscv_xlen == 64
    least = rvp_smin16(least, least >> 32);
#endif
    return (int16_t)rvp_smin16(least, least >> 16);
}

void rvp_scale_bits(const int16_t *x, int32_t *bits, int32_t frames, int32_t size, int32_t ignored)
{
    for (; frames > 0; frames--) {
        const int16_t *const start = x;
        rvp_word most = 0, least = 0;
        for (const int16_t *const last = x + (size & -4 * HALVES); x != last; x += 4 * HALVES) {
#pragma GCC unroll 4
            for (int i = 0; i < 4 * HALVES; i += HALVES) {
                most = rvp_smax16(most, rvp_load(x + i));
                least = rvp_smin16(least, rvp_load(x + i));
            }
        }
        for (const int16_t *const last = start + size; x != last; x++) {
            most = rvp_smax16(most, (uint16_t)*x);
            least = rvp_smin16(least, (uint16_t)*x);
        }
        const int32_t high = largest_half(most), low = least_half(least);
        *bits++ = low == INT16_MIN ? fl_scale_bits_of_lowest(start, size, ignored)
                                   : fl_scale_bits((uint32_t)(high > -low ? high : -low));
    }
}

void rvp_scale_up(const int16_t *x, const int32_t *bits, int16_t *y, int32_t frames, int32_t size)
{
    for (; frames > 0; frames--, bits++) {
        const uint32_t shift = (uint32_t)*bits < 16 ? (uint32_t)*bits : 0;
        const rvp_word kept = (rvp_word) - (intptr_t)((uint32_t)*bits < 16); /* all bits, or none */
        const int16_t *const end = x + size;
        for (const int16_t *const last = x + (size & -4 * HALVES); x != last; x += 4 * HALVES, y += 4 * HALVES) {
#pragma GCC unroll 4
            for (int i = 0; i < 4 * HALVES; i += HALVES)
                rvp_store(y + i, rvp_sll16(rvp_load(x + i), shift) & kept);
        }
        while (x != end)
            *y++ = (int16_t)((uint32_t)*x++ << shift & kept);
    }
}

/* In each lane. 2^31 wraps, which is correct as uint32. */
RVP_INLINE rvp_word energies(rvp_word z)
{
    return rvp_add32(rvp_smbb16(z, z), rvp_smtt16(z, z));
}

RVP_INLINE uint32_t energy(const int16_t *z)
{
    return (uint32_t)(z[0] * z[0]) + (uint32_t)(z[1] * z[1]);
}

__attribute__((optimize("no-tree-loop-distribute-patterns"))) /* a call of memset costs more than a few stores */
void rvp_energy(const int16_t *x, uint32_t *y, int32_t frames, int32_t bins, int32_t start, int32_t end)
{
    for (; frames > 0; frames--, x += 2 * bins, y += bins) {
        int32_t i = 0;
        for (; i < start; i++)
            y[i] = 0;
        for (; (uintptr_t)(y + i) % RVP_WORD_BYTES != 0 && i < end; i++) /* x is aligned whenever y is */
            y[i] = energy(x + 2 * i);
        const int16_t *z = x + 2 * i;
        uint32_t *to = y + i;
        for (; i < end - 4 * RVP_LANES + 1; i += 4 * RVP_LANES, z += 8 * RVP_LANES, to += 4 * RVP_LANES) {
#pragma GCC unroll 4
            for (int j = 0; j < 4 * RVP_LANES; j += RVP_LANES)
                rvp_store(to + j, energies(rvp_load(z + 2 * j)));
        }
        for (; i < end; i++)
            y[i] = energy(x + 2 * i);
        for (; i < bins; i++)
            y[i] = 0;
    }
}
