#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace seqconv::internal::testing {

/// The number of a process that has ended.
inline int ended_process() {
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return child;
}

}  // namespace seqconv::internal::testing
