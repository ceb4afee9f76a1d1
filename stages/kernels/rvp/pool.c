#include "pool.h"

#include "rvp_intrinsics.h"

enum { W = RVP_WORD_BYTES };
enum kind { AVERAGE_SIGNED, AVERAGE_UNSIGNED, MAXIMUM_SIGNED, MAXIMUM_UNSIGNED };

/* The elements of a window that lie inside the image: `rows` of `columns` pixels. */
struct window {
    int rows, columns;
    int row_step, pixel_step; /* bytes */
};

RVP_INLINE int clip(int value, int lowest, int highest)
{
    return value < lowest ? lowest : value > highest ? highest : value;
}

/* The mean, halves away from zero, of `count` elements that add up to `sum`. */
RVP_INLINE int mean(int sum, int count)
{
    const int half = count / 2;
    return (sum > 0 ? sum + half : sum - half) / count;
}

/* W channels of one output: bytes 0, 2, ... add up in the 16-bit lanes of `even`, the others in `odd`. */
RVP_INLINE void average(const int8_t *x, int8_t *y, const struct window *v, const struct rvp_pool *p, int is_unsigned)
{
    rvp_word even = 0, odd = 0;
    for (int row = v->rows; row > 0; row--) {
        const int8_t *from = x;
        for (int column = v->columns; column > 0; column--) {
            const rvp_word bytes = rvp_load(from);
            even = rvp_add16(even, is_unsigned ? rvp_zunpkd820(bytes) : rvp_sunpkd820(bytes));
            odd = rvp_add16(odd, is_unsigned ? rvp_zunpkd831(bytes) : rvp_sunpkd831(bytes));
            from += v->pixel_step;
        }
        x += v->row_step;
    }
    const int count = v->rows * v->columns;
    for (int c = 0; c < W; c += 2) {
        const int first = is_unsigned ? (uint16_t)even : (int16_t)even;
        const int second = is_unsigned ? (uint16_t)odd : (int16_t)odd;
        y[c] = (int8_t)clip(mean(first, count), p->lowest, p->highest);
        y[c + 1] = (int8_t)clip(mean(second, count), p->lowest, p->highest);
        even >>= 16;
        odd >>= 16;
    }
}

/* W channels of one output. */
RVP_INLINE void maximum(const int8_t *x, int8_t *y, const struct window *v, const struct rvp_pool *p, int is_unsigned)
{
    const rvp_word lowest = rvp_splat8(p->lowest), highest = rvp_splat8(p->highest);
    rvp_word largest = lowest;
    for (int row = v->rows; row > 0; row--) {
        const int8_t *from = x;
        for (int column = v->columns; column > 0; column--) {
            const rvp_word bytes = rvp_load(from);
            largest = is_unsigned ? rvp_umax8(largest, bytes) : rvp_smax8(largest, bytes);
            from += v->pixel_step;
        }
        x += v->row_step;
    }
    rvp_store(y, is_unsigned ? rvp_umin8(largest, highest) : rvp_smin8(largest, highest));
}

RVP_INLINE void pool(const int8_t *x, int8_t *y, const struct rvp_pool *p, enum kind kind)
{
    const int channels = p->channels;
    struct window v = {.row_step = p->width * channels, .pixel_step = channels};
    for (int oy = 0; oy < p->out_height; oy++) {
        const int y0 = oy * p->stride_y - p->top;
        const int first_row = clip(y0, 0, p->height);
        v.rows = clip(y0 + p->kernel_y, 0, p->height) - first_row;
        for (int ox = 0; ox < p->out_width; ox++) {
            const int x0 = ox * p->stride_x - p->left;
            const int first_column = clip(x0, 0, p->width);
            v.columns = clip(x0 + p->kernel_x, 0, p->width) - first_column;
            const int8_t *const from = x + (first_row * p->width + first_column) * channels;
            for (int c = 0; c < channels; c += W) {
                if (kind == AVERAGE_SIGNED || kind == AVERAGE_UNSIGNED) {
                    average(from + c, y + c, &v, p, kind == AVERAGE_UNSIGNED);
                } else {
                    maximum(from + c, y + c, &v, p, kind == MAXIMUM_UNSIGNED);
                }
            }
            y += channels;
        }
    }
}

void rvp_avg_pool_s8(const void *x, void *y, const int32_t *parameters)
{
    pool(x, y, (const struct rvp_pool *)parameters, AVERAGE_SIGNED);
}

void rvp_avg_pool_u8(const void *x, void *y, const int32_t *parameters)
{
    pool(x, y, (const struct rvp_pool *)parameters, AVERAGE_UNSIGNED);
}

void rvp_max_pool_s8(const void *x, void *y, const int32_t *parameters)
{
    pool(x, y, (const struct rvp_pool *)parameters, MAXIMUM_SIGNED);
}

void rvp_max_pool_u8(const void *x, void *y, const int32_t *parameters)
{
    pool(x, y, (const struct rvp_pool *)parameters, MAXIMUM_UNSIGNED);
}
