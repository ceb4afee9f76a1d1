/* Transfers between memories. They are done in the order in which they were started. */
#ifndef DMA_H
#define DMA_H

#include <stddef.h>
#include <stdint.h>

/* `base` is the address of the engine's registers. */
void dma_init(uintptr_t base);

/* Copies `runs` runs of `bytes` bytes; the strides are the distances of runs in the source and the destination. Waits for a free place
 * in the queue, not for the copy. */
void dma_start(void *to, const void *from, uint32_t bytes, uint32_t runs, uint32_t to_stride, uint32_t from_stride);

/* Waits until at most `left` transfers are not done. */
void dma_wait(uint32_t left);

#endif
