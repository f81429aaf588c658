#include "train/alignment_choice.h"

#include <algorithm>
#include <iterator>

#include "libtorch/backend/backend.h"
#include "libtorch/ops/device.h"
#include "pipeline/alignment.h"
#include "text/corpus/aligned_samples.h"

namespace seqconv::internal {
namespace {

constexpr int64_t kLearnedPairs = 20'000;
constexpr int64_t kJudgedPairs = 200;

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
  const WordAligner words =
      learn_words(training, model.source_vocabulary(), model.target_vocabulary(), kLearnedPairs);
  const StackOptions& decoder = model.options().decoder;
  std::vector<AlignmentOptions> all;
  for (int64_t layer = 0; layer < decoder.layers; ++layer)
    std::ranges::copy(choices(layer, decoder.heads), std::back_inserter(all));
  std::vector<Overlap> overlaps(all.size());
  const std::vector<uint32_t> samples = spread_samples(judged, kJudgedPairs);
  for (size_t first = 0; first < samples.size(); first += kTogether) {
    const auto some =
        std::span(samples).subspan(first, std::min(kTogether, samples.size() - first));
    const Batch batch = judged.batch(some);
    std::vector<std::vector<AlignedTokens>> wanted;
    for (const uint32_t sample : some)
      wanted.push_back(align_sample(words, judged, sample));
    model.visit_source_shares(batch, [&](int64_t layer, const at::Tensor& shares) {
      const at::Tensor here = ops::to_host(shares);  // [B, H, T, S]
      for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].layer != layer)
          continue;
        const auto found = mean_of_heads(here, batch, all[i]);
        for (size_t row = 0; row < some.size(); ++row)
          overlaps[i].add(align_tokens(found[row]), wanted[row]);
      }
    });
  }
  AlignmentAgreement best;
  for (size_t i = 0; i < all.size(); ++i)
    if (const double f1 = overlaps[i].f1(); f1 > best.f1)
      best = {all[i], f1};
  return best;
}

}  // namespace seqconv::internal
