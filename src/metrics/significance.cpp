#include "metrics/significance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "metrics/numpy_random.h"

namespace seqconv::internal {
namespace {

using metrics::NumpyRandom;

NumpyRandom random_of(const Resampling& resampling) {
  return NumpyRandom(static_cast<uint64_t>(resampling.seed));
}

/// NumPy's order of summation: eight sums side by side of up to 128 numbers,
/// halves of more.
template <class Real>
Real sum_pairwise(std::span<const Real> values) {
  constexpr size_t kLanes = 8;
  constexpr size_t kBlock = 128;
  const size_t n = values.size();
  if (n > kBlock) {
    const size_t half = n / 2 - n / 2 % kLanes;
    return sum_pairwise(values.first(half)) + sum_pairwise(values.subspan(half));
  }
  Real sum = 0;
  size_t i = 0;
  if (n >= kLanes) {
    std::vector<Real> lanes(values.begin(), values.begin() + kLanes);
    for (i = kLanes; i + kLanes <= n; i += kLanes)
      for (size_t lane = 0; lane < kLanes; ++lane)
        lanes[lane] += values[i + lane];
    for (size_t width = 1; width < kLanes; width *= 2)
      for (size_t lane = 0; lane < kLanes; lane += 2 * width)
        lanes[lane] += lanes[lane + width];
    sum = lanes[0];
  }
  for (; i < n; ++i)
    sum += values[i];
  return sum;
}

/// NumPy's mean.
template <class Real>
Real mean_of(const std::vector<Real>& values) {
  return sum_pairwise(std::span<const Real>(values)) / static_cast<Real>(values.size());
}

/// The middle 95 % of scores. The mean is NumPy's, or else an exact one.
template <class Real>
ConfidenceInterval interval_of(std::vector<Real> scores, bool exact) {
  std::sort(scores.begin(), scores.end());
  const size_t n = scores.size();
  const size_t cut = n / 40;
  const Real width = scores[n - cut - 1] - scores[cut];
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  const Real mean = exact ? static_cast<Real>(sum / static_cast<double>(n)) : mean_of(scores);
  return {.mean = mean, .half_width = width / 2};
}

/// The share of distances that are more than `limit` above `zero`, one such
/// distance assumed besides.
template <class Real>
double p_value_of(const std::vector<Real>& distances, Real zero, double limit) {
  const auto wanted = static_cast<Real>(limit);
  const auto count = std::count_if(
      distances.begin(), distances.end(), [&](Real distance) { return distance - zero > wanted; });
  return static_cast<double>(count + 1) / static_cast<double>(distances.size() + 1);
}

/// Scores of samples. sacreBLEU keeps them in arrays of NumPy, of single
/// precision where all scores are, and computes with them in that precision,
/// which decides about ties and last digits.
struct SampleScores {
  std::vector<double> scores;
  bool single = true;

  void add(const SampleScore& sample) {
    scores.push_back(sample.score);
    single = single && sample.single;
  }
  template <class Real>
  std::vector<Real> as() const {
    return {scores.begin(), scores.end()};
  }
  ConfidenceInterval interval(bool exact) const {
    return single ? interval_of(as<float>(), exact) : interval_of(scores, exact);
  }
};

/// Paired bootstrap: distances of the samples' scores around their mean.
template <class Real>
double bootstrap_p_value(
    const std::vector<Real>& baseline, const std::vector<Real>& system, double limit) {
  std::vector<Real> distances(system.size());
  for (size_t i = 0; i < system.size(); ++i)
    distances[i] = std::abs(system[i] - baseline[i]);
  return p_value_of(distances, mean_of(distances), limit);
}

/// Scores of bootstrap samples. Sums are in single precision, one sentence
/// after the other, as sacreBLEU makes them.
SampleScores draw_samples(
    const SentenceStatistics& system,
    const ScoreOfSums& score,
    int64_t samples,
    NumpyRandom random) {
  const size_t width = system.width();
  const auto sentences = static_cast<uint32_t>(system.sentences());
  std::vector<float> rows;
  for (size_t i = 0; i < sentences; ++i)
    for (double number : system.row(i))
      rows.push_back(static_cast<float>(number));
  SampleScores scores;
  std::vector<float> sums(width);
  for (int64_t sample = 0; sample < samples; ++sample) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (uint32_t i = 0; i < sentences; ++i) {
      const float* row = rows.data() + random.below(sentences) * width;
      for (size_t k = 0; k < width; ++k)
        sums[k] += row[k];
    }
    if (score.single)
      scores.add(score.single(sums));
    else
      scores.add({.score = score.exact(std::vector<double>(sums.begin(), sums.end()))});
  }
  return scores;
}

/// Distances of the scores of two systems that have exchanged their outputs of
/// half of the sentences at random. Moves `random` on.
std::vector<double> draw_exchanges(
    const SentenceStatistics& baseline,
    const SentenceStatistics& system,
    const ScoreOfSums& score,
    int64_t trials,
    NumpyRandom& random) {
  const size_t width = system.width();
  std::vector<double> distances;
  std::vector<double> a(width);
  std::vector<double> b(width);
  for (int64_t trial = 0; trial < trials; ++trial) {
    std::fill(a.begin(), a.end(), 0.0);
    std::fill(b.begin(), b.end(), 0.0);
    for (size_t i = 0; i < system.sentences(); ++i) {
      const double* rows[2] = {system.row(i).data(), baseline.row(i).data()};
      const bool first = random.bit();
      for (size_t k = 0; k < width; ++k) {
        a[k] += rows[first][k];
        b[k] += rows[!first][k];
      }
    }
    distances.push_back(std::abs(score.exact(a) - score.exact(b)));
  }
  return distances;
}

void check_system(const SentenceStatistics& system, size_t number) {
  SEQCONV_CHECK(
      system.sentences() > 0, "system ", number, " needs sentences to draw from, but has 0");
  SEQCONV_CHECK(
      system.sentences() <= std::numeric_limits<uint32_t>::max(),
      "system ",
      number,
      " must have fewer than 2^32 sentences to draw from, but has ",
      system.sentences());
}

/// Error unless both systems have the same sentences by the same metric.
void check_alike(const SentenceStatistics& first, const SentenceStatistics& other, size_t number) {
  SEQCONV_CHECK(
      other.sentences() == first.sentences() && other.width() == first.width(),
      "all systems must have the ",
      first.sentences(),
      " sentences of the first, with ",
      first.width(),
      " numbers each, but system ",
      number,
      " has ",
      other.sentences(),
      " with ",
      other.width());
}

/// No sample and no exchange tells two such systems apart: chance always makes
/// differences like theirs.
bool are_same(const SentenceStatistics& first, const SentenceStatistics& second) {
  for (size_t i = 0; i < first.sentences(); ++i)
    if (!std::ranges::equal(first.row(i), second.row(i)))
      return false;
  return true;
}

ComparedSystem compare_pair(
    const SentenceStatistics& baseline,
    const SentenceStatistics& system,
    const ScoreOfSums& score,
    const PairedTest& test) {
  const int64_t samples = test.resampling.samples;
  NumpyRandom random = random_of(test.resampling);
  ComparedSystem result{.score = score.exact(system.sums())};
  const double distance = std::abs(score.exact(baseline.sums()) - result.score);
  if (test.kind == PairedTestKind::kBootstrap) {
    const auto scores = draw_samples(system, score, samples, random);
    const auto others = draw_samples(baseline, score, samples, random);
    result.p_value = scores.single && others.single
        ? bootstrap_p_value(others.as<float>(), scores.as<float>(), distance)
        : bootstrap_p_value(others.scores, scores.scores, distance);
    result.interval = scores.interval(/*exact=*/false);
    return result;
  }
  result.p_value = p_value_of(
      draw_exchanges(baseline, system, score, samples, random),
      /*zero=*/0.0,
      distance);
  if (test.interval_samples > 0)
    result.interval =
        draw_samples(system, score, test.interval_samples, random).interval(/*exact=*/false);
  return result;
}

std::string insert_fields(std::string_view signature, const std::string& fields) {
  const size_t end = std::min(signature.find('|'), signature.size());
  return concat(signature.substr(0, end), "|", fields, signature.substr(end));
}

}  // namespace

