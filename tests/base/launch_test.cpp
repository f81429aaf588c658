#include <gmock/gmock.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/launch.h"

namespace seqconv::internal {
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
  EXPECT_EQ(launch_of({{"OMPI_COMM_WORLD_SIZE", ""}}).size, 1);
  EXPECT_EQ(launch_of({{"WORLD_SIZE", "many"}}).size, 1);
}

TEST(Launch, ANumberThatIsNoneIsNamedAndNotPassedOver) {
  const auto message = [](const std::map<std::string, const char*>& variables) {
    try {
      launch_of(variables);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  for (const char* size : {"many", "0", "-2", "2x", "99999999999999999999"})
    EXPECT_EQ(
        message({{"OMPI_COMM_WORLD_SIZE", size}}),
        concat(
            "OMPI_COMM_WORLD_SIZE, by which mpirun says how many processes it started, must be a "
            "whole number of at least 1, but is '",
            size,
            "'"));
  for (const char* rank : {"first", "2", "-1"})
    EXPECT_EQ(
        message({{"WORLD_SIZE", "2"}, {"RANK", rank}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}),
        concat(
            "RANK, by which a launcher of PyTorch's numbers its 2 processes, must be a whole "
            "number from 0 to 1, but is '",
            rank,
            "'"));
  EXPECT_EQ(
      message({{"PMIX_RANK", "x"}}),
      "PMIX_RANK, by which PMIx numbers its processes, must be a whole number of at least 0, but "
      "is 'x'");
}

TEST(Launch, EveryStarterIsKnownByItsVariables) {
  const Launch open_mpi = launch_of({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}});
  EXPECT_EQ(open_mpi.starter, "mpirun");
  EXPECT_EQ(open_mpi.size, 4);
  EXPECT_EQ(open_mpi.rank, 3);
  EXPECT_EQ(open_mpi.variable, "OMPI_COMM_WORLD_SIZE=4");
  EXPECT_EQ(launch_of({{"TORCHELASTIC_RUN_ID", "a"}, {"WORLD_SIZE", "2"}}).starter, "torchrun");
  EXPECT_EQ(launch_of({{"SLURM_STEP_NUM_TASKS", "16"}, {"SLURM_PROCID", "5"}}).rank, 5);
  EXPECT_EQ(launch_of({{"PMI_SIZE", "2"}}).starter, "MPICH's mpirun");
  const std::tuple<const char*, const char*, const char*> others[] = {
      {"MVAPICH's mpirun_rsh", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
      {"MVAPICH's mpirun_rsh", "MVP_COMM_WORLD_SIZE", "MVP_COMM_WORLD_RANK"},
      {"Flux", "FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
      {"jsrun", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"}};
  for (const auto& [starter, size, rank] : others) {
    const Launch launch = launch_of({{size, "6"}, {rank, "5"}});
    EXPECT_EQ(launch.starter, starter);
    EXPECT_EQ(launch.size, 6);
    EXPECT_EQ(launch.rank, 5);
    EXPECT_FALSE(launch.has_meeting_place);
  }
  const Launch pals = launch_of(
      {{"PALS_RANKID", "3"},
       {"PMI_SIZE", "4"},
       {"PMI_RANK", "3"},
       {"PMI_LOCAL_SIZE", "2"},
       {"PMI_LOCAL_RANK", "1"}});
  EXPECT_EQ(started_text(pals), "PALS has started 4 processes (PMI_SIZE=4)");
  EXPECT_EQ(pals.local_size, 2);
  EXPECT_EQ(pals.local_rank, 1);
}

TEST(Launch, WhatPyTorchsLaunchersSetIsKnownWhereAllOfItIsThere) {
  const std::map<std::string, const char*> all = {
      {"WORLD_SIZE", "4"},
      {"RANK", "2"},
      {"MASTER_ADDR", "job-master-0"},
      {"MASTER_PORT", "23456"}};
  const Launch launch = launch_of(all);
  EXPECT_EQ(started_text(launch), "a launcher of PyTorch's has started 4 processes (WORLD_SIZE=4)");
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.local_size, 1);
  EXPECT_TRUE(launch.has_meeting_place);
  for (const auto& [name, value] : all) {
    auto others = all;
    others.erase(name);
    EXPECT_EQ(launch_of(others).size, 1) << name;
  }
  auto started_by_srun = all;
  started_by_srun["SLURM_STEP_NUM_TASKS"] = "4";
  EXPECT_EQ(launch_of(started_by_srun).starter, "srun");
  auto torchrun_in_a_pod = all;
  torchrun_in_a_pod["TORCHELASTIC_RUN_ID"] = "x";
  EXPECT_EQ(launch_of(torchrun_in_a_pod).starter, "torchrun");
}

TEST(Launch, StartersThatDoNotCountAreNamedToo) {
  const std::pair<const char*, const char*> starters[] = {
      {"PALS", "PALS_RANKID"}, {"ALPS", "ALPS_APP_PE"}, {"PMIx", "PMIX_RANK"}};
  for (const auto& [starter, variable] : starters) {
    const Launch launch = launch_of({{variable, "3"}});
    EXPECT_EQ(launch.size, 0);
    EXPECT_EQ(launch.rank, 3);
    EXPECT_EQ(
        started_text(launch),
        concat(
            starter,
            " has started this process (",
            variable,
            "=3) and does not say how many there are"));
  }
  // Who counts says more, also that there is but one.
  EXPECT_EQ(launch_of({{"PMIX_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).size, 1);
  EXPECT_EQ(launch_of({{"PALS_RANKID", "0"}, {"PMI_SIZE", "1"}}).size, 1);
}

TEST(Launch, WhatSlurmStartsMayItselfStartProcesses) {
  const Launch inner = launch_of({{"SLURM_STEP_NUM_TASKS", "2"}, {"OMPI_COMM_WORLD_SIZE", "8"}});
  EXPECT_EQ(inner.starter, "mpirun");
  EXPECT_EQ(inner.size, 8);
}

TEST(Launch, ProcessesOfThisMachineAreCounted) {
  EXPECT_EQ(
      launch_of({{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}).local_size,
      4);
  EXPECT_EQ(
      launch_of({{"SLURM_STEP_NUM_TASKS", "11"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"}})
          .local_size,
      4);
  EXPECT_EQ(launch_of({{"PMI_SIZE", "2"}}).local_size, 1);
  EXPECT_EQ(
      launch_of({{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}}).local_rank,
      3);
  EXPECT_EQ(launch_of({{"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "2"}}).local_rank, 2);
  EXPECT_EQ(launch_of({{"PMI_SIZE", "2"}}).local_rank, 0);
  EXPECT_EQ(launch_of({{"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "90"}}).local_size, 2);
}

}  // namespace
}  // namespace seqconv::internal
