#include "mul.h"

#include "lanes.h"

enum { W = RVP_WORD_BYTES };

/* Products of 9-bit numbers: of the lower and of the upper 16-bit lanes. */
RVP_INLINE rvp_word products(rvp_word x0, rvp_word x1, rvp_word zero_point0, rvp_word zero_point1,
                             const struct epilogue *e)
{
    const rvp_word even0 = rvp_sub16(rvp_sunpkd820(x0), zero_point0);
    const rvp_word odd0 = rvp_sub16(rvp_sunpkd831(x0), zero_point0);
    const rvp_word even1 = rvp_sub16(rvp_sunpkd820(x1), zero_point1);
    const rvp_word odd1 = rvp_sub16(rvp_sunpkd831(x1), zero_point1);
    const struct lanes t = {{
        rvp_smbb16(even0, even1),
        rvp_smbb16(odd0, odd1),
        rvp_smtt16(even0, even1),
        rvp_smtt16(odd0, odd1),
    }};
    return finish(t, e);
}

void rvp_mul_s8(const void *x0, const void *x1, void *y, const int32_t *fields)
{
    const struct rvp_mul *const p = (const struct rvp_mul *)fields;
    const struct rvp_rows *const r = &p->rows;
    const rvp_word zero_point0 = rvp_splat16(p->zero_point0), zero_point1 = rvp_splat16(p->zero_point1);
    const struct epilogue e = epilogue_of(p->multiplier, p->rounder, p->clip);
    const int8_t *row0 = x0, *row1 = x1;
    int8_t *row_y = y;
    for (int row = 0; row < r->rows; row++, row0 += r->row0, row1 += r->row1, row_y += r->count) {
        rvp_word repeated0, repeated1;
        struct operand_reader a = reader_of(row0, r->step0, &repeated0), b = reader_of(row1, r->step1, &repeated1);
        int8_t *to = row_y, *const last = to + ((r->count - 1) & -W);
        for (;;) {
            const rvp_word bytes =
                products(rvp_load(a.from) ^ e.flip, rvp_load(b.from) ^ e.flip, zero_point0, zero_point1, &e);
            if (to == last) {
                store_last(to, bytes, r->count - (int)(last - row_y));
                break;
            }
            rvp_store(to, bytes);
            a.from += a.advance;
            b.from += b.advance;
            to += W;
        }
    }
}