void SentenceStatistics::add(std::span<const double> numbers) {
  SEQCONV_CHECK(
      !numbers.empty() && (width_ == 0 || width_ == numbers.size()),
      "every sentence must have ",
      width_ == 0 ? 1 : width_,
      width_ == 0 ? " number or more" : " numbers like the first",
      ", but got ",
      numbers.size());
  width_ = numbers.size();
  values_.insert(values_.end(), numbers.begin(), numbers.end());
}

std::vector<double> SentenceStatistics::sums() const {
  std::vector<double> sums(width_);
  for (size_t i = 0; i < sentences(); ++i)
    for (size_t k = 0; k < width_; ++k)
      sums[k] += row(i)[k];
  return sums;
}

void Resampling::validate(const OptionNames& names) const {
  if (samples < 2)
    fail_usage(names("samples"), " must be at least 2, but got ", samples);
  if (seed < 0)
    fail_usage(names("seed"), " must be at least 0, but got ", seed);
}

ConfidenceInterval bootstrap_interval(
    const SentenceStatistics& system, const ScoreOfSums& score, const Resampling& resampling) {
  resampling.validate();
  check_system(system, 1);
  return draw_samples(system, score, resampling.samples, random_of(resampling))
      .interval(/*exact=*/true);
}

std::vector<ComparedSystem> compare_systems(
    const std::vector<SentenceStatistics>& systems,
    const ScoreOfSums& score,
    const PairedTest& test) {
  test.resampling.validate();
  SEQCONV_CHECK(!systems.empty(), "a test needs systems, but got 0");
  for (size_t i = 0; i < systems.size(); ++i) {
    check_system(systems[i], i + 1);
    check_alike(systems[0], systems[i], i + 1);
  }
  ComparedSystem baseline{.score = score.exact(systems[0].sums())};
  const int64_t samples =
      test.kind == PairedTestKind::kBootstrap ? test.resampling.samples : test.interval_samples;
  if (samples > 0)
    baseline.interval = draw_samples(systems[0], score, samples, random_of(test.resampling))
                            .interval(/*exact=*/false);
  std::vector<ComparedSystem> results = {baseline};
  for (size_t i = 1; i < systems.size(); ++i) {
    results.push_back(compare_pair(systems[0], systems[i], score, test));
    if (are_same(systems[0], systems[i]))
      results.back().p_value = 1;
  }
  return results;
}

std::string signature_with(std::string_view signature, const Resampling& bootstrap) {
  return insert_fields(signature, concat("bs:", bootstrap.samples, "|seed:", bootstrap.seed));
}

std::string signature_with(std::string_view signature, const PairedTest& test) {
  if (test.kind == PairedTestKind::kBootstrap)
    return signature_with(signature, test.resampling);
  std::string fields;
  if (test.interval_samples > 0)
    fields = concat("bs:", test.interval_samples, "|");
  return insert_fields(
      signature, concat(fields, "ar:", test.resampling.samples, "|seed:", test.resampling.seed));
}

}  // namespace seqconv::internal
