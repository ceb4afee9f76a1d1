#include "machine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "memtracer.h"
#include "mmu.h"
#include "processor.h"

namespace firmline {

namespace {
constexpr uint64_t PAGE = 4096;  // Spike's memory is pages that are not contiguous

// A line from the last fault, which the host reads.
std::string of_layer(int64_t layer) { return layer < 0 ? "" : " (layer " + std::to_string(layer) + ")"; }
std::string named(const Operation &operation) { return operation.unit + " " + operation.name; }
}  // namespace

std::string hexadecimal(uint64_t value)
{
  char text[20];
  std::snprintf(text, sizeof text, "%#llx", (unsigned long long)value);
  return text;
}

void Operation::result(uint64_t address, const void *bytes, size_t count)
{
  pieces.push_back({address, data.size(), count});
  const uint8_t *from = static_cast<const uint8_t *>(bytes);
  data.insert(data.end(), from, from + count);
}

// Sees the core's accesses to pages with bytes in use.
class Machine::Guard : public memtracer_t {
 public:
  explicit Guard(Machine &machine) : machine(machine) {}

  bool interested_in_range(uint64_t begin, uint64_t end, access_type type) override
  {
    for (const Running &one : machine.committed)
      if (one->writes.common(begin, end) >= 0 || (type == STORE && one->reads.common(begin, end) >= 0)) return true;
    return false;
  }

  void trace(uint64_t address, size_t bytes, access_type type) override
  {
    machine.advance();
    for (const Running &one : machine.committed) {
      if (one->writes.common(address, address + bytes) >= 0)
        machine.fault("the core " + std::string(type == STORE ? "writes " : "reads ") + hexadecimal(address) +
                          ", which " + named(*one) + " has not written yet",
                      one->layer);
      if (type == STORE && one->reads.common(address, address + bytes) >= 0)
        machine.fault("the core writes " + hexadecimal(address) + ", which " + named(*one) + " still reads", one->layer);
    }
  }

  void clean_invalidate(uint64_t, size_t, bool, bool) override {}

 private:
  Machine &machine;
};

Machine::Machine() = default;

Machine &Machine::get()
{
  static Machine machine;
  return machine;
}

uint64_t Machine::counted() { return simulator->get_harts().begin()->second->get_state()->minstret->read(); }

uint64_t Machine::now() { return (is_held ? held_at : counted()) - lost; }

void Machine::hold(bool held)
{
  if (held == is_held) return;
  if (held)
    held_at = counted();
  else
    lost += counted() - held_at;
  is_held = held;
}

void Machine::at(uint64_t time, Order order, std::function<void(uint64_t)> event)
{
  events.emplace(std::pair{time, order}, std::move(event));
}

void Machine::advance()
{
  const uint64_t until = now();
  while (!events.empty() && events.begin()->first.first <= until) {
    auto first = events.extract(events.begin());
    first.mapped()(first.key().first);
  }
}

void Machine::commit(const Running &operation)
{
  operation->layer = layer;
  committed.push_back(operation);
  watch();
}

void Machine::begin(const Running &operation, uint64_t time)
{
  for (const Running &other : under_way) {
    int64_t at = operation->writes.common(other->writes);
    const char *does = "writes";
    if (at < 0) at = operation->writes.common(other->reads), does = "reads";
    if (at >= 0)
      fault(named(*operation) + " writes " + hexadecimal(at) + ", which " + named(*other) + " " + does, operation->layer);
    if (at = operation->reads.common(other->writes); at >= 0)
      fault(named(*operation) + " reads " + hexadecimal(at) + ", which " + named(*other) + " has not written yet",
            operation->layer);
  }
  operation->began = time;
  under_way.push_back(operation);
}

void Machine::done(const Running &operation, uint64_t time)
{
  for (const auto &piece : operation->pieces) write(piece.address, operation->data.data() + piece.offset, piece.count);
  log(operation->unit, operation->layer, operation->began, time, operation->amount, operation->name);
  cancel(operation);
}

void Machine::cancel(const Running &operation)
{
  for (auto *list : {&committed, &under_way}) list->erase(std::remove(list->begin(), list->end(), operation), list->end());
  watch();
}

// The core's accesses to pages in use go through the guard from now on.
void Machine::watch()
{
  mmu_t *mmu = simulator->get_harts().begin()->second->get_mmu();
  if (!guard) {
    guard = std::make_unique<Guard>(*this);
    mmu->register_memtracer(guard.get());
  }
  mmu->flush_tlb();
}

char *Machine::page(uint64_t address) { return static_cast<simif_t *>(simulator)->addr_to_mem(address); }

bool Machine::has(uint64_t address, uint64_t bytes)
{
  if (address + bytes < address) return false;
  for (uint64_t at = address; at < address + bytes; at = (at / PAGE + 1) * PAGE)
    if (!page(at)) return false;
  return true;
}

void Machine::read(uint64_t address, void *bytes, size_t count)
{
  char *to = static_cast<char *>(bytes);
  for (size_t part; count > 0; address += part, to += part, count -= part) {
    part = std::min<uint64_t>(count, PAGE - address % PAGE);
    std::memcpy(to, page(address), part);
  }
}

void Machine::write(uint64_t address, const void *bytes, size_t count)
{
  const char *from = static_cast<const char *>(bytes);
  for (size_t part; count > 0; address += part, from += part, count -= part) {
    part = std::min<uint64_t>(count, PAGE - address % PAGE);
    std::memcpy(page(address), from, part);
  }
}

void Machine::enter(int64_t entered)
{
  layer = entered;
  log("core", layer, now(), now(), 0, "layer");
}

void Machine::log_to(const std::string &path)
{
  file = std::fopen(path.c_str(), "w");
  if (!file) fault("cannot write " + path);
}

void Machine::log(const std::string &unit, int64_t of, uint64_t from, uint64_t to, uint64_t amount, const std::string &name)
{
  if (file)
    std::fprintf(file, "%s %lld %llu %llu %llu %s\n", unit.c_str(), (long long)of, (unsigned long long)from,
                 (unsigned long long)to, (unsigned long long)amount, name.c_str());
}

void Machine::warn(const std::string &unit, int64_t of, uint64_t count, const std::string &what)
{
  log("warn-" + unit, of, now(), now(), count, what);
}

void Machine::fault(const std::string &what, int64_t of)
{
  const uint64_t pc = simulator && !simulator->get_harts().empty()
                          ? simulator->get_harts().begin()->second->get_state()->pc
                          : 0;
  std::fprintf(stderr, "\nDEVICE pc=%016llx: %s%s\n", (unsigned long long)pc, what.c_str(), of_layer(of).c_str());
  std::fflush(nullptr);
  std::_Exit(FAULT_EXIT);
}

}  // namespace firmline
