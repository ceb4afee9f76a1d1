/* Sixteen accumulators leave few registers for loads ahead of their use. */
#pragma GCC optimize("no-schedule-insns")
/* Products of two matrices that are both known at run time only, with the lanes along the depth. With z0 and z1 the zero points,
 *
 *      sum of (x - z0) * (w - z1) = sum of x * w + bias + offset,   bias = z0 * z1 * depth - sum of z0 * w,   offset = -sum of z1 * x
 *
 * Three rows of x or more: w is packed first, then four rows of x at a time, each times four units at a time.
 *
 *             w0   w1   w2   w3     <- a register of each unit: 4 loads
 *     row 0 | A0   A1   A2   A3     x: one load each, used for four units
 *     ...
 *     row 3 | D0   D1   D2   D3
 *
 * For one or two rows, packing w costs too much. If rows of w are along the units (few_rows), four registers of four rows are
 * transposed when they are read, and the units are in the lanes.
 *
 * Packed vectors are [groups of 4][steps][4] registers, 0 after their end; missing vectors of a group are not
 * written, and their results are not stored. If rows along the units, or rows of x, do not begin at lanes, they are copied first.
 *
 * Scratch: x of four rows, bias of each unit, offset of each row of x, packed w, then rows that are copied.
 */
#include "matmul.h"

#include "depthwise_pixels.h"
#include "scaled_sums.h"

enum { GROUP = 4, PACKED_BELOW = 3 /* rows of x */ };

RVP_INLINE int32_t lanes_added(rvp_word sum)
{
#if __riscv_xlen == 64
    sum += sum >> 32;
#endif
    return (int32_t)(uint32_t)sum;
}

RVP_INLINE int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Copies consecutive bytes at any alignment to registers `step` bytes apart, padded with 0. Returns the sum of each byte times its byte of
 * `factor`. Only registers that contain some of the bytes are read.
 */
RVP_INLINE int32_t copy_vector(int8_t *to, int32_t step, const int8_t *from, int32_t bytes, rvp_word factor)
{
    const uintptr_t offset = (uintptr_t)from & (W - 1), shift = offset * 8, rest = W * 8 - shift;
    const int8_t *next = from - offset;
    const int32_t left = bytes & (W - 1);
    int8_t *const end = to + bytes / W * step;
    rvp_word sum = 0, low = rvp_load(next);
    if (offset == 0) {
        while (to != end) {
            const rvp_word x = rvp_load(next);
            rvp_store(to, x);
            sum = rvp_smaqa(sum, x, factor);
            next += W;
            to += step;
        }
    } else {
        while (to != end) {
            next += W;
            const rvp_word high = rvp_load(next), x = rvp_srl(low, shift) | rvp_sll(high, rest);
            rvp_store(to, x);
            sum = rvp_smaqa(sum, x, factor);
            low = high;
            to += step;
        }
    }
    if (left > 0) {
        rvp_word x = rvp_srl(rvp_load(next), shift);
        if ((int32_t)offset + left > W) {
            x |= rvp_sll(rvp_load(next + W), rest);
        }
        x &= ((rvp_word)1 << (left * 8)) - 1;
        rvp_store(to, x);
        sum = rvp_smaqa(sum, x, factor);
    }
    return lanes_added(sum);
}

/* `count` vectors of a group, with consecutive elements. `sums`: the sum of each, times `factor`. */
static void pack_rows(int8_t *to, const int8_t *from, int32_t apart, int32_t count, int32_t depth, rvp_word factor, int32_t *sums)
{
    for (int32_t v = 0; v < count; v++) {
        sums[v] = copy_vector(to + v * W, GROUP * W, from, depth, factor);
        from += apart;
    }
}

struct four {
    rvp_word a, b, c, d;
};

RVP_INLINE void add_products(struct four *row, rvp_word x, const struct four *w)
{
    row->a = rvp_smaqa(row->a, x, w->a);
    row->b = rvp_smaqa(row->b, x, w->b);
    row->c = rvp_smaqa(row->c, x, w->c);
    row->d = rvp_smaqa(row->d, x, w->d);
}

