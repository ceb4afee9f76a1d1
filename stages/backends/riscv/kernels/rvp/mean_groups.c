#include "mean_sums.h"

enum { W = RVP_WORD_BYTES, UNIT = 4 };

/* Pixels of any number of bytes. A group is the fewest pixels that are together whole units of four bytes. Each byte of a group has a sum
 * in scratch, to which that byte of the next groups is added. Three channels, a group of four pixels:
 *
 *     unit      0           1           2
 *     channel   0 1 2 0     1 2 0 1     2 0 1 2     the four sums of a channel are added up after the last row
 *
 * Pixels before a row's first unit, and after its last group, are added one by one.
 */
RVP_INLINE struct lanes lanes_at(const int32_t *sums)
{
    const rvp_lane_memory *const p = (const rvp_lane_memory *)sums;
    if (RVP_LANES == 1) {
        return (struct lanes){{p[0], p[1], p[2], p[3]}};
    }
    const rvp_word a = rvp_load(p), b = rvp_load(p + 2), c = rvp_load(p + 4), d = rvp_load(p + 6);
    return (struct lanes){{rvp_pack(a, c), rvp_packu(a, c), rvp_pack(b, d), rvp_packu(b, d)}};
}

/* Adds the sums of a unit to the sums of earlier rows, or starts them. */
RVP_INLINE void store_unit(int32_t *sums, const struct lanes *s, int is_first)
{
    rvp_lane_memory *const p = (rvp_lane_memory *)sums;
#if __riscv_xlen == 64 /* the lanes have two pixels */
    rvp_word low = rvp_add32(rvp_pack(s->lane[0], s->lane[1]), rvp_packu(s->lane[0], s->lane[1]));
    rvp_word high = rvp_add32(rvp_pack(s->lane[2], s->lane[3]), rvp_packu(s->lane[2], s->lane[3]));
    if (!is_first) {
        low = rvp_add32(low, rvp_load(p));
        high = rvp_add32(high, rvp_load(p + 2));
    }
    rvp_store(p, low);
    rvp_store(p + 2, high);
#else
#pragma GCC unroll 4
    for (int j = 0; j < UNIT; j++) {
        p[j] = s->lane[j] + (is_first ? 0 : p[j]);
    }
#endif
}

/* Adds two units of all groups of a row, or one, to their sums. Columns of `line` are the groups. */
RVP_INLINE void add_units(int32_t *sums, const int8_t *x, const struct rvp_mean *line, int units, int is_first,
                          int is_unsigned)
{
    struct lanes s[2] = {{{0, 0, 0, 0}}, {{0, 0, 0, 0}}};
#if __riscv_xlen == 64
    add_quads(s, x, line, units, is_unsigned);
#else
    add_window(s, x, line, units, is_unsigned);
#endif
    store_unit(sums, &s[0], is_first);
    if (units == 2) {
        store_unit(sums + UNIT, &s[1], is_first);
    }
}

RVP_INLINE void add_groups(int32_t *sums, const int8_t *x, int size, int groups, int is_first, int is_unsigned)
{
    const struct rvp_mean line = {.rows = 1, .columns = groups, .column_step = size};
    const int32_t *const end = sums + size / (2 * UNIT) * (2 * UNIT);
    for (; sums != end; sums += 2 * UNIT, x += 2 * UNIT) {
        add_units(sums, x, &line, 2, is_first, is_unsigned);
    }
    if (size % (2 * UNIT) != 0) {
        add_units(sums, x, &line, 1, is_first, is_unsigned);
    }
}

/* Adds `pixels` to the sums of their channels. */
RVP_INLINE void add_single(int32_t *sums, const int8_t *x, int pixels, int channels, int is_unsigned)
{
    if (pixels == 0) {
        return;
    }
    for (const int8_t *const end = x + channels; x != end; x++) {
        const int8_t *from = x;
        int32_t sum = *sums;
        for (int n = pixels; n > 0; n--, from += channels) {
            sum += is_unsigned ? (uint8_t)*from : *from;
        }
        *sums++ = sum;
    }
}

/* The sums of a channel in each of the two or four pixels of a group, less `offset`. */
RVP_INLINE void join_sums(int32_t *sums, int channels, int group, int32_t offset)
{
    const int32_t *const end = sums + channels, *b = end, *c = b + channels, *d = c + channels;
    if (group == 4) {
        while (sums != end) {
            *sums = *sums - offset + *b++ + *c++ + *d++;
            sums++;
        }
    } else {
        while (sums != end) {
            *sums = *sums - offset + *b++;
            sums++;
        }
    }
}

/* Stores a register of results at any address. */
RVP_INLINE void store_anywhere(int8_t *y, rvp_word bytes)
{
    if ((uintptr_t)y % W == 0) {
        rvp_store(y, bytes);
        return;
    }
#pragma GCC unroll 8
    for (int n = 0; n < W; n++) {
        y[n] = (int8_t)(bytes >> (n * 8));
    }
}

RVP_INLINE void mean_groups(const int8_t *x, int8_t *y, int32_t *sums, int channels, const struct rvp_mean *p,
                            int is_unsigned)
{
    int group = UNIT;
    for (int unit = channels; group > 1 && unit % 2 == 0; unit /= 2) {
        group /= 2;
    }
    const int size = group * channels;
    for (int row = p->rows; row > 0; row--, x += p->row_step) {
        const int8_t *from = x;
        int left = p->columns;
        for (; (uintptr_t)from % UNIT != 0; from += channels) {
            left--;
        }
        const int groups = left / group;
        add_groups(sums, from, size, groups, row == p->rows, is_unsigned);
        add_single(sums, x, p->columns - left, channels, is_unsigned);
        add_single(sums, from + groups * size, left - groups * group, channels, is_unsigned);
    }
    join_sums(sums, channels, group, p->offset);
    const struct epilogue e = epilogue_of(p->multiplier, p->rounder, p->clip);
    for (; channels >= W; channels -= W, sums += W, y += W) {
        store_anywhere(y, finish(lanes_at(sums), &e));
    }
    if (channels != 0) {
        store_last(y, finish(lanes_at(sums), &e), channels);
    }
}

void rvp_mean_groups_s8(const void *x, void *y, void *scratch, int count, const int32_t *fields)
{
    mean_groups(x, y, scratch, count, (const struct rvp_mean *)fields, 0);
}

void rvp_mean_groups_u8(const void *x, void *y, void *scratch, int count, const int32_t *fields)
{
    mean_groups(x, y, scratch, count, (const struct rvp_mean *)fields, 1);
}
