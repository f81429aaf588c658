#pragma once

#include <cstdint>
#include <vector>

namespace seqconv::internal {

/// The sums of the micro-batches of one update, besides the gradient.
struct UpdateSums {
  double loss = 0;       ///< label-smoothed, natural log, summed over tokens
  double nll = 0;        ///< negative log-likelihood, likewise
  double alignment = 0;  ///< guided alignment's loss, summed over aligned tokens
  int64_t target_tokens = 0;
  int64_t source_tokens = 0;
  int64_t sentences = 0;
  int64_t aligned_tokens = 0;  ///< target tokens that have links
  /// Micro-batches whose loss was not finite; they are in no other sum.
  int64_t broken = 0;

  template <class Visitor>
  void visit(Visitor& v) {
    v("loss", loss, "Natural log");
    v("nll", nll, "Natural log");
    v("alignment", alignment, "Natural log");
    v("target_tokens", target_tokens, "</s> counted");
    v("source_tokens", source_tokens, "</s> counted");
    v("sentences", sentences, "Pairs");
    v("aligned_tokens", aligned_tokens, "Target tokens with links");
    v("broken", broken, "Micro-batches without a finite loss");
  }

  UpdateSums& operator+=(const UpdateSums& other) {
    loss += other.loss;
    nll += other.nll;
    alignment += other.alignment;
    target_tokens += other.target_tokens;
    source_tokens += other.source_tokens;
    sentences += other.sentences;
    aligned_tokens += other.aligned_tokens;
    broken += other.broken;
    return *this;
  }

  static constexpr int64_t kNumbers = 8;

  /// All of them in the order of visit(); counts are exact in a double.
  std::vector<double> numbers() const {
    std::vector<double> list;
    UpdateSums copy = *this;
    auto add = [&](const char* /*key*/, auto& value, const char* /*help*/) {
      list.push_back(static_cast<double>(value));
    };
    copy.visit(add);
    return list;
  }

  /// Takes the kNumbers that numbers() gave.
  void set_numbers(const double* next) {
    auto take = [&]<class T>(const char* /*key*/, T& value, const char*) {
      value = static_cast<T>(*next++);
    };
    visit(take);
  }
};

}  // namespace seqconv::internal
