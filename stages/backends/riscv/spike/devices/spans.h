// Sets of bytes in memory, as runs of addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace firmline {

struct Span {
  uint64_t from, to;  // the first byte, and the first byte after it
};

class Spans {
 public:
  void add(uint64_t from, uint64_t bytes)
  {
    if (bytes) runs.push_back({from, from + bytes}), added += bytes, merged = false;
  }

  // Sorted runs that neither overlap nor touch.
  const std::vector<Span> &all() const
  {
    if (!merged) merge();
    return runs;
  }

  // The first byte of the set in from...to - 1, or -1.
  int64_t common(uint64_t from, uint64_t to) const
  {
    const auto &sorted = all();
    auto run = std::upper_bound(sorted.begin(), sorted.end(), from, [](uint64_t at, const Span &s) { return at < s.to; });
    return run != sorted.end() && run->from < to ? int64_t(std::max(run->from, from)) : -1;
  }

  int64_t common(const Spans &other) const
  {
    for (const Span &run : other.all())
      if (int64_t found = common(run.from, run.to); found >= 0) return found;
    return -1;
  }

  // The number of bytes in the set, which is smaller than the number of added bytes if some were added twice.
  uint64_t bytes() const
  {
    uint64_t sum = 0;
    for (const Span &run : all()) sum += run.to - run.from;
    return sum;
  }
  uint64_t bytes_added() const { return added; }

 private:
  void merge() const
  {
    std::sort(runs.begin(), runs.end(), [](const Span &a, const Span &b) { return a.from < b.from; });
    size_t kept = 0;
    for (const Span &run : runs) {
      if (kept && run.from <= runs[kept - 1].to)
        runs[kept - 1].to = std::max(runs[kept - 1].to, run.to);
      else
        runs[kept++] = run;
    }
    runs.resize(kept);
    merged = true;
  }

  mutable std::vector<Span> runs;
  mutable bool merged = true;
  uint64_t added = 0;
};

}  // namespace firmline