/* Four rows of a lane each, of RV64 eight, the later four in the upper lanes; 0 for those that are not of the first `count`. */
RVP_INLINE struct four load_lanes(const int8_t *from, int32_t step, int32_t count)
{
    rvp_word rows[W];
#pragma GCC unroll 8
    for (int32_t e = 0; e < W; e++) {
        rows[e] = e < count ? rvp_load_lane(from + e * step) : 0;
    }
#if __riscv_xlen == 64
    return (struct four){rvp_pack(rows[0], rows[4]), rvp_pack(rows[1], rows[5]), rvp_pack(rows[2], rows[6]), rvp_pack(rows[3], rows[7])};
#else
    return (struct four){rows[0], rows[1], rows[2], rows[3]};
#endif
}

/* A group of vectors that are neighbours in each of `depth` rows, which begin at lanes. */
static void pack_columns(int8_t *to, const int8_t *from, int32_t step, int32_t depth, rvp_word factor, int32_t *sums)
{
    struct four total = {0, 0, 0, 0};
    for (; depth > 0; depth -= W) {
        struct four v = depth >= W ? load_lanes(from, step, W) : load_lanes(from, step, depth);
        transpose(&v.a, &v.b, &v.c, &v.d);
        rvp_store(to, v.a);
        rvp_store(to + W, v.b);
        rvp_store(to + 2 * W, v.c);
        rvp_store(to + 3 * W, v.d);
        add_products(&total, factor, &v);
        from += W * step;
        to += GROUP * W;
    }
    sums[0] = lanes_added(total.a);
    sums[1] = lanes_added(total.b);
    sums[2] = lanes_added(total.c);
    sums[3] = lanes_added(total.d);
}

/* Constants of all results. */
struct results {
    rvp_word multiplier, rounder;
    rvp_word zero_point, lowest, highest;
    enum rounding rounding;
};

RVP_INLINE rvp_word bytes_of(const struct four *sums, const struct results *r)
{
    struct four y;
    if (r->rounding == SHORT) {
        y.a = scale_sum(sums->a, r->multiplier, r->rounder, SHORT);
        y.b = scale_sum(sums->b, r->multiplier, r->rounder, SHORT);
        y.c = scale_sum(sums->c, r->multiplier, r->rounder, SHORT);
        y.d = scale_sum(sums->d, r->multiplier, r->rounder, SHORT);
    } else {
        y.a = scale_sum(sums->a, r->multiplier, r->rounder, WIDE);
        y.b = scale_sum(sums->b, r->multiplier, r->rounder, WIDE);
        y.c = scale_sum(sums->c, r->multiplier, r->rounder, WIDE);
        y.d = scale_sum(sums->d, r->multiplier, r->rounder, WIDE);
    }
    return rvp_smin8(rvp_smax8(narrow_sums(y.a, y.b, y.c, y.d, r->zero_point), r->lowest), r->highest);
}

/* Up to four bytes of the lower lane; all four as one where `lanes` says that lanes begin there. */
RVP_INLINE void store_units(int8_t *y, rvp_word bytes, int32_t count, int lanes)
{
    if (count >= GROUP) {
        if (lanes) {
            rvp_store_lane(y, bytes);
            return;
        }
        y[3] = (int8_t)(bytes >> 24);
        count = 3;
    }
    store_few(y, bytes, count);
}

/* Both lanes of the sums of two rows, as the lanes of one. */
RVP_INLINE rvp_word joined(rvp_word a, rvp_word b)
{
    return rvp_add32(rvp_pack(a, b), rvp_packu(a, b));
}

