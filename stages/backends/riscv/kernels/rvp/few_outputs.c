/* Eight accumulators and six pointers leave few registers for loads ahead of their use. */
#pragma GCC optimize("no-schedule-insns")
#include "few_outputs.h"

#include <stddef.h>

#include "scaled_sums.h"

/* Four neighbouring pixels of the output at a time. Windows inside the image are read in place, if pixels are whole
 * registers; other windows are copied to scratch, one after the other. A step is one load of each: `load` bytes, a register or
 * on RV64 a lane, whose products are added in all lanes; the lanes of a sum are added at the end. On RV64, pixels that are
 * whole lanes are read in place too.
 *
 *            w0   w1     <- of each output: 2 loads
 *   pixel 0 | A0   A1    x: one load each, used for two outputs (the last of an odd number is alone)
 *   ...
 *   pixel 3 | D0   D1
 *
 *   weights  [outputs][runs][steps] loads, 0 after the end of a run
 *   params   [outputs][3] registers: bias (zero points folded in) in the lower lane and 0 in the upper one (RV64),
 *            multiplier and rounder in every lane. A negative rounder marks a wide rounding, a negative multiplier marks a
 *            shift (packing.py)
 */
enum { W = RVP_WORD_BYTES, LANE = 4, PIXELS = 4, SUMS = PIXELS / RVP_LANES };

/* The addresses of the windows of four pixels, and the distance from the end of a run to the next run. */
struct windows {
    const int8_t *at[PIXELS];
    int skip;
};

struct sums {
    rvp_word at[PIXELS];
};

RVP_INLINE rvp_word multiply(rvp_word sum, rvp_word x, rvp_word w, int is_unsigned)
{
    return is_unsigned ? rvp_smaqa_su(sum, w, x) : rvp_smaqa(sum, x, w);
}

/* Hides the pointer from the compiler, which then steps it instead of adding an offset each time. */
RVP_INLINE const int8_t *anew(const int8_t *p)
{
    __asm__("" : "+r"(p));
    return p;
}

/* `load` bytes, in the lower lane if they are one. */
RVP_INLINE rvp_word load_from(const int8_t *p, int load)
{
    return load == W ? rvp_load(p) : rvp_load_lane(p);
}

RVP_INLINE void store_to(int8_t *p, rvp_word x, int load)
{
    if (load == W) {
        rvp_store(p, x);
    } else {
        rvp_store_lane(p, x);
    }
}

/* Adds `steps` steps, of one output where `second` is NULL; `steps`, `load` and `is_unsigned` are constants where this is
 * inlined.
 */
