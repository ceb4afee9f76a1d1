#include "depthwise_taps.h"

#include "depthwise_pixels.h"
#include "scaled_sums.h"

/* Four taps of a group of channels are transposed, so that the taps of one channel are in one lane. They are multiplied by
 * one register of weights for each channel of a lane. The taps of an output are looked up once for all groups.
 *
 *   params   [group][12 + 4 * quads] registers: four biases (zero points folded in), four multipliers, four rounders,
 *            then four registers of weights for each quad of taps. Register j is for channel j of the group in the lower
 *            lane and channel j + 4 in the upper one (RV64). Marks in the first two rounders say how the group is
 *            requantized (packing.py)
 *   scratch  a pixel of padding, then the addresses of an output's taps
 */

/* The addresses of the taps of the output at (y, x), padded to whole quads. */
static void find_taps(const int8_t **taps, const int8_t *image, const int8_t *outside, int y, int x,
                      const struct rvp_depthwise_taps *g)
{
    int count = 0;
    int row = y * g->stride_y - g->top;
    const int first = x * g->stride_x - g->left, step = g->dilation_x * g->channels;
    for (int ky = 0; ky < g->kernel_height; ky++) {
        int column = first;
        const int8_t *at = image + (row * g->width + column) * g->channels;
        const int row_inside = row >= 0 && row < g->height;
        for (int kx = 0; kx < g->kernel_width; kx++) {
            taps[count++] = row_inside && column >= 0 && column < g->width ? at : outside;
            column += g->dilation_x;
            at += step;
        }
        row += g->dilation_y;
    }
    while (count % 4 != 0) {
        taps[count++] = outside;
    }
}

/* One group at one output: `params` are the group's. */
RVP_INLINE rvp_word outputs_of(const int8_t *const *taps, int quads, const int8_t *params, int channel,
                               rvp_word zero_point, const struct pixels *v, enum how how)
{
    rvp_word c0 = rvp_load(params), c1 = rvp_load(params + W);
    rvp_word c2 = rvp_load(params + 2 * W), c3 = rvp_load(params + 3 * W);
    const int8_t *w = params + 12 * W;
    const rvp_word flip = v->flip;
    for (; quads > 0; quads--) {
        rvp_word x0 = load_pixel(taps[0] + channel, v, how), x1 = load_pixel(taps[1] + channel, v, how);
        rvp_word x2 = load_pixel(taps[2] + channel, v, how), x3 = load_pixel(taps[3] + channel, v, how);
        transpose(&x0, &x1, &x2, &x3);
        if (flip != 0) {
            x0 ^= flip;
            x1 ^= flip;
            x2 ^= flip;
            x3 ^= flip;
        }
        c0 = rvp_smaqa(c0, x0, rvp_load(w));
        c1 = rvp_smaqa(c1, x1, rvp_load(w + W));
        c2 = rvp_smaqa(c2, x2, rvp_load(w + 2 * W));
        c3 = rvp_smaqa(c3, x3, rvp_load(w + 3 * W));
        taps += 4;
        w += 4 * W;
    }
    const rvp_word m0 = rvp_load(params + 4 * W), m1 = rvp_load(params + 5 * W);
    const rvp_word m2 = rvp_load(params + 6 * W), m3 = rvp_load(params + 7 * W);
    const rvp_word marked = rvp_load(params + 8 * W), r1 = rvp_load(params + 9 * W);
    const rvp_word r2 = rvp_load(params + 10 * W), r3 = rvp_load(params + 11 * W);
    const rvp_word r0 = without_mark(marked);
    const enum rounding rounding = rounding_of(marked, r1);
    if (rounding == SHORT) {
        c0 = scale_sum(c0, m0, r0, SHORT);
        c1 = scale_sum(c1, m1, r1, SHORT);
        c2 = scale_sum(c2, m2, r2, SHORT);
        c3 = scale_sum(c3, m3, r3, SHORT);
    } else if (rounding == WIDE) {
        c0 = scale_sum(c0, m0, r0, WIDE);
        c1 = scale_sum(c1, m1, r1, WIDE);
        c2 = scale_sum(c2, m2, r2, WIDE);
        c3 = scale_sum(c3, m3, r3, WIDE);
    } else {
        c0 = scale_sum(c0, m0, r0, EXACT);
        c1 = scale_sum(c1, m1, r1, EXACT);
        c2 = scale_sum(c2, m2, r2, EXACT);
        c3 = scale_sum(c3, m3, r3, EXACT);
    }
    return narrow_sums(c0, c1, c2, c3, zero_point);
}

