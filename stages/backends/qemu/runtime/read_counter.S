/* uint64_t board_instructions(void). Instructions between the two markers are not counted. So a read of the counter costs the
 * caller only a call and a return.
 */
#include "marker.h"

    .section .text.board_instructions, "ax", %progbits
    .globl board_instructions
    .type board_instructions, %function
#ifdef __aarch64__
board_instructions:
    MARK MARKER_STOP
    stp x29, x30, [sp, #-16]!
    mov x29, sp
    bl read_counter
    ldp x29, x30, [sp], #16
    MARK MARKER_GO
    ret
#else
    .syntax unified
    .thumb_func
board_instructions:
    MARK MARKER_STOP
    push {r4, lr} /* r4 keeps the stack aligned to eight bytes */
    bl read_counter
    pop {r2, r3} /* not into lr: Armv6-M cannot */
    MARK MARKER_GO
    bx r3
#endif
    .size board_instructions, . - board_instructions

    .section .note.GNU-stack, "", %progbits
