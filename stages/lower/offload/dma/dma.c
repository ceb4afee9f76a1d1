/* A DMA engine with a queue. Registers, from its base:
 *
 *   00 source  04 destination  08 bytes of a run  0c runs  10 source stride  14 destination stride
 *   18 written: enqueue; read: free places in the queue        1c transfers that are not done
 */
#include "dma.h"

#include "engine_clock.h"

enum { SOURCE, DESTINATION, BYTES, RUNS, SOURCE_STRIDE, DESTINATION_STRIDE, QUEUE, UNFINISHED };

static volatile uint32_t *registers;

void dma_init(uintptr_t base)
{
    registers = (volatile uint32_t *)base;
}

void dma_start(void *to, const void *from, uint32_t bytes, uint32_t runs, uint32_t to_stride, uint32_t from_stride)
{
    engine_clock();
    while (registers[QUEUE] == 0)
        engine_clock();
    registers[SOURCE] = (uint32_t)(uintptr_t)from;
    registers[DESTINATION] = (uint32_t)(uintptr_t)to;
    registers[BYTES] = bytes;
    registers[RUNS] = runs;
    registers[SOURCE_STRIDE] = from_stride;
    registers[DESTINATION_STRIDE] = to_stride;
    registers[QUEUE] = 1;
}

void dma_wait(uint32_t left)
{
    engine_clock();
    while (registers[UNFINISHED] > left)
        engine_clock();
    engine_barrier(); /* copied data are read only after this */
}
