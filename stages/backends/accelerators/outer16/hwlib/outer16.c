#include "outer16.h"

#include "engine_clock.h"

/* Registers, in words from the base. */
enum { INPUT, OUTPUT, CONSTANTS, WORDS, READY = 16, START, DONE, RESET };

static volatile uint32_t *engine;
static uint32_t started; /* jobs since outer16_init */

void outer16_init(uintptr_t base)
{
    engine = (volatile uint32_t *)base;
    engine[RESET] = 0;
    started = 0;
}

int outer16_start(const uint32_t words[OUTER16_WORDS], const void *input, void *output, const void *constants)
{
    do
        engine_clock();
    while (!engine[READY]);
    engine[INPUT] = (uint32_t)(uintptr_t)input;
    engine[OUTPUT] = (uint32_t)(uintptr_t)output;
    engine[CONSTANTS] = (uint32_t)(uintptr_t)constants;
    for (int i = 0; i < OUTER16_WORDS; i++)
        engine[WORDS + i] = words[i];
    engine_clock();
    engine[START] = 0;
    return (int)++started;
}

void outer16_wait(int job)
{
    do
        engine_clock();
    while ((int32_t)(engine[DONE] - (uint32_t)job) < 0);
    engine_barrier(); /* what the job wrote is read after this */
}
