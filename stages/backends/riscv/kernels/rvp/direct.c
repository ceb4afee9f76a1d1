#include "direct.h"

#include "chunk_writer.h"

/* What direct_s8.S reads, field by field; one register each. */
struct call {
    const int8_t *strip, *weights;
    const int32_t *params;
    int8_t *out;
    intptr_t chunks;                   /* of a window's row: its columns, and the channels of each */
    intptr_t halves;
    intptr_t columns;                  /* of the output */
    intptr_t strip_step;               /* bytes of the strip from a column of the output to the next */
    intptr_t out_row_step, out_column_step;
    rvp_word zero_point, upper_bytes;  /* in every 16-bit lane; 0xff00 in every 16-bit lane */
    rvp_word clamps;                   /* whether the next two fields are needed */
    rvp_word lowest, highest;          /* in every byte */
};

typedef void tile_kernel(const struct call *call);

RVP_INLINE int larger(int a, int b)
{
    return a > b ? a : b;
}

RVP_INLINE int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* RVP_WORD_BYTES pixels of fewer than four channels, from `channels` registers of memory. Bytes after a pixel in its
 * chunk have no effect: their weights are 0.
 */
RVP_INLINE void put_pixels(struct writer *w, const int8_t *from, int channels)
{
    rvp_word registers[3] = {rvp_load(from)};
#pragma GCC unroll 2
    for (int i = 1; i < channels; i++) {
        registers[i] = rvp_load(from + i * W);
    }
#pragma GCC unroll 8
    for (int pixel = 0; pixel < W; pixel++) {
        const int i = pixel * channels / W, offset = pixel * channels % W;
        rvp_word x = registers[i] >> (8 * offset);
        if (offset + channels > W) {
            x |= registers[i + 1] << (8 * (W - offset));
        }
        rvp_store(w->to, W == 8 && offset == 4 ? rvp_packu(registers[i], registers[i]) : rvp_pack_all(x));
        w->to += w->step;
    }
}

/* `count` neighbouring pixels of fewer than four channels. Pixels before and after whole registers are copied one by one. */
RVP_INLINE void put_small_pixels(struct writer *w, const int8_t *from, int count, int channels)
{
    while (count > 0) {
        if (count >= W && ((uintptr_t)from & (W - 1)) == 0) {
            do {
                put_pixels(w, from, channels);
                from += W * channels;
                count -= W;
            } while (count >= W);
        } else {
            put_short_run(w, place_of(from), from + channels - 1, 1, 0);
            from += channels;
            count--;
        }
    }
}

/* `count` neighbouring columns of an image's row, from `from` on. */
RVP_INLINE void put_columns(struct writer *w, const int8_t *from, int count, const struct rvp_direct_geometry *g)
{
    const int channels = g->channels, step = g->column_step;
    if (step == channels && channels % 4 == 0) {
        put_run(w, from, count * channels);
    } else if (step == channels && channels == 3) {
        put_small_pixels(w, from, count, 3);
    } else if (step == channels && channels == 1) {
        put_small_pixels(w, from, count, 1);
    } else if (channels <= 4) {
        for (; count > 0; count--) {
            put_short_run(w, place_of(from), from + channels - 1, 1, 0);
            from += step;
        }
    } else {
        for (; count > 0; count--) {
            put_run(w, from, channels);
            from += step;
        }
    }
}

/* The pixels of `slots` rows from `row` on and of `count` columns from `column` on, inside or outside of the image. */
static void fill_strip(int8_t *strip, const int8_t *image, int row, int slots, int column, int count,
                       const struct rvp_direct_geometry *g)
{
    const rvp_word fill = rvp_splat8(g->fill);
    const int column_bytes = (g->channels + 3) / 4 * 4;
    const int begin = smaller(larger(-column, 0), count); /* columns [begin, end) lie inside */
    const int end = larger(smaller(g->columns - column, count), begin);
    const int8_t *from = image + row * g->row_step + (column + begin) * g->column_step;
    for (int slot = 0; slot < slots; slot++) {
        struct writer w = writer_of(strip + slot * RVP_WORD_BYTES, slots, 0, 0);
        if (row + slot < 0 || row + slot >= g->rows) {
            put_fill(&w, fill, count * column_bytes);
        } else {
            put_fill(&w, fill, begin * column_bytes);
            put_columns(&w, from, end - begin, g);
            put_fill(&w, fill, (count - end) * column_bytes);
        }
        from += g->row_step;
    }
}

