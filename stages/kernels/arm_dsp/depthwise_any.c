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

/* `pairs` of a row of taps is a constant where this is inlined. */
DSP_INLINE void plane_of(const int16_t *plane, const int32_t *channel, uint8_t *row, const struct arm_dsp_depthwise *fields,
                         int32_t pairs)
{
    const struct arm_dsp_depthwise v = *fields; /* a copy: y may point anywhere */
    const int32_t *const scale = channel + v.kernel_y * pairs;
    const int32_t bias = scale[0], doubled = scale[1], rounder = scale[2];
    for (int32_t rows = v.rows; rows > 0; rows--) {
        const int16_t *x = plane;
        uint8_t *to = row;
        for (int32_t columns = v.columns; columns > 0; columns -= 2) {
            const struct both sum = sums(x, channel, bias, &v, pairs);
            const int32_t a = dsp_smmlar(dsp_smmlar(sum.a, doubled, sum.a), rounder, v.zero_point);
            const int32_t b = dsp_smmlar(dsp_smmlar(sum.b, doubled, sum.b), rounder, v.zero_point);
            const uint32_t clipped = dsp_usat16_8(dsp_low_halves((uint32_t)a, (uint32_t)b));
            const uint32_t result = dsp_uadd8(dsp_uqsub8(clipped, (uint32_t)v.floor), (uint32_t)v.low);
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

void arm_dsp_depthwise_plane(const int16_t *plane, const int32_t *channel, void *y, const int32_t *fields)
{
    const struct arm_dsp_depthwise *const v = (const struct arm_dsp_depthwise *)fields;
    switch (v->pairs) {
    case 2: /* of 3 or 4 taps */
        plane_of(plane, channel, y, v, 2);
        break;
    case 3: /* of 5 or 6 */
        plane_of(plane, channel, y, v, 3);
        break;
    default:
        plane_of(plane, channel, y, v, v->pairs);
    }
}
