// Estimated cycles of a program in Spike, as an extension without instructions:
//   spike --isa=rv32imc_xcycles --extlib=libtiming.so
//
// It reads cycles.table in the current directory and writes cycles.bin (stages/backends/simulators/cycles/cycles.h), a record
// for each reading of minstret by board_instructions(). A tracer of fetches sees every instruction before it runs. An
// instruction that reads a counter may be fetched twice; otherwise only a jump to itself is fetched twice in a row.
#include <cstring>

#include "cycles.h"
#include "extension.h"
#include "memtracer.h"
#include "mmu.h"

namespace {

class Tracer : public memtracer_t {
 public:
  Tracer()
      : table_(cycles_load(CYCLES_TABLE)),
        waits_(cycles_waits_of(&table_.flash)),
        log_(std::fopen(CYCLES_LOG, "wb")),
        sum_{} {
    if (log_ == nullptr) cycles_fail("cannot write", CYCLES_LOG);
    if (table_.counts != nullptr) counts_ = std::fopen(CYCLES_COUNTS, "wb");
    if (table_.counts != nullptr && counts_ == nullptr) cycles_fail("cannot write", CYCLES_COUNTS);
  }

  ~Tracer() override {
    write();
    std::fclose(log_);
    if (counts_ != nullptr) std::fclose(counts_);
  }

  bool interested_in_range(uint64_t, uint64_t, access_type type) override { 
    return type == FETCH || (type == LOAD && table_.flash.wait_states > 0);
  }
  void clean_invalidate(uint64_t, size_t, bool, bool) override {}

  void trace(uint64_t address, size_t, access_type type) override {
    if (type == LOAD && table_.flash.wait_states > 0) wait(cycles_load_waits(&waits_, address));
    if (type != FETCH) return;
    const timed* one = cycles_of(&table_, address);
    if (one == nullptr) one = &unknown_;
    if (address == last_address_ && !(one->flags & JUMPS)) return;

    if (one->flags & OPENS) write();
    if (one->flags & READS) {
      if (is_due_ && sum_.untimed == 0) sum_.untimed = record_.untimed;
      if (counts_ != nullptr) {
        if (is_due_) std::fseek(counts_, counts_begin_, SEEK_SET);  // the same reading again
        counts_begin_ = std::ftell(counts_);
        cycles_write_counts(&table_, counts_);
      }
      record_ = sum_;
      sum_.untimed = 0;
      is_due_ = true;
    }
    bool follows = last_ != nullptr && last_->address + last_->size == address;
    if (last_ != nullptr) cycles_predict(&table_, last_, !follows, sum_.now);
    if (!follows && last_ != nullptr) {
      cycles_add(sum_.now, last_->taken);
      cycles_count(&table_, last_, TAKEN, 1);
    }
    if (table_.flash.wait_states > 0)
      for (uint64_t at : {address, address + (one->size > 0 ? one->size - 1 : 0)})
        wait(cycles_fetch(&waits_, cycles_line(&table_.flash, at), sum_.now[ESTIMATE]));
    cycles_add(sum_.now, follows ? one->follows : one->entered);
    cycles_count(&table_, one, follows ? FOLLOWED : ENTERED, 1);
    if (one->flags & UNTIMED) sum_.untimed = address;
    sum_.instructions++;
    last_ = one;
    last_address_ = address;
  }

 private:
  void wait(double cycles) { cycles_wait(&table_.flash, sum_.now, cycles); }

  // Writes the record of the last reading when it is certain that it is not repeated: on RV32 it is, after a carry.
  void write() {
    if (is_due_ && std::fwrite(&record_, sizeof record_, 1, log_) != 1) cycles_fail("cannot write", CYCLES_LOG);
    is_due_ = false;
  }

  static constexpr timed unknown_ = {0, 0, UNTIMED, 0, {}, {}, {}, 0};
  cycles_table table_;
  cycles_waits waits_;
  std::FILE* log_;
  std::FILE* counts_ = nullptr;
  long counts_begin_ = 0;
  cycles_record sum_, record_;
  bool is_due_ = false;
  const timed* last_ = nullptr;
  uint64_t last_address_ = 1;
};

class Extension : public extension_t {
 public:
  const char* name() const override { return "cycles"; }
  std::vector<insn_desc_t> get_instructions(const processor_t&) override { return {}; }
  std::vector<disasm_insn_t*> get_disasms(const processor_t*) override { return {}; }
  void reset(processor_t& processor) override {
    static Tracer tracer;
    static bool is_registered = false;
    if (!is_registered) processor.get_mmu()->register_memtracer(&tracer);
    is_registered = true;
  }
};

REGISTER_EXTENSION(cycles, []() -> extension_t* { return new Extension; })

}  // namespace
