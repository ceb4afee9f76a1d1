#include "gathered_rows.h"

#include "dot_rows.h"
#include "rvp_intrinsics.h"

enum { W = RVP_WORD_BYTES };

/* Copies `unit` bytes, from and to multiples of so many. */
RVP_INLINE void copy_unit(int8_t *to, const int8_t *from, int unit)
{
    if (unit == W) {
        rvp_store(to, rvp_load(from));
    } else if (unit == 4) {
        rvp_store_lane(to, rvp_load_lane(from));
    } else if (unit == 2) {
        *(int16_t __attribute__((may_alias)) *)to = *(const int16_t __attribute__((may_alias)) *)from;
    } else {
        *to = *from;
    }
}

/* Copies `count` units, a constant where this is inlined. */
RVP_INLINE void copy_units(int8_t *to, const int8_t *from, int unit, int count)
{
#pragma GCC unroll 4
    for (int k = 0; k < count; k++) {
        copy_unit(to + k * unit, from + k * unit, unit);
    }
}

/* `bytes` is a multiple of `unit`. */
RVP_INLINE void copy_by(int8_t *to, const int8_t *from, int bytes, int unit)
{
    int left = bytes;
    for (; left >= 4 * unit; left -= 4 * unit) {
        copy_units(to, from, unit, 4);
        to += 4 * unit;
        from += 4 * unit;
    }
    for (; left > 0; left -= unit) {
        copy_unit(to, from, unit);
        to += unit;
        from += unit;
    }
}

/* A separate function, which all types and roundings share. */
static __attribute__((noinline)) void gather(int8_t *to, const int8_t *row, int bytes)
{
    const uintptr_t places = (uintptr_t)row | (uintptr_t)bytes;
    if (places % W == 0) {
        copy_by(to, row, bytes, W);
    } else if (places % 4 == 0) {
        copy_by(to, row, bytes, 4);
    } else if (places % 2 == 0) {
        copy_by(to, row, bytes, 2);
    } else {
        copy_by(to, row, bytes, 1);
    }
}

/* A row that begins at a register boundary is read in place. Four units are stored at once. If the outputs of a row do not begin at a
 * multiple of four bytes, they are written to scratch first.
 */
RVP_INLINE void gathered_rows(const void *x, const int8_t *weights, const int32_t *params, int8_t *out, int8_t *scratch,
                              const struct rvp_gathered_rows *g, rvp_dot_rows *dot)
{
    const int8_t *row = x;
    int8_t *const staged = scratch + g->steps * W;
    const int units = g->units;
    for (int left = g->rows; left > 0; left--) {
        const int is_in_place = (uintptr_t)row % W == 0, is_staged = ((uintptr_t)out & 3) != 0;
        if (!is_in_place) {
            gather(scratch, row, g->bytes);
        }
        dot(is_in_place ? row : scratch, weights, params, is_staged ? staged : out, g->steps, units, g->clip,
            g->weight_zero_point);
        if (is_staged) {
            for (int unit = 0; unit < units; unit++) {
                out[unit] = staged[unit];
            }
        }
        row += g->bytes;
        out += units;
    }
}

void rvp_gathered_rows_s8(const void *x, const int8_t *weights, const int32_t *params, void *out, int8_t *scratch,
                          const int32_t *layer)
{
    gathered_rows(x, weights, params, out, scratch, (const struct rvp_gathered_rows *)layer, rvp_dot_rows_s8);
}

void rvp_gathered_rows_u8(const void *x, const int8_t *weights, const int32_t *params, void *out, int8_t *scratch,
                          const int32_t *layer)
{
    gathered_rows(x, weights, params, out, scratch, (const struct rvp_gathered_rows *)layer, rvp_dot_rows_u8);
}

void rvp_gathered_rows_s8s(const void *x, const int8_t *weights, const int32_t *params, void *out, int8_t *scratch,
                           const int32_t *layer)
{
    gathered_rows(x, weights, params, out, scratch, (const struct rvp_gathered_rows *)layer, rvp_dot_rows_s8s);
}

void rvp_gathered_rows_u8s(const void *x, const int8_t *weights, const int32_t *params, void *out, int8_t *scratch,
                           const int32_t *layer)
{
    gathered_rows(x, weights, params, out, scratch, (const struct rvp_gathered_rows *)layer, rvp_dot_rows_u8s);
}
