/* For drivers of engines beside the core: lets a simulator that runs the core ahead of its devices catch up.
 *
 * Spike gives a device the time of the last instruction that read a counter. A driver reads one before it starts
 * something and in loops that wait; on silicon that is one instruction without effect, in machine mode, where firmware
 * runs here. With -DENGINE_CLOCK_OFF it is left out, for cores without the counter and for other modes.
 *
 * Either way accesses to memory stay on their side of it, as they stay of engine_barrier. That is enough for a core that
 * executes in order and memory that is not cached.
 */
#ifndef ENGINE_CLOCK_H
#define ENGINE_CLOCK_H

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

#endif
