#include "depthwise_planes.h"

#include "depthwise_multiplier.h"
#include "depthwise_plane_pixels.h"
#include "depthwise_rows.h"

/* A group is 4 * RVP_LANES channels of the output, one in each byte of a register; if the channels are not a multiple of that,
 * the last group begins earlier and computes some channels again. The pixels of a group lie in scratch with the padding around them,
 * a register each. Columns that are a stride apart are neighbours there, so those of an image fall into phases:
 *
 *   stride 2, image     c0 c1 c2 c3 c4 c5 c6
 *   row of the plane    c0 c2 c4 c6 | c1 c3 c5 ..       a tap of outputs 0, 1, 2 is in neighbouring registers
 *
 * Where the last group has up to four channels (RV64), the lower lane has the first half of a row of outputs, the upper one the
 * second half, each with the same weights.
 *
 * Nothing is transposed. Two taps p and q of four channels of a lane are packed, and smaqa adds the products of one channel
 * alone, because a register of weights has zeros elsewhere:
 *
 *   low  p0 p1 q0 q1     channel 0  u 0 v 0      channel 1  0 u 0 v
 *   high p2 p3 q2 q3     channel 2  u 0 v 0      channel 3  0 u 0 v
 *
 * Four outputs side by side share the loads of weights. Of a quad, two such pairs side by side, they share what is packed as
 * well: the second pair of an output is the first of the next. plane_layout.py says which taps are joined; the other
 * taps are pairs. At most one tap remains; it is not packed, and byte j of its weights is for channel j.
 *
 *   params   [group][12 + 4 * (2 * quads + pairs + single)] registers: four biases (zero points folded in), four
 *            multipliers, four rounders, then four registers of weights for each pair. Register j is for channel j of the
 *            group in the lower lane and channel j + 4 in the upper one (RV64). Marks in the first multiplier and the first
 *            two rounders say how the group is requantized (packing.py); one that is rounded once has zero points in place
 *            of the first two rounders: those of channels 0 and 2 of a lane side by side, and of 1 and 3
 *   scratch  masks of repeated channels, a row of results, the plane
 */

enum { CONSTANTS = 12 };

static const struct pixels registers = {.bytes = W};

/* The sum of one channel of each lane: register j of the group. */
RVP_INLINE rvp_word sum_of(const int8_t *first, const int8_t *record, const struct rvp_depthwise_rows *o, enum how how,
                           int j)
{
    const int8_t *w = record + (CONSTANTS + j) * W, *pixel = first;
    rvp_word sum = rvp_load(record + j * W);
    for (const int32_t *offset = o->offsets; offset != o->pairs_end; offset += 2) {
        for (int i = 0; i < (offset < o->pairs ? 2 : 1); i++) {
            pixel = first + i * o->input_step;
            const rvp_word p = load_pixel(pixel + offset[0], &registers, how);
            const rvp_word q = load_pixel(pixel + offset[1], &registers, how);
            sum = rvp_smaqa(sum, j < 2 ? rvp_pkbb16(q, p) : rvp_pktt16(q, p), rvp_load(w));
            w += 4 * W;
        }
    }
    return o->has_single ? rvp_smaqa(sum, load_pixel(first + *o->pairs_end, &registers, how), rvp_load(w)) : sum;
}

/* Rows of outputs of a group that is requantized one lane after the other; `how` its pixels lie, WHOLE or LANES. */
RVP_INLINE void exact_rows_of(const int8_t *first, int8_t *out, const int8_t *record,
                              const struct rvp_depthwise_rows *o, enum how how)
{
    const struct bounds bounds = {o->lowest, o->highest, o->flip, 1};
    for (intptr_t place = 0; place < o->rows * o->columns; place++) {
        const intptr_t row = place / o->columns, column = place % o->columns;
        const int8_t *const from = first + row * o->input_row_step + column * o->input_step;
        rvp_word sums[4];
#pragma GCC unroll 1
        for (int j = 0; j < 4; j++) {
            const rvp_word rounder = without_mark(rvp_load(record + (8 + j) * W));
            sums[j] = scale_sum(sum_of(from, record, o, how, j), rvp_load(record + (4 + j) * W), rounder, EXACT);
        }
        const rvp_word bytes = narrow_sums(sums[0], sums[1], sums[2], sums[3], o->zero_point);
        store_pixel(out + row * o->row_step + column * o->step, clamp(bytes, &bounds), &registers, how);
    }
}

static void exact_rows(const int8_t *first, int8_t *out, const int8_t *record, const struct rvp_depthwise_rows *o)
{
    exact_rows_of(first, out, record, o, WHOLE);
}

RVP_INLINE int how_of(const int8_t *record)
{
    if ((intptr_t)rvp_load(record + 4 * W) < 0) {
        return ONCE;
    }
    return (int)rounding_of(rvp_load(record + 8 * W), rvp_load(record + 9 * W));
}

/* How the groups that begin at `record` are requantized, and what this allows. */
RVP_INLINE void choose(struct rvp_depthwise_rows *o, const int8_t *record, const struct rvp_depthwise_planes *g)
{
    o->how = how_of(record);
    o->few = 0;
    if (o->how == WIDE || o->bounded || o->columns < FEW_COLUMNS) {
        return;
    }
    if (g->quads == 1 && g->pairs + g->has_single == 0) {
        o->few = FEW_QUAD;
    } else if (g->quads == 0 && g->pairs + g->has_single == 2) {
        o->few = g->has_single ? FEW_SINGLE : FEW_PAIRS;
    } else {
        return;
    }
    o->few += o->how == ONCE ? FEW_ONCE : 0;
}

