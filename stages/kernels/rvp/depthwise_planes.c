/* Sixteen accumulators leave no registers for loads ahead of their use. */
#pragma GCC optimize("no-schedule-insns")
#include "depthwise_planes.h"

#include "depthwise_multiplier.h"
#include "depthwise_plane_pixels.h"
#include "scaled_sums.h"

/* A group is 4 * RVP_LANES channels of the output, one in each byte of a register; where these are no multiple of that, the
 * last group begins earlier and computes some again. The pixels of a group lie in scratch with the padding around them,
 * a register each. Columns that are a stride apart are neighbours there, so those of an image fall into phases:
 *
 *   stride 2, image     c0 c1 c2 c3 c4 c5 c6
 *   row of the plane    c0 c2 c4 c6 | c1 c3 c5 ..       outputs 0, 1, 2 meet a tap at neighbouring registers
 *
 * Where the last group has up to four channels (RV64), the lower lane has the first half of a row of outputs, the upper one the
 * second half, each with the same weights.
 *
 * Nothing is transposed: a register of weights has those of channel j of each lane in byte j and zeros elsewhere, so smaqa
 * adds the products of that channel alone. Four outputs side by side share the loads of weights.
 *
 *   params   [group][12 + 4 * taps] registers: four biases (zero points folded in), four multipliers, four rounders,
 *            then four registers of weights for each tap. Register j is for channel j of the group in the lower lane and
 *            channel j + 4 in the upper one (RV64). Marks in the first multiplier and the first two rounders say how the group
 *            is requantized (packing.py); one that is rounded once has zero points in place of rounders, in both halves of a lane
 *   scratch  masks of repeated channels, a row of results, the plane
 */

enum { AT_ONCE = 4, CONSTANTS = 12 };

/* Beside the roundings of scaled_sums.h: one multiplication for both, and a zero point for each channel (one_rounding.py). */
enum { ONCE = EXACT + 1 };

/* What all groups of a layer share. `step`: from one result to the next, `input_step` from one's first tap to the next's where
 * that is no register; `bounds`: NULL where none are needed.
 */
struct outputs {
    const int32_t *offsets, *offsets_end;
    const struct bounds *bounds;
    rvp_word zero_point;
    intptr_t step, input_step;
};

/* `count` results of one channel of each lane. */
struct sums {
    rvp_word at[AT_ONCE];
};

RVP_INLINE struct sums biases(const int8_t *bias)
{
    const rvp_word value = rvp_load(bias);
    return (struct sums){{value, value, value, value}};
}

/* The sums of channels j and j + 2 of each lane, scaled, in 16 bits, plus the zero point. */
RVP_INLINE void scale(struct sums *a, const struct sums *b, const int8_t *record, rvp_word zero_point, int count, int how)
{
    const rvp_word bm = rvp_load(record + 6 * W), br = rvp_load(record + 10 * W);
    rvp_word am = rvp_load(record + 4 * W), ar = rvp_load(record + 8 * W);
    if (how == ONCE) {
        am = without_mark(am);
        zero_point = rvp_pkbb16(br, ar);
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            a->at[i] = rvp_add16(rvp_pkbb16(rvp_smmul_u(b->at[i], bm), rvp_smmul_u(a->at[i], am)), zero_point);
        }
        return;
    }
    if (how != SHORT) {
        ar = without_mark(ar);
    }
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        const rvp_word low = scale_sum(a->at[i], am, ar, (enum rounding)how);
        a->at[i] = rvp_add16(rvp_pkbb16(scale_sum(b->at[i], bm, br, (enum rounding)how), low), zero_point);
    }
}

/* Requantizes `count` outputs and writes them. Two channels at a time: constants of all would leave too few registers. */
RVP_INLINE void write_sums(int8_t *to, struct sums a[4], const int8_t *record, const struct outputs *o, int count, int how)
{
    const rvp_word upper = rvp_splat16(0xff00);
    rvp_word zero_point = o->zero_point;
    const struct bounds *const bounds = o->bounds;
    const intptr_t step = o->step;
    scale(&a[0], &a[2], record, zero_point, count, how);
    scale(&a[1], &a[3], record + W, zero_point, count, how);
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        const rvp_word even = rvp_kslli16_8(a[0].at[i]), odd = rvp_kslli16_8(a[1].at[i]);
        a[0].at[i] = rvp_select_bits(upper, odd, even >> 8);
    }
    if (bounds != NULL) {
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            a[0].at[i] = clamp(a[0].at[i], bounds);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < count; i++) {
        rvp_store(to, a[0].at[i]);
        to += step;
    }
}

/* `count` outputs side by side, whose windows begin at `first` and following registers of the plane; `direct`: and pixels of the
 * image.
 */
