/* Registers are stored whole: `held` has the bits, `bits` of them, that the next one begins with; all others are 0. */
#include "expand.h"

#include "rvp_intrinsics.h"

enum { W = RVP_WORD_BYTES, BITS = 8 * W };

/* Whole registers of each value. */
RVP_INLINE void spread_registers(const uint8_t *from, int8_t *to, int count, int times)
{
    for (const uint8_t *const last = from + count; from != last; from++) {
        const rvp_word all = rvp_splat8(*from);
        for (const int8_t *const end = to + times; to != end; to += W) {
            rvp_store(to, all);
        }
    }
}

/* Two values in each register. */
RVP_INLINE void spread_halves(const uint8_t *from, int8_t *to, int count)
{
    const rvp_word ones = rvp_splat8(1) >> BITS / 2;
    for (const uint8_t *const last = from + (count & -2); from != last; from += 2, to += W) {
        rvp_store(to, (from[0] | (rvp_word)from[1] << BITS / 2) * ones);
    }
    if ((count & 1) != 0) {
        rvp_store(to, *from * ones);
    }
}

void rvp_spread(const void *x, void *y, int32_t count, int32_t times)
{
    const uint8_t *from = x;
    int8_t *to = y;
    if (times % W == 0) {
        spread_registers(from, to, count, times);
        return;
    }
    if (2 * times == W) {
        spread_halves(from, to, count);
        return;
    }
    const rvp_word first = times < W ? ((rvp_word)1 << 8 * times) - 1 : ~(rvp_word)0;
    const uintptr_t added = 8 * (uintptr_t)times;
    rvp_word held = 0;
    uintptr_t bits = 0;
    for (const uint8_t *const last = from + count; from != last; from++) {
        const rvp_word all = rvp_splat8(*from);
        held |= rvp_sll(all & first, bits);
        bits += added;
        if (bits >= BITS) {
            rvp_store(to, held);
            to += W;
            for (bits -= BITS; bits >= BITS; bits -= BITS) {
                rvp_store(to, all);
                to += W;
            }
            held = rvp_srl(all >> 1, ~bits);
        }
    }
    if (bits != 0) {
        rvp_store(to, held);
    }
}

/* A run that may begin within a register, as registers of it.
 *
 * from    the register with its first byte, which is `shift` bits in
 * last    the register with its last byte; no other is read behind it
 */
struct run {
    const int8_t *from, *last;
    uintptr_t shift;
};

RVP_INLINE struct run run_of(const int8_t *x, int bytes)
{
    const uintptr_t first = (uintptr_t)x, last = first + (uintptr_t)bytes - 1;
    return (struct run){(const int8_t *)(first & -(uintptr_t)W), (const int8_t *)(last & -(uintptr_t)W), 8 * first};
}

/* The register of a run that begins in `low` and ends in `high`. Shifting by one and then by the rest gives 0 where runs begin
 * with registers. */
RVP_INLINE rvp_word joined(rvp_word low, rvp_word high, uintptr_t shift)
{
    return rvp_srl(low, shift) | rvp_sll(high << 1, ~shift);
}

void rvp_repeat(const void *x, void *y, int32_t blocks, int32_t bytes, int32_t times, int32_t cycle)
{
    const int8_t *block = x;
    int8_t *to = y;
    rvp_word held = 0;
    uintptr_t bits = 0;
    const int whole = (bytes - 1) & -W;
    const uintptr_t rest = 8 * (uintptr_t)(bytes - whole); /* 8 to BITS */
    const rvp_word mask = ~(rvp_word)0 >> (BITS - rest);
    for (; blocks > 0; blocks--, block += bytes) {
        const struct run run = run_of(block, bytes);
        /* The block's first register that has nothing of the one before. */
        const int8_t *const begin = bits != 0 ? to + W : to;
        int left = times;
        for (; left > 0 && to - begin < cycle; left--) {
            const int8_t *from = run.from;
            rvp_word low = rvp_load(from);
            for (const int8_t *const end = from + whole; from != end; to += W) {
                from += W;
                const rvp_word high = rvp_load(from), bytes_of = joined(low, high, run.shift);
                rvp_store(to, held | rvp_sll(bytes_of, bits));
                held = rvp_srl(bytes_of >> 1, ~bits);
                low = high;
            }
            const rvp_word end = joined(low, rvp_load(run.last), run.shift) & mask;
            held |= rvp_sll(end, bits);
            bits += rest;
            if (bits >= BITS) {
                rvp_store(to, held);
                to += W;
                bits -= BITS;
                held = rvp_srl(end >> 1, rest - 1 - bits);
            }
        }
        /* From here on the block's registers are those of a cycle before. */
        if (left > 0) {
            const int more = (int)(bits / 8) + left * bytes;
            for (const int8_t *const end = to + (more & -W); to != end; to += W) {
                rvp_store(to, rvp_load(to - cycle));
            }
            bits = 8 * (uintptr_t)(more & (W - 1));
            held = rvp_load(to - cycle) & (((rvp_word)1 << bits) - 1);
        }
    }
    if (bits != 0) {
        rvp_store(to, held);
    }
}
