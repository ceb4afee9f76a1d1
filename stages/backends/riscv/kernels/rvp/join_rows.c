#include "join_rows.h"

#include "rvp_intrinsics.h"

enum { W = RVP_WORD_BYTES };

RVP_INLINE void put_bytes(int8_t *to, rvp_word x, int count)
{
    for (; count > 0; count--) {
        *to++ = (int8_t)x;
        x >>= 8;
    }
}

/* Only whole registers are written. `held` has the first `bits` bits of the next register; the first register begins with the
 * unchanged bytes before `to`. The rest at the end is written byte by byte.
 */
void rvp_join_rows(const void *from, void *to, int count, int width, int columns)
{
    const int8_t *row = (const int8_t *)from;
    const int whole = columns & -W, left = 8 * (columns & (W - 1));
    const rvp_word mask = ((rvp_word)1 << left) - 1;
    const uintptr_t before = (uintptr_t)to & (W - 1);
    uintptr_t bits = 8 * before;
    int8_t *out = (int8_t *)to - before;
    rvp_word held = before != 0 ? rvp_load(out) & (((rvp_word)1 << bits) - 1) : 0;
    for (; count > 0; count--) {
        const int8_t *at = row;
        for (const int8_t *const end = row + whole; at != end; at += W) {
            const rvp_word x = rvp_load(at);
            rvp_store(out, held | rvp_sll(x, bits));
            held = rvp_srl(x >> 1, ~bits);
            out += W;
        }
        if (left != 0) {
            const rvp_word x = rvp_load(at) & mask;
            held |= rvp_sll(x, bits);
            bits += (uintptr_t)left;
            if (bits >= 8 * W) {
                rvp_store(out, held);
                bits -= 8 * W;
                held = rvp_srl(x, (uintptr_t)left - bits);
                out += W;
            }
        }
        row += width;
    }
    put_bytes(out, held, (int)bits / 8);
}
