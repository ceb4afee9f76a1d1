/* Runs of bytes that are a step apart. */
#pragma once

#include "bytes.h"

/* `count` > 0 runs of 1 to 16 bytes: one predicate for all of them, seven instructions each. */
MVE_INLINE void copy_short_runs(uint8_t *to, const uint8_t *from, int32_t count, int32_t bytes, int32_t to_step,
                                int32_t from_step, uint8x16_t flip)
{
    uint8x16_t run;
    __asm__ volatile("vctp.8 %[bytes]\n"
                     "dls lr, %[count]\n"
                     "1: vpsttt\n"
                     "vldrbt.8 %q[run], [%[from]]\n"
                     "veort %q[run], %q[run], %q[flip]\n"
                     "vstrbt.8 %q[run], [%[to]]\n"
                     "add %[from], %[from], %[from_step]\n"
                     "add %[to], %[to], %[to_step]\n"
                     "le lr, 1b\n"
                     : [to] "+r"(to), [from] "+r"(from), [run] "=&w"(run)
                     : [count] "r"(count), [bytes] "r"(bytes), [to_step] "r"(to_step), [from_step] "r"(from_step),
                       [flip] "w"(flip)
                     : "lr", "p0", "memory");
}

/* `count` > 0 runs of `bytes` > 0 bytes, each xored with flip where `flips`. */
MVE_INLINE void copy_runs(uint8_t *to, const uint8_t *from, int32_t count, int32_t bytes, int32_t to_step, int32_t from_step,
                          int flips, uint8x16_t flip)
{
    if (bytes <= 16) {
        copy_short_runs(to, from, count, bytes, to_step, from_step, flip);
        return;
    }
    for (; count > 0; count--) {
        (void)(flips ? mve_copy_flipped(to, from, bytes, flip) : mve_copy(to, from, bytes));
        to += to_step;
        from += from_step;
    }
}
