/* Pooling by rows (include/pool_rows.h): vectors are along a row of the image. */
#include "pool_rows.h"

#include "pool_lines.h"
#include "rvv_pool_rows.h"

struct pool_mean {
    int32_t elements;
};

static inline struct pool_mean pool_mean_of(int32_t elements, int is_unsigned)
{
    (void)is_unsigned;
    return (struct pool_mean){elements};
}

static inline void pool_maxima(uint8_t *to, const uint8_t *from, int32_t taps, int32_t step, int32_t count, int is_unsigned)
{
    (is_unsigned ? rvv_maxima_u8 : rvv_maxima_s8)(to, from, taps, step, count);
}

static inline void pool_sums(int16_t *to, const uint8_t *from, int32_t taps, int32_t step, int32_t count, int is_unsigned)
{
    (is_unsigned ? rvv_sums_u8 : rvv_sums_s8)(to, from, taps, step, count);
}

static inline void pool_strided(uint8_t *y, const uint8_t *line, const struct fl_pool_rows *p, int is_unsigned)
{
    const int32_t channels = p->channels, step = p->stride_x * channels;
    if (channels < p->out_width) {
        (is_unsigned ? rvv_strided_maxima_u8 : rvv_strided_maxima_s8)(y, line, p->kernel_width, channels, p->out_width, step);
        return;
    }
    for (int32_t left = p->out_width; left > 0; left--) {
        pool_maxima(y, line, p->kernel_width, channels, channels, is_unsigned);
        y += channels;
        line += step;
    }
}

static inline void pool_means(uint8_t *y, const int16_t *line, int32_t count, const struct pool_mean *by,
                              const struct fl_pool_rows *p, int is_unsigned)
{
    (is_unsigned ? rvv_means_u8 : rvv_means_s8)(y, line, p->kernel_width, p->channels, count, by->elements);
}

static inline void pool_clip(uint8_t *y, int32_t count, const struct fl_pool_rows *p, int is_unsigned)
{
    (is_unsigned ? rvv_clip_u8 : rvv_clip_s8)(y, count, p->low, p->high);
}

#include "pool_rows_image.h"

void rvv_max_rows_s8(const void *x, void *y, void *line, const int32_t *fields)
{
    pool_max_rows(x, y, line, fields, 0);
}

void rvv_max_rows_u8(const void *x, void *y, void *line, const int32_t *fields)
{
    pool_max_rows(x, y, line, fields, 1);
}

void rvv_avg_rows_s8(const void *x, void *y, void *line, const int32_t *fields)
{
    pool_average_rows(x, y, line, fields, 0);
}

void rvv_avg_rows_u8(const void *x, void *y, void *line, const int32_t *fields)
{
    pool_average_rows(x, y, line, fields, 1);
}
