/* NE16: jobs by their task words.
 *
 * A job is 24 words, computed beforehand: its geometry and arithmetic, with addresses from where its tensors begin. The
 * engine runs one job and holds another; starting a third waits until the first is done. Jobs end in their order.
 */
#pragma once

#include <stdint.h>

enum { NE16_WORDS = 24, NE16_BLOCK_WORDS = 8 };

/* Turns the engine's clock on and resets it. `base` is the address of its registers. */
void ne16_init(uintptr_t base);

/* Starts a job. Word 1 is an offset from `input`, word 2 from `output`; words 0, 3, 4, 5 and 14 from `constants`. Returns
 * ne16_wait's argument. */
int ne16_start(const uint32_t words[NE16_WORDS], const void *input, void *output, const void *constants);

/* As ne16_start; word 8 is an offset from `residual`, which jobs of the extended engine add. */
int ne16_start_residual(const uint32_t words[NE16_WORDS], const void *input, void *output, const void *constants,
                        const void *residual);

/* Starts a convolution of stride 2, with a job for each block of 2x2 output pixels. Returns ne16_wait's argument for all of
 * them.
 *
 *   blocks[0], [1]   rows and columns of blocks
 *   blocks[2], [3]   bytes between them in the input
 *   blocks[4], [5]   in the output
 *   blocks[6], [7]   rem_ho_wo and rem_hi_wi of the last block
 *
 * `words` describe a block in the middle, except for the padding, which is that of all edges. */
int ne16_start_blocks(const uint32_t words[NE16_WORDS], const uint32_t blocks[NE16_BLOCK_WORDS], const void *input,
                      void *output, const void *constants);

/* As ne16_start_blocks; word 8 is an offset from `residual`, which has the layout of the output. */
int ne16_start_blocks_residual(const uint32_t words[NE16_WORDS], const uint32_t blocks[NE16_BLOCK_WORDS],
                               const void *input, void *output, const void *constants, const void *residual);

/* Waits until this job and all earlier jobs are done. */
void ne16_wait(int started);
