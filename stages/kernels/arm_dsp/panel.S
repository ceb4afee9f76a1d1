/* Runs of bytes into one row of a panel (panel.h), widened to int16. Thumb-2 with the DSP extension.
 *
 *   uint32_t *arm_dsp_put_runs_r<3|4>(uint32_t *to, const uint8_t *from, int32_t runs, int32_t count, int32_t step);
 *
 *   to      the row's word of the first step; a step is three or four words further than the one before it
 *   from    the first run; each is `count` bytes long and starts `step` bytes behind the one before it
 *
 * Returns where the next step goes. Four bytes are one load, two widenings and two stores; the loop over them is unrolled by
 * UNROLL and entered in the middle.
 */
#include "dsp_asm.h"

#define UNROLL 8

#define to r0
#define from r1
#define runs r2
#define count r3
#define next r4                        /* run */
#define entry r5
#define turns r6                       /* of the unrolled loop, in each run */
#define rest r7                        /* bytes behind the last four */
#define left r8                        /* turns of this run */
#define x r9
#define y r10

.macro four                            /* all instructions are of four bytes: the entry is computed */
    ldr.w x, [from], #4
    sxtb16 y, x
    sxtb16 x, x, ror #8
    str.w y, [to], #pitch
    str.w x, [to], #pitch
.endm

.macro put_runs name, rows
    .set pitch, 4 * \rows
    enter \name
    ldr r11, [sp, #SAVED]              /* step */
    and rest, count, #3
    lsr x, count, #2
    add turns, x, #UNROLL - 1
    lsr turns, turns, #3
    rsb x, x, #0                       /* fours that the first turn skips */
    and x, x, #UNROLL - 1
    entry_point entry, x, UNROLL, .Lloop_\@, .Lloop_end_\@, y, entry
    mov next, from
    cmp runs, #0
    bne .Lrun_\@
    leave

    .balign 4
.Lloop_\@:
    .rept UNROLL
    four
    .endr
.Lloop_end_\@:
    subs left, left, #1
    bne.w .Lloop_\@
    cbnz rest, .Lsome_\@
1:  subs runs, runs, #1
    beq 2f
.Lrun_\@:
    mov from, next
    add next, next, r11
    movs left, turns
    it ne
    bxne entry
    cbnz rest, .Lsome_\@
    b 1b
2:  leave

.Lsome_\@:                                  /* one to three bytes: elements 0 and 1, element 2 */
    ldrsb x, [from]
    cmp rest, #1
    beq 3f
    ldrsb y, [from, #1]
    pkhbt x, x, y, lsl #16
    cmp rest, #2
    beq 3f
    ldrsb y, [from, #2]
    str x, [to], #pitch
    str y, [to], #pitch
    b 1b
3:  str x, [to], #pitch
    b 1b
    end_function \name
.endm

put_runs arm_dsp_put_runs_r3, 3
put_runs arm_dsp_put_runs_r4, 4
