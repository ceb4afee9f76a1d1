#include "mean.h"

#include "plane_sum.h"
#include "requantize.h"
#include "sums.h"

DSP_INLINE uint8_t mean(int32_t sum, const struct arm_dsp_mean *v)
{
    const int32_t centred = sum - v->offset;
    const int32_t scaled = v->single_rounding ? fl_requantize_single(centred, v->multiplier, v->shift)
                                              : fl_requantize_double(centred, v->multiplier, v->shift);
    return (uint8_t)fl_clamp(fl_add_wrapping(scaled, v->zero_point), v->low, v->high);
}

DSP_INLINE void store_means(uint8_t *y, struct sums4 sum, const struct arm_dsp_mean *v)
{
    y[0] = mean(sum.a, v);
    y[1] = mean(sum.b, v);
    y[2] = mean(sum.c, v);
    y[3] = mean(sum.d, v);
}

DSP_INLINE void mean_rows(const uint8_t *x, uint8_t *y, int32_t count, const struct arm_dsp_mean *v, int is_unsigned)
{
    const struct sums_walk walk = {v->rows, v->row_step, v->columns, v->column_step};
    int32_t i = 0;
    for (; v->rows * v->columns <= SUMS_MOST && i + 16 <= count; i += 16) {
        const struct sums_halves sum = sums_of_words(x + i, &walk, 4, is_unsigned);
        store_means(y + i, sums_split(sum.even0, sum.odd0, is_unsigned), v);
        store_means(y + i + 4, sums_split(sum.even1, sum.odd1, is_unsigned), v);
        store_means(y + i + 8, sums_split(sum.even2, sum.odd2, is_unsigned), v);
        store_means(y + i + 12, sums_split(sum.even3, sum.odd3, is_unsigned), v);
    }
    for (; i < count && count >= 4; i += 4) { /* the last four may overlap the previous four */
        const int32_t first = i + 4 <= count ? i : count - 4;
        store_means(y + first, sums_of_four(x + first, &walk, is_unsigned), v);
    }
    for (; i < count; i++) {
        y[i] = mean(sums_of_one(x + i, &walk, is_unsigned), v);
    }
}

DSP_INLINE void mean_planes(const uint8_t *x, uint8_t *y, int32_t count, const struct arm_dsp_mean *v, int32_t flip)
{
    const int32_t pixels = v->rows * v->columns;
    for (int32_t i = 0; i < count; i++) {
        y[i] = mean(plane_sum(x, pixels, flip), v);
        x += pixels;
    }
}

void arm_dsp_mean_rows_s8(const void *x, void *y, int32_t count, const int32_t *fields)
{
    const struct arm_dsp_mean v = *(const struct arm_dsp_mean *)fields; /* local copy: y may alias it */
    mean_rows(x, y, count, &v, 0);
}

void arm_dsp_mean_rows_u8(const void *x, void *y, int32_t count, const int32_t *fields)
{
    const struct arm_dsp_mean v = *(const struct arm_dsp_mean *)fields;
    mean_rows(x, y, count, &v, 1);
}

void arm_dsp_mean_planes_s8(const void *x, void *y, int32_t count, const int32_t *fields)
{
    const struct arm_dsp_mean v = *(const struct arm_dsp_mean *)fields;
    mean_planes(x, y, count, &v, 0x80);
}

void arm_dsp_mean_planes_u8(const void *x, void *y, int32_t count, const int32_t *fields)
{
    const struct arm_dsp_mean v = *(const struct arm_dsp_mean *)fields;
    mean_planes(x, y, count, &v, 0);
}
