#include <gmock/gmock.h>

#include <map>
#include <string>

#include "seqconv/base/launch.h"

namespace seqconv {
namespace {

Launch launch_of(const std::map<std::string, const char*>& variables) {
  return find_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second;
  });
}

TEST(Launch, OneProcessIsWhatNoVariableOrTheNumberOneSays) {
  EXPECT_EQ(launch_of({}).size, 1);
  EXPECT_EQ(launch_of({{"OMPI_COMM_WORLD_SIZE", "1"}}).size, 1);
  // A batch script is one process, however many its job may start.
  EXPECT_EQ(launch_of({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}).size, 1);
  // WORLD_SIZE alone may be anybody's.
  EXPECT_EQ(launch_of({{"WORLD_SIZE", "8"}}).size, 1);
  EXPECT_EQ(launch_of({{"OMPI_COMM_WORLD_SIZE", "many"}}).size, 1);
}

TEST(Launch, EveryStarterIsKnownByItsVariables) {
  const Launch open_mpi =
      launch_of({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}});
  EXPECT_EQ(open_mpi.starter, "mpirun");
  EXPECT_EQ(open_mpi.size, 4);
  EXPECT_EQ(open_mpi.rank, 3);
  EXPECT_EQ(open_mpi.variable, "OMPI_COMM_WORLD_SIZE=4");
  EXPECT_EQ(
      launch_of({{"TORCHELASTIC_RUN_ID", "a"}, {"WORLD_SIZE", "2"}}).starter,
      "torchrun");
  EXPECT_EQ(
      launch_of({{"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_PROCID", "5"}}).rank,
      5);
  EXPECT_EQ(launch_of({{"PMI_SIZE", "2"}}).starter, "MPICH's mpirun");
}

TEST(Launch, WhatSlurmStartsMayItselfStartProcesses) {
  const Launch inner =
      launch_of({{"SLURM_STEP_NUM_TASKS", "2"}, {"OMPI_COMM_WORLD_SIZE", "8"}});
  EXPECT_EQ(inner.starter, "mpirun");
  EXPECT_EQ(inner.size, 8);
}

TEST(Launch, ProcessesOfThisMachineAreCounted) {
  EXPECT_EQ(
      launch_of(
          {{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}})
          .local_size,
      4);
  EXPECT_EQ(
      launch_of({{"SLURM_STEP_NUM_TASKS", "11"},
                 {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"}})
          .local_size,
      4);
  EXPECT_EQ(launch_of({{"PMI_SIZE", "2"}}).local_size, 1);
  EXPECT_EQ(
      launch_of(
          {{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}})
          .local_rank,
      3);
  EXPECT_EQ(
      launch_of({{"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "2"}})
          .local_rank,
      2);
  EXPECT_EQ(launch_of({{"PMI_SIZE", "2"}}).local_rank, 0);
  EXPECT_EQ(
      launch_of({{"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "90"}}).local_size,
      2);
}

}  // namespace
}  // namespace seqconv
