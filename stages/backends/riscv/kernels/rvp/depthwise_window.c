/* Sixteen accumulators leave no registers for loads ahead of their use. */
#pragma GCC optimize("no-schedule-insns")
#include "depthwise_window.h"

#include "depthwise_multiplier.h"
#include "depthwise_window_lines.h"
#include "depthwise_window_sums.h"

/* All groups of channels, all classes of rows and columns, one band of lines at a time. depthwise_window_lines.h loads and stores the
 * lines. depthwise_window_sums.h computes, and describes the layout of params and lines.
 */

/* A group of channels of the rows and columns of a class. */
static void one_class(const int8_t *x, const int32_t *params, int8_t *out, const struct scratch *s,
                      const struct rvp_depthwise_window *g, const struct axis *rows, const struct axis *columns,
                      const struct pixels *in, const struct pixels *written, int stride, outputs_kernel *kernel)
{
    const struct bounds bounds = bounds_of(g->clip);
    const int out_words = (columns->out_count + 3) / 4;
    const int out_row_step = g->out_row_step * g->row_dilation;
    for (int out_row = 0; out_row < rows->out_count; out_row += g->band) {
        const int band = smaller(g->band, rows->out_count - out_row);
        struct lines l = {.count = (band - 1) * g->row_stride + g->kernel_rows,
                          .words = (out_words - 1) * stride + g->window_words};
        l.line_step = 4 * W * (g->along_rows ? 1 : l.words);
        l.word_step = 4 * W * (g->along_rows ? l.count : 1);
        fill_lines(x, s, g, rows, columns, out_row * g->row_stride - rows->before, &l, in);
        struct runs runs = {.row_step = l.line_step, .word_step = l.word_step};
        if (g->along_rows) {
            runs.runs = out_words;
            runs.step = stride * l.word_step;
            runs.count = band;
        } else {
            runs.runs = band;
            runs.step = g->row_stride * l.line_step;
            runs.count = out_words;
        }
        kernel(s->lines, s->results, params, &runs, g);
        int8_t *to = out + out_row * out_row_step;
        const int8_t *from = s->results;
        for (int run = 0; run < runs.runs; run++) {
            write_run(to, from, s, g, columns->out_count, 4 * run, runs.count, &bounds, written);
            from += runs.count * 4 * W;
            to += g->along_rows ? 0 : out_row_step;
        }
    }
}

static void depthwise(const int8_t *x, const int32_t *params, int8_t *out, int8_t *scratch,
                      const struct rvp_depthwise_window *g, int stride, outputs_kernel *kernel)
{
    enum { GROUP = 4 * RVP_LANES };
    struct scratch s = {.outside = scratch, .masks = scratch + 2 * W, .results = scratch + (2 + W) * W};
    const int out_words = (g->out_columns + 4 * g->column_dilation - 1) / (4 * g->column_dilation);
    s.lines = s.results + g->band * out_words * 4 * W;
    rvp_store(s.outside, rvp_splat8(g->fill));
    for (int channel = 0; channel < g->channels; channel += GROUP) {
        const int bytes = smaller(GROUP, g->channels);
        const int first = smaller(channel, g->channels - bytes); /* the last group begins earlier */
        const int source = first / g->multiplier;
        struct pixels in = pixels_of(x, g->channels, bytes);
        const struct pixels written = pixels_of(out, g->channels, bytes);
        in.flip = rvp_splat8(g->flip);
        if (g->multiplier > 1) {
            in.masks = s.masks;
            in.sources = fill_masks(s.masks, first, bytes, g->multiplier);
            in.mask = rvp_load(s.masks);
            in.how = in.sources == 1 ? ONE_REPEATED : REPEATED;
        }
        for (int i = 0; i < g->row_dilation && i < g->out_rows; i++) {
            const struct axis rows = class_of(i, g->row_dilation, g->rows, g->top, g->out_rows);
            for (int j = 0; j < g->column_dilation && j < g->out_columns; j++) {
                const struct axis columns = class_of(j, g->column_dilation, g->columns, g->left, g->out_columns);
                one_class(x + source + rows.first * g->row_step + columns.first * g->column_step, params,
                          out + first + i * g->out_row_step + j * g->out_column_step, &s, g, &rows, &columns, &in,
                          &written, stride, kernel);
            }
        }
        params += 4 * g->record * RVP_LANES;
    }
}

/* The kernel of runs, and the function of a layer that uses it. */
#define DEPTHWISE(name, stride, full, tail)                                                                         \
    static void outputs_##name(const int8_t *from, int8_t *results, const int32_t *params,                          \
                               const struct runs *runs, const struct rvp_depthwise_window *window)                 \
    {                                                                                                               \
        all_outputs(from, results, params, runs, window, (struct shape){stride, full, tail});                       \
    }                                                                                                               \
    void rvp_depthwise_##name(const void *x, const int32_t *params, void *out, int8_t *scratch,                     \
                              const int32_t *window)                                                                \
    {                                                                                                               \
        depthwise(x, params, out, scratch, (const struct rvp_depthwise_window *)window, stride, outputs_##name);    \
    }

DEPTHWISE(s1_k1, 1, 1, 0)
DEPTHWISE(s1_k2, 1, 1, 1)
DEPTHWISE(s1_k3, 1, 1, 2)
DEPTHWISE(s1_k4, 1, 1, 3)
DEPTHWISE(s1_k5, 1, 2, 0)
DEPTHWISE(s1_m0, 1, 0, 0)
DEPTHWISE(s1_m1, 1, 0, 1)
DEPTHWISE(s1_m2, 1, 0, 2)
DEPTHWISE(s1_m3, 1, 0, 3)
DEPTHWISE(s2_k2, 2, 1, 0)
DEPTHWISE(s2_k4, 2, 2, 1)
DEPTHWISE(s2_k6, 2, 2, 0)
DEPTHWISE(s2_m0, 2, 0, 0)
DEPTHWISE(s2_m1, 2, 0, 1)
