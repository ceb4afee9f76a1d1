/* Memory protection, and measurement of the stack. */
#include <stdint.h>

#include "board.h"

#define STACK_PAINT 0xa5a5a5a5u /* as startup.S paints it */

extern uint32_t __stack_bottom[], __stack_top[];
extern char __rom_start[], __rom_end[], __ram_start[], __ram_end[];

/* Memory protection unit: chapters of that name of the Armv7-M and Armv8-M Architecture Reference Manuals. */
#define MPU_TYPE (*(volatile uint32_t *)0xE000ED90)
#define MPU_CTRL (*(volatile uint32_t *)0xE000ED94)
#define MPU_RNR (*(volatile uint32_t *)0xE000ED98)
#define MPU_RBAR (*(volatile uint32_t *)0xE000ED9C)
#define MPU_RASR (*(volatile uint32_t *)0xE000EDA0)  /* v7-M */
#define MPU_RLAR (*(volatile uint32_t *)0xE000EDA0)  /* v8-M */
#define MPU_MAIR0 (*(volatile uint32_t *)0xE000EDC0) /* v8-M */
#define MPU_REGIONS (MPU_TYPE >> 8 & 0xff)
#define MPU_ENABLE 1u

enum access { READ_AND_RUN, READ_AND_WRITE, READ_WRITE_AND_RUN };

#ifdef OTHER_REGIONS /* other than those of code and data: stages/backends/targets/linker_script.py */
#define OTHER(number, access) extern char __other_##number##_start[], __other_##number##_end[];
OTHER_REGIONS
#undef OTHER
#define OTHER(number, access) \
    used = cover(used, (uintptr_t)__other_##number##_start, (uintptr_t)__other_##number##_end, access);
#endif
#ifdef CODE_IS_WRITTEN
#define CODE_ACCESS READ_WRITE_AND_RUN
#else
#define CODE_ACCESS READ_AND_RUN
#endif

void protect_memory(void);

#if __ARM_ARCH >= 8
/* Regions begin and end at 32-byte boundaries. RBAR: AP 2 is read-only and 0 read-write for privileged code, XN 1
 * prevents execution. RLAR: the first attribute of MAIR0.
 */
static uintptr_t set_region(uintptr_t start, uintptr_t end, enum access access)
{
    MPU_RBAR = start | (access == READ_AND_RUN ? 2u << 1 : access == READ_AND_WRITE ? 1u : 0u);
    MPU_RLAR = ((end - 1) & ~31u) | 1u;
    return end;
}
#else
/* The size of a region is a power of two that divides its start: the largest such region. RASR: AP 5 is read-only and 1
 * read-write for privileged code, XN (bit 28) prevents execution, C (bit 17) is normal memory.
 */
static uintptr_t set_region(uintptr_t start, uintptr_t end, enum access access)
{
    unsigned log2 = 31u - (unsigned)__builtin_clz(end - start);
    while (start & ((1u << log2) - 1))
        log2--;
    MPU_RBAR = start;
    MPU_RASR = (access == READ_AND_RUN ? 5u << 24 : 1u << 24) | (access == READ_AND_WRITE ? 1u << 28 : 0u) | 1u << 17 | (log2 - 1) << 1 | 1u;
    return start + (1u << log2);
}
#endif

/* Covers [start, end) with regions from number `next` on; returns the next free number. */
static unsigned cover(unsigned next, uintptr_t start, uintptr_t end, enum access access)
{
    while (start < end && next < MPU_REGIONS) {
        MPU_RNR = next++;
        start = set_region(start, end, access);
    }
    return start < end ? MPU_REGIONS + 1 : next;
}

/* Every access outside the target's memory map faults, and so do stores to ROM and jumps into RAM. Called by startup.S; a
 * core whose MPU is missing or too small runs without protection.
 */
void protect_memory(void)
{
#if __ARM_ARCH >= 8
    MPU_MAIR0 = 0xff; /* normal memory */
#endif
    unsigned used = cover(0, (uintptr_t)__rom_start, (uintptr_t)__rom_end, CODE_ACCESS);
#ifndef CODE_BESIDE_DATA
    used = cover(used, (uintptr_t)__ram_start, (uintptr_t)__ram_end, READ_AND_WRITE);
#endif
#ifdef OTHER_REGIONS
    OTHER_REGIONS
#endif
    if (MPU_REGIONS == 0 || used > MPU_REGIONS)
        return;
    MPU_CTRL = MPU_ENABLE;
    __asm__ volatile("dsb\n\tisb" : : : "memory");
}

uint32_t board_stack_used(void)
{
    const volatile uint32_t *word = __stack_bottom;
    while (word < __stack_top && *word == STACK_PAINT)
        word++;
    return (uint32_t)((uintptr_t)__stack_top - (uintptr_t)word);
}
