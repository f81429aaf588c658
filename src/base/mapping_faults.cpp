#include "base/mapping_faults.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/one_line.h"

namespace seqconv::internal {
namespace {

constexpr size_t kMostMappings = 256;
constexpr size_t kMostOfAName = 480;
constexpr uintptr_t kTaken = UINTPTR_MAX;  // no address lies behind it

/// Nobody takes a lock: neither the handler, nor a child process of fork(),
/// which might find it held by a thread that it does not have. Who sets `begin`
/// to kTaken has the entry; it is set last.
struct Mapping {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::array<char, kMostOfAName> name{};
};

static_assert(std::atomic<uintptr_t>::is_always_lock_free);
std::array<Mapping, kMostMappings> g_mappings;
struct sigaction g_before_faults {};

const Mapping* mapping_at(uintptr_t address) {
  for (const Mapping& mapping : g_mappings) {
    const uintptr_t begin = mapping.begin;
    if (begin != 0 && begin <= address && address < mapping.end)
      return &mapping;
  }
  return nullptr;
}

void tell(const char* text) {
  // Nothing sensible is left to do where nobody listens.
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0)
    return;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (const Mapping* mapping = mapping_at(address)) {
    tell("error: '");
    tell(mapping->name.data());
    tell("' was cut short, or its disk failed, while it was in use: files of a model are to be "
         "replaced by others, never written into\n");
    ::_exit(1);
  }
  if ((g_before_faults.sa_flags & SA_SIGINFO) != 0)
    return g_before_faults.sa_sigaction(signal, info, context);
  if (g_before_faults.sa_handler != SIG_DFL && g_before_faults.sa_handler != SIG_IGN)
    return g_before_faults.sa_handler(signal);
  std::signal(signal, SIG_DFL);  // what has failed is tried again, and ends it
  if (info->si_code <= 0)        // sent by a process: nothing has failed
    ::raise(signal);
}

}  // namespace

void report_mapping_faults() {
  static std::atomic_flag done;
  if (done.test_and_set())
    return;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &g_before_faults);
}

void note_mapping(const void* data, size_t size, const std::filesystem::path& file) {
  for (Mapping& mapping : g_mappings) {
    uintptr_t unused = 0;
    if (!mapping.begin.compare_exchange_strong(unused, kTaken))
      continue;
    const std::string name = one_line(file.string());
    const size_t length = std::min(name.size(), kMostOfAName - 1);
    std::copy_n(name.begin(), length, mapping.name.begin());
    mapping.name[length] = '\0';
    const auto begin = reinterpret_cast<uintptr_t>(data);
    mapping.end = begin + size;
    mapping.begin = begin;
    return;
  }
}

void forget_mapping(const void* data) {
  for (Mapping& mapping : g_mappings) {
    auto begin = reinterpret_cast<uintptr_t>(data);
    if (mapping.begin.compare_exchange_strong(begin, 0))
      return;
  }
}

}  // namespace seqconv::internal
