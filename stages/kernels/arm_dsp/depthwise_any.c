#include "depthwise_any.h"

#include "dsp.h"

/* Two neighbouring outputs share each pair of taps:
 *
 *                 w0 w1 | w2 w3     <- taps, one load for a pair
 *   x0  from x | A                  one load and one smlad for each output
 *   x1  + step | B
 */
struct both {
    int32_t a, b;
};

DSP_INLINE struct both sums(const int16_t *x, const int32_t *taps, int32_t bias, const struct arm_dsp_depthwise *v, int32_t pairs)
{
    struct both sum = {bias, bias};
    const int32_t *const end = taps + v->kernel_y * pairs;
    const int16_t *x0 = x, *x1 = x + v->column_step;
    do {
#pragma GCC unroll 4
        for (int32_t i = 0; i < pairs; i++) {
            const uint32_t w = (uint32_t)taps[i];
            sum.a = dsp_smlad(dsp_load(x0 + 2 * i), w, sum.a);
            sum.b = dsp_smlad(dsp_load(x1 + 2 * i), w, sum.b);
        }
        taps += pairs;
        x0 += v->tap_step;
        x1 += v->tap_step;
    } while (taps != end);
    return sum;
}

enum { TWICE, LONG, ONCE };

/* The words of a channel's scale; `left` and `post` are for the long rounding. */
struct scale {
    int32_t left, doubled, post, rounder;
};

DSP_INLINE struct scale scale_of(const int32_t *words, int rounding)
{
    struct scale made = {0, words[0], 0, words[1]};
    if (rounding == LONG) {
        made = (struct scale){words[0], words[1], words[2], words[3]};
    }
    return made;
}

DSP_INLINE int32_t round_long(int32_t sum, struct scale by, int32_t zero_point)
{
    const int32_t shifted = (int32_t)((uint32_t)sum << by.left);
    const int32_t scaled = (int32_t)((uint32_t)dsp_smmlar(shifted, by.doubled, shifted) << by.post);
    return dsp_smmlsr(scaled + (scaled >> 31), by.rounder, zero_point);
}

/* (2 * sum * m) >> 32, rounded in layers that round twice. */
DSP_INLINE int32_t high_product(int32_t sum, int32_t doubled, int rounding)
{
    if (rounding == TWICE) {
        return dsp_smmlar(sum, doubled, sum);
    }
    int32_t result;
    __asm__("smmla %0, %1, %2, %1" : "=r"(result) : "r"(sum), "r"(doubled));
    return result;
}

/* Both results with their zero point, clipped to 0...255, in the lower bytes of the halves. */
DSP_INLINE uint32_t clipped(struct both sum, struct scale by, int32_t zero_point, int rounding)
{
    if (rounding == LONG) {
        const uint32_t a = dsp_usat_8(round_long(sum.a, by, zero_point));
        return dsp_low_halves(a, dsp_usat_8(round_long(sum.b, by, zero_point)));
    }
    const int32_t a = dsp_smmlar(high_product(sum.a, by.doubled, rounding), by.rounder, zero_point);
    const int32_t b = dsp_smmlar(high_product(sum.b, by.doubled, rounding), by.rounder, zero_point);
    return dsp_usat16_8(dsp_low_halves((uint32_t)a, (uint32_t)b));
}

/* `pairs` of a row of taps and `rounding` are constants where this is inlined. */
DSP_INLINE void plane_of(const int16_t *plane, const int32_t *channel, uint8_t *row, const struct arm_dsp_depthwise *fields,
                         int32_t pairs, int rounding)
{
    const struct arm_dsp_depthwise v = *fields; /* a copy: y may point anywhere */
    const int32_t *const words = channel + v.kernel_y * pairs;
    const int32_t bias = words[0];
    const struct scale scale = scale_of(words + 1, rounding);
    for (int32_t rows = v.rows; rows > 0; rows--) {
        const int16_t *x = plane;
        uint8_t *to = row;
        for (int32_t columns = v.columns; columns > 0; columns -= 2) {
            const uint32_t both = clipped(sums(x, channel, bias, &v, pairs), scale, v.zero_point, rounding);
            const uint32_t result = dsp_uadd8(dsp_uqsub8(both, (uint32_t)v.floor), (uint32_t)v.low);
            to[0] = (uint8_t)result;
            if (columns > 1) {
                to[v.y_column] = (uint8_t)(result >> 16);
            }
            x += 2 * v.column_step;
            to += 2 * v.y_column;
        }
        plane += v.row_step;
        row += v.y_row;
    }
}

DSP_INLINE void by_pairs(const int16_t *plane, const int32_t *channel, void *y, const int32_t *fields, int rounding)
{
    const struct arm_dsp_depthwise *const v = (const struct arm_dsp_depthwise *)fields;
    switch (v->pairs) {
    case 1: /* of 1 or 2 taps */
        plane_of(plane, channel, y, v, 1, rounding);
        break;
    case 2: /* of 3 or 4 */
        plane_of(plane, channel, y, v, 2, rounding);
        break;
    case 3: /* of 5 or 6 */
        plane_of(plane, channel, y, v, 3, rounding);
        break;
    case 4: /* of 7 or 8 */
        plane_of(plane, channel, y, v, 4, rounding);
        break;
    default:
        plane_of(plane, channel, y, v, v->pairs, rounding);
    }
}

void arm_dsp_depthwise_plane(const int16_t *plane, const int32_t *channel, void *y, const int32_t *fields)
{
    by_pairs(plane, channel, y, fields, TWICE);
}

void arm_dsp_depthwise_plane_long(const int16_t *plane, const int32_t *channel, void *y, const int32_t *fields)
{
    by_pairs(plane, channel, y, fields, LONG);
}

void arm_dsp_depthwise_plane_once(const int16_t *plane, const int32_t *channel, void *y, const int32_t *fields)
{
    by_pairs(plane, channel, y, fields, ONCE);
}