/* A register of channels to its slot: two chunks on RV64. */
RVP_INLINE void put_slot(int8_t *to, int chunk_step, rvp_word x)
{
    rvp_store(to, rvp_pack_all(x));
    if (RVP_LANES == 2) {
        rvp_store(to + chunk_step, rvp_packu(x, x));
    }
}

/* The same register of `count` neighbouring pixels. */
RVP_INLINE void put_slots(int8_t *to, int chunk_step, const int8_t *from, int count, int step)
{
    if (count & 1) {
        put_slot(to, chunk_step, rvp_load(from));
        from += step;
        to += W;
    }
    for (const int8_t *const end = to + (count & -2) * W; to != end; to += 2 * W) {
        put_slot(to, chunk_step, rvp_load(from));
        put_slot(to + W, chunk_step, rvp_load(from + step));
        from += 2 * step;
    }
}

/* A column of a strip whose slots are neighbouring pixels: [begin, end) are at `from`, the others are padding. */
static void fill_slots(int8_t *to, const int8_t *from, int slots, int begin, int end, int channels, rvp_word fill)
{
    const int chunk_step = slots * W, count = end - begin;
    for (int i = 0; i < channels; i += W, to += RVP_LANES * chunk_step) {
        put_slots(to + begin * W, chunk_step, from + i, count, channels);
        for (int slot = 0; slot < begin; slot++) {
            put_slot(to + slot * W, chunk_step, fill);
        }
        for (int slot = end; slot < slots; slot++) {
            put_slot(to + slot * W, chunk_step, fill);
        }
    }
}

RVP_INLINE int8_t *put_fills(int8_t *to, const int8_t *end, rvp_word fill)
{
    for (; to != end; to += W) {
        rvp_store(to, fill);
    }
    return to;
}

/* The columns of a strip from column -left of the image on, with three channels. */
static __attribute__((noinline)) void fill_threes(int8_t *to, const int8_t *from, int slots, int begin, int end,
                                                  int columns, const struct rvp_direct_geometry *g)
{
    const rvp_word fill = rvp_splat8(g->fill);
    const int step = g->column_step, aligned = (((uintptr_t)from | (uintptr_t)step) & (W - 1)) == 0;
    const int whole = aligned ? (end - begin) & -W : 0; /* pixels in whole registers */
    struct writer w = {.to = to, .step = W};
    columns -= g->left;
    for (int column = -g->left; column < columns; column++) {
        int8_t *const stop = w.to + slots * W;
        if ((unsigned)column < (unsigned)g->columns) {
            const int8_t *const last = w.to + end * W, *pixel = from;
            w.to = put_fills(w.to, w.to + begin * W, fill);
            for (const int8_t *const registers = w.to + whole * W; w.to != registers; pixel += 3 * W) {
                put_pixels(&w, pixel, 3);
            }
            for (; w.to != last; pixel += 3) {
                if (((uintptr_t)pixel & (W - 1)) == 0) {
                    put_chunk(&w, rvp_load(pixel));
                } else {
                    put_short_run(&w, place_of(pixel), pixel + 2, 1, 0);
                }
            }
        }
        w.to = put_fills(w.to, stop, fill);
        from += step;
    }
}

RVP_INLINE struct call call_of(const int32_t *params, const struct rvp_direct_geometry *g, int column_bytes)
{
    return (struct call){
        .params = params,
        .chunks = g->window_columns * ((g->channels + 3) / 4),
        .halves = 2 * g->blocks,
        .strip_step = (g->column_stride * g->phases >> g->chunk_shift) * column_bytes,
        .out_row_step = g->out_row_step,
        .out_column_step = g->out_column_step * g->phases,
        .zero_point = rvp_splat16((int8_t)g->clip),
        .upper_bytes = rvp_splat16(0xff00),
        .clamps = ((uint32_t)g->clip >> 8) != 0x007f80,
        .lowest = rvp_splat8(g->clip >> 8),
        .highest = rvp_splat8(g->clip >> 16),
    };
}

