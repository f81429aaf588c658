#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>

#include "runtime/weights.h"
#include "runtime/workspace.h"

namespace seqconv::internal::runtime {

/// Rows of sinusoidal positions (semantics.md 2.3), the first of them made
/// once. No lock guards them: a child process of fork() might find it held by
/// a thread that it does not have.
class SinusoidalRows {
 public:
  explicit SinusoidalRows(int64_t dim) : dim_(dim) {}
  ~SinusoidalRows();
  SinusoidalRows(const SinusoidalRows&) = delete;
  SinusoidalRows& operator=(const SinusoidalRows&) = delete;

  /// out [dim] = row of position `past`, from 0. Safe to call from several
  /// threads at a time.
  void copy_row(int64_t past, float* out) const;

 private:
  static constexpr int64_t kBlock = 64;
  static constexpr int64_t kBlocks = 64;

  void make_row(int64_t past, float* out) const;
  const float* made_block(int64_t block) const;

  int64_t dim_;
  mutable std::array<std::atomic<const float*>, kBlocks> blocks_{};
};

/// Words in bands of their own widths (Baevski & Auli 2019).
class BandedWords {
 public:
  BandedWords(
      const ModelOptions& options,
      int64_t vocabulary,
      const Weights& weights,
      const std::string& name);

  /// ids [rows] -> y [rows, C]; <pad> is zero.
  void run(std::span<const int32_t> ids, float* y, Workspace& space) const;

 private:
  struct Band {
    int64_t begin = 0;
    int64_t end = 0;
    Table table;
    Linear projection;
  };
  int64_t dim_;
  std::vector<Band> bands_;
};

/// Words and positions of a side.
class Embedding {
 public:
  /// table: the name of the words' matrix, where there is one.
  struct Place {
    Side side = Side::kEncoder;
    int64_t vocabulary = 0;
    std::string table;
  };
  Embedding(const ModelOptions& options, const Weights& weights, const Place& place);

  /// The place of an id in its sequence, from 0.
  struct Word {
    int32_t id = 0;
    int64_t past = 0;
  };
  /// words [rows] -> x [rows, C]. Error for ids outside the vocabulary, and
  /// when learned positions do not reach.
  void run(std::span<const Word> words, float* x, Workspace& space) const;

  /// Most tokens of a sequence: of learned positions, or a very large number.
  int64_t max_tokens() const;

 private:
  void look_up(std::span<const int32_t> ids, float* x, Workspace& space) const;
  void add_positions(std::span<const Word> words, float* x, Workspace& space) const;

  int64_t dim_;
  int64_t vocabulary_;
  int64_t learned_ = 0;
  std::optional<Table> table_;
  std::optional<BandedWords> bands_;
  std::optional<Linear> projection_;
  std::optional<Table> positions_;
  std::unique_ptr<const SinusoidalRows> sinusoidal_;
};

}  // namespace seqconv::internal::runtime
