/* Functions of one byte. Thumb-2.
 *
 *   void arm_dsp_table(const void *x, const void *table, void *y, int32_t count);
 *
 *   y[i] = table[x[i]] for unsigned bytes. Four bytes take 12 instructions. y may be x. The loop is unrolled by UNROLL and
 *   entered in the middle.
 */
#include "dsp_asm.h"

#define UNROLL 4

#define x r0
#define table r1
#define y r2
#define count r3                       /* bytes after the fours */
#define turns r8

.macro each operation
    \operation r4
    \operation r5
    \operation r6
    \operation r7
.endm

.macro load_one to
    ldrb.w \to, [x], #1
.endm

.macro look_up to
    ldrb.w \to, [table, \to]
.endm

.macro store_one from
    strb.w \from, [y], #1
.endm

    enter arm_dsp_table
    lsr r4, count, #2
    and count, count, #3
    add turns, r4, #UNROLL - 1
    lsr turns, turns, #2
    rsb r4, r4, #0                     /* fours that the first iteration skips */
    and r4, r4, #UNROLL - 1
    cmp turns, #0
    beq.w .Lrest
    entry_point r4, r4, UNROLL, .Lloop, .Lloop_end, r5, r6
    bx r4
    .balign 4
.Lloop:
    .rept UNROLL
    each load_one
    each look_up
    each store_one
    .endr
.Lloop_end:
    subs turns, turns, #1
    bne .Lloop
.Lrest:
    cbz count, .Lend
    load_one r4
    look_up r4
    store_one r4
    subs count, count, #1
    b .Lrest
.Lend:
    leave
    end_function arm_dsp_table
