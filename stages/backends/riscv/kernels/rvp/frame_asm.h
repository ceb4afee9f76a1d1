/* Functions in assembly and their frames: slots of one register, the return address and saved registers first.
 *
 * The including file defines FRAME_BYTES, a multiple of 16.
 */
#pragma once

#include "rvp_asm.h"

#define FRAME(slot) ((slot) * REGISTER_BYTES)
#define EVERY_SAVED s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11

/* A function in a separate section; `end_function` follows its last instruction. */
.macro function name
    .section .text.\name, "ax", @progbits
    .globl \name
    .type \name, @function
    .balign 4
\name:
.endm

.macro end_function name
    .size \name, . - \name
.endm

/* Stores ra in slot 0 and `registers` in the next slots. */
.macro save registers:vararg
    SX ra, FRAME(0)(sp)
    .set slot, 1
    .irp r, \registers
    SX \r, FRAME(slot)(sp)
    .set slot, slot + 1
    .endr
.endm

.macro restore registers:vararg
    LX ra, FRAME(0)(sp)
    .set slot, 1
    .irp r, \registers
    LX \r, FRAME(slot)(sp)
    .set slot, slot + 1
    .endr
.endm

.macro leave registers:vararg
    restore \registers
    addi sp, sp, FRAME_BYTES
    ret
.endm