/* Values that all groups of a layer share, if outputs and pixels are registers. The caller sets the distance of input rows. */
static void fill_rows(struct rvp_depthwise_rows *o, const int32_t *offsets, const struct rvp_depthwise_planes *g)
{
    const struct bounds bounds = bounds_of(g->clip);
    o->rows = g->out_rows;
    o->columns = g->out_columns;
    o->row_step = g->out_row_step;
    o->step = W;
    o->input_step = W;
    o->groups = 1;
    o->record_bytes = g->record * W;
    o->offsets = offsets;
    o->pairs = offsets + 2 * g->quads;
    o->pairs_end = o->pairs + 2 * g->pairs;
    o->has_single = g->has_single;
    o->zero_point = rvp_splat16((int8_t)g->clip);
    o->bounded = bounds.needed;
    o->lowest = bounds.lowest;
    o->highest = bounds.highest;
    o->flip = bounds.flip;
}

RVP_INLINE void rows_of_plane(const int8_t *plane, int8_t *out, const int8_t *record, const struct rvp_depthwise_rows *o)
{
    if (o->how == EXACT) {
        exact_rows(plane, out, record, o);
    } else {
        rvp_depthwise_plane_rows(plane, out, record, o);
    }
}

/* A group of channels of `rows` rows of outputs. `halved`: each lane has one half of these rows. */
struct group {
    int rows, halved;
    struct pixels in, out;
};

/* Outputs of a group whose plane is in scratch. */
static void group_of_outputs(const int8_t *plane, int8_t *results, int8_t *out, const struct group *group,
                             const int8_t *record, struct rvp_depthwise_rows *o, const struct rvp_depthwise_planes *g)
{
    const int columns = group->halved ? (g->out_columns + 1) / 2 : g->out_columns;
    const int is_whole = group->out.how == WHOLE;
    o->columns = columns;
    choose(o, record, g);
    o->rows = is_whole ? group->rows : 1;
    o->step = is_whole ? g->out_column_step : W;
    if (is_whole) {
        rows_of_plane(plane, out, record, o);
        return;
    }
    for (int row = 0; row < group->rows; row++) {
        rows_of_plane(plane, results, record, o);
        write_row(out, results, g->out_column_step, columns, &group->out, 0);
        if (group->halved) {
            write_row(out + columns * g->out_column_step, results, g->out_column_step, g->out_columns - columns,
                      &group->out, 1);
        }
        plane += o->input_row_step;
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
    struct rvp_depthwise_rows o;
    fill_rows(&o, offsets, g);
    o.input_row_step = g->row_stride * g->phases * g->phase_columns * W;
    const rvp_word flip = rvp_splat8(g->flip), fill = rvp_splat8(g->fill) ^ flip;
    for (int row = 0; row < g->out_rows; row += g->band) {
        const int8_t *record = (const int8_t *)params;
        struct group group = {.rows = smaller(g->band, g->out_rows - row)};
        for (int channel = 0; channel < g->channels; channel += W) {
            group.halved = g->halved && channel + W > g->channels;
            const int bytes = smaller(group.halved ? 4 : W, g->channels);
            const int first = smaller(channel, g->channels - bytes); /* the last group begins earlier */
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
            record += o.record_bytes;
        }
    }
}

/* Groups of an image that is read in place. Groups with the same requantization are computed together. */
RVP_INLINE void image_groups(const int8_t *x, const int32_t *params, int8_t *out, const int32_t *offsets,
                             const struct rvp_depthwise_planes *g, enum how how, rvp_depthwise_rows *image_rows)
{
    struct rvp_depthwise_rows o;
    fill_rows(&o, offsets, g);
    o.step = g->out_column_step;
    o.input_step = g->column_stride * g->column_step;
    o.input_row_step = g->row_stride * g->row_step;
    const int8_t *record = (const int8_t *)params;
    for (int channel = 0; channel < g->channels; channel += (int)o.groups * W) {
        const int first = how == LANES ? smaller(channel, g->channels - W) : channel; /* the last group begins earlier */
        const int groups = (g->channels - first) / W;
        choose(&o, record, g);
        o.groups = 1;
        while (o.groups < groups && how_of(record + o.groups * o.record_bytes) == o.how) {
            o.groups++;
        }
        if (o.how == EXACT) {
            o.groups = 1;
            if (how == LANES) {
                exact_rows_of(x + first, out + first, record, &o, LANES);
            } else {
                exact_rows(x + first, out + first, record, &o);
            }
        } else {
            image_rows(x + first, out + first, record, &o);
        }
        record += o.groups * o.record_bytes;
    }
}

void rvp_depthwise_pixels(const void *x, const int32_t *params, void *out, const int32_t *offsets, const int32_t *planes)
{
    const struct rvp_depthwise_planes *const g = (const struct rvp_depthwise_planes *)planes;
    image_groups(x, params, out, offsets, g, WHOLE, rvp_depthwise_image_rows);
}

#if __riscv_xlen == 64
void rvp_depthwise_pixels_of_lanes(const void *x, const int32_t *params, void *out, const int32_t *offsets,
                                   const int32_t *planes)
{
    const struct rvp_depthwise_planes *const g = (const struct rvp_depthwise_planes *)planes;
    image_groups(x, params, out, offsets, g, LANES, rvp_depthwise_lane_rows);
}
#endif
