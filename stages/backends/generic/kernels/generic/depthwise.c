/* Depthwise convolution of one image: y = requantize(bias' + sum over the window of x * (w - weight_zero_point)).
 *
 * The term of the input's zero point is in bias', so taps outside the image are computed with the zero point. Both loops compute
 * four outputs at once that share work: channels of a pixel, or pixels of a row.
 */
#include "depthwise.h"

#include "channels.h"
#include "elements.h"
#include "scaling.h"

/* An output byte from the sum of products. */
static uint8_t finish(int32_t sum, const int32_t *channel, const struct fl_depthwise *v)
{
    const int32_t acc = fl_add_wrapping(channel[FL_BIAS], sum);
    const int32_t scaled = v->single_rounding ? fl_requantize_single(acc, channel[FL_MULTIPLIER], channel[FL_SHIFT])
                                              : scaled_twice(acc, channel[FL_MULTIPLIER], channel[FL_SHIFT]);
    return (uint8_t)fl_clamp(fl_add_wrapping(scaled, v->zero_point), v->low, v->high);
}

/* The sum of one output channel at one position, tap by tap. Taps are `pixel` bytes apart in x, `w_tap` in w. */
INLINE int32_t one(const uint8_t *x, const int8_t *w, int32_t y0, int32_t x0, int32_t pixel, int32_t w_tap,
                   const struct fl_depthwise *v, int is_unsigned)
{
    int32_t sum = 0;
    for (int32_t ky = 0; ky < v->kernel_height; ky++) {
        const int32_t iy = y0 + ky * v->dilation_y;
        const int row_inside = iy >= 0 && iy < v->height;
        for (int32_t kx = 0; kx < v->kernel_width; kx++) {
            const int32_t ix = x0 + kx * v->dilation_x;
            const int within = row_inside && ix >= 0 && ix < v->width;
            const int32_t value = within ? load(x + (iy * v->width + ix) * pixel, is_unsigned) : v->input_zero_point;
            sum += value * (*w - v->weight_zero_point);
            w += w_tap;
        }
    }
    return sum;
}

/* The sums of four neighbours: channels of a pixel, or pixels of a row. */
struct four {
    int32_t a, b, c, d;
};

/* The part of a window that lies inside the image: taps [top, bottom) by [left, right). */
struct clip {
    int32_t top, bottom, left, right;
};

/* How many of `count` taps, the first at `at`, lie before `size`. */
static inline int32_t taps_before(int32_t size, int32_t at, int32_t count, int32_t dilation)
{
    const int32_t room = size - at + dilation - 1;
    return fl_clamp(dilation == 1 ? room : room / dilation, 0, count);
}

static struct clip clip_of(int32_t y0, int32_t x0, const struct fl_depthwise *v)
{
    return (struct clip){
        taps_before(0, y0, v->kernel_height, v->dilation_y),
        taps_before(v->height, y0, v->kernel_height, v->dilation_y),
        taps_before(0, x0, v->kernel_width, v->dilation_x),
        taps_before(v->width, x0, v->kernel_width, v->dilation_x),
    };
}

/* The sums of four neighbouring channels over `rows` by `columns` taps inside the image. Steps are in bytes. */
INLINE struct four inside(const uint8_t *x, const int8_t *w, int32_t rows, int32_t columns, int32_t x_row,
                          int32_t x_tap, int32_t w_row, int32_t w_tap, int32_t zero_point, int is_unsigned)
{
    struct four s = {0, 0, 0, 0};
    for (; rows > 0; rows--) {
        const uint8_t *p = x;
        const int8_t *q = w;
        for (int32_t n = columns; n > 0; n--) {
            s.a += load(p, is_unsigned) * (q[0] - zero_point);
            s.b += load(p + 1, is_unsigned) * (q[1] - zero_point);
            s.c += load(p + 2, is_unsigned) * (q[2] - zero_point);
            s.d += load(p + 3, is_unsigned) * (q[3] - zero_point);
            p += x_tap;
            q += w_tap;
        }
        x += x_row;
        w += w_row;
    }
    return s;
}

