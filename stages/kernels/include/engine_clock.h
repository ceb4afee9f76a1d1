/* For drivers of engines beside the core: lets a simulator that runs the core ahead of its devices catch up.
 *
 * Spike gives a device the time of the last instruction that read a counter. A driver reads one before it starts
 * something and in loops that wait; on silicon that is one instruction without effect.
 */
#ifndef ENGINE_CLOCK_H
#define ENGINE_CLOCK_H

static inline void engine_clock(void)
{
#if defined(__riscv)
    unsigned long now;

    __asm__ volatile("csrr %0, minstret" : "=r"(now) : : "memory");
    (void)now;
#endif
}

#endif