RVP_INLINE void some_outputs(const int8_t *first, int8_t *to, const int8_t *record, const struct outputs *o, int count,
                             int how, int direct)
{
    struct sums a[4] = {biases(record), biases(record + W), biases(record + 2 * W), biases(record + 3 * W)};
    const int8_t *w = record + CONSTANTS * W;
    const int32_t *offset = o->offsets;
    do {
        const int8_t *x = first + *offset++;
        const rvp_word w0 = rvp_load(w), w1 = rvp_load(w + W), w2 = rvp_load(w + 2 * W), w3 = rvp_load(w + 3 * W);
        w += 4 * W;
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) {
            const rvp_word pixel = rvp_load(x);
            x += direct ? o->input_step : W;
            a[0].at[i] = rvp_smaqa(a[0].at[i], pixel, w0);
            a[1].at[i] = rvp_smaqa(a[1].at[i], pixel, w1);
            a[2].at[i] = rvp_smaqa(a[2].at[i], pixel, w2);
            a[3].at[i] = rvp_smaqa(a[3].at[i], pixel, w3);
        }
    } while (offset != o->offsets_end);
    write_sums(to, a, record, o, count, how);
}

/* Rows of outputs: how many they are and their outputs, how far apart these are and the rows of the plane that they begin in. */
struct rows {
    int count, columns;
    intptr_t step, plane_step;
};

RVP_INLINE void rows_of_outputs(const int8_t *plane, int8_t *out, const struct rows *r, const int8_t *record,
                                const struct outputs *o, int how, int direct)
{
    const intptr_t input_step = direct ? o->input_step : W;
    for (int row = r->count; row > 0; row--) {
        const int8_t *first = plane;
        int8_t *to = out;
        int left = r->columns;
        for (; left >= AT_ONCE; left -= AT_ONCE) {
            some_outputs(first, to, record, o, 4, how, direct);
            first += AT_ONCE * input_step;
            to += AT_ONCE * o->step;
        }
        if (left == 3) {
            some_outputs(first, to, record, o, 3, how, direct);
        } else if (left == 2) {
            some_outputs(first, to, record, o, 2, how, direct);
        } else if (left == 1) {
            some_outputs(first, to, record, o, 1, how, direct);
        }
        plane += r->plane_step;
        out += r->step;
    }
}

/* The same one by one. */
RVP_INLINE void exact_rows_of_outputs(const int8_t *plane, int8_t *out, const struct rows *r, const int8_t *record,
                                      const struct outputs *o, int direct)
{
    const intptr_t input_step = direct ? o->input_step : W;
    for (int row = 0; row < r->count; row++) {
        for (int column = 0; column < r->columns; column++) {
            some_outputs(plane + column * input_step, out + column * o->step, record, o, 1, EXACT, direct);
        }
        plane += r->plane_step;
        out += r->step;
    }
}

typedef void rows_kernel(const int8_t *plane, int8_t *out, const struct rows *r, const int8_t *record,
                         const struct outputs *o);

/* Rows of outputs of a group, by how it is rounded; `name` says whether they are those of a plane or of the image. */
#define ROWS(name, direct)                                                                                          \
    static void short_rows_##name(const int8_t *plane, int8_t *out, const struct rows *r, const int8_t *record,     \
                                  const struct outputs *o)                                                          \
    {                                                                                                               \
        rows_of_outputs(plane, out, r, record, o, SHORT, direct);                                                   \
    }                                                                                                               \
    static void once_rows_##name(const int8_t *plane, int8_t *out, const struct rows *r, const int8_t *record,      \
                                 const struct outputs *o)                                                           \
    {                                                                                                               \
        rows_of_outputs(plane, out, r, record, o, ONCE, direct);                                                    \
    }                                                                                                               \
    static void wide_rows_##name(const int8_t *plane, int8_t *out, const struct rows *r, const int8_t *record,      \
                                 const struct outputs *o)                                                           \
    {                                                                                                               \
        rows_of_outputs(plane, out, r, record, o, WIDE, direct);                                                    \
    }                                                                                                               \
    static void exact_rows_##name(const int8_t *plane, int8_t *out, const struct rows *r, const int8_t *record,     \
                                  const struct outputs *o)                                                          \
    {                                                                                                               \
        exact_rows_of_outputs(plane, out, r, record, o, direct);                                                    \
    }                                                                                                               \
    static rows_kernel *rows_##name(const int8_t *record)                                                           \
    {                                                                                                               \
        if ((intptr_t)rvp_load(record + 4 * W) < 0) {                                                               \
            return once_rows_##name;                                                                                \
        }                                                                                                           \
        const enum rounding how = rounding_of(rvp_load(record + 8 * W), rvp_load(record + 9 * W));                  \
        return how == SHORT ? short_rows_##name : how == WIDE ? wide_rows_##name : exact_rows_##name;               \
    }

ROWS(of_plane, 0)
ROWS(of_image, 1)

/* A group of channels of `rows` rows of outputs. `halved`: each lane has one half of these rows. */
struct group {
    int rows, halved;
    struct pixels in, out;
};