/* All groups of channels at one output. */
RVP_INLINE void all_groups(const int8_t *const *taps, int quads, const int32_t *params, int8_t *out, int channels,
                           rvp_word zero_point, const struct bounds *bounds, const struct pixels *v, enum how how)
{
    const int8_t *record = (const int8_t *)params;
    int channel = 0;
    while (channel < channels) {
        const int first = channel + v->bytes <= channels ? channel : channels - v->bytes;
        rvp_word y = outputs_of(taps, quads, record, first, zero_point, v, how);
        if (bounds->needed) {
            y = clamp(y, bounds);
        }
        store_pixel(out + first, y, v, how == BYTES && v->bytes < W ? FEW : how);
        record += (12 + 4 * quads) * W;
        channel += W;
    }
}

static void whole_groups(const int8_t *const *taps, int quads, const int32_t *params, int8_t *out, int channels,
                         rvp_word zero_point, const struct bounds *b, const struct pixels *v)
{
    all_groups(taps, quads, params, out, channels, zero_point, b, v, WHOLE);
}

static void lane_groups(const int8_t *const *taps, int quads, const int32_t *params, int8_t *out, int channels,
                        rvp_word zero_point, const struct bounds *b, const struct pixels *v)
{
    all_groups(taps, quads, params, out, channels, zero_point, b, v, LANES);
}

static void byte_groups(const int8_t *const *taps, int quads, const int32_t *params, int8_t *out, int channels,
                        rvp_word zero_point, const struct bounds *b, const struct pixels *v)
{
    all_groups(taps, quads, params, out, channels, zero_point, b, v, BYTES);
}

void rvp_depthwise_taps(const void *x, const int32_t *params, void *out, int8_t *scratch, const int32_t *taps_)
{
    const struct rvp_depthwise_taps *const g = (const struct rvp_depthwise_taps *)taps_;
    const int channels = g->channels, quads = (g->kernel_height * g->kernel_width + 3) / 4;
    const int padded = (channels + W - 1) & -W;
    const rvp_word zero_point = rvp_splat16((int8_t)g->clip);
    const struct bounds bounds = bounds_of(g->clip);
    struct pixels v = pixels_of(x, channels, channels < W ? channels : W);
    const struct pixels written = pixels_of(out, channels, v.bytes);
    v.how = written.how > v.how ? written.how : v.how;
    v.flip = rvp_splat8(g->flip);
    const int8_t **const taps = (const int8_t **)(void *)(scratch + padded);
    for (int i = 0; i < padded; i += W) {
        rvp_store(scratch + i, rvp_splat8(g->fill));
    }
    int8_t *to = out;
    for (int oy = 0; oy < g->out_height; oy++) {
        for (int ox = 0; ox < g->out_width; ox++) {
            find_taps(taps, x, scratch, oy, ox, g);
            if (v.how == WHOLE) {
                whole_groups(taps, quads, params, to, channels, zero_point, &bounds, &v);
            } else if (RVP_LANES == 2 && v.how == LANES) {
                lane_groups(taps, quads, params, to, channels, zero_point, &bounds, &v);
            } else {
                byte_groups(taps, quads, params, to, channels, zero_point, &bounds, &v);
            }
            to += channels;
        }
    }
}
