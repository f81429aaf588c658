#include "base/files_under_way.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstring>

namespace seqconv::internal {
namespace {

/// A name to delete. Handlers take no lock and no memory, so that names have
/// places of their own here; where all are taken, a file would be left to the
/// next one that writes it.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<bool> filled{false};
  std::atomic<int> process{0};  // a forked child has files of its own
  std::array<char, PATH_MAX> name{};
};

std::array<Slot, 16> g_slots;
std::atomic<int> g_files{0};
std::atomic<int64_t> g_growth{0};  // when any of them last grew, ns

int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int take_slot(const char* name) {
  const size_t size = std::strlen(name) + 1;
  if (size == 1 || size > PATH_MAX)
    return -1;
  for (size_t i = 0; i < g_slots.size(); ++i) {
    Slot& slot = g_slots[i];
    if (slot.taken.exchange(true))
      continue;
    std::memcpy(slot.name.data(), name, size);
    slot.process = ::getpid();
    slot.filled = true;
    return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

void FileUnderWay::begin(const char* temporary) {
  end();
  begun_ = true;
  slot_ = take_slot(temporary);
  grew();
  ++g_files;
}

void FileUnderWay::grew() {
  g_growth = steady_now();
}

void FileUnderWay::end() {
  if (!begun_)
    return;
  begun_ = false;
  --g_files;
  if (slot_ < 0)
    return;
  Slot& slot = g_slots[static_cast<size_t>(slot_)];
  slot_ = -1;
  slot.filled = false;
  slot.taken = false;
}

std::chrono::nanoseconds time_without_growth() {
  return std::chrono::nanoseconds(g_files > 0 ? steady_now() - g_growth : int64_t{0});
}

void remove_files_under_way() {
  for (const Slot& slot : g_slots)
    if (slot.filled && slot.process == ::getpid())
      ::unlink(slot.name.data());
}

}  // namespace seqconv::internal