/* Outputs of a group whose plane is in scratch. */
static void group_of_outputs(const int8_t *plane, int8_t *results, int8_t *out, const struct group *group,
                             const int8_t *record, struct outputs *o, const struct rvp_depthwise_planes *g)
{
    const intptr_t plane_step = g->row_stride * g->phases * g->phase_columns * W;
    const int columns = group->halved ? (g->out_columns + 1) / 2 : g->out_columns;
    rows_kernel *const kernel = rows_of_plane(record);
    struct rows r = {group->rows, columns, g->out_row_step, plane_step};
    if (group->out.how == WHOLE) {
        o->step = g->out_column_step;
        kernel(plane, out, &r, record, o);
        return;
    }
    r.count = 1;
    o->step = W;
    for (int row = 0; row < group->rows; row++) {
        kernel(plane, results, &r, record, o);
        write_row(out, results, g->out_column_step, columns, &group->out, 0);
        if (group->halved) {
            write_row(out + columns * g->out_column_step, results, g->out_column_step, g->out_columns - columns,
                      &group->out, 1);
        }
        plane += plane_step;
        out += g->out_row_step;
    }
}

/* The plane of a group, from row `first_row` of the image on, where its channels are at `image`. */
static void group_of_inputs(int8_t *plane, const int8_t *image, int first_row, const struct group *group,
                            const struct rvp_depthwise_planes *g)
{
    struct part part = {.first_row = first_row, .lines = (group->rows - 1) * g->row_stride + g->reach};
    part.left = g->left;
    part.columns = g->phase_columns;
    if (!group->halved) {
        bring_plane(plane, image, &part, g, &group->in);
        return;
    }
    const int half = (g->out_columns + 1) / 2;
    part.columns -= g->out_columns - half;
    part.lane = LOWER;
    bring_plane(plane, image, &part, g, &group->in);
    part.left -= half * g->column_stride;
    part.lane = UPPER;
    bring_plane(plane, image, &part, g, &group->in);
}

void rvp_depthwise_planes(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *offsets,
                          const int32_t *planes)
{
    const struct rvp_depthwise_planes *const g = (const struct rvp_depthwise_planes *)planes;
    int8_t *const results = scratch + W * W, *const plane = results + g->out_columns * W;
    const struct bounds bounds = bounds_of(g->clip);
    struct outputs o = {offsets, offsets + g->taps, bounds.needed ? &bounds : NULL, rvp_splat16((int8_t)g->clip), W, W};
    const rvp_word flip = rvp_splat8(g->flip), fill = rvp_splat8(g->fill) ^ flip;
    for (int row = 0; row < g->out_rows; row += g->band) {
        const int8_t *record = (const int8_t *)params;
        struct group group = {.rows = smaller(g->band, g->out_rows - row)};
        for (int channel = 0; channel < g->channels; channel += W) {
            group.halved = g->halved && channel + W > g->channels;
            const int bytes = smaller(group.halved ? 4 : W, g->channels);
            const int first = smaller(channel, g->channels - bytes); /* of the last group: earlier */
            const int source = first / g->multiplier;
            group.in = pixels_of(x, g->channels, bytes);
            group.out = pixels_of(out, g->channels, bytes);
            group.in.flip = flip;
            if (g->multiplier > 1) {
                group.in.masks = scratch;
                group.in.sources = fill_masks(scratch, first, bytes, g->multiplier);
                group.in.mask = rvp_load(scratch);
                group.in.how = group.in.sources == 1 ? ONE_REPEATED : REPEATED;
            }
            if (g->padded && (channel == 0 || group.halved)) {
                const int lines = (group.rows - 1) * g->row_stride + g->reach;
                fill_plane(plane, lines * g->phases * g->phase_columns, fill);
            }
            group_of_inputs(plane, (const int8_t *)x + source, row * g->row_stride - g->top, &group, g);
            group_of_outputs(plane, results, (int8_t *)out + row * g->out_row_step + first, &group, record, &o, g);
            record += (CONSTANTS + 4 * g->taps) * W;
        }
    }
}

void rvp_depthwise_pixels(const void *x, const int32_t *params, void *out, const int32_t *offsets, const int32_t *planes)
{
    const struct rvp_depthwise_planes *const g = (const struct rvp_depthwise_planes *)planes;
    const struct bounds bounds = bounds_of(g->clip);
    const struct outputs o = {offsets,
                              offsets + g->taps,
                              bounds.needed ? &bounds : NULL,
                              rvp_splat16((int8_t)g->clip),
                              g->out_column_step,
                              g->column_stride * g->column_step};
    const struct rows r = {g->out_rows, g->out_columns, g->out_row_step, g->row_stride * g->row_step};
    const int8_t *record = (const int8_t *)params;
    for (int channel = 0; channel < g->channels; channel += W) {
        rows_of_image(record)((const int8_t *)x + channel, (int8_t *)out + channel, &r, record, &o);
        record += (CONSTANTS + 4 * g->taps) * W;
    }
}
