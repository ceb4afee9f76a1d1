/* Products of two matrices that are computed at run time, by product_program.py. The second matrix is packed like weights; the terms of the
 * zero points become its biases. The rows of the first are read in place.
 *
 *   sum of (x - z0) * (w - z1) = sum of x * w + bias + offset,   bias = z0 * (z1 * depth - S(w)),   offset = -z1 * S(x)
 *
 * S is the sum of the elements of a unit or a row. If the last block would have fewer units, it overlaps the one before it.
 */
#include "matmul.h"

#include "bytes.h"

typedef void mve_gemm(const int8_t *x, const int8_t *weights, const int32_t *params, void *y, int32_t rows, int32_t blocks,
                      const int32_t *fields, const int32_t *offsets);

mve_gemm mve_gemm_4_lowered_rest_offsets, mve_gemm_4_lowered_short_offsets;

enum {
    UNITS = 4,
    CHUNK = 16,
    HALF = 8,
    PANEL = 16,
    FIELDS = 7,
    WIDEST = UINT16_MAX / HALF, /* bytes between elements that are gathered: offsets have 16 bits */
};

/* Scratch has: the fields of the program; offsets of a panel's rows; the panel's outputs if a block has more channels than there are units;
 * [blocks][3][4] parameters; [blocks][chunks][4][16] weights; and [16][chunks][16] rows of the first matrix if it is transposed. */
struct parts {
    int32_t *fields, *offsets, *narrow, *params;
    int8_t *weights, *rows;
};

/* Sixteen elements: first those of `low`, then those of `high`. Returns `sum` plus their sum. */
MVE_INLINE int32_t put_chunk(int8_t *to, int16x8_t low, int16x8_t high, int32_t sum)
{
    vstrbq_s16(to, low);
    vstrbq_s16(to + HALF, high);
    return vaddvaq_s16(vaddvaq_s16(sum, low), high);
}

/* The same of a column whose elements are at `offsets` from `low` and `high`. */
MVE_INLINE int32_t gather_chunk(int8_t *to, const int8_t *low, const int8_t *high, uint16x8_t offsets, int32_t sum)
{
    return put_chunk(to, vldrbq_gather_offset_s16(low, offsets), vldrbq_gather_offset_s16(high, offsets), sum);
}

/* The same for `count` < 16 elements, padded with zeros. */
MVE_INLINE int32_t gather_rest(int8_t *to, const int8_t *low, int32_t step, int32_t count, uint16x8_t offsets, int32_t sum)
{
    const int32_t more = count < HALF ? 0 : count - HALF;
    const int8_t *const high = low + (more > 0 ? HALF * step : 0);
    return put_chunk(to, vldrbq_gather_offset_z_s16(low, offsets, vctp16q((uint32_t)count)),
                     vldrbq_gather_offset_z_s16(high, offsets, vctp16q((uint32_t)more)), sum);
}

/* A vector of `depth` elements, `step` bytes apart, into chunks that are `apart` bytes apart; returns its sum. */
static __attribute__((noinline)) int32_t pack_vector(int8_t *to, const int8_t *from, int32_t step, int32_t depth, int32_t apart)
{
    int32_t sum = 0;
    if (step == 1) {
        for (; depth > 0; depth -= CHUNK) {
            const int8x16_t bytes = vld1q_z_s8(from, vctp8q((uint32_t)depth));
            vst1q_s8(to, bytes);
            sum = vaddvaq_s8(sum, bytes);
            from += CHUNK;
            to += apart;
        }
        return sum;
    }
    if (step <= WIDEST) {
        const uint16x8_t offsets = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)step);
        for (; depth >= CHUNK; depth -= CHUNK) {
            sum = gather_chunk(to, from, from + HALF * step, offsets, sum);
            from += CHUNK * step;
            to += apart;
        }
        return depth == 0 ? sum : gather_rest(to, from, step, depth, offsets, sum);
    }
    for (; depth > 0; depth -= CHUNK) {
        for (int32_t i = 0; i < CHUNK; i++) {
            to[i] = i < depth ? *from : 0;
            sum += to[i];
            from += i < depth ? step : 0;
        }
        to += apart;
    }
    return sum;
}

/* Four neighbouring columns into a block; their sums. */
static __attribute__((noinline)) int32x4_t pack_columns(int8_t *to, const int8_t *from, int32_t step, int32_t depth)
{
    const uint16x8_t offsets = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)step);
    int32_t a = 0, b = 0, c = 0, d = 0;
    for (; depth >= CHUNK; depth -= CHUNK) {
        const int8_t *const high = from + HALF * step;
        a = gather_chunk(to, from, high, offsets, a);
        b = gather_chunk(to + CHUNK, from + 1, high + 1, offsets, b);
        c = gather_chunk(to + 2 * CHUNK, from + 2, high + 2, offsets, c);
        d = gather_chunk(to + 3 * CHUNK, from + 3, high + 3, offsets, d);
        from += CHUNK * step;
        to += UNITS * CHUNK;
    }
    if (depth > 0) {
        a = gather_rest(to, from, step, depth, offsets, a);
        b = gather_rest(to + CHUNK, from + 1, step, depth, offsets, b);
        c = gather_rest(to + 2 * CHUNK, from + 2, step, depth, offsets, c);
        d = gather_rest(to + 3 * CHUNK, from + 3, step, depth, offsets, d);
    }
    return (int32x4_t){a, b, c, d};
}

