/* Products of two matrices: 4 rows times 4 units, a register of the depth at a time: 8 loads for 16 smaqa. */
#include "matmul.h"

#include <stdbool.h>

#include "depthwise_pixels.h"
#include "scaled_sums.h"

#define MM_ROWS 4
#define MM_UNITS 4
#define MM_CHUNK RVP_WORD_BYTES
typedef int8_t mm_element;

RVP_INLINE void mm_chunk(int8_t *to, const int8_t *from, int32_t less)
{
    (void)less;
    if (((uintptr_t)from & (RVP_WORD_BYTES - 1)) == 0) {
        rvp_store(to, rvp_load(from));
    } else {
#pragma GCC unroll 8
        for (int32_t e = 0; e < RVP_WORD_BYTES; e++) {
            to[e] = from[e];
        }
    }
}

/* Four rows, of RV64 eight, whose lower four lie in the lower lanes. */
RVP_INLINE bool mm_columns(int8_t *to, const int8_t *from, int32_t step, int32_t less)
{
    (void)less;
    if ((((uintptr_t)from | (uintptr_t)step) & 3) != 0) {
        return false;
    }
    rvp_word a = rvp_load_lane(from), b = rvp_load_lane(from + step);
    rvp_word c = rvp_load_lane(from + 2 * step), d = rvp_load_lane(from + 3 * step);
#if __riscv_xlen == 64
    from += 4 * step;
    a = rvp_pack(a, rvp_load_lane(from));
    b = rvp_pack(b, rvp_load_lane(from + step));
    c = rvp_pack(c, rvp_load_lane(from + 2 * step));
    d = rvp_pack(d, rvp_load_lane(from + 3 * step));
#endif
    transpose(&a, &b, &c, &d);
    rvp_store(to, a);
    rvp_store(to + W, b);
    rvp_store(to + 2 * W, c);
    rvp_store(to + 3 * W, d);
    return true;
}

/* Both lanes. */
RVP_INLINE int32_t lanes_of(rvp_word sum)
{
#if __riscv_xlen == 64
    sum += sum >> 32;
#endif
    return (int32_t)(uint32_t)sum;
}

RVP_INLINE void mm_sums(const int8_t *packed, int32_t group, int32_t chunks, int32_t *sums)
{
    const rvp_word ones = rvp_splat8(1);
    for (int32_t v = 0; v < group; v++) {
        const int8_t *at = packed + v * RVP_WORD_BYTES;
        rvp_word sum = 0;
        for (int32_t c = 0; c < chunks; c++) {
            sum = rvp_smaqa(sum, rvp_load(at), ones);
            at += group * RVP_WORD_BYTES;
        }
        sums[v] = lanes_of(sum);
    }
}

struct four {
    rvp_word a, b, c, d;
};

RVP_INLINE void multiply(struct four *row, rvp_word x, const struct four *w)
{
    row->a = rvp_smaqa(row->a, x, w->a);
    row->b = rvp_smaqa(row->b, x, w->b);
    row->c = rvp_smaqa(row->c, x, w->c);
    row->d = rvp_smaqa(row->d, x, w->d);
}

RVP_INLINE void put(int32_t *sums, const struct four *row)
{
    sums[0] = lanes_of(row->a);
    sums[1] = lanes_of(row->b);
    sums[2] = lanes_of(row->c);
    sums[3] = lanes_of(row->d);
}

RVP_INLINE void mm_tile(const int8_t *x, const int8_t *w, int32_t chunks, int32_t *sums, int32_t pitch)
{
    struct four r0 = {0, 0, 0, 0}, r1 = r0, r2 = r0, r3 = r0;
    for (const int8_t *const end = x + chunks * 4 * W; x != end; x += 4 * W) {
        const struct four own = {rvp_load(w), rvp_load(w + W), rvp_load(w + 2 * W), rvp_load(w + 3 * W)};
        multiply(&r0, rvp_load(x), &own);
        multiply(&r1, rvp_load(x + W), &own);
        multiply(&r2, rvp_load(x + 2 * W), &own);
        multiply(&r3, rvp_load(x + 3 * W), &own);
        w += 4 * W;
    }
    put(sums, &r0);
    put(sums + pitch, &r1);
    put(sums + 2 * pitch, &r2);
    put(sums + 3 * pitch, &r3);
}

/* The sums in a register as 15 bits; `rounder` is 2^(31 - right): a product that shifts. */
RVP_INLINE rvp_word finished(const int32_t *sums, const int32_t *bias, rvp_word offset, rvp_word multiplier, rvp_word rounder)
{
    const rvp_word total = rvp_add32(rvp_add32(rvp_load(sums), rvp_load(bias)), offset);
    const rvp_word high = rvp_kwmmul_u(total, multiplier);
    return rvp_sclip32_14(rvp_kwmmul_u(rvp_add32(high, rvp_sign32(high)), rounder));
}

/* Four results in the lower lane. */
RVP_INLINE rvp_word four_bytes(const int32_t *sums, const int32_t *bias, rvp_word offset, rvp_word multiplier, rvp_word rounder,
                               rvp_word zero_point)
{
#if __riscv_xlen == 64
    const rvp_word ab = finished(sums, bias, offset, multiplier, rounder);
    const rvp_word cd = finished(sums + 2, bias + 2, offset, multiplier, rounder);
    const rvp_word acbd = rvp_kslli16_8(rvp_add16(rvp_pkbb16(cd, ab), zero_point)) >> 8 & 0x00ff00ff00ff00ffu;
    return acbd | acbd >> 24;
#else
    const rvp_word a = finished(sums, bias, offset, multiplier, rounder), b = finished(sums + 1, bias + 1, offset, multiplier, rounder);
    const rvp_word c = finished(sums + 2, bias + 2, offset, multiplier, rounder);
    return narrow_sums(a, b, c, finished(sums + 3, bias + 3, offset, multiplier, rounder), zero_point);
#endif
}

#include "matmul_image.h"

RVP_INLINE void mm_finish(int8_t *y, const int32_t *sums, const int32_t *bias, int32_t offset, int32_t count,
                          const struct fl_matmul_image *p)
{
    const rvp_word multiplier = rvp_splat32(p->multiplier), rounder = rvp_splat32((int32_t)1 << (31 + p->shift));
    const rvp_word beside = rvp_splat32(offset), zero_point = rvp_splat16(p->zero_point);
    const rvp_word low = rvp_splat8(p->low), high = rvp_splat8(p->high);
    if (((uintptr_t)y & 3) == 0) {
        for (; count >= 4; count -= 4, y += 4, sums += 4, bias += 4) {
            const rvp_word bytes = four_bytes(sums, bias, beside, multiplier, rounder, zero_point);
            rvp_store_lane(y, rvp_smin8(rvp_smax8(bytes, low), high));
        }
    }
    for (; count > 0; count -= 4, y += 4, sums += 4, bias += 4) {
        rvp_word bytes = four_bytes(sums, bias, beside, multiplier, rounder, zero_point);
        bytes = rvp_smin8(rvp_smax8(bytes, low), high);
        for (int32_t u = 0; u < count && u < 4; u++) {
            y[u] = (int8_t)(bytes >> 8 * u);
        }
    }
}

void rvp_matmul_s8(const int8_t *x, const int8_t *w, int8_t *y, int32_t *scratch, const void *parameters)
{
    mm_product(x, w, y, scratch, parameters);
}
