// What devices with a time of their own share: one clock, one memory, one order of events, and who uses which bytes.
//
// A cycle is an instruction of the hart. What a device does is an operation: it takes its bytes when it is committed
// (from then on the core must not touch them), reads memory when it begins, and its results appear when it is done, not
// before. Bytes in use are guarded: an access of the core, or of another device's operation that is under way, is a
// fault, which ends the simulation with one line.
//
// The hart's counter is exact when a program has just read it (minstret, instret, cycle); otherwise it is up to 5,000
// instructions behind. A device that is looked at later than something ended finds it ended at its own time.
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
  uint64_t amount = 0;  // what the log tells: bytes, multiply-accumulates
  int64_t layer = -1;
  uint64_t began = 0;

  // Results, which land when the operation is done.
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
// At one time, ends come before begins: what one operation leaves the next may use.
enum class Order { END, BEGIN };

class Machine {
 public:
  static Machine &get();

  void attach(const sim_t *sim) { simulator = const_cast<sim_t *>(sim); }

  uint64_t now();
  // Whatever is due by now happens, in its order.
  void advance();
  // `event` is called with its own time.
  void at(uint64_t time, Order order, std::function<void(uint64_t)> event);

  // The life of an operation. `begin` faults where an operation under way has bytes in common.
  void commit(const Running &operation);
  void begin(const Running &operation, uint64_t time);
  void done(const Running &operation, uint64_t time);
  void cancel(const Running &operation);

  // Whether there is memory at all of these addresses. Reading and writing take it for granted.
  bool has(uint64_t address, uint64_t bytes);
  void read(uint64_t address, void *bytes, size_t count);
  void write(uint64_t address, const void *bytes, size_t count);

  // Device time stands still while it is held, as the core's does for whoever counts it.
  void hold(bool held);
  // Which layer the program is in, for messages and the log; -1 is none.
  void enter(int64_t layer);
  void log_to(const std::string &path);
  // A line of the log: `unit layer begin end amount name`.
  void log(const std::string &unit, int64_t layer, uint64_t from, uint64_t to, uint64_t amount, const std::string &name);

  // `count` more of what silicon accepts and nobody means: a line of the log, of which the run warns.
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
