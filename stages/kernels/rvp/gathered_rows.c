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

/* The runs of a window one behind the other, each of `count` units; 0 is any number. */
RVP_INLINE void copy_runs(int8_t *to, const int8_t *window, const struct rvp_gathered_rows *g, int unit, int count)
{
    const int tap_step = g->tap_step, row_step = g->row_step, bytes = count != 0 ? count * unit : g->bytes;
    const int8_t *const bottom = window + g->rows * row_step;
    const int across = g->taps * tap_step;
    for (; window != bottom; window += row_step) {
        const int8_t *tap = window;
        const int8_t *const right = window + across;
        do {
            if (count != 0) {
                copy_units(to, tap, unit, count);
                to += bytes;
            } else {
                const int8_t *from = tap;
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
            tap += tap_step;
        } while (tap != right);
    }
}

/* Short runs are copied without a loop. */
RVP_INLINE void copy_by(int8_t *to, const int8_t *window, const struct rvp_gathered_rows *g, int unit)
{
    if (g->bytes == unit) {
        copy_runs(to, window, g, unit, 1);
    } else if (g->bytes == 2 * unit) {
        copy_runs(to, window, g, unit, 2);
    } else if (g->bytes == 3 * unit) {
        copy_runs(to, window, g, unit, 3);
    } else if (g->bytes == 4 * unit) {
        copy_runs(to, window, g, unit, 4);
    } else {
        copy_runs(to, window, g, unit, 0);
    }
}

/* A function of its own, for all types and roundings. Taps are whole runs apart. */
static __attribute__((noinline)) void gather(int8_t *to, const int8_t *window, const struct rvp_gathered_rows *g)
{
    const uintptr_t places = (uintptr_t)window | (uintptr_t)g->bytes | (uintptr_t)g->row_step;
    if (places % W == 0) {
        copy_by(to, window, g, W);
    } else if (places % 4 == 0) {
        copy_by(to, window, g, 4);
    } else if (places % 2 == 0) {
        copy_by(to, window, g, 2);
    } else {
        copy_by(to, window, g, 1);
    }
}

/* A row that is one run at a multiple of a register is read where it lies. Units are written four at once, so that those of a
 * product go through scratch where they do not begin at multiples of four bytes.
 */
RVP_INLINE void gathered_rows(const void *x, const int8_t *weights, const int32_t *params, int8_t *out, int8_t *scratch,
                              const struct rvp_gathered_rows *g, rvp_dot_rows *dot)
{
    const int8_t *window = (const int8_t *)x + g->start;
    int8_t *const staged = scratch + g->steps * W;
    const int units = g->units, is_run = g->rows * g->taps == 1;
    for (int left = g->products; left > 0; left--) {
        const int is_in_place = is_run && (uintptr_t)window % W == 0, is_staged = ((uintptr_t)out & 3) != 0;
        if (!is_in_place) {
            gather(scratch, window, g);
        }
        dot(is_in_place ? window : scratch, weights, params, is_staged ? staged : out, g->steps, units, g->clip,
            g->weight_zero_point);
        if (is_staged) {
            for (int unit = 0; unit < units; unit++) {
                out[unit] = staged[unit];
            }
        }
        window += g->step;
        weights += g->weight_step;
        params += g->param_step;
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