/* The terms of taps outside the image, where every x is the zero point. */
static struct four outside(struct four s, const int8_t *w, struct clip in, const struct fl_depthwise *v)
{
    for (int32_t ky = 0; ky < v->kernel_height; ky++) {
        for (int32_t kx = 0; kx < v->kernel_width; kx++) {
            if (ky < in.top || ky >= in.bottom || kx < in.left || kx >= in.right) {
                s.a += v->input_zero_point * (w[0] - v->weight_zero_point);
                s.b += v->input_zero_point * (w[1] - v->weight_zero_point);
                s.c += v->input_zero_point * (w[2] - v->weight_zero_point);
                s.d += v->input_zero_point * (w[3] - v->weight_zero_point);
            }
            w += v->channels;
        }
    }
    return s;
}

/* All channels of one position, if each has a separate input channel: four channels share the loop over taps. */
INLINE void position_nhwc(const uint8_t *x, const int8_t *w, const int32_t *channels, uint8_t *y, int32_t y0,
                          int32_t x0, const struct fl_depthwise *v, int is_unsigned)
{
    const struct clip in = clip_of(y0, x0, v);
    const int32_t rows = in.bottom - in.top, columns = in.right - in.left;
    const int clipped = rows < v->kernel_height || columns < v->kernel_width;
    const int32_t count = v->channels, step = v->y_channel;
    const int32_t x_tap = v->dilation_x * count, x_row = v->dilation_y * v->width * count;
    const int32_t zero_point = is_unsigned ? v->weight_zero_point : 0;
    const uint8_t *from = x + (y0 + in.top * v->dilation_y) * v->width * count + (x0 + in.left * v->dilation_x) * count;
    const int8_t *tap = w + (in.top * v->kernel_width + in.left) * count;
    int32_t c = 0;
    for (; c + 4 <= count; c += 4) {
        struct four s = inside(from + c, tap + c, rows, columns, x_row, x_tap, v->kernel_width * count, count,
                               zero_point, is_unsigned);
        if (clipped) {
            s = outside(s, w + c, in, v);
        }
        y[0] = finish(s.a, channels, v);
        y[step] = finish(s.b, channels + FL_CHANNEL, v);
        y[2 * step] = finish(s.c, channels + 2 * FL_CHANNEL, v);
        y[3 * step] = finish(s.d, channels + 3 * FL_CHANNEL, v);
        channels += 4 * FL_CHANNEL;
        y += 4 * step;
    }
    for (; c < count; c++) {
        *y = finish(one(x + c, w + c, y0, x0, count, count, v, is_unsigned), channels, v);
        channels += FL_CHANNEL;
        y += step;
    }
}

/* All channels of one position, if `multiplier` output channels share an input channel. */
INLINE void position_multiplied(const uint8_t *x, const int8_t *w, const int32_t *channels, uint8_t *y, int32_t y0,
                                int32_t x0, const struct fl_depthwise *v, int is_unsigned)
{
    const int32_t pixel = v->channels / v->multiplier;
    for (int32_t c = 0; c < v->channels; c++) {
        const int32_t sum = one(x + c / v->multiplier, w + c, y0, x0, pixel, v->channels, v, is_unsigned);
        *y = finish(sum, channels, v);
        channels += FL_CHANNEL;
        y += v->y_channel;
    }
}

/* Column ix of a row, or the zero point if it is outside of the image. */
INLINE int32_t at(const uint8_t *row, int32_t ix, const struct fl_depthwise *v, int is_unsigned)
{
    return ix >= 0 && ix < v->width ? load(row + ix, is_unsigned) : v->input_zero_point;
}

/* The sums of four neighbouring pixels whose windows may be partly outside of the image. */
INLINE struct four at_border(const uint8_t *x, const int8_t *w, int32_t y0, int32_t x0, const struct fl_depthwise *v,
                             int is_unsigned)
{
    const int32_t step = v->stride_x;
    struct four s = {0, 0, 0, 0};
    for (int32_t ky = 0; ky < v->kernel_height; ky++) {
        const int32_t iy = y0 + ky * v->dilation_y;
        const int row_inside = iy >= 0 && iy < v->height;
        const uint8_t *row = x + (row_inside ? iy * v->width : 0);
        int32_t ix = row_inside ? x0 : v->width; /* a row outside has no column inside */
        for (int32_t kx = 0; kx < v->kernel_width; kx++) {
            const int32_t weight = *w++ - v->weight_zero_point;
            s.a += at(row, ix, v, is_unsigned) * weight;
            s.b += at(row, ix + step, v, is_unsigned) * weight;
            s.c += at(row, ix + 2 * step, v, is_unsigned) * weight;
            s.d += at(row, ix + 3 * step, v, is_unsigned) * weight;
            ix += v->dilation_x;
        }
    }
    return s;
}