/* Results of two rows, `count` units each; whether there is a second row. */
RVP_INLINE void write_rows(int8_t *y, int32_t pitch, const struct four *first, const struct four *second, int32_t count, int lanes,
                           int has_second, const struct results *r)
{
#if __riscv_xlen == 64
    const struct four sums = {joined(first->a, second->a), joined(first->b, second->b), joined(first->c, second->c),
                              joined(first->d, second->d)};
    const rvp_word bytes = bytes_of(&sums, r);
    store_units(y, bytes, count, lanes);
    if (has_second) {
        store_units(y + pitch, bytes >> 32, count, lanes);
    }
#else
    store_units(y, bytes_of(first, r), count, lanes);
    if (has_second) {
        store_units(y + pitch, bytes_of(second, r), count, lanes);
    }
#endif
}

/* An accumulator begins with the unit's bias in the lower lane and the row's offset in the upper one, or with both. */
RVP_INLINE rvp_word begun(rvp_word bias, rvp_word offset)
{
    return RVP_LANES == 2 ? rvp_pack(bias, offset) : bias + offset;
}

RVP_INLINE struct four start_of(const struct four *bias, const int32_t *offset)
{
    const rvp_word own = rvp_load_lane(offset);
    return (struct four){begun(bias->a, own), begun(bias->b, own), begun(bias->c, own), begun(bias->d, own)};
}

/* Up to four packed rows times all units. */
static __attribute__((noinline)) void tiles(const int8_t *x, const int8_t *w, int32_t bytes, const int32_t *offset, const int32_t *biases, int8_t *y,
                  int32_t units, int32_t rows, const struct results *r)
{
    const int32_t pitch = units;
    const int lanes = (((uintptr_t)y | (uintptr_t)pitch) & 3) == 0;
    const int8_t *const end = x + bytes;
    for (; units > 0; units -= GROUP) {
        const struct four bias = {rvp_load_lane(biases), rvp_load_lane(biases + 1), rvp_load_lane(biases + 2), rvp_load_lane(biases + 3)};
        struct four r0 = start_of(&bias, offset), r1 = start_of(&bias, offset + 1);
        struct four r2 = start_of(&bias, offset + 2), r3 = start_of(&bias, offset + 3);
        const int8_t *at = x;
        do {
            const struct four own = {rvp_load(w), rvp_load(w + W), rvp_load(w + 2 * W), rvp_load(w + 3 * W)};
            add_products(&r0, rvp_load(at), &own);
            add_products(&r1, rvp_load(at + W), &own);
            add_products(&r2, rvp_load(at + 2 * W), &own);
            add_products(&r3, rvp_load(at + 3 * W), &own);
            w += GROUP * W;
            at += GROUP * W;
        } while (at != end);
        write_rows(y, pitch, &r0, &r1, units, lanes, rows > 1, r);
        if (rows > 2) {
            write_rows(y + 2 * pitch, pitch, &r2, &r3, units, lanes, rows > 3, r);
        }
        biases += GROUP;
        y += GROUP;
    }
}

/* Rows of `bytes` neighbours as whole registers, one after the other. */
static __attribute__((noinline)) void copy_rows(int8_t *to, const int8_t *from, int32_t rows, int32_t bytes)
{
    const int32_t whole = (bytes + W - 1) & -W;
    for (; rows > 0; rows--) {
        copy_vector(to, W, from, bytes, 0);
        to += whole;
        from += bytes;
    }
}

/* Vectors with one element in each row: their address and the distance of rows, after a copy if rows do not begin
 * at lanes. */
struct columns_of {
    const int8_t *at;
    int32_t step;
};

RVP_INLINE struct columns_of even_columns(const int8_t *from, int32_t step, int32_t depth, int8_t *room)
{
    if ((((uintptr_t)from | (uintptr_t)step) & 3) == 0) {
        return (struct columns_of){from, step};
    }
    copy_rows(room, from, depth, step);
    return (struct columns_of){room, (step + W - 1) & -W};
}

