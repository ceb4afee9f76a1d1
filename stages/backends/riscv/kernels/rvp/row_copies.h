/* Rows of an image that begin at register boundaries. They are read in place, or the rows of a window are copied. */
#pragma once

#include "copies_image.h"
#include "rvp_intrinsics.h"

/* Addresses of the rows of a window: `base` has rows of x, or of the copies, as many as a window has. */
struct rows {
    const int8_t *base;
    int step, copied; /* bytes from row to row; how many copies, 0 for none */
};

RVP_INLINE const int8_t *row_at(const struct rows *r, int number)
{
    return r->base + (r->copied != 0 ? number % r->copied : number) * r->step;
}

/* Copies rows `ready` to `end` of x, if rows are copied; by lanes if they begin at lanes. Returns the end of the copied rows. */
RVP_INLINE int copy_rows(const struct rows *r, int8_t *copies, const int8_t *x, int row_bytes, int ready, int end)
{
    while (r->copied != 0 && ready < end) {
        const int place = ready % r->copied, room = r->copied - place, count = end - ready < room ? end - ready : room;
        char *const to = (char *)copies + place * r->step;
        const char *const from = (const char *)x + ready * row_bytes;
        if (RVP_LANES == 2 && ((uintptr_t)x | (uintptr_t)row_bytes) % 4 == 0) {
            rows_of_halves(to, from, count, (int)((uint32_t)row_bytes / 4), r->step, row_bytes);
        } else {
            copies_runs(to, from, count, row_bytes, r->step, row_bytes);
        }
        ready += count;
    }
    return ready;
}

/* The first byte of `bytes` that is at a multiple of a register. */
RVP_INLINE int8_t *aligned(void *bytes)
{
    return (int8_t *)(((uintptr_t)bytes + RVP_WORD_BYTES - 1) & -(uintptr_t)RVP_WORD_BYTES);
}
