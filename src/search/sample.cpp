#include "search/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"

namespace seqconv::internal {
namespace {

// A nucleus is looked for among so many tokens first; most are smaller.
constexpr int64_t kFirstNucleus = 64;
constexpr int64_t kNucleusGrowth = 32;

double sum(const std::vector<double>& weights) {
  double total = 0;
  for (const double weight : weights)
    total += weight;
  return total;
}

/// Log-probabilities that are there.
class KnownTokens : public NextTokens {
 public:
  explicit KnownTokens(std::span<const float> log_probabilities)
      : log_probabilities_(log_probabilities) {}

  int64_t vocabulary_size() const override { return std::ssize(log_probabilities_); }
  std::span<const float> log_probabilities() override { return log_probabilities_; }

 private:
  std::span<const float> log_probabilities_;
};

}  // namespace

double uniform_number(uint64_t seed, uint64_t index) {
  const auto words = philox(seed, index);
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

void validate(const SamplingOptions& options, const OptionNames& names) {
  if (!(options.temperature >= 0 && std::isfinite(options.temperature)))
    fail_usage(
        names("temperature"),
        " must be a finite number of at least 0, but got ",
        options.temperature);
  if (options.top_k < 0)
    fail_usage(names("top_k"), " must be at least 0, but got ", options.top_k);
  if (!(options.top_p > 0 && options.top_p <= 1))
    fail_usage(names("top_p"), " must be above 0 and at most 1, but got ", options.top_p);
}

bool draws_alike(const std::optional<SamplingOptions>& a, const std::optional<SamplingOptions>& b) {
  if (!a || !b)
    return a.has_value() == b.has_value();
  return a->temperature == b->temperature && a->top_k == b->top_k && a->top_p == b->top_p &&
      a->ban_unknown == b->ban_unknown;
}

Sampler::Sampler(const SamplingOptions& options) : options_(options) {
  validate(options, "");
}

int64_t Sampler::asks_for() const {
  return options_.temperature == 0 ? 1 : options_.top_k;
}

SampledToken Sampler::draw(
    std::span<const float> log_probabilities, std::span<const int32_t> banned, double uniform) {
  KnownTokens next(log_probabilities);
  return draw(next, banned, uniform);
}

SampledToken Sampler::draw(NextTokens& next, std::span<const int32_t> banned, double uniform) {
  const int64_t size = next.vocabulary_size();
  SEQCONV_CHECK(
      uniform >= 0 && uniform < 1,
      "sampling needs a uniform number of at least 0 and below 1, but got ",
      uniform);
  for (const int32_t token : banned)
    SEQCONV_CHECK(
        token >= 0 && token < size,
        "banned tokens must be at least 0 and below the vocabulary size ",
        size,
        ", but got ",
        token);
  constraint_.banned.assign(banned.begin(), banned.end());
  if (options_.ban_unknown)
    constraint_.banned.push_back(kUnknownId);

  const bool greedy = options_.temperature == 0;
  const bool limited = !greedy && options_.top_k > 0;
  // All before the best of them: they are not made twice then.
  std::span<const float> all;
  if (!greedy && !limited)
    all = next.log_probabilities();
  select(next, limited ? std::min(options_.top_k, size) : 1);
  if (greedy)
    return {best_.front().token, best_.front().score};
  if (!limited && options_.top_p == 1) {
    weigh_all(all);
    const size_t token = choose(uniform);
    return {static_cast<int32_t>(token), all[token]};
  }
  if (!limited) {
    find_nucleus(next);
  } else {
    weigh_best();
    weights_.resize(nucleus_size(sum(weights_)));
  }
  const Candidate& chosen = best_[choose(uniform)];
  return {chosen.token, chosen.score};
}

/// The `count` most probable tokens, best first; NoProbability when there
/// is none.
void Sampler::select(NextTokens& next, int64_t count) {
  next.best(constraint_, count, best_);
  if (best_.empty())
    throw NoProbability(concat(
        "sampling needs a token that is neither <s> nor <pad>, not banned and not impossible, but "
        "none of the ",
        next.vocabulary_size(),
        " is left after ",
        constraint_.banned.size(),
        " bans"));
  largest_ = best_.front().score;
  if (!std::isfinite(largest_))
    throw NoProbability(concat(
        "log-probabilities must be below infinity, but token ",
        best_.front().token,
        " has ",
        largest_));
}

/// Relative to the best token's, which is 1: never overflows, and a sum of
/// weights is never 0.
double Sampler::weight(float log_probability) const {
  return std::exp((log_probability - largest_) / options_.temperature);
}

/// [V] weights, 0 for what may not come.
void Sampler::weigh_all(std::span<const float> log_probabilities) {
  weights_.assign(log_probabilities.size(), 0);
  for (size_t i = kEndId; i < weights_.size(); ++i)
    if (log_probabilities[i] > -std::numeric_limits<float>::infinity())
      weights_[i] = weight(log_probabilities[i]);
  for (const int32_t token : constraint_.banned)
    if (static_cast<size_t>(token) < weights_.size())
      weights_[static_cast<size_t>(token)] = 0;
}

void Sampler::weigh_best() {
  weights_.clear();
  for (const Candidate& candidate : best_)
    weights_.push_back(weight(candidate.score));
}

/// The weights of the fewest of all tokens whose probabilities reach top_p.
void Sampler::find_nucleus(NextTokens& next) {
  weigh_all(next.log_probabilities());
  const double total = sum(weights_);
  const int64_t size = next.vocabulary_size();
  for (int64_t count = kFirstNucleus;; count *= kNucleusGrowth) {
    select(next, std::min(count, size));
    weigh_best();
    const size_t nucleus = nucleus_size(total);
    const bool all = count >= size || best_.size() < static_cast<size_t>(count);
    if (nucleus < best_.size() || all) {
      weights_.resize(nucleus);
      return;
    }
  }
}

/// How many of the weights, summed from the first, reach top_p of `total`; all
/// of them when they do not.
size_t Sampler::nucleus_size(double total) const {
  if (options_.top_p == 1)
    return weights_.size();
  const double wanted = options_.top_p * total;
  double reached = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    reached += weights_[i];
    if (reached >= wanted)
      return i + 1;
  }
  return weights_.size();
}

/// The first index whose cumulative weight is above the share `uniform` of
/// all. Rounding may let that share be all: then the last possible index.
size_t Sampler::choose(double uniform) const {
  const double wanted = uniform * sum(weights_);
  double reached = 0;
  size_t last = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] == 0)
      continue;
    last = i;
    reached += weights_[i];
    if (reached > wanted)
      break;
  }
  return last;
}

}  // namespace seqconv::internal
