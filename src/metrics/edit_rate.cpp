#include "metrics/edit_rate.h"

#include <algorithm>
#include <vector>

#include "metrics/edit_distance.h"

namespace seqconv::internal::metrics {
namespace {

constexpr int64_t kLongestRun = 10;
constexpr int64_t kFurthestMove = 50;
constexpr int64_t kMostMoves = 1000;

using Words = std::vector<uint32_t>;

/// A run of words of the hypothesis that the reference has elsewhere.
struct Run {
  int64_t hypothesis;  // where it begins
  int64_t reference;
  int64_t length;
};

/// Looks for the move of a run of words that brings a hypothesis nearest to its
/// reference.
class MoveSearch {
 public:
  MoveSearch(std::span<const uint32_t> hypothesis, Words reference)
      : reference_(std::move(reference)),
        words_(hypothesis.begin(), hypothesis.end()),
        distances_(words_.size(), reference_),
        distance_(distances_.keep(words_)) {}

  /// Makes moves until none helps; their number and the edits left.
  int64_t run() {
    int64_t moves = 0;
    while (find_best() && tried_ < kMostMoves) {
      ++moves;
      words_ = best_words_;
      distance_ = distances_.keep(words_);
    }
    return moves + distance_;
  }

 private:
  /// Whether some move helps; then it is in best_words_.
  bool find_best() {
    alignment_ = distances_.align(words_);
    best_gain_ = 0;
    const auto n = static_cast<int64_t>(words_.size());
    const auto m = static_cast<int64_t>(reference_.size());
    for (int64_t h = 0; h < n; ++h) {
      const int64_t begin = std::max<int64_t>(0, h - kFurthestMove);
      const int64_t end = std::min(m, h + kFurthestMove + 1);
      for (int64_t r = begin; r < end; ++r)
        if (!try_runs(h, r))
          return best_gain_ > 0;
    }
    return best_gain_ > 0;
  }

  /// Tries all equal runs that begin at these words; false when enough moves
  /// have been tried. Only what is wrong at both places is moved.
  bool try_runs(int64_t h, int64_t r) {
    const auto n = static_cast<int64_t>(words_.size());
    const auto m = static_cast<int64_t>(reference_.size());
    const int64_t longest = std::min({kLongestRun, n - h, m - r});
    bool hypothesis_wrong = false;
    bool reference_wrong = false;
    for (int64_t length = 1; length <= longest; ++length) {
      const auto last_h = static_cast<size_t>(h + length - 1);
      const auto last_r = static_cast<size_t>(r + length - 1);
      if (words_[last_h] != reference_[last_r])
        break;
      hypothesis_wrong |= alignment_.hypothesis_wrong[last_h] != 0;
      reference_wrong |= alignment_.reference_wrong[last_r] != 0;
      const int64_t place = alignment_.of_reference[static_cast<size_t>(r)];
      if (!hypothesis_wrong || !reference_wrong || (place >= h && place < h + length))
        continue;
      try_targets({h, r, length});
      if (tried_ >= kMostMoves)
        return false;
    }
    return true;
  }

  /// Tries to move the run before, into and behind what stands at its place.
  void try_targets(const Run& run) {
    int64_t previous = -1;
    for (int64_t i = run.reference - 1; i < run.reference + run.length; ++i) {
      const int64_t target = i < 0 ? 0 : alignment_.of_reference[static_cast<size_t>(i)] + 1;
      if (target != previous)
        try_move(run, target);
      previous = target;
    }
  }

  void try_move(const Run& run, int64_t target) {
    ++tried_;
    move_words(run, target);
    // What gains less than the best is no candidate, nor is what gains nothing.
    const int64_t wanted = std::max<int64_t>(1, best_gain_);
    const int64_t gain = distance_ -
        distances_.distance(
            moved_,
            static_cast<size_t>(std::min(run.hypothesis, target)),
            static_cast<int32_t>(distance_ - wanted));
    if (gain < wanted || (gain == best_gain_ && !precedes(run, target)))
      return;
    best_gain_ = gain;
    best_run_ = run;
    best_target_ = target;
    best_words_ = moved_;
  }

  /// Whether of two moves of the same gain this one is taken: longer runs, then
  /// earlier ones, then those to earlier places.
  bool precedes(const Run& run, int64_t target) const {
    if (run.length != best_run_.length)
      return run.length > best_run_.length;
    if (run.hypothesis != best_run_.hypothesis)
      return run.hypothesis < best_run_.hypothesis;
    return target < best_target_;
  }

  /// A target inside the run moves it on by as many words.
  void move_words(const Run& run, int64_t target) {
    moved_ = words_;
    const auto begin = moved_.begin() + run.hypothesis;
    const auto end = begin + run.length;
    if (target < run.hypothesis) {
      std::rotate(moved_.begin() + target, begin, end);
      return;
    }
    const auto size = static_cast<int64_t>(words_.size());
    const int64_t behind =
        target > run.hypothesis + run.length ? target : std::min(size, target + run.length);
    std::rotate(begin, end, moved_.begin() + behind);
  }

  Words reference_;
  Words words_;
  EditDistance distances_;
  int64_t distance_;
  Alignment alignment_;
  int64_t tried_ = 0;
  Words moved_;
  int64_t best_gain_ = 0;
  Run best_run_{};
  int64_t best_target_ = 0;
  Words best_words_;
};

}  // namespace

int64_t count_edits(std::span<const uint32_t> hypothesis, std::span<const uint32_t> reference) {
  if (reference.empty())
    return static_cast<int64_t>(hypothesis.size());
  return MoveSearch(hypothesis, Words(reference.begin(), reference.end())).run();
}

}  // namespace seqconv::internal::metrics