/* A step of x, four elements in every lane, times four rows of units. */
RVP_INLINE void add_row(struct four *sums, struct four *zeros, struct four w, rvp_word x, rvp_word zero_points)
{
    transpose(&w.a, &w.b, &w.c, &w.d);
    add_products(sums, x, &w);
    add_products(zeros, zero_points, &w);
}

/* A register with units of a row. On RV64 it has two lanes; the second is `upper` bytes after the first. */
RVP_INLINE rvp_word load_units(const int8_t *p, int32_t upper, int whole)
{
    return RVP_LANES == 1 || whole ? rvp_load(p) : rvp_pack(rvp_load_lane(p), rvp_load_lane(p + upper));
}

/* The last one to three rows of w. */
static __attribute__((noinline)) void add_last_rows(const int8_t *x, const int8_t *w, int32_t step, int32_t count, int32_t upper,
                                                    rvp_word zero_points, struct four *sums, struct four *zeros)
{
    struct four v = {load_units(w, upper, 0), 0, 0, 0};
    if (count > 1) {
        v.b = load_units(w + step, upper, 0);
    }
    if (count > 2) {
        v.c = load_units(w + 2 * step, upper, 0);
    }
    add_row(sums, zeros, v, rvp_pack_all(rvp_load_lane(x)), zero_points);
}

/* The units of a register: sums of x times them in `sums`, of the zero point times them in `zeros`. */
RVP_INLINE void sums_of_units(const int8_t *x, const int8_t *w, int32_t step, int32_t depth, int32_t upper, rvp_word zero_points,
                              struct four *sums, struct four *zeros, int whole)
{
    struct four own = *sums, of_zero = {0, 0, 0, 0}; /* in registers, unlike the others */
    for (; depth >= 4; depth -= 4) {
        struct four v;
        v.a = load_units(w, upper, whole);
        w += step;
        v.b = load_units(w, upper, whole);
        w += step;
        v.c = load_units(w, upper, whole);
        w += step;
        v.d = load_units(w, upper, whole);
        w += step;
        add_row(&own, &of_zero, v, rvp_pack_all(rvp_load_lane(x)), zero_points);
        x += 4;
    }
    *sums = own;
    *zeros = of_zero;
    if (depth > 0) {
        add_last_rows(x, w, step, depth, upper, zero_points, sums, zeros);
    }
}

/* One row of x times w, whose rows along the units begin at lanes. `beside` is added to all sums. */
static __attribute__((noinline)) void few_rows(const int8_t *x, const struct columns_of *w, int8_t *y, const struct rvp_matmul *p, int32_t beside,
                     const struct results *r)
{
    const rvp_word zero_points = rvp_splat8(p->zero_point0), same = rvp_splat32(beside);
    const int whole = (((uintptr_t)w->at | (uintptr_t)w->step) & (W - 1)) == 0;
    const int8_t *from = w->at;
    for (int32_t left = p->units; left > 0; left -= W) {
        struct four sums = {same, same, same, same}, zeros;
        const int32_t upper = left > 4 ? 4 : 0;
        if (whole) {
            sums_of_units(x, from, w->step, p->depth, upper, zero_points, &sums, &zeros, 1);
        } else {
            sums_of_units(x, from, w->step, p->depth, upper, zero_points, &sums, &zeros, 0);
        }
        /* Neither sum is over 2^30, so their difference does not saturate. */
        sums.a = rvp_ksub32(sums.a, zeros.a);
        sums.b = rvp_ksub32(sums.b, zeros.b);
        sums.c = rvp_ksub32(sums.c, zeros.c);
        sums.d = rvp_ksub32(sums.d, zeros.d);
        const rvp_word bytes = bytes_of(&sums, r);
        if (left >= W && ((uintptr_t)y & (W - 1)) == 0) {
            rvp_store(y, bytes);
        } else {
            const int lanes = ((uintptr_t)y & 3) == 0;
            store_units(y, bytes, left, lanes);
#if __riscv_xlen == 64
            if (left > GROUP) {
                store_units(y + GROUP, bytes >> 32, left - GROUP, lanes);
            }
#endif
        }
        from += W;
        y += W;
    }
}

