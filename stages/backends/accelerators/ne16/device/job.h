// One job of the engine: the bytes that it uses, and what it computes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "extension.h"
#include "machine.h"
#include "task.h"

namespace ne16 {

// The engine's scratchpad, with its content when a job begins.
struct L1 {
  uint64_t base, bytes;
  std::vector<uint8_t> content;

  bool has(uint32_t address, uint64_t count) const { return address >= base && address + count <= base + bytes; }
  template <typename T> T get(uint32_t address) const;
};

struct Counts {
  uint64_t macs = 0, read = 0, written = 0;
  uint64_t wrapped = 0;  // outputs whose sum, scaled sum or biased sum did not fit its width
};

class Job {
 public:
  explicit Job(const Task &task) : task(task) {}

  // Writes the bytes that the job uses to `operation`. Returns an error that names the register, if a range is outside of
  // L1 or fields contradict each other; otherwise "".
  std::string claim(const L1 &l1, firmline::Operation &operation);

  // The outputs, as results of `operation`. Call `claim` first. Returns errors as `claim` does, for faults that depend on L1's content.
  std::string compute(const L1 &l1, firmline::Operation &operation, Counts &counts);

 private:
  // Input rows (columns) y of the patch of subtile i that outputs read: the padding's value, zero, or memory.
  enum class Source { Nothing, Value, Zero, Memory };
  Source source(int i, int j, int y, int x) const;
  uint32_t input_at(int i, int j, int y, int x) const;
  uint32_t output_at(int y, int x) const;
  uint32_t streamed_at(uint32_t pixel, int channel) const;
  uint32_t plane_at(int output, int tile, int bit) const;

  template <typename Use> void each_output(Use use) const;
  template <typename Use> void each_plane(Use use) const;

  std::vector<int16_t> weights(const L1 &l1) const;
  void load_patch(const L1 &l1, int i, int j, std::vector<int16_t> &patch) const;
  int64_t sum(const std::vector<int16_t> &patch, const std::vector<int16_t> &weights, int y, int x, int channel) const;
  int64_t normalized(const L1 &l1, int64_t sum, int channel, bool &wrapped) const;
  int64_t saturated(int64_t value) const;
  int block_words() const { return task.has_residual ? extension::RESIDUAL_BLOCK_WORDS : extension::BLOCK_WORDS; }
  std::string wrong_shift(const L1 &l1) const;

  const Task task;
  extension::Block block{};
};

}  // namespace ne16
