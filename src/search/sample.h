#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/option_names.h"
#include "search/candidates.h"
#include "seqconv/requests.h"

namespace seqconv {

/// The keys of drawing tokens: base/options.h.
template <class Visitor>
void visit_options(SamplingOptions& options, Visitor& v) {
  v("temperature",
    options.temperature,
    "Logits are divided by it, at least 0; 0 = the most probable token");
  v("top_k", options.top_k, "Only this many of the most probable tokens; 0 = all");
  v("top_p", options.top_p, "Only the fewest most probable tokens that reach this sum, in (0, 1]");
  v("ban_unknown", options.ban_unknown, "Never <unk>");
}

}  // namespace seqconv

namespace seqconv::internal {

/// UsageError when a value makes no sense; messages have these names.
void validate(const SamplingOptions& options, const OptionNames& names);

/// Tells whether two requests are drawn alike, whatever their seeds, or both searched for.
bool draws_alike(const std::optional<SamplingOptions>& a, const std::optional<SamplingOptions>& b);

/// In [0, 1), a function of seed and index.
double uniform_number(uint64_t seed, uint64_t index);

/// What Sampler::draw chose.
struct SampledToken {
  int32_t token = 0;
  /// Natural and as given: before temperature and restrictions.
  float log_probability = 0;
};

/// Draws next tokens: temperature, then the k most probable, then the nucleus
/// (Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration").
/// Keeps its buffers, so one object serves one thread.
class Sampler {
 public:
  /// UsageError when an option makes no sense.
  explicit Sampler(const SamplingOptions& options);

  /// A token by the inverse of the cumulative distribution, a function of the
  /// arguments alone. Allocates nothing once the buffers have grown.
  ///
  /// next: log-probabilities, or whatever else gives them; a constant may be
  ///   missing from all of them. NaN counts as minus infinity. All are asked
  ///   for where the temperature is above 0 and top_k = 0.
  /// banned: tokens that may not come; <s> and <pad> never do.
  /// uniform: in [0, 1).
  ///
  /// Restrictions apply in the order bans, temperature, top_k, top_p; what is
  /// left is renormalised after each. A nucleus ends with the token that
  /// reaches top_p, and holds at least one. Among equals the lower token is
  /// the more probable one. The distribution is accumulated
  /// - by ascending token when top_k = 0 and top_p = 1: no sort, O(V);
  /// - by descending probability otherwise: O(V) and a sort of what is left.
  ///
  /// NoProbability when nothing is left and when a log-probability that counts
  /// is plus infinity; Error when `uniform` or a banned token is out of range.
  SampledToken draw(NextTokens& next, std::span<const int32_t> banned, double uniform);
  SampledToken draw(
      std::span<const float> log_probabilities, std::span<const int32_t> banned, double uniform);

  /// How many of the most probable tokens that may come a draw asks for; 0: for
  /// all log-probabilities.
  int64_t asks_for() const;

 private:
  void select(NextTokens& next, int64_t count);
  void weigh_all(std::span<const float> log_probabilities);
  void weigh_best();
  void find_nucleus(NextTokens& next);
  size_t nucleus_size(double total) const;
  size_t choose(double uniform) const;
  double weight(float log_probability) const;

  SamplingOptions options_;
  RowConstraint constraint_;     // the bans of this call
  std::vector<Candidate> best_;  // the most probable tokens, best first
  std::vector<double> weights_;  // of best_ or of all: exp(./T), best = 1
  double largest_ = 0;           // log-probability of the best
};

}  // namespace seqconv::internal
