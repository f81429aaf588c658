#include "seqconv/base/launch.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "seqconv/base/error.h"
#include "seqconv/base/signals.h"

namespace seqconv {
namespace {

/// Variables that say how many processes were started, and which this one is.
struct Starter {
  const char* name;
  const char* size;
  const char* rank;
  const char* local_size;
  const char* local_rank;
  const char* sign;  ///< must be there too
};

// The innermost first: what starts others is itself started by a batch system.
constexpr Starter kStarters[] = {
    {"mpirun",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     nullptr},
    {"torchrun",
     "WORLD_SIZE",
     "RANK",
     "LOCAL_WORLD_SIZE",
     "LOCAL_RANK",
     "TORCHELASTIC_RUN_ID"},
    {"MPICH's mpirun",
     "PMI_SIZE",
     "PMI_RANK",
     "MPI_LOCALNRANKS",
     "MPI_LOCALRANKID",
     nullptr},
    // SLURM_NTASKS is there in batch scripts too, which are one process.
    {"srun",
     "SLURM_STEP_NUM_TASKS",
     "SLURM_PROCID",
     "SLURM_STEP_TASKS_PER_NODE",
     "SLURM_LOCALID",
     nullptr}};

/// The number that a text begins with. `whole`: nothing may follow.
std::optional<int64_t> number(const char* text, bool whole) {
  int64_t value = 0;
  if (text == nullptr)
    return std::nullopt;
  const char* end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, value);
  if (parsed.ec != std::errc() || (whole && parsed.ptr != end) || value < 0)
    return std::nullopt;
  return value;
}

std::optional<int64_t> number(const char* text) {
  return number(text, /*whole=*/true);
}

/// SLURM's is "4(x2),3": four on each of two machines, then three.
int64_t local_number(const char* text, int64_t size) {
  const int64_t found = number(text, /*whole=*/false).value_or(1);
  return std::clamp<int64_t>(found, 1, size);
}

}  // namespace

std::string started_text(const Launch& launch) {
  return concat(
      launch.starter,
      " has started ",
      launch.size,
      " processes (",
      launch.variable,
      ")");
}

Launch find_launch(const std::function<const char*(const char*)>& variable) {
  for (const Starter& starter : kStarters) {
    const auto size = number(variable(starter.size));
    if (!size || (starter.sign != nullptr && variable(starter.sign) == nullptr))
      continue;
    if (*size <= 1)
      return {};
    return {
        .starter = starter.name,
        .variable = concat(starter.size, "=", *size),
        .rank = number(variable(starter.rank)).value_or(0),
        .size = *size,
        .local_size = local_number(variable(starter.local_size), *size),
        .local_rank = number(variable(starter.local_rank)).value_or(0)};
  }
  return {};
}

bool give_way(int64_t rank, std::chrono::milliseconds time) {
  using std::chrono::milliseconds;
  constexpr milliseconds kSlice(50);
  const int64_t before = stop_signals();
  milliseconds left(0);
  if (rank > 0)
    left = time + milliseconds(100 * std::min<int64_t>(rank, 50));
  for (; left > milliseconds(0); left -= kSlice) {
    std::this_thread::sleep_for(kSlice);
    if (stop_signals() != before)
      return false;
  }
  return true;
}

}  // namespace seqconv
