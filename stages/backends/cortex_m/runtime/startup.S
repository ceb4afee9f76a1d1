/* Vector table and start-up of an Armv6-M, Armv7-M or Armv8-M core.
 *
 * RAM, low to high:  stack (grows down) | .data | .bss with the arena
 * The stack lies at the bottom so that an overflow runs out of RAM and faults, instead of overwriting the arena.
 *
 * Registers and bits: Arm v7-M and v8-M Architecture Reference Manuals, "System Control Block".
 */
#include "marker.h"

    .syntax unified
    .thumb

#define SCB_VTOR 0xE000ED08
#define SCB_CCR 0xE000ED14
#define SCB_SHCSR 0xE000ED24
#define SCB_CPACR 0xE000ED88
#define CCR_UNALIGN_TRP (1 << 3)    /* an access that is not aligned faults, as it always does on Armv6-M */
#define CCR_LOB (1 << 19)           /* cache of loop and branch information */
#define SHCSR_FAULTS_ENABLED (7 << 16) /* usage, bus and memory faults have handlers of their own */
#define CPACR_CP10_CP11 (0xf << 20) /* full access to floating point and MVE */
#define STACK_PAINT 0xa5a5a5a5      /* board_stack_used looks for the first word that changed */

    .section .vectors, "a", %progbits
    .globl vectors
    .type vectors, %object
vectors:
    .word __stack_top
    .word reset
    .rept 13
    .word fault
    .endr
    .word tick
    .weak tick
    .thumb_set tick, fault
    .size vectors, . - vectors

/* Copies the words from `load` on to [start, end). */
    .macro copy load, start, end
    ldr r0, =\load
    ldr r1, =\start
    ldr r2, =\end
1:  cmp r1, r2
    bhs 2f
    ldmia r0!, {r3}
    stmia r1!, {r3}
    b 1b
2:
    .endm

    .section .text.reset, "ax", %progbits
    .globl reset
    .type reset, %function
    .thumb_func
reset:
    ldr r0, =SCB_VTOR
    ldr r1, =vectors
    str r1, [r0]
    ldr r0, =SCB_SHCSR
    ldr r1, =SHCSR_FAULTS_ENABLED
    str r1, [r0]
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    ldr r0, =SCB_CPACR
    ldr r1, [r0]
    orr r1, r1, #CPACR_CP10_CP11
    str r1, [r0]
#endif
#ifdef __ARM_ARCH_6M__ /* if the machine has a larger core */
    ldr r0, =SCB_CCR
    ldr r1, [r0]
    movs r2, #CCR_UNALIGN_TRP
    orrs r1, r2
    str r1, [r0]
#endif
#ifdef __ARM_ARCH_8_1M_MAIN__
    ldr r0, =SCB_CCR
    ldr r1, [r0]
    orr r1, r1, #CCR_LOB
    str r1, [r0]
#endif
    dsb
    isb

    copy __data_load, __data_start, __data_end
#ifdef COPIED /* weights: stages/backends/targets/linker_script.py */
#define COPY(number) copy __copied_##number##_load, __copied_##number##_start, __copied_##number##_end;
    COPIED
#endif

    ldr r1, =__bss_start
    ldr r2, =__bss_end
    movs r3, #0
3:  cmp r1, r2
    bhs 4f
    stmia r1!, {r3}
    b 3b

4:  ldr r1, =__stack_bottom
    ldr r3, =STACK_PAINT
5:  cmp sp, r1
    bls 6f
    stmia r1!, {r3}
    b 5b

6:  bl protect_memory
    bl main
    bl board_exit
    .size reset, . - reset

/* A fault never returns, so no register is saved. The fault may be a broken stack, so the report has a separate one. fault_report(frame:
 * where the core pushed r0-r3, r12, lr, pc, xpsr)
 */
    .section .text.fault, "ax", %progbits
    .globl fault
    .type fault, %function
    .thumb_func
fault:
#ifndef BOARD_DEBUGGER /* Armv6-M itself has no such hint */
    MARK MARKER_FAULT
#endif
    mrs r0, msp
    ldr r1, =fault_stack_top
    msr msp, r1
    bl fault_report
    .size fault, . - fault

    .section .bss.fault_stack, "aw", %nobits
    .balign 8
    .zero 512
fault_stack_top:
