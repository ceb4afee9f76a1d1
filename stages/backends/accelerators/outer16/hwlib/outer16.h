/* outer16: jobs by the words of its registers.
 *
 * A job is computed beforehand, but for its three addresses. The engine runs one and holds another; starting a third
 * waits until the first is done. Jobs end in their order.
 */
#pragma once

#include <stdint.h>

enum { OUTER16_WORDS = 9 };

/* Resets the engine. `base` is the address of its registers. */
void outer16_init(uintptr_t base);

/* Starts a job, whose tensors and constants lie in the engine's memory. Returns what outer16_wait takes. */
int outer16_start(const uint32_t words[OUTER16_WORDS], const void *input, void *output, const void *constants);

/* Waits until the job, and so all before it, is done. */
void outer16_wait(int started);
