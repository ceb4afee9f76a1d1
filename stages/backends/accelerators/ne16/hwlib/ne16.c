#include "ne16.h"

/* Other projects can use this driver: they need this file and its header, and -DNE16_ALONE to leave out simulator code. */
#ifdef NE16_ALONE
#define engine_barrier() __asm__ volatile("" : : : "memory")
#define engine_clock() engine_barrier()
#else
#include "engine_clock.h"
#endif

/* Registers, in words from the base; the cluster's control word lies before it. */
enum { TRIGGER = 0, ACQUIRE = 1, STATUS = 3, SOFT_CLEAR = 5, TASK = 8 };
#define CLUSTER_CONTROL (-0xfe8 / 4)
#define CLOCK_ENABLE (1u << 11)

/* STATUS: one bit per context, set if the context has a job. */
#define IDLE 0x000u
#define FULL 0x101u

/* Iterations of a loop that waits for the engine's reset, some tens of cycles. */
enum { RESET_TURNS = 20 };

/* Task words. */
enum {
    WEIGHTS, INFEAT, OUTFEAT, SCALE, SHIFT, BIAS, INFEAT_D0, INFEAT_D1, RESIDUAL, OUTFEAT_D0, OUTFEAT_D1, OUTFEAT_D2,
    WEIGHTS_D0, WEIGHTS_D1, PARAMETERS, REM_KO_KI, REM_HO_WO, REM_HI_WI, NUMBER_KO_KI, NUMBER_HO_WO, PADDING,
    WEIGHT_OFFSET, FILTER_MASK, CONF0
};

#define TOP 0xf0000000u
#define RIGHT 0x0f000000u
#define BOTTOM 0x00f00000u
#define LEFT 0x000f0000u

static volatile uint32_t *engine;
static uint32_t issued; /* jobs since ne16_init */

void ne16_init(uintptr_t base)
{
    engine = (volatile uint32_t *)base;
    engine[CLUSTER_CONTROL] |= CLOCK_ENABLE;
    engine[SOFT_CLEAR] = 0;
    for (int i = 0; i < RESET_TURNS; i++)
        engine_barrier();
    issued = 0;
}

static void acquire(void)
{
    while ((int32_t)engine[ACQUIRE] < 0)
        engine_clock();
}

static int trigger(void)
{
    engine_clock();
    engine[TRIGGER] = 0;
    return (int)++issued;
}

/* Writes all words with their addresses. The residual's address is ignored if the words select no residual. */
static void write_words(const uint32_t *words, uint32_t input, uint32_t output, uint32_t constants, uint32_t residual)
{
    volatile uint32_t *task = engine + TASK;

    task[WEIGHTS] = words[WEIGHTS] + constants;
    task[INFEAT] = words[INFEAT] + input;
    task[OUTFEAT] = words[OUTFEAT] + output;
    task[SCALE] = words[SCALE] + constants;
    task[SHIFT] = words[SHIFT] + constants;
    task[BIAS] = words[BIAS] + constants;
    task[INFEAT_D0] = words[INFEAT_D0];
    task[INFEAT_D1] = words[INFEAT_D1];
    task[RESIDUAL] = words[RESIDUAL] + residual;
    task[OUTFEAT_D0] = words[OUTFEAT_D0];
    task[OUTFEAT_D1] = words[OUTFEAT_D1];
    task[OUTFEAT_D2] = words[OUTFEAT_D2];
    task[WEIGHTS_D0] = words[WEIGHTS_D0];
    task[WEIGHTS_D1] = words[WEIGHTS_D1];
    task[PARAMETERS] = words[PARAMETERS] + constants;
    task[REM_KO_KI] = words[REM_KO_KI];
    task[REM_HO_WO] = words[REM_HO_WO];
    task[REM_HI_WI] = words[REM_HI_WI];
    task[NUMBER_KO_KI] = words[NUMBER_KO_KI];
    task[NUMBER_HO_WO] = words[NUMBER_HO_WO];
    task[PADDING] = words[PADDING];
    task[WEIGHT_OFFSET] = words[WEIGHT_OFFSET];
    task[FILTER_MASK] = words[FILTER_MASK];
    task[CONF0] = words[CONF0];
}

