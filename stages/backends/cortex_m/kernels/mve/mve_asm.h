/* Shared macros for assembly with MVE. Armv8.1-M. */
#pragma once

    .syntax unified
    .thumb

/* A function in a separate section; `end_function` follows its last instruction. */
.macro function name
    .section .text.\name, "ax", %progbits
    .balign 4
    .global \name
    .thumb_func
    .type \name, %function
\name:
.endm

.macro end_function name
    .size \name, . - \name
.endm

/* Subtracts one from negative sums, so that the second rounding is away from zero: mode lowered of rounding.py. Overwrites `scratch`. */
.macro lower sum, scratch
    vshr.s32 \scratch, \sum, #31
    vadd.i32 \sum, \sum, \scratch
.endm

/* The same before a rounding right shift by -\shifts, a vector of numbers up to 0. Lanes with a shift of 0 do not change. */
.macro lower_shifted sum, shifts, scratch
    vand \scratch, \sum, \shifts
    vshr.s32 \scratch, \scratch, #31
    vadd.i32 \sum, \sum, \scratch
.endm

/* Four sums times real numbers below one in two multiplications, in mode exact or lowered. Overwrites `scratch`, which may be the
 * multiplier.
 */
.macro scale mode, sum, multiplier, rounder, scratch
    vqrdmulh.s32 \sum, \sum, \multiplier
    .ifc \mode,lowered
    lower \sum, \scratch
    .endif
    vqrdmulh.s32 \sum, \sum, \rounder
.endm
