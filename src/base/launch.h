#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace seqconv::internal {

/// Holds what the environment says of how this process was started.
struct Launch {
  std::string starter;   ///< "mpirun", "torchrun", "srun"; "" for one process
  std::string variable;  ///< that tells the number of processes
  int64_t rank = 0;
  int64_t size = 1;        ///< 0: who has started them does not tell
  int64_t local_size = 1;  ///< of them on this machine, where it is told
  int64_t local_rank = 0;  ///< among those, likewise
  /// True if they find each other at MASTER_ADDR and MASTER_PORT, as PyTorch's.
  bool has_meeting_place = false;
};

/// "mpirun has started 4 processes (OMPI_COMM_WORLD_SIZE=4)", as errors begin;
/// of those whose number is unknown "... and does not say how many there are".
std::string started_text(const Launch& launch);

/// Reads the variables that starters of processes set (Open MPI, MPICH,
/// MVAPICH, torchrun and others of PyTorch's, SLURM, PALS, Flux, jsrun, PMIx),
/// through `variable`: ::getenv, but for tests.
Launch find_launch(const std::function<const char*(const char*)>& variable);

/// Leaves it to the first process to say what all processes meet: each other
/// one waits `time`, and a little more by its rank, so that its starter may end
/// it meanwhile. False when that asked it to stop, with a signal that is
/// caught: then there is nothing more to say.
bool give_way(int64_t rank, std::chrono::milliseconds time = std::chrono::seconds(2));

}  // namespace seqconv::internal
