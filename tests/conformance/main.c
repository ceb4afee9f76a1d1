/* Runs the layers of trials.bin and writes results.bin; all numbers are int32 in the machine's order.
 *
 *   trials.bin    count, then for each trial: function, buffers, sets; for each buffer bytes, kind, the buffer whose memory it
 *                 takes (or -1), where it starts; the constants; for each set the inputs and the state
 *   results.bin   for each set of each trial: status (1: a byte between buffers changed, 2: an input or constant did), the output
 *                 and the state
 *
 * Buffers lie in a pool, `start` bytes behind a multiple of 16 that is none of 32, GUARD bytes apart. With AddressSanitizer they
 * are blocks of the heap.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"
#include LAYERS

enum { GUARD = 64, MOST_BUFFERS = 24 };
enum { CONSTANT, INPUT, OUTPUT, SCRATCH, STATE };

struct buffer {
    int32_t bytes, kind, place, start;
};

static uint8_t *at[MOST_BUFFERS];
static struct buffer buffers[MOST_BUFFERS];
static uint32_t sums[MOST_BUFFERS];

#ifdef __SANITIZE_ADDRESS__
static uint8_t *take(const struct buffer *b)
{
    return (uint8_t *)malloc((size_t)(b->start + b->bytes)) + b->start;
}

static void release(int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (buffers[i].place < 0)
            free(at[i] - buffers[i].start);
}

static void fill_guards(uint8_t value)
{
    (void)value;
}

static int32_t damaged(uint8_t value)
{
    (void)value;
    return 0;
}
#else
static uint8_t pool[POOL_BYTES] __attribute__((aligned(64)));
static size_t taken;

static uint8_t *take(const struct buffer *b)
{
    uint8_t *const start = pool + (taken + GUARD + 31) / 32 * 32 + 16 + b->start;
    taken = (size_t)(start - pool + b->bytes);
    return start;
}

static void release(int32_t count)
{
    (void)count;
    taken = 0;
}

static int32_t buffer_count;

static int32_t gap(uint8_t *from, const uint8_t *to, uint8_t value, bool fills)
{
    int32_t changed = 0;
    for (; from < to; from++) {
        if (fills)
            *from = value;
        changed |= *from != value;
    }
    return changed;
}

/* What lies between buffers, which are in order, and GUARD bytes behind the last. */
static int32_t each_guard(uint8_t value, bool fills)
{
    int32_t changed = 0;
    uint8_t *end = pool;
    for (int32_t i = 0; i < buffer_count; i++) {
        if (buffers[i].place < 0) {
            changed |= gap(end, at[i], value, fills);
            end = at[i] + buffers[i].bytes;
        }
    }
    return changed | gap(end, end + GUARD, value, fills);
}

static void fill_guards(uint8_t value)
{
    each_guard(value, true);
}

static int32_t damaged(uint8_t value)
{
    return each_guard(value, false);
}
#endif

static uint32_t sum(const uint8_t *data, int32_t bytes)
{
    uint32_t total = 1;
    for (int32_t i = 0; i < bytes; i++)
        total = total * 31 + data[i];
    return total;
}

static void need(int failed)
{
    if (failed)
        board_exit(3);
}

static int32_t number(int file)
{
    int32_t value;
    need(board_read(file, &value, sizeof value));
    return value;
}

static bool overlaid(int32_t index, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (buffers[i].place == index)
            return true;
    return false;
}

static void trial(int trials, int results, uint8_t garbage)
{
    const int32_t function = number(trials), count = number(trials), sets = number(trials);
    need(count > MOST_BUFFERS);
    need(board_read(trials, buffers, (size_t)count * sizeof buffers[0]));
    for (int32_t i = 0; i < count; i++)
        if (buffers[i].place < 0)
            at[i] = take(&buffers[i]);
    for (int32_t i = 0; i < count; i++) {
        if (buffers[i].place >= 0)
            at[i] = at[buffers[i].place];
        if (buffers[i].kind == CONSTANT)
            need(board_read(trials, at[i], (size_t)buffers[i].bytes));
    }
#ifndef __SANITIZE_ADDRESS__
    buffer_count = count;
#endif
    for (int32_t set = 0; set < sets; set++) {
        garbage = (uint8_t)(garbage * 5 + 91);
        fill_guards(garbage);
        for (int32_t i = 0; i < count; i++) {
            if (buffers[i].kind == INPUT || buffers[i].kind == STATE)
                need(board_read(trials, at[i], (size_t)buffers[i].bytes));
            else if (buffers[i].kind != CONSTANT && buffers[i].place < 0)
                memset(at[i], garbage, (size_t)buffers[i].bytes);
        }
        for (int32_t i = 0; i < count; i++)
            sums[i] = sum(at[i], buffers[i].bytes);
        runs[function](at);
        int32_t status = damaged(garbage);
        for (int32_t i = 0; i < count; i++)
            if (buffers[i].kind <= INPUT && !overlaid(i, count) && sums[i] != sum(at[i], buffers[i].bytes))
                status |= 2;
        need(board_write(results, &status, sizeof status));
        for (int32_t i = 0; i < count; i++)
            if (buffers[i].kind == OUTPUT || buffers[i].kind == STATE)
                need(board_write(results, at[i], (size_t)buffers[i].bytes));
    }
    release(count);
}

int main(void)
{
    const int trials = board_open_read("trials.bin"), results = board_open_write("results.bin");
    need(trials < 0 || results < 0);
    const int32_t count = number(trials);
    for (int32_t i = 0; i < count; i++)
        trial(trials, results, (uint8_t)i);
    board_close(trials);
    board_close(results);
    return 0;
}