/* The sums of four neighbouring pixels whose windows lie inside the image. */
INLINE struct four in_plane(const uint8_t *x, const int8_t *w, const struct fl_depthwise *v, int is_unsigned)
{
    const int32_t step = v->stride_x;
    const int32_t zero_point = is_unsigned ? v->weight_zero_point : 0;
    struct four s = {0, 0, 0, 0};
    for (int32_t ky = v->kernel_height; ky > 0; ky--) {
        const uint8_t *p = x;
        for (int32_t kx = v->kernel_width; kx > 0; kx--) {
            const int32_t weight = *w++ - zero_point;
            s.a += load(p, is_unsigned) * weight;
            s.b += load(p + step, is_unsigned) * weight;
            s.c += load(p + 2 * step, is_unsigned) * weight;
            s.d += load(p + 3 * step, is_unsigned) * weight;
            p += v->dilation_x;
        }
        x += v->dilation_y * v->width;
    }
    return s;
}

/* One row of a plane, four pixels at once. Of the last four, only existing pixels are stored. */
INLINE void row_nchw(const uint8_t *x, const int8_t *w, const int32_t *channel, uint8_t *y, int32_t y0,
                     const struct fl_depthwise *v, int is_unsigned)
{
    const int32_t reach = (v->kernel_width - 1) * v->dilation_x + 3 * v->stride_x; /* from the first tap to the last */
    const int inside_rows = y0 >= 0 && y0 + (v->kernel_height - 1) * v->dilation_y < v->height;
    for (int32_t ox = 0; ox < v->out_width; ox += 4) {
        const int32_t x0 = ox * v->stride_x - v->left;
        const int32_t left_over = v->out_width - ox;
        const int is_inside = inside_rows && x0 >= 0 && x0 + reach < v->width;
        const struct four s = is_inside ? in_plane(x + y0 * v->width + x0, w, v, is_unsigned)
                                        : at_border(x, w, y0, x0, v, is_unsigned);
        y[0] = finish(s.a, channel, v);
        if (left_over > 1) {
            y[v->y_pixel] = finish(s.b, channel, v);
        }
        if (left_over > 2) {
            y[2 * v->y_pixel] = finish(s.c, channel, v);
        }
        if (left_over > 3) {
            y[3 * v->y_pixel] = finish(s.d, channel, v);
        }
        y += 4 * v->y_pixel;
    }
}

INLINE void image_nhwc(const uint8_t *x, const int8_t *w, const int32_t *channels, uint8_t *y,
                       const struct fl_depthwise *v, int is_unsigned)
{
    for (int32_t oy = 0; oy < v->out_height; oy++) {
        for (int32_t ox = 0; ox < v->out_width; ox++) {
            const int32_t y0 = oy * v->stride_y - v->top;
            const int32_t x0 = ox * v->stride_x - v->left;
            if (v->multiplier == 1) {
                position_nhwc(x, w, channels, y, y0, x0, v, is_unsigned);
            } else {
                position_multiplied(x, w, channels, y, y0, x0, v, is_unsigned);
            }
            y += v->y_pixel;
        }
    }
}

INLINE void plane_nchw(const uint8_t *x, const int8_t *w, const int32_t *channel, uint8_t *y,
                       const struct fl_depthwise *v, int is_unsigned)
{
    for (int32_t oy = 0; oy < v->out_height; oy++) {
        row_nchw(x, w, channel, y, oy * v->stride_y - v->top, v, is_unsigned);
        y += v->out_width * v->y_pixel;
    }
}

void fl_depthwise_nhwc_s8(const int8_t *x, const int8_t *w, const int32_t *channels, void *y, const void *parameters)
{
    image_nhwc((const uint8_t *)x, w, channels, y, parameters, 0);
}

void fl_depthwise_nhwc_u8(const uint8_t *x, const int8_t *w, const int32_t *channels, void *y, const void *parameters)
{
    image_nhwc(x, w, channels, y, parameters, 1);
}

void fl_depthwise_nchw_s8(const int8_t *x, const int8_t *w, const int32_t *channel, void *y, const void *parameters)
{
    plane_nchw((const uint8_t *)x, w, channel, y, parameters, 0);
}

void fl_depthwise_nchw_u8(const uint8_t *x, const int8_t *w, const int32_t *channel, void *y, const void *parameters)
{
    plane_nchw(x, w, channel, y, parameters, 1);
}
