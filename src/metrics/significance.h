#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "base/option_names.h"
#include "metrics/sums.h"

namespace seqconv::internal {

/// The statistics of one system by one metric, sentence by sentence: rows of
/// numbers, as numbers() of BleuStatistics, whose sums make a score.
class SentenceStatistics {
 public:
  /// Adds a sentence. Error when it has another number of numbers than the
  /// sentences before, or none.
  void add(std::span<const double> numbers);

  size_t sentences() const { return width_ == 0 ? 0 : values_.size() / width_; }
  /// Numbers of a sentence.
  size_t width() const { return width_; }
  std::span<const double> row(size_t sentence) const {
    return {values_.data() + sentence * width_, width_};
  }
  /// Sums over all sentences, in their order.
  std::vector<double> sums() const;

 private:
  size_t width_ = 0;
  std::vector<double> values_;
};

/// A score's 95 % interval is mean - half_width to mean + half_width.
struct ConfidenceInterval {
  double mean = 0;  ///< of the scores of all samples
  double half_width = 0;
};

/// Says how many samples are drawn, and from which random numbers: those of
/// NumPy's default generator with this seed.
struct Resampling {
  int64_t samples = 1000;
  int64_t seed = 12345;

  template <class Visitor>
  void visit(Visitor& v) {
    v("samples", samples, "Samples to draw, at least 2");
    v("seed", seed, "Seed of the random numbers; sacreBLEU's is 12345");
  }

  /// UsageError for less than two samples and a seed below 0.
  void validate(const OptionNames& names = "resampling") const;
};

/// The interval of a system's score by bootstrap resampling (Koehn 2004):
/// sentences are drawn with replacement, as many as there are, and the middle
/// 95 % of the samples' scores are taken. The numbers are those of `sacrebleu
/// --confidence`. Error without sentences.
ConfidenceInterval bootstrap_interval(
    const SentenceStatistics& system, const ScoreOfSums& score, const Resampling& resampling = {});

/// The ways in which two systems are compared.
enum class PairedTestKind {
  kBootstrap,      ///< both on the same samples of sentences
  kRandomisation,  ///< with outputs exchanged at random, sentence by sentence
};
template <>
struct EnumNames<PairedTestKind> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, PairedTestKind>>(
      {{"bs", PairedTestKind::kBootstrap}, {"ar", PairedTestKind::kRandomisation}});
};

/// Says what compare_systems does; sacreBLEU has 1,000 samples for bootstrap
/// and 10,000 for randomisation.
struct PairedTest {
  PairedTestKind kind = PairedTestKind::kRandomisation;
  Resampling resampling = {.samples = 10000};
  /// Randomisation has intervals only where this is not 0: its number of
  /// bootstrap samples. Bootstrap has them anyway.
  int64_t interval_samples = 0;
};

struct ComparedSystem {
  double score = 0;
  /// Two-sided: how often chance alone makes the systems differ by more than
  /// these do. Not there for the baseline.
  std::optional<double> p_value;
  std::optional<ConfidenceInterval> interval;
};

/// Compares systems with the first one of them, the baseline, by paired
/// bootstrap or paired approximate randomisation (Riezler and Maxwell 2005).
/// The numbers are those of `sacrebleu --paired-bs` and `--paired-ar`, but for
/// a system with the baseline's statistics in every sentence: its p-value is 1,
/// where sacreBLEU has its smallest. Error without sentences, or when systems
/// have other numbers of them.
std::vector<ComparedSystem> compare_systems(
    const std::vector<SentenceStatistics>& systems,
    const ScoreOfSums& score,
    const PairedTest& test = {});

/// A metric's signature with the fields that sacreBLEU adds for an interval or
/// a test behind the first one: "nrefs:1|bs:1000|seed:12345|case:mixed|...".
std::string signature_with(std::string_view signature, const Resampling& bootstrap);
std::string signature_with(std::string_view signature, const PairedTest& test);

}  // namespace seqconv::internal
