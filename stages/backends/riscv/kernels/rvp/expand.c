/* Only whole registers are stored. `held` has the first `bits` bits of the next register; its other bits are 0. */
#include "expand.h"

#include "rvp_intrinsics.h"

enum { W = RVP_WORD_BYTES, BITS = 8 * W };

/* Where bytes are appended. */
struct stream {
    int8_t *to;
    rvp_word held;
    uintptr_t bits;
};

/* Appends the low `added` bits (1 to BITS) of `bytes`; its other bits are 0. */
RVP_INLINE void append(struct stream *s, rvp_word bytes, uintptr_t added)
{
    s->held |= rvp_sll(bytes, s->bits);
    s->bits += added;
    if (s->bits >= BITS) {
        rvp_store(s->to, s->held);
        s->to += W;
        s->bits -= BITS;
        s->held = rvp_srl(bytes >> 1, added - 1 - s->bits);
    }
}

RVP_INLINE void finish(const struct stream *s)
{
    if (s->bits != 0) {
        rvp_store(s->to, s->held);
    }
}

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

/* Less than a register of each value, two values at once if both fit. */
RVP_INLINE void spread_few(const uint8_t *from, int8_t *to, int count, int times)
{
    const uintptr_t added = 8 * (uintptr_t)times;
    const rvp_word ones = rvp_splat8(1) & (((rvp_word)1 << added) - 1);
    struct stream s = {.to = to};
    const uint8_t *const last = from + count;
    if (2 * added < BITS) {
        for (const uint8_t *const end = from + (count & -2); from != end; from += 2) {
            append(&s, (from[0] | (rvp_word)from[1] << added) * ones, 2 * added);
        }
    }
    for (; from != last; from++) {
        append(&s, *from * ones, added);
    }
    finish(&s);
}

/* More than a register of each value. */
RVP_INLINE void spread_many(const uint8_t *from, int8_t *to, int count, int times)
{
    struct stream s = {.to = to};
    for (const uint8_t *const last = from + count; from != last; from++) {
        const rvp_word all = rvp_splat8(*from);
        rvp_store(s.to, s.held | rvp_sll(all, s.bits));
        s.bits += 8 * (uintptr_t)times;
        const int8_t *const end = s.to + (s.bits / BITS) * W;
        for (s.to += W; s.to != end; s.to += W) {
            rvp_store(s.to, all);
        }
        s.bits %= BITS;
        s.held = rvp_srl(all >> 1, ~s.bits);
    }
    finish(&s);
}

void rvp_spread(const void *x, void *y, int32_t count, int32_t times)
{
    if (times % W == 0) {
        spread_registers(x, y, count, times);
    } else if (2 * times == W) {
        spread_halves(x, y, count);
    } else if (times < W) {
        spread_few(x, y, count, times);
    } else {
        spread_many(x, y, count, times);
    }
}

/* A run that may begin within a register, as registers of it.
 *
 * from    the register with its first byte, which is `shift` bits in
 * last    the register with its last byte; no later register is read
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
    struct stream s = {.to = y};
    const int whole = (bytes - 1) & -W;
    const uintptr_t rest = 8 * (uintptr_t)(bytes - whole); /* 8 to BITS */
    const rvp_word mask = ~(rvp_word)0 >> (BITS - rest);
    for (; blocks > 0; blocks--, block += bytes) {
        const struct run run = run_of(block, bytes);
        /* The block's first register without bytes of other blocks. After one cycle, registers repeat. */
        const int8_t *const begin = s.bits != 0 ? s.to + W : s.to;
        int left = times;
        for (; left > 0 && s.to - begin < cycle; left--) {
            const int8_t *from = run.from;
            rvp_word low = rvp_load(from);
            for (const int8_t *const end = from + whole; from != end; s.to += W) {
                from += W;
                const rvp_word high = rvp_load(from), bytes_of = joined(low, high, run.shift);
                rvp_store(s.to, s.held | rvp_sll(bytes_of, s.bits));
                s.held = rvp_srl(bytes_of >> 1, ~s.bits);
                low = high;
            }
            append(&s, joined(low, rvp_load(run.last), run.shift) & mask, rest);
        }
        if (left > 0) {
            const int more = (int)(s.bits / 8) + left * bytes;
            for (const int8_t *const end = s.to + (more & -W); s.to != end; s.to += W) {
                rvp_store(s.to, rvp_load(s.to - cycle));
            }
            s.bits = 8 * (uintptr_t)(more & (W - 1));
            s.held = rvp_load(s.to - cycle) & (((rvp_word)1 << s.bits) - 1);
        }
    }
    finish(&s);
}
