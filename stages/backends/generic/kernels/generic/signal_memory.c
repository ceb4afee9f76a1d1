/* TFLM's signal operators with state; the formulas are in stages/ir/operators/signal_memory.py. */
#include "signal_memory.h"

#include "float_vectors.h"

#include <stdbool.h>

typedef uint32_t __attribute__((may_alias)) word;

/* Copy samples in ascending order, two at a time if both addresses are aligned. `to` may precede `from` in one array. */
static void copy(int16_t *to, const int16_t *from, int32_t count)
{
    if ((((uintptr_t)to | (uintptr_t)from) & 3) == 0) {
        word *t = (word *)(void *)to;
        const word *f = (const word *)(const void *)from;
        for (; count >= 8; count -= 8, t += 4, f += 4) {
            const word a = f[0], b = f[1], c = f[2], d = f[3];
            t[0] = a, t[1] = b, t[2] = c, t[3] = d;
        }
        to = (int16_t *)(void *)t;
        from = (const int16_t *)(const void *)f;
    }
    for (; count > 0; count--) {
        *to++ = *from++;
        __asm__ volatile("" ::: "memory"); /* keep the loop: some C libraries copy bytes in memcpy */
    }
}

static void fill(int16_t *to, int32_t count)
{
    for (; count > 0; count--)
        *to++ = 0;
}

void fl_signal_framer(const int16_t *x, void *samples, void *counts, int16_t *y, const void *parameters)
{
    const struct fl_framer *p = parameters;
    int16_t *state = samples;
    int32_t *count = counts;
    const int32_t before = p->unset ? *count : 0;
    for (int32_t stream = 0; stream < p->streams; stream++, state += p->kept) {
        for (int32_t frame = 0; frame < p->frames; frame++, x += p->step, y += p->size) {
            const int32_t old = p->size < p->kept ? p->size : p->kept;
            if (before + frame < p->unset) {
                fill(y, p->size);
            } else {
                copy(y, state, old);
                copy(y + old, x, p->size - old);
            }
            const int32_t stay = p->kept > p->step ? p->kept - p->step : 0;
            copy(state, state + p->step, stay);
            copy(state + stay, x + p->step - (p->kept - stay), p->kept - stay);
        }
    }
    if (p->unset)
        *count = before + p->frames < p->unset ? before + p->frames : p->unset;
}

void fl_signal_framer_valid(void *counts, void *y, const void *parameters)
{
    const struct fl_framer *p = parameters;
    int32_t *count = counts;
    const int32_t before = p->unset ? *count : 0;
    *(bool *)y = before >= p->unset;
    if (p->unset)
        *count = before + p->frames < p->unset ? before + p->frames : p->unset;
}

static inline int16_t sum16(int16_t a, int16_t b)
{
    const int32_t sum = a + b;
    return (int16_t)(sum < INT16_MIN ? INT16_MIN : sum > INT16_MAX ? INT16_MAX : sum);
}

static inline float sum32(float a, float b) { return a + b; }

#define OVERLAP_ADD(name, number, sum)                                                        \
    void name(const number *x, void *samples, number *y, const void *parameters)              \
    {                                                                                         \
        const struct fl_framer *p = parameters;                                               \
        number *state = samples;                                                              \
        const int32_t size = p->size, step = p->step, kept = p->kept;                         \
        for (int32_t stream = 0; stream < p->streams; stream++, state += kept) {              \
            for (int32_t frame = 0; frame < p->frames; frame++, x += size, y += step) {       \
                for (int32_t i = 0; i < size; i++) {                                          \
                    const number total = sum(x[i], i < kept ? state[i] : 0);                  \
                    if (i < step)                                                             \
                        y[i] = total;                                                         \
                    else                                                                      \
                        state[i - step] = total;                                              \
                }                                                                             \
            }                                                                                 \
        }                                                                                     \
    }

OVERLAP_ADD(fl_signal_overlap_add_s16, int16_t, sum16)
WITHOUT_FLOAT_VECTORS
OVERLAP_ADD(fl_signal_overlap_add_f32, float, sum32)

/* Return whether the next row completes a stack, and update the number of waiting rows. */
static bool completes(int32_t *available, const struct fl_stacker *p)
{
    const int32_t now = (*available ? *available - 1 : p->left) + 1;
    const bool is_valid = now >= p->rows;
    *available = now - (is_valid ? p->step : 0) + 1;
    return is_valid;
}

void fl_signal_stacker(const int16_t *x, void *samples, void *counts, int16_t *y, const void *parameters)
{
    const struct fl_stacker *p = parameters;
    int16_t *state = samples;
    int32_t *available = counts;
    const int32_t channels = p->channels, kept = (p->rows - 1) * channels;
    for (int32_t row = 0; row < p->count; row++, x += channels, y += kept + channels) {
        if (*available == 0)
            for (int32_t i = 0; i < kept; i += channels)
                copy(state + i, x, channels);
        if (completes(available, p)) {
            copy(y, state, kept);
            copy(y + kept, x, channels);
        } else {
            fill(y, kept + channels);
        }
        if (kept > 0) {
            copy(state, state + channels, kept - channels);
            copy(state + kept - channels, x, channels);
        }
    }
}

void fl_signal_stacker_valid(void *counts, void *y, const void *parameters)
{
    const struct fl_stacker *p = parameters;
    int32_t *available = counts;
    bool *is_valid = y;
    for (int32_t row = 0; row < p->count; row++)
        *is_valid++ = completes(available, p);
}
