/* Three pixels times four channels. The weights of two channels alternate, so a register of weights has one step of both. A step is
 * four elements of the depth with 64-bit sums on RV64, and two elements with 32-bit sums on RV32. A single pixel takes two steps at a
 * time.
 *
 *              a    b    c    d     <- weights: 2 loads, 4 to widen them
 *   pixel 0  x | 12 sums            x: a load
 *   pixel 1  x |
 *   pixel 2  x |
 */
#include "products16.h"

#include "rvp_intrinsics.h"

#define P16_ROWS 3
#define P16_CHANNELS 4
#define P16_PAIR 2
#define P16_PAIRED 0
#define P16_WRITE_SHORT write_short
#define P16_ALL_SHORT all_short

#if __riscv_xlen == 64
typedef int64_t p16_sum;
#else
typedef int32_t p16_sum;
#endif

enum { STEP = RVP_WORD_BYTES / 2 };

#define S16_HIGH(t, high) ((int32_t)rvp_smmul_u((rvp_word)(t), (rvp_word)(high)))

#include "scale16.h"

static __attribute__((noinline)) void copy_run(int16_t *to, const int16_t *from, int32_t count)
{
    if ((((uintptr_t)to | (uintptr_t)from) & (RVP_WORD_BYTES - 1)) == 0) {
        for (; count >= 4 * STEP; count -= 4 * STEP) {
            const rvp_word a = rvp_load(from), b = rvp_load(from + STEP);
            const rvp_word c = rvp_load(from + 2 * STEP), d = rvp_load(from + 3 * STEP);
            rvp_store(to, a);
            rvp_store(to + STEP, b);
            rvp_store(to + 2 * STEP, c);
            rvp_store(to + 3 * STEP, d);
            from += 4 * STEP;
            to += 4 * STEP;
        }
        for (; count >= STEP; count -= STEP) {
            rvp_store(to, rvp_load(from));
            from += STEP;
            to += STEP;
        }
    }
    for (; count >= 4; count -= 4) {
        const int16_t a = from[0], b = from[1], c = from[2], d = from[3];
        to[0] = a;
        to[1] = b;
        to[2] = c;
        to[3] = d;
        from += 4;
        to += 4;
    }
    for (; count > 0; count--) {
        *to++ = *from++;
    }
}

/* Elements are neighbours. Few are copied one by one, without a call. */
RVP_INLINE void p16_copy(int16_t *to, int32_t apart, const int16_t *from, int32_t count)
{
    (void)apart;
    if (count >= 8) {
        copy_run(to, from, count);
        return;
    }
    const int16_t *const end = from + count;
    while (from != end) {
        *to++ = *from++;
    }
}

/* Adds the products of four channels. */
struct four {
    rvp_word a, b, c, d;
};

/* Of the first `channels` of four, a constant where this is inlined; with the third the fourth. */
RVP_INLINE void load_weights(struct four *w, const int8_t *first, const int8_t *second, int32_t channels)
{
    const rvp_word ab = rvp_load(first);
    w->a = rvp_sunpkd820(ab);
    if (channels > 1) {
        w->b = rvp_sunpkd831(ab);
    }
    if (channels > 2) {
        const rvp_word cd = rvp_load(second);
        w->c = rvp_sunpkd820(cd);
        w->d = rvp_sunpkd831(cd);
    }
}

RVP_INLINE void multiply(struct four *sums, rvp_word value, const struct four *w, int32_t channels)
{
    sums->a = rvp_dot16(sums->a, value, w->a);
    if (channels > 1) {
        sums->b = rvp_dot16(sums->b, value, w->b);
    }
    if (channels > 2) {
        sums->c = rvp_dot16(sums->c, value, w->c);
        sums->d = rvp_dot16(sums->d, value, w->d);
    }
}

/* How rows begin: at multiples of registers; or, on RV64, of the half of one, where a half may be the last of a row. */
enum reading { REGISTERS_OF_A_ROW, HALVES_OF_A_ROW };