static uint32_t address(const void *pointer)
{
    return (uint32_t)(uintptr_t)pointer;
}

int ne16_start(const uint32_t words[NE16_WORDS], const void *input, void *output, const void *constants)
{
    return ne16_start_residual(words, input, output, constants, 0);
}

int ne16_start_residual(const uint32_t words[NE16_WORDS], const void *input, void *output, const void *constants,
                        const void *residual)
{
    acquire();
    write_words(words, address(input), address(output), address(constants), address(residual));
    return trigger();
}

/* The words in which a block at an edge differs from a block in the middle. */
enum { FIRST_ROW = 1, LAST_ROW = 2, FIRST_COLUMN = 4, LAST_COLUMN = 8, NO_PLACE = 16 };

static void write_edges(const uint32_t *words, const uint32_t *blocks, uint32_t place)
{
    volatile uint32_t *task = engine + TASK;
    uint32_t size = words[REM_HO_WO], patch = words[REM_HI_WI], padding = words[PADDING];

    padding &= ~((place & FIRST_ROW ? 0 : TOP) | (place & LAST_COLUMN ? 0 : RIGHT) | (place & LAST_ROW ? 0 : BOTTOM) |
                 (place & FIRST_COLUMN ? 0 : LEFT));
    if (place & LAST_ROW) {
        size = (size & 0xffffu) | (blocks[6] & 0xffff0000u);
        patch = (patch & 0xffffu) | (blocks[7] & 0xffff0000u);
    }
    if (place & LAST_COLUMN) {
        size = (size & 0xffff0000u) | (blocks[6] & 0xffffu);
        patch = (patch & 0xffff0000u) | (blocks[7] & 0xffffu);
    }
    task[REM_HO_WO] = size;
    task[REM_HI_WI] = patch;
    task[PADDING] = padding;
}

int ne16_start_blocks(const uint32_t words[NE16_WORDS], const uint32_t blocks[NE16_BLOCK_WORDS], const void *input,
                      void *output, const void *constants)
{
    return ne16_start_blocks_residual(words, blocks, input, output, constants, 0);
}

int ne16_start_blocks_residual(const uint32_t words[NE16_WORDS], const uint32_t blocks[NE16_BLOCK_WORDS],
                               const void *input, void *output, const void *constants, const void *residual)
{
    volatile uint32_t *task = engine + TASK;
    const uint32_t rows = blocks[0], columns = blocks[1];
    uint32_t in_row = words[INFEAT] + address(input), out_row = words[OUTFEAT] + address(output);
    const uint32_t residual_distance = words[RESIDUAL] + address(residual) - out_row;
    /* Jobs alternate between two contexts. Each context still has the words of the job before the last. */
    uint32_t held = NO_PLACE, held_by_other = NO_PLACE;

    for (uint32_t row = 0; row < rows; row++, in_row += blocks[2], out_row += blocks[4]) {
        const uint32_t middle = (row == 0 ? FIRST_ROW : 0) | (row == rows - 1 ? LAST_ROW : 0);
        uint32_t in = in_row, out = out_row, place = middle | FIRST_COLUMN;

        for (uint32_t left = columns; left > 0; left--, in += blocks[3], out += blocks[5], place = middle) {
            const uint32_t before = held;

            if (left == 1)
                place |= LAST_COLUMN;
            held = held_by_other;
            held_by_other = place;
            acquire();
            if (place != before) {
                if (before == NO_PLACE)
                    write_words(words, 0, 0, address(constants), 0);
                write_edges(words, blocks, place);
            }
            task[INFEAT] = in;
            task[OUTFEAT] = out;
            if (residual)
                task[RESIDUAL] = out + residual_distance;
            engine_clock();
            engine[TRIGGER] = 0;
        }
    }
    issued += rows * columns;
    return (int)issued;
}

/* Jobs end in their order, and the engine holds two at most. So the number of jobs that it holds shows which are done. */
void ne16_wait(int started)
{
    const uint32_t later = issued - (uint32_t)started;

    if (later == 0) {
        do
            engine_clock();
        while (engine[STATUS] != IDLE);
    } else if (later == 1) {
        do
            engine_clock();
        while (engine[STATUS] == FULL);
    }
    engine_barrier(); /* the job's results are read only after this */
}
