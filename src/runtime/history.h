#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "runtime/workspace.h"

/// Holds what a decoder remembers of the steps before, without moving it when
/// hypotheses are dropped, repeated and reordered.
namespace seqconv::internal::runtime {

/// Looks back without end.
inline constexpr int64_t kAllSteps = std::numeric_limits<int64_t>::max();

/// Rows of `width` numbers of the steps that can still be seen: those of a
/// ring, or all.
class RowLog {
 public:
  /// reach: how many steps back rows are read. Memory is taken from `kept`,
  /// which outlives this.
  RowLog(int64_t width, int64_t reach, Workspace::Frame& kept)
      : width_(width), reach_(reach), kept_(&kept) {}

  /// Memory for the rows [rows, width] of step `step`; that of step - reach - 1
  /// is lost.
  float* add(int64_t step, int64_t rows);
  const float* row(int64_t step, int64_t row) const {
    return steps_[slot(step)].data() + row * width_;
  }

 private:
  size_t slot(int64_t step) const {
    return static_cast<size_t>(reach_ == kAllSteps ? step : step % (reach_ + 1));
  }

  int64_t width_;
  int64_t reach_;
  Workspace::Frame* kept_;
  std::vector<Grown<float>> steps_;
};

/// The rows of the step that a decoder makes, and which row of each step before
/// each of them continues. Several steps can be made at once by rows that stay
/// as they are.
class Ancestry {
 public:
  /// reach: how many steps back the furthest-looking layer looks. Memory is
  /// taken from `kept`, which outlives this.
  Ancestry(int64_t reach, Workspace::Frame& kept) : reach_(reach), kept_(&kept) {}

  /// The next `steps` steps: row r of the first continues old row parents[r].
  void advance(std::span<const int32_t> parents, int64_t steps = 1);

  int64_t rows() const { return rows_; }    ///< N
  int64_t steps() const { return steps_; }  ///< T' made at once
  int64_t first() const { return first_; }  ///< number of the first of these

  /// Counts the inputs that a layer of such a reach sees at step `step`, that
  /// of the step included.
  static int64_t seen(int64_t step, int64_t reach) { return step < reach ? step + 1 : reach + 1; }
  /// The row of step `step` that row `row` is or continues.
  int64_t row_at(int64_t step, int64_t row) const {
    // Rows of steps that are made at once stay as they are.
    return step >= first_ ? row : row_of_[slot(step)].data()[row];
  }
  /// Finds where the last `count` inputs of row `row` of step `step` lie,
  /// oldest first -> out.
  void find(const RowLog& log, int64_t step, int64_t row, int64_t count, const float** out) const;

 private:
  size_t slot(int64_t step) const {
    return static_cast<size_t>(reach_ == kAllSteps ? step : step % (reach_ + 1));
  }

  int64_t reach_;
  Workspace::Frame* kept_;
  int64_t rows_ = 0;
  int64_t steps_ = 0;
  int64_t first_ = 0;
  std::vector<Grown<int32_t>> row_of_;  ///< [step's slot][row]
  std::vector<int32_t> old_;
};

}  // namespace seqconv::internal::runtime