/* The elements of a step, the first half of them if it is `is_half`. */
RVP_INLINE rvp_word load_step(const int16_t *x, enum reading how, int is_half)
{
    if (how == REGISTERS_OF_A_ROW) {
        return rvp_load(x);
    }
    return is_half ? rvp_load_lane(x) : rvp_pack(rvp_load_lane(x), rvp_load_lane(x + 2));
}

struct tile {
    struct four of[P16_ROWS];
};

/* The sums of three pixels. Their rows of `count` elements are `pitch` apart. */
RVP_INLINE struct tile three_pixels(const int16_t *panel, int32_t pitch, const int8_t *w, int32_t depth, int32_t count,
                                    int32_t channels, enum reading how)
{
    const int8_t *second = w + 2 * depth;
    const int32_t whole = how == HALVES_OF_A_ROW ? count & -STEP : count;
    const int16_t *const end = panel + whole, *x1 = panel + pitch, *x2 = x1 + pitch;
    struct tile sums = {{{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}};
    struct four weights = sums.of[0];
    for (; panel != end; panel += STEP) {
        load_weights(&weights, w, second, channels);
        multiply(&sums.of[0], load_step(panel, how, 0), &weights, channels);
        multiply(&sums.of[1], load_step(x1, how, 0), &weights, channels);
        multiply(&sums.of[2], load_step(x2, how, 0), &weights, channels);
        w += 2 * STEP;
        second += 2 * STEP;
        x1 += STEP;
        x2 += STEP;
    }
    if (how == HALVES_OF_A_ROW && whole != count) {
        load_weights(&weights, w, second, channels);
        multiply(&sums.of[0], load_step(panel, how, 1), &weights, channels);
        multiply(&sums.of[1], load_step(x1, how, 1), &weights, channels);
        multiply(&sums.of[2], load_step(x2, how, 1), &weights, channels);
    }
    return sums;
}

RVP_INLINE void put_sums(p16_sum *sums, int32_t rows, const struct four *of)
{
    sums[0] = (p16_sum)of->a;
    sums[rows] = (p16_sum)of->b;
    sums[2 * rows] = (p16_sum)of->c;
    sums[3 * rows] = (p16_sum)of->d;
}

RVP_INLINE void p16_products(int32_t rows, const int16_t *panel, int32_t pitch, const int8_t *w, int32_t depth, int32_t count,
                             p16_sum *sums)
{
    if (rows > 1) {
        const struct tile made = three_pixels(panel, pitch, w, depth, count, 4, REGISTERS_OF_A_ROW);
        put_sums(sums, 3, &made.of[0]);
        put_sums(sums + 1, 3, &made.of[1]);
        put_sums(sums + 2, 3, &made.of[2]);
        return;
    }
    const int8_t *second = w + 2 * depth;
    struct four made = {0, 0, 0, 0}, weights;
    for (; count >= 2 * STEP; count -= 2 * STEP) {
#pragma GCC unroll 2
        for (int32_t k = 0; k < 2 * STEP; k += STEP) {
            load_weights(&weights, w + 2 * k, second + 2 * k, 4);
            multiply(&made, rvp_load(panel + k), &weights, 4);
        }
        panel += 2 * STEP;
        w += 4 * STEP;
        second += 4 * STEP;
    }
    if (count > 0) {
        load_weights(&weights, w, second, 4);
        multiply(&made, rvp_load(panel), &weights, 4);
    }
    put_sums(sums, 1, &made);
}

/* Four 32-bit lanes: on RV64 those of channels 0, 2 and of 1, 3 share a register, or of 0, 1 where there are no others. */
struct lanes {
    rvp_word at[4 / RVP_LANES];
};

/* Four channels' constants, and the bounds of results in the halves where these are. */
struct scaling {
    struct lanes bias, high;
    rvp_word low, most;
};

/* The low words of up to four values, `channels` a constant where this is inlined. */
RVP_INLINE struct lanes in_lanes(const struct four *v, int32_t channels)
{
#if __riscv_xlen == 64
    if (channels <= 2) {
        return (struct lanes){{channels == 1 ? v->a : rvp_pack(v->a, v->b)}};
    }
    return (struct lanes){{rvp_pack(v->a, v->c), rvp_pack(v->b, v->d)}};
#else
    (void)channels;
    return (struct lanes){{v->a, v->b, v->c, v->d}};
#endif
}

RVP_INLINE rvp_word in_halves(int32_t bound, int32_t channels)
{
    const rvp_word x = (rvp_word)bound, half = channels > 2 ? rvp_pkbb16(x, x) : x;
    return channels > 1 ? rvp_pack_all(half) : half;
}

RVP_INLINE struct scaling scaling_of(const struct s16_channel *of, int32_t channels, int32_t low, int32_t most)
{
    struct four bias = {(rvp_word)of[0].bias, 0, 0, 0}, high = {(rvp_word)of[0].high, 0, 0, 0};
    if (channels > 1) {
        bias.b = (rvp_word)of[1].bias;
        high.b = (rvp_word)of[1].high;
    }
    if (channels > 2) {
        bias.c = (rvp_word)of[2].bias;
        bias.d = (rvp_word)of[3].bias;
        high.c = (rvp_word)of[2].high;
        high.d = (rvp_word)of[3].high;
    }
    return (struct scaling){in_lanes(&bias, channels), in_lanes(&high, channels), in_halves(low, channels),
                            in_halves(most, channels)};
}

/* (sum + bias) * high / 2^32 to the nearest, halves up, saturated to 16 bits. */
RVP_INLINE rvp_word scaled(const struct lanes *sums, const struct scaling *s, int32_t i)
{
    return rvp_sclip32_15(rvp_smmul_u(rvp_add32(sums->at[i], s->bias.at[i]), s->high.at[i]));
}

RVP_INLINE rvp_word bounded(rvp_word halves, const struct scaling *s)
{
    return rvp_smin16(rvp_smax16(halves, s->low), s->most);
}

/* `count` results, one or two. */
RVP_INLINE void put_few(int16_t *y, const struct lanes *sums, const struct scaling *s, int32_t count)
{
    const rvp_word first = bounded(scaled(sums, s, 0), s);
    y[0] = (int16_t)first;
    if (count > 1) {
#if __riscv_xlen == 64
        y[1] = (int16_t)(first >> 32);
#else
        y[1] = (int16_t)bounded(scaled(sums, s, 1), s);
#endif
    }
}

/* The first `count` of four results; all of them where it is more. */
RVP_INLINE void put_four(int16_t *y, const struct lanes *sums, const struct scaling *s, int32_t count)
{
    const int is_whole = count >= 4 && ((uintptr_t)y & (RVP_WORD_BYTES - 1)) == 0;
    const rvp_word first = bounded(rvp_pkbb16(scaled(sums, s, 1), scaled(sums, s, 0)), s);
#if __riscv_xlen == 64
    const rvp_word last = first >> 32;
    if (is_whole) {
        rvp_store(y, first);
        return;
    }
#else
    const rvp_word last = bounded(rvp_pkbb16(scaled(sums, s, 3), scaled(sums, s, 2)), s);
    if (is_whole) {
        rvp_store(y, first);
        rvp_store(y + 2, last);
        return;
    }
#endif
    y[0] = (int16_t)first;
    if (count > 1) {
        y[1] = (int16_t)(first >> 16);
    }
    if (count > 2) {
        y[2] = (int16_t)last;
    }
    if (count > 3) {
        y[3] = (int16_t)(last >> 16);
    }
}

/* Results of `count` channels. `channels` is the number of channels of the sums, a constant after inlining. */
RVP_INLINE void put_results(int16_t *y, const struct four *of, const struct scaling *s, int32_t channels, int32_t count)
{
    const struct lanes sums = in_lanes(of, channels);
    if (channels <= 2) {
        put_few(y, &sums, s, count);
    } else {
        put_four(y, &sums, s, count);
    }
}

RVP_INLINE void write_short(int16_t *y, const p16_sum *sums, const struct s16_channel *of, int32_t rows, int32_t channels,
                            int32_t out_channels, int32_t low, int32_t most)
{
    (void)rows; /* one: all_short takes three */
    (void)out_channels;
    const struct four made = {(rvp_word)sums[0], (rvp_word)sums[1], (rvp_word)sums[2], (rvp_word)sums[3]};
    const struct scaling s = scaling_of(of, 4, low, most);
    put_results(y, &made, &s, 4, channels);
}

struct fl_products16;
RVP_INLINE int32_t all_short(const int16_t *panel, const int8_t *w, const struct s16_channel *of, int16_t *y,
                             int32_t out_channels, const struct fl_products16 *p);

#include "products16_image.h"

/* Three pixels times up to four channels, from registers to results. */
RVP_INLINE void three_results(const int16_t *panel, int32_t pitch, const int8_t *w, const struct s16_channel *of, int16_t *y,
                              int32_t channels, int32_t count, enum reading how, const struct fl_products16 *p)
{
    const struct tile sums = three_pixels(panel, pitch, w, p->depth, how == HALVES_OF_A_ROW ? p->run : p->depth, channels, how);
    const struct scaling s = scaling_of(of, channels, p->low, p->high);
#pragma GCC unroll 3
    for (int32_t r = 0; r < P16_ROWS; r++) {
        put_results(y + r * p->out_channels, &sums.of[r], &s, channels, count);
    }
}

/* All channels of three pixels. */
RVP_INLINE int32_t all_short(const int16_t *panel, const int8_t *w, const struct s16_channel *of, int16_t *y,
                             int32_t out_channels, const struct fl_products16 *p)
{
    const int32_t depth = p->depth;
    int32_t left = out_channels;
    for (; left >= P16_CHANNELS; left -= P16_CHANNELS) {
        three_results(panel, depth, w, of, y, 4, 4, REGISTERS_OF_A_ROW, p);
        w += P16_CHANNELS * depth;
        of += P16_CHANNELS;
        y += P16_CHANNELS;
    }
    if (left == 1) {
        three_results(panel, depth, w, of, y, 1, 1, REGISTERS_OF_A_ROW, p);
    } else if (left == 2) {
        three_results(panel, depth, w, of, y, 2, 2, REGISTERS_OF_A_ROW, p);
    } else if (left == 3) {
        three_results(panel, depth, w, of, y, 4, 3, REGISTERS_OF_A_ROW, p);
    }
    return out_channels;
}

#if __riscv_xlen == 64
/* Pixels with an even number of channels, which are read in place. The last three may overlap the ones before them. */
static void even_pixels(const int16_t *x, const int8_t *weights, const struct s16_channel *channels, int16_t *y,
                        const struct fl_products16 *p)
{
    const int32_t last = p->pixels - P16_ROWS, run = p->run;
    for (int32_t pixel = 0; pixel < p->pixels; pixel += P16_ROWS) {
        const int32_t first = pixel < last ? pixel : last;
        const int16_t *const from = x + first * run;
        const int8_t *w = weights;
        const struct s16_channel *of = channels;
        int16_t *to = y + first * p->out_channels;
        int32_t left = p->out_channels;
        for (; left > 2; left -= P16_CHANNELS) {
            three_results(from, run, w, of, to, 4, left, HALVES_OF_A_ROW, p);
            w += P16_CHANNELS * p->depth;
            of += P16_CHANNELS;
            to += P16_CHANNELS;
        }
        if (left > 0) {
            three_results(from, run, w, of, to, 2, left, HALVES_OF_A_ROW, p);
        }
    }
}
#endif

void rvp_products16(const int16_t *x, const int8_t *w, const int32_t *channels, int16_t *y, int32_t *scratch, const void *parameters)
{
#if __riscv_xlen == 64
    const struct fl_products16 *const p = parameters;
    const int is_even = p16_is_plain(p) && p->run % 2 == 0;
    if (is_even && p->mode == P16_SHORT && p->direct == 0 && p->pixels >= P16_ROWS) {
        even_pixels(x, w, (const struct s16_channel *)channels, y, p);
        return;
    }
#endif
    p16_image(x, w, channels, y, scratch, parameters);
}
