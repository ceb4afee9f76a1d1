// Shared by devices with a separate time: the clock, the memory, the order of events, and the bytes in use.
//
// A cycle is an instruction of the hart. Devices execute operations. An operation reserves its bytes when it is committed
// (from then on the core must not access them), reads memory when it begins, and writes its results when it is done.
// Reserved bytes are guarded: an access by the core, or by another device's current operation, is a fault, which ends
// the simulation with one line.
//
// The hart's counter is exact when a program has just read it (minstret, instret, cycle); otherwise it is up to 5,000
// instructions late. If a device is read after an operation has ended, that operation still ends at its exact time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim.h"
#include "spans.h"

namespace firmline {

constexpr int FAULT_EXIT = 98;  // of stages/backends/riscv/spike/run.py

struct Operation {
  std::string unit;  // which device, such as `dma`
  std::string name;  // which of its operations, such as `transfer 3`
  Spans reads, writes;
  uint64_t amount = 0;  // amount for the log: bytes, multiply-accumulates
  int64_t layer = -1;
  uint64_t began = 0;

  // Results, which are written when the operation is done.
  void result(uint64_t address, const void *bytes, size_t count);

 private:
  friend class Machine;
  struct Piece {
    uint64_t address;
    size_t offset, count;
  };
  std::vector<Piece> pieces;
  std::vector<uint8_t> data;
};

using Running = std::shared_ptr<Operation>;
// At the same time, ends come before begins, so that an operation may use the results of an earlier one.
enum class Order { END, BEGIN };

class Machine {
 public:
  static Machine &get();

  void attach(const sim_t *sim) { simulator = const_cast<sim_t *>(sim); }

  uint64_t now();
  // Processes all events that are due, in their order.
  void advance();
  // `event` is called with its own time.
  void at(uint64_t time, Order order, std::function<void(uint64_t)> event);

  // The steps of an operation. `begin` is a fault if a current operation uses some of the same bytes.
  void commit(const Running &operation);
  void begin(const Running &operation, uint64_t time);
  void done(const Running &operation, uint64_t time);
  void cancel(const Running &operation);

  // Whether all these addresses are memory. Reads and writes do not check it.
  bool has(uint64_t address, uint64_t bytes);
  void read(uint64_t address, void *bytes, size_t count);
  void write(uint64_t address, const void *bytes, size_t count);

  // Holds device time, for work that is not counted.
  void hold(bool held);
  // The current layer, for messages and the log; -1 is none.
  void enter(int64_t layer);
  void log_to(const std::string &path);
  // A line of the log: `unit layer begin end amount name`.
  void log(const std::string &unit, int64_t layer, uint64_t from, uint64_t to, uint64_t amount, const std::string &name);

  // Adds `count` accesses that silicon accepts but that are probably errors: a line of the log, which becomes a warning.
  void warn(const std::string &unit, int64_t layer, uint64_t count, const std::string &what);

  [[noreturn]] void fault(const std::string &what, int64_t layer);
  [[noreturn]] void fault(const std::string &what) { fault(what, layer); }

  int64_t layer = -1;

 private:
  class Guard;
  Machine();
  uint64_t counted();
  char *page(uint64_t address);
  void watch();

  sim_t *simulator = nullptr;
  uint64_t lost = 0, held_at = 0;  // cycles that were held, and since when
  bool is_held = false;
  std::multimap<std::pair<uint64_t, Order>, std::function<void(uint64_t)>> events;
  std::vector<Running> committed, under_way;
  std::unique_ptr<Guard> guard;
  FILE *file = nullptr;
};

std::string hexadecimal(uint64_t value);

}  // namespace firmline
