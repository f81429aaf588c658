#include "libtorch/nn/adaptive_input.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "base/error.h"
#include "libtorch/nn/linear.h"
#include "libtorch/ops/device.h"

namespace seqconv::internal {
namespace {

constexpr std::string_view kInputOp = "adaptive_input";

/// Which words of a text fall into which band, and where their rows end up
/// when the bands' rows are laid one after the other, a zero row last.
struct SortedWords {
  std::vector<std::vector<int64_t>> words;  ///< a band: ids from its begin
  std::vector<int64_t> row_of;              ///< a token: its row
};

SortedWords sort_by_band(const at::Tensor& ids, const VocabularyBands& bands) {
  const int64_t* id = ids.const_data_ptr<int64_t>();
  const int64_t count = ids.numel();
  SortedWords sorted;
  sorted.words.resize(static_cast<size_t>(bands.count()));
  sorted.row_of.resize(static_cast<size_t>(count));
  std::vector<int64_t> band_of(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    TORCH_CHECK(
        id[i] >= 0 && id[i] < bands.vocabulary(),
        "[adaptive_input] ids must be in [0, ",
        bands.vocabulary(),
        "), but got ",
        id[i]);
    const int64_t band = id[i] == kPadId ? bands.count() : bands.band_of(id[i]);
    band_of[static_cast<size_t>(i)] = band;
    if (band == bands.count())
      continue;
    auto& words = sorted.words[static_cast<size_t>(band)];
    sorted.row_of[static_cast<size_t>(i)] = static_cast<int64_t>(words.size());
    words.push_back(id[i] - bands.begin(band));
  }
  std::vector<int64_t> first(sorted.words.size() + 1, 0);
  for (size_t band = 0; band < sorted.words.size(); ++band)
    first[band + 1] = first[band] + static_cast<int64_t>(sorted.words[band].size());
  for (size_t i = 0; i < sorted.row_of.size(); ++i)
    sorted.row_of[i] += first[static_cast<size_t>(band_of[i])];
  return sorted;
}

}  // namespace

AdaptiveInputImpl::AdaptiveInputImpl(
    const AdaptiveInputOptions& options, const InitGenerator& generator)
    : options_(options), bands_(make_bands(kInputOp, options.cutoffs, options.vocabulary)) {
  const int64_t initial = options.initial_dim > 0 ? options.initial_dim : options.channels;
  for (int64_t band = 0; band < bands_.count(); ++band) {
    const int64_t width = band_width(kInputOp, initial, options.factor, band);
    at::Tensor table =
        normal({bands_.size(band), width}, 1.0 / std::sqrt(static_cast<double>(width)), generator);
    if (band == 0 || (options.fairseq_compatible && table.size(0) > kPadId))
      table[kPadId].zero_();
    tables_.push_back(register_parameter(concat("table", band), table));
    projections_.push_back(register_parameter(
        concat("projection", band),
        xavier_uniform({options.channels, width}, width, options.channels, generator)));
  }
}

at::Tensor AdaptiveInputImpl::forward(
    const at::Tensor& tokens, std::optional<at::ScalarType> type) const {
  const at::Device device = table(0).device();
  const auto there = [&](const std::vector<int64_t>& ids) {
    return ops::to_device(at::tensor(ids, at::kLong), device);
  };
  const SortedWords sorted = sort_by_band(ops::to_host(tokens).contiguous(), bands_);
  std::vector<at::Tensor> rows;
  for (int64_t band = 0; band < bands_.count(); ++band) {
    const auto& words = sorted.words[static_cast<size_t>(band)];
    if (words.empty())
      continue;
    // The quirk's word is looked up, but its gradient goes nowhere.
    const int64_t frozen = options_.fairseq_compatible && bands_.size(band) > kPadId ? kPadId : -1;
    rows.push_back(project(  // [words, C]
        in_type(at::embedding(table(band), there(words), frozen), type),
        projection(band)));
  }
  rows.push_back(at::zeros(  // what <pad> becomes
      {1, options_.channels},
      table(0).options().requires_grad(false).dtype(type.value_or(table(0).scalar_type()))));
  return at::index_select(at::cat(rows), 0, there(sorted.row_of))
      .view({tokens.size(0), tokens.size(1), options_.channels});
}

}  // namespace seqconv::internal
