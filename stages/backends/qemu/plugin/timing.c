#include "timing.h"

#include <string.h>

#include "cycles.h"
#include "qemu_api.h"

/* A line of flash. Instruction `index` of a block is the first that is in it, at least partly. */
struct entered_line {
    size_t index;
    bool is_reached;
    uint64_t line;
    double waited; /* when the block ran last */
};

/* `rest[i]`, i >= 1, is the cycles of the instructions from number i on, each after its predecessor. */
struct block_timing {
    struct entered_line *lines; /* lines of flash that its instructions enter */
    size_t line_count;
    const struct timed *first, *last;
    uint64_t untimed; /* address of an instruction without cycles, 0 for none */
    size_t count;
    const struct timed **all; /* each instruction; NULL if none is counted */
    double rest[][CYCLES];
};

static FILE *log_out, *counts_out;
static struct cycles_table table;
static struct cycles_waits waits;
static bool is_adding; /* the current block is counted */
static struct cycles_record sum;
static const struct timed *previous; /* the last instruction that was counted */
static float charged[CYCLES];        /* the assumed cycles of the current block's first instruction */
static bool has_followed;            /* whether these are for an instruction after another */

void timing_begin(void)
{
    table = cycles_load(CYCLES_TABLE);
    waits = cycles_waits_of(&table.flash);
    log_out = fopen(CYCLES_LOG, "wb");
    if (log_out == NULL)
        cycles_fail("cannot write", CYCLES_LOG);
    counts_out = table.counts != NULL ? fopen(CYCLES_COUNTS, "wb") : NULL;
    if (table.counts != NULL && counts_out == NULL)
        cycles_fail("cannot write", CYCLES_COUNTS);
}

/* Both loads and stores: if only loads are requested, QEMU 7.2 reports stores as loads. */
static void loads(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    (void)vcpu;
    (void)data;
    if (is_adding && !qemu_plugin_mem_is_store(info))
        cycles_wait(&table.flash, sum.now, cycles_load_waits(&waits, address));
}

/* Records the lines of flash that a block's instructions enter, and requests callbacks for its loads. */
static void watch_flash(struct block_timing *block, const struct qemu_plugin_tb *tb)
{
    uint64_t line = 0;
    block->lines = calloc(2 * block->count, sizeof *block->lines);
    if (block->lines == NULL)
        cycles_fail("no memory for", "a block");
    for (size_t i = 0; i < block->count; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        const struct timed *one = cycles_of(&table, qemu_plugin_insn_vaddr(insn));
        uint64_t address = qemu_plugin_insn_vaddr(insn), last = address + (one == NULL ? 0 : one->size - 1u);
        for (uint64_t at = address; at <= last; at += last > address ? last - address : 1) {
            uint64_t here = cycles_line(&table.flash, at);
            if (here != line || block->line_count == 0)
                block->lines[block->line_count++] = (struct entered_line){i, at > address, here, 0};
            line = here;
        }
        qemu_plugin_register_vcpu_mem_cb(insn, loads, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
    }
}

/* Whether instruction `index` is in a line that an earlier instruction of the block entered. */
static bool is_still_in(const struct block_timing *block, const struct entered_line *one, size_t index)
{
    const struct entered_line *next = one + 1;
    bool is_last = next == block->lines + block->line_count;
    return one->index < index && (is_last || next->index > index || (next->index == index && next->is_reached));
}

/* Waits for the lines that instructions from number `index` on need; `begin` is the time of the first of these. */
static void fetch(const struct block_timing *block, size_t index, double begin)
{
    double waited = 0;
    const double *first = block->rest[index > 0 ? index : 1];
    for (struct entered_line *one = block->lines; one < block->lines + block->line_count; one++) {
        if (one->index < index && !is_still_in(block, one, index))
            continue;
        double ran = one->index > index ? first[ESTIMATE] - block->rest[one->index][ESTIMATE] : 0;
        ran += one->index > index && index == 0 ? charged[ESTIMATE] : 0;
        one->waited = cycles_fetch(&waits, one->line, begin + ran + waited);
        waited += one->waited;
    }
    cycles_wait(&table.flash, sum.now, waited);
}

const struct block_timing *timing_of(const struct qemu_plugin_tb *tb)
{
    static const struct timed unknown = {.flags = UNTIMED};
    size_t count = qemu_plugin_tb_n_insns(tb);
    struct block_timing *block = calloc(1, sizeof *block + (count + 1) * sizeof *block->rest);
    if (block == NULL)
        cycles_fail("no memory for", "a block");
    block->count = count;
    block->all = table.counts != NULL ? calloc(count + 1, sizeof *block->all) : NULL;
    if (table.counts != NULL && block->all == NULL)
        cycles_fail("no memory for", "a block");
    for (size_t i = count; i-- > 0;) {
        uint64_t address = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i));
        const struct timed *one = cycles_of(&table, address);
        one = one == NULL ? &unknown : one;
        if (block->all != NULL)
            block->all[i] = one;
        if (one->flags & UNTIMED)
            block->untimed = address;
        if (block->last == NULL)
            block->last = one;
        block->first = one;
        memcpy(block->rest[i], block->rest[i + 1], sizeof block->rest[i]);
        if (i > 0)
            cycles_add(block->rest[i], one->follows);
    }
    if (table.flash.wait_states > 0)
        watch_flash(block, tb);
    return block;
}

/* Counts the instructions of a block from number `index` on, or takes them back. */
static void count(const struct block_timing *block, size_t index, int more)
{
    for (size_t i = index; block->all != NULL && i < block->count; i++)
        cycles_count(&table, block->all[i], i > 0 || has_followed ? FOLLOWED : ENTERED, more);
}

static void add(const double more[CYCLES])
{
    for (int i = 0; i < CYCLES; i++)
        sum.now[i] += more[i];
}

void timing_runs(const struct block_timing *block)
{
    const struct timed *first = block->first;
    bool follows = previous != NULL && previous->address + previous->size == first->address;
    if (previous != NULL)
        cycles_predict(&table, previous, !follows, sum.now);
    if (!follows && previous != NULL) {
        cycles_add(sum.now, previous->taken);
        cycles_count(&table, previous, TAKEN, 1);
    }
    has_followed = follows;
    count(block, 0, 1);
    memcpy(charged, follows ? first->follows : first->entered, sizeof charged);
    fetch(block, 0, sum.now[ESTIMATE]);
    cycles_add(sum.now, charged);
    add(block->rest[1]);
    sum.untimed = block->untimed ? block->untimed : sum.untimed;
    previous = block->last;
    is_adding = true;
}

void timing_stops(const struct block_timing *block, size_t index, uint64_t instructions)
{
    for (int i = 0; i < CYCLES; i++)
        sum.now[i] -= index > 0 ? block->rest[index][i] : block->rest[1][i] + charged[i];
    for (const struct entered_line *one = block->lines; one < block->lines + block->line_count; one++)
        if (one->index >= index)
            cycles_wait(&table.flash, sum.now, -one->waited);
    count(block, index, -1);
    is_adding = false;
    sum.instructions = instructions;
    if (fwrite(&sum, sizeof sum, 1, log_out) != 1)
        cycles_fail("cannot write", CYCLES_LOG);
    cycles_write_counts(&table, counts_out);
    sum.untimed = 0;
}

void timing_goes_on(const struct block_timing *block, size_t index)
{
    fetch(block, index + 1, sum.now[ESTIMATE]);
    add(block->rest[index + 1]);
    count(block, index + 1, 1);
    is_adding = true;
    sum.untimed = block->untimed ? block->untimed : sum.untimed;
    previous = block->last;
}
