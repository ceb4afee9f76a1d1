/* Hints that control the counting plug-in (stages/backends/qemu/plugin/counter.c). They do nothing on a core. */
#pragma once

#define MARKER_STOP 0  /* stop counting and publish the count */
#define MARKER_GO 1    /* count again */
#define MARKER_ARM 2   /* arm the watchdog with the published limit, or disarm it */
#define MARKER_FAULT 3 /* first instruction of a fault handler */

/* Armv6-M has no `dbg`: its two halfwords are written instead, which the simulated larger core executes. */
#ifdef __ASSEMBLER__
    .macro MARK number
#if defined(__aarch64__)
    hint #64 + \number
#elif defined(__ARM_ARCH_6M__)
    .inst.w 0xf3af80f0 + \number
#else
    dbg #\number
#endif
    .endm
#else
#if defined(__aarch64__)
#define MARKER_INSTRUCTION(number) "hint #64+" #number
#elif defined(__ARM_ARCH_6M__)
#define MARKER_INSTRUCTION(number) ".inst.w 0xf3af80f0+" #number
#else
#define MARKER_INSTRUCTION(number) "dbg #" #number
#endif
#define MARK_(number) __asm__ volatile(MARKER_INSTRUCTION(number) : : : "memory")
#define MARK(number) MARK_(number)
#endif
