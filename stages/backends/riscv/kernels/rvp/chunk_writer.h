/* Copies activations into panels (panel.h) and strips (direct.h): chunks of four, repeated in every 32-bit lane, a
 * fixed step apart.
 */
#pragma once

#include "rvp_intrinsics.h"

enum { W = RVP_WORD_BYTES };

/* Writes one row of a panel or one pixel of all columns of a strip, chunk after chunk.
 *
 * step     bytes from a chunk to the next
 * adjust   whether activations are flipped (xor `flip`) and added up in `sum`; a constant where this is inlined
 */
struct writer {
    int8_t *to;
    int step;
    int adjust;
    rvp_word flip;
    rvp_word sum;
};

/* A register of activations: two chunks on RV64, one on RV32. */
RVP_INLINE void put_register(struct writer *w, rvp_word x)
{
    if (w->adjust) {
        x ^= w->flip;
        w->sum = rvp_smaqa(w->sum, x, rvp_splat8(1));
    }
    if (RVP_LANES == 1) {
        rvp_store(w->to, x);
        w->to += w->step;
    } else {
        rvp_store(w->to, rvp_pack(x, x));
        rvp_store(w->to + w->step, rvp_packu(x, x));
        w->to += 2 * w->step;
    }
}

/* One chunk: the low four bytes of x. */
RVP_INLINE void put_chunk(struct writer *w, rvp_word x)
{
    if (RVP_LANES == 1) {
        put_register(w, x);
        return;
    }
    if (w->adjust) {
        x = (uint32_t)(x ^ w->flip);
        w->sum = rvp_smaqa(w->sum, x, rvp_splat8(1));
    }
    rvp_store(w->to, rvp_pack(x, x));
    w->to += w->step;
}

RVP_INLINE void put_fill(struct writer *w, rvp_word fill, int bytes)
{
    for (; bytes > W - 4; bytes -= W) {
        put_register(w, fill);
    }
    if (bytes > 0) {
        put_chunk(w, fill);
    }
}

/* A run at a multiple of a register's size. */
RVP_INLINE void put_aligned_run(struct writer *w, const int8_t *from, int bytes)
{
    const int8_t *const end = from + bytes;
    while (end - from >= 4 * W) {
        put_register(w, rvp_load(from));
        put_register(w, rvp_load(from + W));
        put_register(w, rvp_load(from + 2 * W));
        put_register(w, rvp_load(from + 3 * W));
        from += 4 * W;
    }
    if (end - from >= 2 * W) {
        put_register(w, rvp_load(from));
        put_register(w, rvp_load(from + W));
        from += 2 * W;
    }
    while (end - from > W - 4) {
        put_register(w, rvp_load(from));
        from += W;
    }
    if (end > from) {
        put_chunk(w, rvp_load(from));
    }
}

/* A run that starts `offset` > 0 bytes into a register. Only registers that contain bytes of the run are loaded. */
RVP_INLINE void put_unaligned_run(struct writer *w, const int8_t *from, int offset, int bytes)
{
    const int shift = 8 * offset;
    const int8_t *next = from - offset + W;
    const int8_t *const end = from + bytes;
    rvp_word low = rvp_load(next - W) >> shift;
    for (; bytes > W - 4; bytes -= W) {
        rvp_word x = low;
        if (next < end) {
            low = rvp_load(next);
            x |= low << (8 * W - shift);
            low >>= shift;
            next += W;
        }
        put_register(w, x);
    }
    if (bytes > 0) {
        if (next < end) {
            low |= rvp_load(next) << (8 * W - shift);
        }
        put_chunk(w, low);
    }
}

/* A run at any address. If it begins at the upper lane of a register, the rest of it is aligned. */
RVP_INLINE void put_run(struct writer *w, const int8_t *from, int bytes)
{
    const int offset = (int)((uintptr_t)from & (W - 1));
    if (RVP_LANES == 2 && offset == 4) {
        put_chunk(w, rvp_load_lane(from));
        from += 4;
        bytes -= 4;
    } else if (offset != 0) {
        put_unaligned_run(w, from, offset, bytes);
        return;
    }
    put_aligned_run(w, from, bytes);
}

/* The position of a run in registers of memory: `shift` bits into `first`. ~shift is the rest, minus one, of a register. */
struct place {
    const int8_t *first;
    uintptr_t shift, rest;
};

RVP_INLINE struct place place_of(const int8_t *from)
{
    const uintptr_t address = (uintptr_t)from;
    return (struct place){(const int8_t *)(address & -(uintptr_t)W), address * 8, ~(address * 8)};
}

/* A run of at most four chunks, anywhere, without a branch; chunks and `one_over` are constants where this is inlined.
 *
 * Register i of the run is joined from registers i and i + 1 of memory. (Shifting by one and then by `rest` gives 0
 * where the run is aligned.) The last register to read has the run's last byte. If that is register i itself, it is
 * read twice, and the second copy is after the run's end. A run of whole registers and one more byte (`one_over`, such as
 * three pixels of three channels) does not need this.
 */
RVP_INLINE void put_short_run(struct writer *w, struct place p, const int8_t *last_byte, int chunks, int one_over)
{
    const int registers = (4 * chunks + W - 1) / W;
    rvp_word low = rvp_load(p.first);
#pragma GCC unroll 4
    for (int i = 0; i < registers; i++) {
        rvp_word next = 0;
        if (i + 1 < registers) {
            next = rvp_load(p.first + (i + 1) * W);
        } else if (!one_over) {
            next = rvp_load((const int8_t *)((uintptr_t)last_byte & -(uintptr_t)W));
        }
        rvp_word x = rvp_srl(low, p.shift);
        if (i + 1 < registers || !one_over) {
            x |= rvp_sll(next << 1, p.rest);
        }
        if ((i + 1) * W <= 4 * chunks) {
            put_register(w, x);
        } else {
            put_chunk(w, x);
        }
        low = next;
    }
}

/* The writer of the row whose first chunk is at `to`. */
RVP_INLINE struct writer writer_of(int8_t *to, int rows, int adjust, int flip)
{
    return (struct writer){.to = to, .step = rows * W, .adjust = adjust, .flip = rvp_splat8(flip)};
}
