#include "base/launch.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/signals.h"

namespace seqconv::internal {
namespace {

/// Variables that say how many processes were started, and which this one is;
/// null where a starter has none.
struct Starter {
  const char* name;
  const char* size;
  const char* rank;
  const char* local_size;
  const char* local_rank;
  std::array<const char*, 3> signs{};  ///< must be there too
  bool has_meeting_place = false;
};

// The innermost first: what starts others is itself started by a batch system.
constexpr Starter kStarters[] = {
    {"mpirun",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"torchrun",
     "WORLD_SIZE",
     "RANK",
     "LOCAL_WORLD_SIZE",
     "LOCAL_RANK",
     {"TORCHELASTIC_RUN_ID"},
     /*has_meeting_place=*/true},
    {"MVAPICH's mpirun_rsh",
     "MV2_COMM_WORLD_SIZE",
     "MV2_COMM_WORLD_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE",
     "MV2_COMM_WORLD_LOCAL_RANK"},
    {"MVAPICH's mpirun_rsh",
     "MVP_COMM_WORLD_SIZE",
     "MVP_COMM_WORLD_RANK",
     "MVP_COMM_WORLD_LOCAL_SIZE",
     "MVP_COMM_WORLD_LOCAL_RANK"},
    {"PALS", "PMI_SIZE", "PMI_RANK", "PMI_LOCAL_SIZE", "PMI_LOCAL_RANK", {"PALS_RANKID"}},
    {"Flux", "FLUX_JOB_SIZE", "FLUX_TASK_RANK", nullptr, "FLUX_TASK_LOCAL_ID", {"FLUX_TASK_RANK"}},
    {"jsrun",
     "JSM_NAMESPACE_SIZE",
     "JSM_NAMESPACE_RANK",
     "JSM_NAMESPACE_LOCAL_SIZE",
     "JSM_NAMESPACE_LOCAL_RANK"},
    {"MPICH's mpirun", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
    // SLURM_NTASKS is there in batch scripts too, which are one process.
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_LOCALID"},
    // Kubernetes' starter, for one. Behind srun, whose scripts may set these
    // too.
    {"a launcher of PyTorch's",
     "WORLD_SIZE",
     "RANK",
     "LOCAL_WORLD_SIZE",
     "LOCAL_RANK",
     {"RANK", "MASTER_ADDR", "MASTER_PORT"},
     /*has_meeting_place=*/true},
    // These count for themselves alone.
    {"PALS", nullptr, "PALS_RANKID", nullptr, "PALS_LOCAL_RANKID"},
    {"ALPS", nullptr, "ALPS_APP_PE", nullptr, nullptr},
    {"PMIx", nullptr, "PMIX_RANK", nullptr, "PMIX_LOCAL_RANK"}};

using Variables = std::function<const char*(const char*)>;

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

std::optional<int64_t> number(const Variables& variable, const char* name) {
  return number(name ? variable(name) : nullptr, /*whole=*/true);
}

/// True for a variable that is there and not empty.
bool is_set(const Variables& variable, const char* name) {
  const char* text = name ? variable(name) : nullptr;
  return text != nullptr && *text != '\0';
}

/// True when a starter's variables are there, that of the number among them.
bool has_started(const Starter& starter, const Variables& variable) {
  const auto is_missing = [&](const char* sign) {
    return sign != nullptr && variable(sign) == nullptr;
  };
  return is_set(variable, starter.size ? starter.size : starter.rank) &&
      std::ranges::none_of(starter.signs, is_missing);
}

/// The number of processes that a starter tells; 0 if it tells none.
int64_t size_of(const Starter& starter, const Variables& variable) {
  if (starter.size == nullptr)
    return 0;
  const auto size = number(variable, starter.size);
  if (!size || *size < 1)
    fail_usage(
        starter.size,
        ", by which ",
        starter.name,
        " says how many processes it started, must be a whole number of at least 1, but is '",
        variable(starter.size),
        "'");
  return *size;
}

/// The number of this process among `size`, 0 where its variable is missing.
int64_t rank_of(const Starter& starter, const Variables& variable, int64_t size) {
  if (!is_set(variable, starter.rank))
    return 0;
  const auto rank = number(variable, starter.rank);
  if (!rank || (size > 0 && *rank >= size))
    fail_usage(
        starter.rank,
        ", by which ",
        starter.name,
        size > 0 ? concat(
                       " numbers its ",
                       size,
                       " processes, must be a whole ",
                       "number from 0 to ",
                       size - 1)
                 : " numbers its processes, must be a whole number of at least 0",
        ", but is '",
        variable(starter.rank),
        "'");
  return *rank;
}

/// SLURM's is "4(x2),3": four on each of two machines, then three.
int64_t local_number(const char* text, int64_t size) {
  const int64_t found = number(text, /*whole=*/false).value_or(1);
  return std::clamp<int64_t>(found, 1, size);
}

}  // namespace

std::string started_text(const Launch& launch) {
  if (launch.size == 0)
    return concat(
        launch.starter,
        " has started this process (",
        launch.variable,
        ") and does not say how many there are");
  return concat(launch.starter, " has started ", launch.size, " processes (", launch.variable, ")");
}

Launch find_launch(const Variables& variable) {
  for (const Starter& starter : kStarters) {
    if (!has_started(starter, variable))
      continue;
    const char* told = starter.size ? starter.size : starter.rank;
    const int64_t size = size_of(starter, variable);
    if (size == 1)
      return {};
    return {
        .starter = starter.name,
        .variable = concat(told, "=", variable(told)),
        .rank = rank_of(starter, variable, size),
        .size = size,
        .local_size = local_number(
            starter.local_size ? variable(starter.local_size) : nullptr,
            std::max<int64_t>(size, 1)),
        .local_rank = number(variable, starter.local_rank).value_or(0),
        .has_meeting_place = starter.has_meeting_place};
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

}  // namespace seqconv::internal
