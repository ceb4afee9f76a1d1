#include "cycles.h"

#include "extension.h"

namespace ne16 {

namespace {

int divided_up(int a, int b) { return (a + b - 1) / b; }

int normalize(const Task &task, int channels)
{
  if (!task.normalizes) return 0;
  int found = 9 + divided_up(channels * task.scale_bits / 8, 4);
  if (task.has_shifts) found += 8;
  if (task.has_bias) found += 8 + divided_up(channels, 8);
  if (task.tflite) found += extension::ROUNDING_CYCLES;
  if (task.has_residual) found += extension::residual_cycles(channels);
  return found;
}

// Cycles of 3x3 output pixels of `channels` output channels.
uint64_t subtile(const Task &task, int channels)
{
  const int load = task.mode == Mode::CONV1X1 ? 19 : 31;
  const int offset = task.depthwise() ? 6 + channels : 6;
  const int products = 6 + (task.mode == Mode::CONV1X1 ? channels : channels * task.weight_bits);
  uint64_t found = uint64_t(task.depthwise() ? 1 : task.ki.count) * uint64_t(load + offset + products + 2);
  if (task.streams_in) found += 9 * divided_up(channels, 8);
  return found + normalize(task, channels) + 3 + 9 * divided_up(channels * task.output_bits, 256) + 1;
}

}  // namespace

uint64_t cycles(const Task &task)
{
  const uint64_t channels = uint64_t(task.ko.count - 1) * subtile(task, task.ko_tile) + subtile(task, task.ko.last);
  return (task.tflite ? extension::BLOCK_CYCLES : 0) + uint64_t(task.rows.count) * task.columns.count * channels;
}

}  // namespace ne16