/* Copies a row of x from any address to whole registers; returns the sum of each element times the byte of `factor`. */
static __attribute__((noinline)) int32_t copy_row(int8_t *to, const int8_t *from, int32_t step, int32_t depth, rvp_word factor)
{
    if (step == 1) {
        return copy_vector(to, W, from, depth, factor);
    }
    for (int32_t k = 0; k < depth; k++) {
        to[k] = *from;
        from += step;
    }
    return copy_vector(to, W, to, depth, factor);
}

static __attribute__((noinline)) void pack_w(int8_t *to, const int8_t *w, int32_t *bias, int8_t *room, const struct rvp_matmul *p, int32_t bytes)
{
    const rvp_word factor = rvp_splat8(p->zero_point0);
    const int32_t same = p->zero_point0 * p->zero_point1 * p->depth;
    const struct columns_of v = p->w_step == 1 ? (struct columns_of){w, 0} : even_columns(w, p->w_step, p->depth, room);
    for (int32_t unit = 0; unit < p->units; unit += GROUP) {
        if (p->w_step == 1) {
            pack_rows(to, w + unit * p->w_unit, p->w_unit, smaller(p->units - unit, GROUP), p->depth, factor, bias);
        } else {
            pack_columns(to, v.at + unit, v.step, p->depth, factor, bias);
        }
#pragma GCC unroll 4
        for (int32_t u = 0; u < GROUP; u++) {
            bias[u] = same - bias[u];
        }
        to += bytes;
        bias += GROUP;
    }
}

void rvp_matmul_s8(const int8_t *x, const int8_t *w, int8_t *y, int32_t *scratch, const int32_t *layer)
{
    const struct rvp_matmul *const p = (const struct rvp_matmul *)layer;
    const struct results r = {rvp_splat32(p->multiplier),   rvp_splat32(p->rounder),     rvp_splat16((int8_t)p->clip),
                              rvp_splat8(p->clip >> 8), rvp_splat8(p->clip >> 16), p->wide ? WIDE : SHORT};
    const int32_t bytes = (p->depth + W - 1) / W * GROUP * W, blocks = (p->units + GROUP - 1) / GROUP;
    const rvp_word factor = rvp_splat8(p->zero_point1);
    int8_t *const panel = (int8_t *)scratch, *packed = panel + bytes;
    if (p->rows < PACKED_BELOW && p->w_step != 1) {
        const struct columns_of v = even_columns(w, p->w_step, p->depth, packed);
        for (int32_t row = 0; row < p->rows; row++) {
            const int32_t sum = copy_row(panel, x + row * p->x_row, p->x_step, p->depth, factor);
            few_rows(panel, &v, y + row * p->units, p, p->zero_point0 * p->zero_point1 * p->depth - sum, &r);
        }
        return;
    }
    int32_t *const offset = (int32_t *)(void *)packed, *const bias = offset + GROUP;
    packed = (int8_t *)(bias + (blocks + 1) / 2 * 2 * GROUP);
    int8_t *const room = packed + blocks * bytes;
    pack_w(packed, w, bias, room, p, bytes);
    struct columns_of v = {x, 0};
    if (p->x_step != 1) {
        v = even_columns(x, p->x_step, p->depth, room);
    }
    for (int32_t row = 0; row < p->rows; row += GROUP) {
        const int32_t rows = smaller(p->rows - row, GROUP);
        if (p->x_step == 1) {
            pack_rows(panel, x + row * p->x_row, p->x_row, rows, p->depth, factor, offset);
        } else {
            pack_columns(panel, v.at + row, v.step, p->depth, factor, offset);
        }
#pragma GCC unroll 4
        for (int32_t i = 0; i < GROUP; i++) {
            offset[i] = -offset[i];
        }
        tiles(panel, packed, bytes, offset, bias, y + row * p->units, p->units, rows, &r);
    }
}
