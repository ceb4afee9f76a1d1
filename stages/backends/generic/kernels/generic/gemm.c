/* y = requantize(bias + x * transpose(w - weight_zero_point)), the inner part of convolution and fully connected
 * layers.
 *
 * Eight rows of w are a panel: element k of all eight, then element k + 1. Of the remaining rows seven, five or four
 * are a smaller panel. The rest is stored row by row:
 *
 *      w0[0] w1[0] ... w7[0]  w0[1] w1[1] ... w7[1]  ...      w8[0] ... w12[0]  w8[1] ...      w13[0] w13[1] ...
 *      |--------------------- a panel ------------------|      |---- a panel of five ---|      |-- row by row --|
 */
#include "gemm.h"

#include "panel_1.h"
#include "panel_2.h"
#include "panel_4.h"
#include "panel_6.h"

/* Two rows by all columns. */
static void pair_by_columns(struct pair r, const int8_t *w, int32_t columns, int32_t k, const int32_t *channels,
                            const struct fl_gemm *e)
{
    for (; columns >= FL_PANEL; columns -= FL_PANEL) {
        panel_2(&r, w, k, channels, e);
        r.a.y += FL_PANEL * e->y_column;
        r.b.y += FL_PANEL * e->y_column;
        w += FL_PANEL * k;
        channels += FL_PANEL * FL_CHANNEL;
    }
    row_by_columns(r.a, w, columns, k, channels, e);
    row_by_columns(r.b, w, columns, k, channels, e);
}

static struct row row_of(const int8_t *x, uint8_t *y, int32_t i, int32_t k, const struct fl_gemm *e)
{
    x += i * e->x_row;
    return (struct row){x, e->weight_zero_point != 0 ? sum_of(x, k) : 0, y + i * e->y_row};
}

#if defined(__riscv)

static struct pair moved(struct pair r, int32_t by)
{
    r.a.y += by;
    r.b.y += by;
    return r;
}

/* Four rows by all panels. */
static void all_panels(struct four r, const int8_t *w, int32_t columns, int32_t k, const int32_t *channels,
                       const struct fl_gemm *e)
{
    for (; columns >= FL_PANEL; columns -= FL_PANEL) {
        panel_4(&r, w, k, channels, e);
        r.upper = moved(r.upper, FL_PANEL * e->y_column);
        r.lower = moved(r.lower, FL_PANEL * e->y_column);
        w += FL_PANEL * k;
        channels += FL_PANEL * FL_CHANNEL;
    }
    pair_by_columns(r.upper, w, columns, k, channels, e);
    pair_by_columns(r.lower, w, columns, k, channels, e);
}

#if UINTPTR_MAX > UINT32_MAX

/* Six rows by all panels. */
static void all_panels_6(struct six r, const int8_t *w, int32_t columns, int32_t k, const int32_t *channels,
                         const struct fl_gemm *e)
{
    for (; columns >= FL_PANEL; columns -= FL_PANEL) {
        panel_6(&r, w, k, channels, e);
        r.upper.upper = moved(r.upper.upper, FL_PANEL * e->y_column);
        r.upper.lower = moved(r.upper.lower, FL_PANEL * e->y_column);
        r.lower = moved(r.lower, FL_PANEL * e->y_column);
        w += FL_PANEL * k;
        channels += FL_PANEL * FL_CHANNEL;
    }
    pair_by_columns(r.upper.upper, w, columns, k, channels, e);
    pair_by_columns(r.upper.lower, w, columns, k, channels, e);
    pair_by_columns(r.lower, w, columns, k, channels, e);
}

#endif

/* All blocks of four rows and, for many products, of six; returns the number of these rows. */
ONCE int32_t blocks_of_rows(const int8_t *x, const int8_t *w, const int32_t *channels, uint8_t *y, int32_t rows,
                            int32_t columns, int32_t depth, const struct fl_gemm *e)
{
    int32_t i = 0;
#if UINTPTR_MAX > UINT32_MAX
    for (; depth >= SEGMENT / 2 && i + 6 <= rows; i += 6) {
        const struct six r = {
            x + i * e->x_row,
            e->x_row,
            {
                {row_of(x, y, i, depth, e), row_of(x, y, i + 1, depth, e)},
                {row_of(x, y, i + 2, depth, e), row_of(x, y, i + 3, depth, e)},
            },
            {row_of(x, y, i + 4, depth, e), row_of(x, y, i + 5, depth, e)},
        };
        all_panels_6(r, w, columns, depth, channels, e);
    }
#endif
    for (; i + 4 <= rows; i += 4) {
        const struct four r = {
            {row_of(x, y, i, depth, e), row_of(x, y, i + 1, depth, e)},
            {row_of(x, y, i + 2, depth, e), row_of(x, y, i + 3, depth, e)},
        };
        all_panels(r, w, columns, depth, channels, e);
    }
    return i;
}

#endif

void fl_gemm_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t rows, int32_t columns,
                int32_t depth, const void *parameters)
{
    const struct fl_gemm *e = parameters;
    int32_t i = 0;
#if defined(__riscv)
    if (rows >= 4) {
        i = blocks_of_rows(x, w, channels, y, rows, columns, depth, e);
    }
#endif
    for (; i + 2 <= rows; i += 2) {
        const struct pair r = {row_of(x, y, i, depth, e), row_of(x, y, i + 1, depth, e)};
        pair_by_columns(r, w, columns, depth, channels, e);
    }
    if (i < rows) {
        row_by_columns(row_of(x, y, i, depth, e), w, columns, depth, channels, e);
    }
}

void fl_row_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t columns, int32_t depth,
               const void *parameters)
{
    row_by_columns(row_of(x, y, 0, depth, parameters), w, columns, depth, channels, parameters);
}
