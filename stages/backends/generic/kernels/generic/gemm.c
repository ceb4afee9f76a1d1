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

void fl_gemm_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, int32_t rows, int32_t columns,
                int32_t depth, const void *parameters)
{
    const struct fl_gemm *e = parameters;
    int32_t i = 0;
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
