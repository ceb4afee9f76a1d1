/* For drivers of engines beside the core: lets a simulator that runs the core ahead of its devices catch up.
 *
 * Spike gives a device the time of the last instruction that read a counter. So a driver reads a counter before it starts an
 * operation, and in waiting loops. On silicon this is one instruction without effect in machine mode, in which this firmware
 * runs. -DENGINE_CLOCK_OFF removes it, for cores without the counter and for other modes.
 *
 * In both cases the compiler moves no memory access across it, as for engine_barrier. That is enough for a core that executes in
 * order and memory that is not cached.
 */
#pragma once

static inline void engine_barrier(void)
{
    __asm__ volatile("" : : : "memory");
}

static inline void engine_clock(void)
{
#if defined(__riscv) && !defined(ENGINE_CLOCK_OFF)
    unsigned long now;

    __asm__ volatile("csrr %0, minstret" : "=r"(now) : : "memory");
    (void)now;
#else
    engine_barrier();
#endif
}
