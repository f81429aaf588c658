#include "train/alignment_choice.h"

#include <algorithm>
#include <iterator>

#include "libtorch/backend/backend.h"
#include "libtorch/ops/device.h"
#include "pipeline/alignment.h"
#include "text/corpus/word_aligner.h"

namespace seqconv::internal {
namespace {

constexpr int64_t kLearnedPairs = 20'000;
constexpr int64_t kJudgedPairs = 200;
constexpr int64_t kIterations = 5;
constexpr int64_t kMostTokens = 200;  // of a side: longer pairs tell little and cost much

using Ids = std::vector<int32_t>;

/// Numbers of so many samples at most, evenly spread, of sides that are neither empty nor
/// long.
std::vector<uint32_t> spread(const SampleSource& samples, int64_t most) {
  const int64_t stride = std::max<int64_t>((samples.size() + most - 1) / most, 1);
  std::vector<uint32_t> chosen;
  for (int64_t i = 0; i < samples.size(); i += stride) {
    const int64_t source = samples.source_length(i), target = samples.target_length(i);
    if (source > 1 && target > 1 && source <= kMostTokens && target <= kMostTokens)
      chosen.push_back(static_cast<uint32_t>(i));
  }
  return chosen;
}

/// Samples of a source with their links by the words.
struct Judged {
  std::vector<uint32_t> samples;
  std::vector<std::vector<AlignedTokens>> links;
};

/// Gives `take` both sides of samples.
template <class Take>
void visit_pairs(
    const SampleSource& source, const std::vector<uint32_t>& samples, const Take& take) {
  for (const uint32_t sample : samples) {
    const Batch one = source.batch({&sample, 1});  // without padding, </s> the last
    take(
        Ids(one.source.begin(), one.source.end() - 1),
        Ids(one.target_out.begin(), one.target_out.end() - 1));
  }
}

Judged judge(
    const TranslationModelImpl& model, const SampleSource& training, const SampleSource& judged) {
  WordAligner words(model.source_vocabulary(), model.target_vocabulary());
  visit_pairs(training, spread(training, kLearnedPairs), [&](const Ids& source, const Ids& target) {
    words.add(source, target);
  });
  words.learn(kIterations);
  Judged found{spread(judged, kJudgedPairs), {}};
  visit_pairs(judged, found.samples, [&](const Ids& source, const Ids& target) {
    found.links.push_back(words.align(source, target));
  });
  return found;
}

/// Pairs that two alignments have in common, and each has.
struct Overlap {
  int64_t both = 0;
  int64_t found = 0;
  int64_t wanted = 0;

  /// Both in order.
  void add(const std::vector<AlignedTokens>& own, const std::vector<AlignedTokens>& others) {
    found += std::ssize(own);
    wanted += std::ssize(others);
    std::vector<AlignedTokens> common;
    std::ranges::set_intersection(own, others, std::back_inserter(common));
    both += std::ssize(common);
  }
  double f1() const {
    return both == 0 ? 0 : 2.0 * static_cast<double>(both) / static_cast<double>(found + wanted);
  }
};

/// The choices in a layer: the mean of all heads first.
std::vector<AlignmentOptions> choices(int64_t layer, int64_t heads) {
  std::vector<AlignmentOptions> all;
  for (const bool next_step : {false, true}) {
    all.push_back(AlignmentOptions{layer, {}, next_step}.resolve(layer + 1, heads));
    for (int64_t head = 0; heads > 1 && head < heads; ++head)
      all.push_back({layer, {head}, next_step});
  }
  return all;
}

}  // namespace

AlignmentAgreement choose_alignment(
    const TranslationModelImpl& model, const SampleSource& training, const SampleSource& judged) {
  constexpr size_t kTogether = 20;
  const Judged wanted = judge(model, training, judged);
  const StackOptions& decoder = model.options().decoder;
  AlignmentAgreement best;
  for (int64_t layer = 0; layer < decoder.layers; ++layer) {
    const std::vector<AlignmentOptions> options = choices(layer, decoder.heads);
    std::vector<Overlap> overlaps(options.size());
    for (size_t first = 0; first < wanted.samples.size(); first += kTogether) {
      const size_t count = std::min(kTogether, wanted.samples.size() - first);
      const Batch batch = judged.batch(std::span(wanted.samples).subspan(first, count));
      const at::Tensor shares =  // [B, H, T, S]
          ops::to_host(model.source_shares(batch, batch, layer));
      for (size_t i = 0; i < options.size(); ++i) {
        const auto found = mean_of_heads(shares, batch, options[i]);
        for (size_t row = 0; row < count; ++row)
          overlaps[i].add(align_tokens(found[row]), wanted.links[first + row]);
      }
    }
    for (size_t i = 0; i < options.size(); ++i)
      if (const double f1 = overlaps[i].f1(); f1 > best.f1)
        best = {options[i], f1};
  }
  return best;
}

}  // namespace seqconv::internal
