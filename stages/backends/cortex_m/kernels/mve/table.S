/* Functions of one byte. Armv8.1-M with MVE (integer).
 *
 *   void mve_table(const void *x, const void *table, void *y, int32_t count);
 *
 *   y[i] = table[x[i]] for unsigned bytes, 16 at a time: the bytes are the offsets of a gathering load. y may be x.
 */
#include "mve_asm.h"

    function mve_table
    push {r7, lr}
    wlstp.8 lr, r3, 2f
1:  vldrb.8 q0, [r0], #16
    vldrb.u8 q1, [r1, q0]
    vstrb.8 q1, [r2], #16
    letp lr, 1b
2:  pop {r7, pc}
    end_function mve_table
