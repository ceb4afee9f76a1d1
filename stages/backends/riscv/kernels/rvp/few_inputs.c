#include "few_inputs.h"

#include "chunk_writer.h"
#include "panel.h"

/* Chunks of neighbouring windows: chunk i is the `bytes` bytes at from + i * step, one to four. They go to registers `apart`
 * bytes from each other.
 */
struct chunks {
    const int8_t *from;
    int8_t *to;
    int bytes, step, apart;
};

RVP_INLINE void put_single_chunks(struct chunks c, int count)
{
    for (; count > 0; count--) {
        struct writer w = {.to = c.to};
        put_short_run(&w, place_of(c.from), c.from + c.bytes - 1, 1, 0);
        c.from += c.step;
        c.to += c.apart;
    }
}

/* The same for a constant step of at most four: W chunks lie in `step` registers, at places that are known.
 *
 * Bytes are shifted to the beginning of registers when they are read. This reads one register more than contains them. `last` is
 * the register with the last byte; it is read again instead of the register after it.
 *
 *   aligned   | a b c d e f g h | i j ...      step 3, RV64
 *   chunks      a b c d
 *                     d e f g
 *                           g h   i j          joined from two
 */
RVP_INLINE void put_chunks_of_step(struct chunks c, int count, int step)
{
    const struct place p = place_of(c.from);
    const int8_t *const last = (const int8_t *)((uintptr_t)(c.from + (count - 1) * step + c.bytes - 1) & -(uintptr_t)W);
    const int8_t *next = p.first + W;
    rvp_word held = rvp_load(p.first), first = 0;
    int8_t *to = c.to;
    int left = count;
    for (int is_first = 1; left >= W; left -= W) {
        rvp_word x[5];
#pragma GCC unroll 5
        for (int i = 0; i <= step; i++) {
            if (i == 0 && !is_first) {
                x[0] = first;
                continue;
            }
            const rvp_word read = rvp_load(next < last ? next : last);
            x[i] = rvp_srl(held, p.shift) | rvp_sll(read << 1, p.rest);
            held = read;
            next += W;
        }
        is_first = 0;
        first = x[step];
#pragma GCC unroll 8
        for (int i = 0; i < W; i++) {
            const int at = i * step / W, shift = 8 * (i * step % W);
            rvp_word chunk = x[at] >> shift;
            if (shift > 8 * (W - 4)) {
                chunk |= x[at + 1] << (8 * W - shift);
            }
            rvp_store(to, rvp_pack_all(chunk));
            to += c.apart;
        }
    }
    c.from += (count - left) * step;
    c.to = to;
    put_single_chunks(c, left);
}

static void put_chunks(struct chunks c, int count)
{
    if (c.step == 1) {
        put_chunks_of_step(c, count, 1);
    } else if (c.step == 2) {
        put_chunks_of_step(c, count, 2);
    } else if (c.step == 3) {
        put_chunks_of_step(c, count, 3);
    } else if (((uintptr_t)c.from | (uintptr_t)c.step) % 4 == 0) {
        for (; count > 0; count--) {
            rvp_store(c.to, rvp_pack_all(rvp_load_lane(c.from)));
            c.from += c.step;
            c.to += c.apart;
        }
    } else {
        put_single_chunks(c, count);
    }
}

/* A run of `count` neighbouring windows, `bytes` bytes that begin at c.from; returns where the next run's chunks belong. */
RVP_INLINE int8_t *put_runs(struct chunks c, int bytes, int count)
{
    for (int at = 0; at < bytes; at += 4) {
        c.bytes = bytes - at < 4 ? bytes - at : 4;
        put_chunks(c, count);
        c.from += 4;
        c.to += W;
    }
    return c.to;
}

void rvp_few_inputs_rows(int32_t *panels, const void *x, int count, int depth)
{
    const int apart = (depth + 3) / 4 * W;
    put_runs((struct chunks){.from = x, .to = (int8_t *)panels, .step = depth, .apart = apart}, depth, count);
}

RVP_INLINE int bounded(int value, int lowest, int highest)
{
    const int raised = value < lowest ? lowest : value;
    return raised < highest ? raised : highest;
}

void rvp_few_inputs_windows(int32_t *panels, const void *image, int first, int count, const int32_t *geometry)
{
    const struct rvp_geometry *const g = (const struct rvp_geometry *)geometry;
    const int is_row = g->dilation_x == 1; /* a row of a window is one run; otherwise each pixel is */
    const int runs = is_row ? 1 : g->kernel_x, bytes = (is_row ? g->kernel_x : 1) * g->channels;
    const int apart = g->kernel_y * runs * ((bytes + 3) / 4) * W, row_bytes = g->width * g->channels;
    const int inner_y = g->height - (g->kernel_y - 1) * g->dilation_y; /* windows that start there are partly outside */
    const int inner_x = g->width - (g->kernel_x - 1) * g->dilation_x;
    const int inner_first = (g->left + g->stride_x - 1) / g->stride_x;
    const int inner_end = (inner_x + g->left + g->stride_x - 1) / g->stride_x;
    int8_t *to = (int8_t *)panels;
    int row = first / g->out_width, column = first - row * g->out_width;
    while (count > 0) {
        const int y = row * g->stride_y - g->top, rest = g->out_width - column;
        const int end = column + (rest < count ? rest : count), has_inner = y >= 0 && y < inner_y;
        const int begin = has_inner ? bounded(inner_first, column, end) : end;
        const int inner = has_inner ? bounded(inner_end, begin, end) - begin : 0;
        const int pixel = row * g->out_width;
        if (begin > column) {
            rvp_panel_windows((int32_t *)to, image, pixel + column, 1, begin - column, geometry, 0, 0);
            to += (begin - column) * apart;
        }
        if (inner > 0) {
            const int8_t *from = (const int8_t *)image + y * row_bytes + (begin * g->stride_x - g->left) * g->channels;
            int8_t *chunk = to;
            for (int ky = 0; ky < g->kernel_y; ky++) {
                for (int kx = 0; kx < runs; kx++) {
                    struct chunks c = {.from = from + kx * g->dilation_x * g->channels, .to = chunk, .apart = apart};
                    c.step = g->stride_x * g->channels;
                    chunk = put_runs(c, bytes, inner);
                }
                from += g->dilation_y * row_bytes;
            }
            to += inner * apart;
        }
        if (end > begin + inner) {
            rvp_panel_windows((int32_t *)to, image, pixel + begin + inner, 1, end - begin - inner, geometry, 0, 0);
            to += (end - begin - inner) * apart;
        }
        count -= end - column;
        column = 0;
        row++;
    }
}