RVP_INLINE void add_steps(struct windows *x, const int8_t *w, const int8_t *v, int steps, struct sums *first,
                          struct sums *second, int load, int is_unsigned)
{
#pragma GCC unroll 2
    for (int step = 0; step < steps; step++) {
        const rvp_word a = load_from(w + step * load, load), b = second != NULL ? load_from(v + step * load, load) : 0;
#pragma GCC unroll 4
        for (int i = 0; i < PIXELS; i++) {
            const rvp_word pixel = load_from(x->at[i] + step * load, load);
            first->at[i] = multiply(first->at[i], pixel, a, is_unsigned);
            if (second != NULL) {
                second->at[i] = multiply(second->at[i], pixel, b, is_unsigned);
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < PIXELS; i++) {
        x->at[i] = anew(x->at[i] + steps * load);
    }
}

/* The bounds of outputs in every byte, and the zero point in every 16-bit lane. */
struct clip {
    rvp_word zero_point, lowest, highest, flip;
    int needed;
};

/* Constants of all pixels. */
struct layer {
    const int8_t *weights, *params;
    int outputs, output_bytes; /* of weights */
    int runs, pairs, odd;      /* of a window; of a run: bytes of pairs of steps, and whether another step follows */
    struct clip clip;
};

/* The sums of one output, or of two. */
RVP_INLINE void add_up(const struct windows *windows, const int8_t *weights, const struct layer *g, struct sums *first,
                       struct sums *second, int load, int is_unsigned)
{
    const int8_t *w = weights, *v = weights + g->output_bytes;
    struct windows x = *windows;
    const int pairs = g->pairs, odd = g->odd;
    int runs = g->runs;
    do {
        const int8_t *const end = w + pairs;
        while (w != end) {
            add_steps(&x, w, v, 2, first, second, load, is_unsigned);
            w = anew(w + 2 * load);
            v = anew(v + 2 * load);
        }
        if (odd) {
            add_steps(&x, w, v, 1, first, second, load, is_unsigned);
            w = anew(w + load);
            v = anew(v + load);
        }
#pragma GCC unroll 4
        for (int i = 0; i < PIXELS; i++) {
            x.at[i] = anew(x.at[i] + x.skip);
        }
        runs--;
    } while (runs > 0);
}

RVP_INLINE rvp_word clip_halves(rvp_word halves, const struct clip *c)
{
    const rvp_word x = rvp_kslli16_8(rvp_add16(halves, c->zero_point));
    return c->needed ? rvp_smin8(rvp_smax8(x, c->lowest), c->highest) ^ c->flip : x;
}

RVP_INLINE struct sums scaled(const struct sums *sums, const int8_t *params, enum rounding rounding, int load)
{
    const rvp_word multiplier = without_mark(rvp_load(params + W)), rounder = without_mark(rvp_load(params + 2 * W));
    struct sums y = {{0}};
#pragma GCC unroll 4
    for (int i = 0; i < SUMS; i++) {
        rvp_word sum = sums->at[i];
        if (RVP_LANES == 2) {
            const rvp_word a = sums->at[RVP_LANES * i], b = sums->at[RVP_LANES * i + RVP_LANES - 1];
            sum = load == LANE ? rvp_pack(a, b) : rvp_add32(rvp_pack(a, b), rvp_packu(a, b));
        }
        y.at[i] = scale_sum(sum, multiplier, rounder, rounding);
    }
    return y;
}

/* One output of `count` pixels, which are `step` bytes apart. */
RVP_INLINE void write_output(int8_t *out, const struct sums *sums, const int8_t *params, int count, int step,
                             const struct clip *c, int load)
{
    const intptr_t exact_mark = (intptr_t)rvp_load(params + W), mark = (intptr_t)rvp_load(params + 2 * W);
    struct sums y;
    if ((exact_mark | mark) >= 0) {
        y = scaled(sums, params, SHORT, load);
    } else if (exact_mark >= 0) {
        y = scaled(sums, params, WIDE, load);
    } else {
        y = scaled(sums, params, EXACT, load);
    }
    /* A byte in the upper half of each 16 bits: of pixels 0 and 2 in the lower lane, 1 and 3 in the upper one (RV64). */
    const rvp_word even = clip_halves(rvp_pkbb16(y.at[SUMS / 2], y.at[0]), c);
    rvp_word odd = even;
#if __riscv_xlen == 64
    odd = even >> 32;
#else
    odd = clip_halves(rvp_pkbb16(y.at[3], y.at[1]), c);
#endif
    out[0] = (int8_t)(even >> 8);
    if (count == PIXELS) {
        out[step] = (int8_t)(odd >> 8);
        out[2 * step] = (int8_t)((uint32_t)even >> 24);
        out[3 * step] = (int8_t)((uint32_t)odd >> 24);
        return;
    }
    if (count > 1) {
        out[step] = (int8_t)(odd >> 8);
    }
    if (count > 2) {
        out[2 * step] = (int8_t)((uint32_t)even >> 24);
    }
}

RVP_INLINE struct sums start_of(const int8_t *params)
{
    const rvp_word bias = rvp_load(params);
    return (struct sums){{bias, bias, bias, bias}};
}

/* All outputs of four pixels; `count` of the pixels are stored. */
RVP_INLINE void all_outputs(const struct windows *v, const struct layer *g, int8_t *out, int count, int load,
                            int is_unsigned)
{
    const int8_t *p = g->params, *weights = g->weights;
    const int outputs = g->outputs, output_bytes = g->output_bytes;
    for (int left = outputs; left > 0; left -= 2) {
        struct sums first = start_of(p);
        if (left == 1) {
            add_up(v, weights, g, &first, NULL, load, is_unsigned);
            write_output(out, &first, p, count, outputs, &g->clip, load);
            return;
        }
        struct sums second = start_of(p + 3 * W);
        add_up(v, weights, g, &first, &second, load, is_unsigned);
        write_output(out, &first, p, count, outputs, &g->clip, load);
        write_output(out + 1, &second, p + 3 * W, count, outputs, &g->clip, load);
        out += 2;
        weights += 2 * output_bytes;
        p += 6 * W;
    }
}

/* `count` pixels. Windows are `step` bytes apart, with `skip` bytes between the runs of a window. */
RVP_INLINE void row_of_pixels(const int8_t *first, int step, int skip, const struct layer *g, int8_t *out, int count,
                              int load, int is_unsigned)
{
    for (; count >= PIXELS; count -= PIXELS) {
        const struct windows v = {{first, first + step, first + 2 * step, first + 3 * step}, skip};
        all_outputs(&v, g, out, PIXELS, load, is_unsigned);
        first = anew(first + PIXELS * step);
        out += PIXELS * g->outputs;
    }
    if (count > 0) {
        /* The first pixel replaces missing pixels. */
        const int second = count > 1 ? step : 0, third = count > 2 ? 2 * step : 0;
        const struct windows v = {{first, first + second, first + third, first}, skip};
        all_outputs(&v, g, out, count, load, is_unsigned);
    }
}

typedef void pixels_kernel(const int8_t *first, int step, int skip, const struct layer *g, int8_t *out, int count);

static void pixels_s8(const int8_t *first, int step, int skip, const struct layer *g, int8_t *out, int count)
{
    row_of_pixels(first, step, skip, g, out, count, W, 0);
}

static void pixels_u8(const int8_t *first, int step, int skip, const struct layer *g, int8_t *out, int count)
{
    row_of_pixels(first, step, skip, g, out, count, W, 1);
}

/* Copies `bytes` bytes from any address to whole registers. Only registers that contain some of the bytes are read. */
RVP_INLINE void copy_run(int8_t *to, const int8_t *from, int bytes, int load)
{
    if (load != W) {
        for (; bytes > 0; bytes -= load) {
            store_to(to, load_from(from, load), load);
            to += load;
            from += load;
        }
        return;
    }
    const uintptr_t address = (uintptr_t)from;
    const int8_t *next = (const int8_t *)(address & -(uintptr_t)W);
    const int8_t *const last = (const int8_t *)((address + (uintptr_t)bytes - 1) & -(uintptr_t)W);
    const uintptr_t shift = address * 8, rest = ~shift;
    rvp_word low = rvp_load(next);
    for (; bytes > 0; bytes -= W) {
        next = next == last ? next : next + W;
        const rvp_word high = rvp_load(next);
        rvp_store(to, rvp_srl(low, shift) | rvp_sll(high << 1, rest));
        low = high;
        to += W;
    }
}

RVP_INLINE void fill_run(int8_t *to, int bytes, rvp_word fill, int load)
{
    for (; bytes > 0; bytes -= load) {
        store_to(to, fill, load);
        to += load;
    }
}

/* The window that begins at (y, x) into scratch, wherever it lies. */
RVP_INLINE void gather(int8_t *to, const int8_t *image, int y, int x, const struct rvp_few_outputs *g, int run,
                       int load)
{
    const rvp_word fill = rvp_splat8(g->fill);
    const int taps = g->dilation_x == 1 ? 1 : g->kernel_width; /* runs of a row */
    const int pixels = g->dilation_x == 1 ? g->kernel_width : 1;
    for (int ky = 0; ky < g->kernel_height; ky++) {
        const int row_inside = y >= 0 && y < g->height;
        for (int tap = 0; tap < taps; tap++) {
            const int column = x + tap * g->dilation_x;
            const int first = column < 0 ? -column : 0;
            const int last = g->width - column < pixels ? g->width - column : pixels;
            if (row_inside && first == 0 && last == pixels) {
                copy_run(to, image + (y * g->width + column) * g->channels, g->run_bytes, load);
            } else if (!row_inside || first >= last) {
                fill_run(to, g->run_bytes, fill, load);
            } else {
                const int begin = first * g->channels, end = last * g->channels;
                const int8_t *const from = image + (y * g->width + column) * g->channels;
                if (g->in_place) {
                    fill_run(to, begin, fill, load);
                    copy_run(to + begin, from + begin, end - begin, load);
                    fill_run(to + end, g->run_bytes - end, fill, load);
                } else {
                    fill_run(to, g->run_bytes, fill, load);
                    for (int i = begin; i < end; i++) {
                        to[i] = from[i];
                    }
                }
            }
            to += run;
        }
        y += g->dilation_y;
    }
}

RVP_INLINE int smaller(int a, int b)
{
    return a < b ? a : b;
}

RVP_INLINE void few_outputs(const int8_t *x, const int8_t *weights, const int32_t *params, int8_t *out, int8_t *scratch,
                            const struct rvp_few_outputs *g, pixels_kernel *kernel, int load)
{
    const int steps = (g->run_bytes + load - 1) / load, run = steps * load, window_bytes = g->runs * run;
    const struct layer layer = {
        .weights = weights,
        .params = (const int8_t *)params,
        .outputs = g->outputs,
        .output_bytes = window_bytes,
        .runs = g->runs,
        .pairs = steps / 2 * 2 * load,
        .odd = steps & 1,
        .clip = {rvp_splat16((int8_t)g->clip), rvp_splat8(g->clip >> 8), rvp_splat8(g->clip >> 16),
                 rvp_splat8(g->clip >> 24), ((uint32_t)g->clip >> 8) != 0x007f80},
    };
    const int inner_y = g->height - (g->kernel_height - 1) * g->dilation_y;
    /* Outputs whose windows lie inside the image, in a row */
    const int inner_x = g->width - (g->kernel_width - 1) * g->dilation_x;
    const int begin = smaller((g->left + g->stride_x - 1) / g->stride_x, g->out_width);
    const int end = inner_x + g->left > 0 ? smaller((inner_x - 1 + g->left) / g->stride_x + 1, g->out_width) : 0;
    for (int oy = 0; oy < g->out_height; oy++) {
        const int row = oy * g->stride_y - g->top;
        const int row_inside = g->in_place && row >= 0 && row < inner_y && begin < end;
        for (int ox = 0; ox < g->out_width;) {
            const int column = ox * g->stride_x - g->left;
            int count;
            if (row_inside && ox >= begin && ox < end) {
                count = end - ox;
                kernel(x + (row * g->width + column) * g->channels, g->stride_x * g->channels,
                       g->dilation_y * g->width * g->channels - run, &layer, out, count);
            } else {
                count = smaller(PIXELS, (row_inside && ox < begin ? begin : g->out_width) - ox);
                for (int i = 0; i < count; i++) {
                    gather(scratch + i * window_bytes, x, row, column + i * g->stride_x, g, run, load);
                }
                kernel(scratch, window_bytes, 0, &layer, out, count);
            }
            out += count * g->outputs;
            ox += count;
        }
    }
}

void rvp_few_outputs_s8(const void *x, const int8_t *weights, const int32_t *params, void *out, int8_t *scratch,
                        const int32_t *layer)
{
    few_outputs(x, weights, params, out, scratch, (const struct rvp_few_outputs *)layer, pixels_s8, W);
}

void rvp_few_outputs_u8(const void *x, const int8_t *weights, const int32_t *params, void *out, int8_t *scratch,
                        const int32_t *layer)
{
    few_outputs(x, weights, params, out, scratch, (const struct rvp_few_outputs *)layer, pixels_u8, W);
}

#if __riscv_xlen == 64
static void pixels_lanes_s8(const int8_t *first, int step, int skip, const struct layer *g, int8_t *out, int count)
{
    row_of_pixels(first, step, skip, g, out, count, LANE, 0);
}

static void pixels_lanes_u8(const int8_t *first, int step, int skip, const struct layer *g, int8_t *out, int count)
{
    row_of_pixels(first, step, skip, g, out, count, LANE, 1);
}

void rvp_few_outputs_lanes_s8(const void *x, const int8_t *weights, const int32_t *params, void *out, int8_t *scratch,
                              const int32_t *layer)
{
    few_outputs(x, weights, params, out, scratch, (const struct rvp_few_outputs *)layer, pixels_lanes_s8, LANE);
}

void rvp_few_outputs_lanes_u8(const void *x, const int8_t *weights, const int32_t *params, void *out, int8_t *scratch,
                              const int32_t *layer)
{
    few_outputs(x, weights, params, out, scratch, (const struct rvp_few_outputs *)layer, pixels_lanes_u8, LANE);
}
#endif