/* All tiles of a few rows, along columns: columns of the strip are rows of the image. */
static void pixel_tiles(const int8_t *x, const int8_t *weights, const int32_t *params, int8_t *out, int8_t *strip,
                        const struct rvp_direct_geometry *g, int taps, int stride, int rows, tile_kernel *kernel)
{
    const rvp_word fill = rvp_splat8(g->fill);
    const int count = (g->out_columns - 1) * g->column_stride + g->window_columns, channels = g->channels;
    const int slots = (rows - 1) * stride + taps, column_bytes = (channels + 3) / 4 * slots * W;
    struct call call = call_of(params, g, column_bytes);
    call.strip = strip;
    call.weights = weights;
    call.out = out;
    call.columns = g->out_columns;
    x -= g->left * g->column_step;
    for (int tile = 0, row = -g->top; tile < g->pixel_tiles; tile++, row += rows * stride) {
        const int before = larger(-row, 0), after = larger(smaller(g->rows - row, slots), before);
        const int8_t *from = x + (row + before) * channels;
        int8_t *to = strip;
        if (channels == 3) {
            fill_threes(to, from, slots, before, after, count, g);
        }
        for (int column = -g->left; channels != 3 && column < count - g->left; column++) {
            const int inside = column >= 0 && column < g->columns;
            fill_slots(to, from, slots, inside ? before : slots, inside ? after : slots, channels, fill);
            from += g->column_step;
            to += column_bytes;
        }
        kernel(&call);
        call.out += rows * g->out_row_step;
    }
}

static void tile(const int8_t *x, int first, const int8_t *weights, const int32_t *params, int8_t *out, int8_t *strip,
                 const struct rvp_direct_geometry *g, int taps, int stride, int rows, tile_kernel *kernel)
{
    const int slots = (rows - 1) * stride + taps;
    const int column_bytes = (g->channels + 3) / 4 * slots * RVP_WORD_BYTES;
    const int phases = g->phases, shift = g->chunk_shift;
    struct call call = call_of(params, g, column_bytes);
    const int phase_bytes = call.chunks * call.halves * taps * 2 * RVP_WORD_BYTES; /* of weights */
    for (int column = 0; column < g->out_columns; column += g->strip_columns) {
        const int columns = smaller(g->strip_columns, g->out_columns - column);
        const int begin = column * g->column_stride - g->left, last = begin + (columns - 1) * g->column_stride;
        const int begin_column = begin >> shift;
        fill_strip(strip, x, first * stride - g->top, slots, begin_column,
                   (last >> shift) - begin_column + g->window_columns, g);
        for (int i = 0; i < phases && i < columns; i++) {
            const int at = (begin + i * g->column_stride) >> shift;
            call.strip = strip + (at - begin_column) * column_bytes;
            call.weights = weights + ((column + i) & (phases - 1)) * phase_bytes;
            call.out = out + (column + i) * g->out_column_step;
            call.columns = (columns - i + phases - 1) >> (phases - 1);
            kernel(&call);
        }
    }
}

#define DIRECT(taps, stride, rows)                                                                                  \
    tile_kernel rvp_direct_s8_t##taps##s##stride##_r##rows;                                                         \
    void rvp_direct_t##taps##s##stride##_r##rows(const void *x, int first, const int8_t *weights,                   \
                                                 const int32_t *params, void *out, int8_t *strip,                   \
                                                 const int32_t *geometry)                                           \
    {                                                                                                               \
        tile(x, first, weights, params, out, strip, (const struct rvp_direct_geometry *)geometry, taps, stride, rows, \
             rvp_direct_s8_t##taps##s##stride##_r##rows);                                                           \
    }

/* For several pixels, also all tiles of a few rows at once. */
#define EITHER(taps, stride, rows)                                                                                  \
    DIRECT(taps, stride, rows)                                                                                      \
    void rvp_direct_pixels_t##taps##s##stride##_r##rows(const void *x, const int8_t *weights, const int32_t *params, \
                                                        void *out, int8_t *strip, const int32_t *geometry)          \
    {                                                                                                               \
        pixel_tiles(x, weights, params, out, strip, (const struct rvp_direct_geometry *)geometry, taps, stride, rows, \
                    rvp_direct_s8_t##taps##s##stride##_r##rows);                                                    \
    }

DIRECT(3, 1, 1)
EITHER(3, 1, 2)
EITHER(3, 1, 3)
EITHER(3, 1, 4)
EITHER(3, 1, 5)
EITHER(3, 1, 6)
EITHER(3, 1, 7)
EITHER(3, 1, 8)
EITHER(3, 1, 9)
DIRECT(3, 2, 1)
EITHER(3, 2, 2)
EITHER(3, 2, 3)
EITHER(3, 2, 4)
EITHER(3, 2, 5)
EITHER(3, 2, 6)
EITHER(3, 2, 7)
EITHER(3, 2, 8)
EITHER(3, 2, 9)
DIRECT(5, 1, 1)
EITHER(5, 1, 2)
EITHER(5, 1, 3)
EITHER(5, 1, 4)
EITHER(5, 1, 5)
EITHER(5, 1, 6)
EITHER(5, 1, 7)
DIRECT(7, 1, 1)
EITHER(7, 1, 2)
EITHER(7, 1, 3)
EITHER(7, 1, 4)
EITHER(7, 1, 5)
