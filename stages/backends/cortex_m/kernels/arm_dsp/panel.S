/* Copies runs of bytes into panels (panel.h) and widens them to int16. Thumb-2 with the DSP extension.
 *
 * One row of a panel:
 *
 *   uint32_t *arm_dsp_put_runs_r<3|4>(uint32_t *to, const uint8_t *from, int32_t runs, int32_t count, int32_t step);
 *
 *   to      the row's word in the first step; steps are three or four words apart
 *   from    the first run; runs are `count` bytes long and begin `step` bytes apart
 *
 * Returns the address of the next step. Four bytes take one load, two sxtb16 and two stores. The loop is unrolled by UNROLL and
 * entered in the middle.
 */
#include "dsp_asm.h"

#define UNROLL 4

#define to r0
#define from r1
#define runs r2
#define count r3
#define next r4                        /* run */
#define entry r5
#define turns r6                       /* of the unrolled loop, in each run */
#define rest r7                        /* bytes after the last four */
#define left r8                        /* iterations for this run */
#define x r9
#define y r10

.macro four                            /* all instructions have four bytes, because the entry is computed */
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
    lsr turns, turns, #2
    rsb x, x, #0                       /* fours that the first iteration skips */
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

/* All three or four rows of a panel:
 *
 *   uint32_t *arm_dsp_put_rows_r<3|4>(uint32_t *to, const uint8_t *from, int32_t runs, int32_t count, int32_t step, int32_t pixel);
 *
 *   from    the first run of the first row; the other rows' lie `pixel` bytes further each. runs, count, step, result: as above
 *
 * Consecutive rows of a matrix, each `depth` bytes long:
 *
 *   void arm_dsp_put_matrix_r<3|4>(int32_t *panel, const uint8_t *from, int32_t depth);
 *
 * Four bytes of four rows: 14 instructions. r1-r4 are the rows, r5-r8 and r9-r12 their words.
 */
#define FOURS 0                        /* the frame: fours of a run */
#define RUN 4                          /* where a run begins: its fours, or its rest */
#define REST 8
#define JUMP 12                        /* bytes from the end of a run's fours to the next run */
#define RUNS 16
#define ROWS_FRAME 20
#define STEP (ROWS_FRAME + SAVED)
#define PIXEL (STEP + 4)

.macro each_row operation:vararg
    \operation r1, r5, r9
    \operation r2, r6, r10
    \operation r3, r7, r11
    .if rows == 4
    \operation r4, r8, r12
    .endif
.endm

.macro load_four x, low, high
    ldr \low, [\x], #4
.endm

.macro widen_four x, low, high
    sxtb16 \high, \low
    sxtb16 \low, \low, ror #8
.endm

.macro load_two x, low, high
    ldrsb \low, [\x]
    ldrsb \high, [\x, #1]
    pkhbt \low, \low, \high, lsl #16
.endm

.macro load_one x, low, high
    ldrsb \low, [\x]
.endm

.macro load_third x, low, high
    ldrsb \low, [\x, #2]
.endm

.macro next_run x, low, high
    add \x, \x, lr
.endm

.macro store_low
    .if rows == 4
    stm r0!, {r5-r8}
    .else
    stm r0!, {r5-r7}
    .endif
.endm

.macro store_high
    .if rows == 4
    stm r0!, {r9-r12}
    .else
    stm r0!, {r9-r11}
    .endif
.endm

.macro four_bytes
    each_row load_four
    each_row widen_four
    store_high
    store_low
.endm

.macro three_bytes
    each_row load_two
    store_low
    each_row load_third
    store_low
.endm

.macro put_matrix name, row_count
    .set rows, \row_count
    enter \name
    and r5, r2, #3
    lsrs lr, r2, #2
    push {r5}
    mov r5, r2
    add r2, r1, r5
    add r3, r2, r5
    .if rows == 4
    add r4, r3, r5
    .endif
    beq .Lrest_\@
.Lfour_\@:
    four_bytes
    subs lr, lr, #1
    bne .Lfour_\@
.Lrest_\@:
    pop {lr}
    cmp lr, #2
    blo .Lfew_\@
    bhi .Lthree_\@
    each_row load_two
    store_low
    leave
.Lthree_\@:
    three_bytes
    leave
.Lfew_\@:
    cmp lr, #0
    beq .Lend_\@
    each_row load_one
    store_low
.Lend_\@:
    leave
    end_function \name
.endm

.macro put_rows name, row_count
    .set rows, \row_count
    enter \name, ROWS_FRAME
    ldr r5, [sp, #STEP]
    ldr r6, [sp, #PIXEL]
    str r2, [sp, #RUNS]
    bic r7, r3, #3
    sub r5, r5, r7
    str r5, [sp, #JUMP]
    and r8, r3, #3
    lsrs r7, r3, #2
    str r7, [sp, #FOURS]
    add r2, r1, r6
    add r3, r2, r6
    .if rows == 4
    add r4, r3, r6
    .endif
    adr r5, .Lnext_\@ + 1
    cmp r8, #1
    it eq
    adreq r5, .Lone_\@ + 1
    cmp r8, #2
    it eq
    adreq r5, .Ltwo_\@ + 1
    it hi
    adrhi r5, .Lthree_\@ + 1
    str r5, [sp, #REST]
    adr r6, .Lfour_\@ + 1
    cmp r7, #0
    it eq
    moveq r6, r5
    str r6, [sp, #RUN]
.Lrun_\@:
    ldr lr, [sp, #FOURS]
    ldr pc, [sp, #RUN]
    .balign 4
.Lfour_\@:
    four_bytes
    subs lr, lr, #1
    bne .Lfour_\@
    ldr pc, [sp, #REST]
    .balign 4
.Lthree_\@:
    three_bytes
    b .Lnext_\@
    .balign 4
.Ltwo_\@:
    each_row load_two
    store_low
    b .Lnext_\@
    .balign 4
.Lone_\@:
    each_row load_one
    store_low
    .balign 4
.Lnext_\@:
    ldr lr, [sp, #JUMP]
    ldr r5, [sp, #RUNS]
    each_row next_run
    subs r5, r5, #1
    str r5, [sp, #RUNS]
    bne .Lrun_\@
    leave ROWS_FRAME
    end_function \name
.endm

put_rows arm_dsp_put_rows_r3, 3
put_rows arm_dsp_put_rows_r4, 4
put_matrix arm_dsp_put_matrix_r3, 3
put_matrix arm_dsp_put_matrix_r4, 4
