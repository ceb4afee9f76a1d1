/* Rows of an image that begin at registers: those of the image, or copies of as many as a window has. */
#ifndef FIRMLINE_RVP_ROW_COPIES_H
#define FIRMLINE_RVP_ROW_COPIES_H

#include "copies_image.h"
#include "rvp_intrinsics.h"

/* How the rows of a window are found: `base` has those of x, or the copies of as many as a window has. */
struct rows {
    const int8_t *base;
    int step, copied; /* bytes from row to row; how many copies, 0 for none */
};

RVP_INLINE const int8_t *row_at(const struct rows *r, int number)
{
    return r->base + (r->copied != 0 ? number % r->copied : number) * r->step;
}

/* Copies rows `ready` to `end` of x, if rows are copied: what is copied then. */
RVP_INLINE int copy_rows(const struct rows *r, int8_t *copies, const int8_t *x, int row_bytes, int ready, int end)
{
    for (; r->copied != 0 && ready < end; ready++) {
        copies_runs(copies + ready % r->copied * r->step, x + ready * row_bytes, 1, row_bytes, 0, 0);
    }
    return ready;
}

/* The first byte of `bytes` that lies at a register. */
RVP_INLINE int8_t *aligned(void *bytes)
{
    return (int8_t *)(((uintptr_t)bytes + RVP_WORD_BYTES - 1) & -(uintptr_t)RVP_WORD_BYTES);
}

#endif