/* The block of up to four units from w on. */
static void pack_block(int8_t *to, int32_t *params, const int8_t *w, int32_t units, const struct mve_matmul *p)
{
    int32x4_t sums = vdupq_n_s32(0);
    if (p->w_unit == 1 && units >= UNITS && p->w_step <= WIDEST) {
        sums = pack_columns(to, w, p->w_step, p->depth);
    } else {
        for (int32_t u = 0; u < UNITS; u++) {
            const int32_t unit = u < units ? u : 0; /* missing units are computed, but not stored */
            const int32_t sum = pack_vector(to + CHUNK * u, w + unit * p->w_unit, p->w_step, p->depth, UNITS * CHUNK);
            params[u] = sum;
        }
        sums = vld1q_s32(params);
    }
    vst1q_s32(params, vmulq_n_s32(vsubq_s32(vdupq_n_s32(p->zero_point1 * p->depth), sums), p->zero_point0));
    vst1q_s32(params + UNITS, vdupq_n_s32(p->multiplier));
    vst1q_s32(params + 2 * UNITS, vdupq_n_s32((int32_t)((uint32_t)1 << (31 + p->shift))));
}

/* `count` rows times all blocks. */
MVE_INLINE void multiply(const struct parts *s, const int8_t *x, int8_t *y, int32_t count, int32_t row, mve_gemm *gemm,
                         const struct mve_matmul *p)
{
    const int32_t whole = p->units / UNITS, block = (p->depth + CHUNK - 1) / CHUNK * UNITS * CHUNK;
    s->fields[2] = row;
    if (whole == 0) {
        gemm(x, s->weights, s->params, s->narrow, count, 1, s->fields, s->offsets);
        const int8_t *from = (const int8_t *)s->narrow;
        for (int32_t i = 0; i < count; i++) {
            for (int32_t u = 0; u < p->units; u++) {
                *y++ = from[u];
            }
            from += UNITS;
        }
        return;
    }
    gemm(x, s->weights, s->params, y, count, whole, s->fields, s->offsets);
    if (p->units % UNITS != 0) {
        gemm(x, s->weights + whole * block, s->params + whole * 3 * UNITS, y + p->units - UNITS, count, 1, s->fields, s->offsets);
    }
}

void mve_matmul_s8(const int8_t *x, const int8_t *w, int8_t *y, int32_t *scratch, const void *parameters)
{
    const struct mve_matmul p = *(const struct mve_matmul *)parameters; /* local copy: y may alias it */
    const int32_t blocks = (p.units + UNITS - 1) / UNITS, chunks = (p.depth + CHUNK - 1) / CHUNK;
    struct parts s = {scratch, scratch + FIELDS, scratch + FIELDS + PANEL, scratch + FIELDS + 2 * PANEL, 0, 0};
    s.weights = (int8_t *)(s.params + blocks * 3 * UNITS);
    s.rows = s.weights + blocks * chunks * UNITS * CHUNK;
    const int32_t fields[FIELDS] = {chunks - 2, p.depth - (chunks - 1) * CHUNK, 0, p.units < UNITS ? UNITS : p.units,
                                    p.zero_point, p.low, p.high};
    for (int32_t i = 0; i < FIELDS; i++) {
        s.fields[i] = fields[i];
    }
    for (int32_t b = 0; b < blocks; b++) {
        int32_t first = b * UNITS;
        if (first + UNITS > p.units && b > 0) {
            first = p.units - UNITS;
        }
        pack_block(s.weights + b * chunks * UNITS * CHUNK, s.params + b * 3 * UNITS, w + first * p.w_unit, p.units - first, &p);
    }
    mve_gemm *const gemm = chunks > 1 ? mve_gemm_4_lowered_rest_offsets : mve_gemm_4_lowered_short_offsets;
    for (int32_t r = 0; r < p.rows; r += PANEL) {
        const int32_t count = p.rows - r < PANEL ? p.rows - r : PANEL;
        const int8_t *rows = x + r * p.x_row;
        int32_t step = p.x_row;
        if (p.x_step != 1) {
            step = chunks * CHUNK;
        }
        for (int32_t i = 0; i < count; i++) {
            const int8_t *const row = rows + i * p.x_row;
            const int32_t sum = p.x_step == 1 ? mve_sum(row, p.depth) : pack_vector(s.rows + i * step, row, p.x_step, p.depth, CHUNK);
            s.offsets[i] = -p.zero_point1 * sum;
        }
        multiply(&s, p.x_step == 1 ? rows : s.rows, y + r * p.units, count, step, gemm, &p);
    }
}
