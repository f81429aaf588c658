#include "libtorch/nn/adaptive_softmax.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>

#include "base/error.h"
#include "libtorch/nn/linear.h"
#include "libtorch/ops/device.h"
#include "libtorch/ops/elementwise.h"

namespace seqconv::internal {
namespace {

constexpr std::string_view kSoftmaxOp = "adaptive_softmax";

/// The targets as the head sees them, and the rows that each tail sees.
struct SplitTargets {
  std::vector<int64_t> head;                ///< [M]: a word, or c0 + tail
  std::vector<std::vector<int64_t>> rows;   ///< a tail: rows of its words
  std::vector<std::vector<int64_t>> words;  ///< a tail: ids from its begin
};

SplitTargets split_targets(const at::Tensor& target, const VocabularyBands& bands) {
  const at::Tensor ids = target.contiguous();
  const int64_t* id = ids.const_data_ptr<int64_t>();
  SplitTargets split;
  split.head.resize(static_cast<size_t>(ids.numel()));
  split.rows.resize(static_cast<size_t>(bands.count() - 1));
  split.words.resize(split.rows.size());
  for (int64_t row = 0; row < ids.numel(); ++row) {
    TORCH_CHECK(
        id[row] >= 0 && id[row] < bands.vocabulary(),
        "[adaptive_softmax] targets must be in [0, ",
        bands.vocabulary(),
        "), but got ",
        id[row],
        " in row ",
        row);
    const int64_t band = bands.band_of(id[row]);
    auto& head = split.head[static_cast<size_t>(row)];
    head = band == 0 ? id[row] : bands.end(0) + band - 1;
    if (band == 0)
      continue;
    const auto tail = static_cast<size_t>(band) - 1;
    split.rows[tail].push_back(row);
    split.words[tail].push_back(id[row] - bands.begin(band));
  }
  return split;
}

at::Tensor to_tensor(const std::vector<int64_t>& ids) {
  return at::tensor(ids, at::kLong);
}

at::Tensor log_softmax(const at::Tensor& logits) {
  const auto type = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return at::log_softmax(logits, -1, type);
}

at::Tensor gather(const at::Tensor& rows, const at::Tensor& columns) {
  return rows.gather(1, ops::to_device(columns, rows.device()).unsqueeze(1)).squeeze(1);
}

void check_tied(
    const AdaptiveSoftmaxOptions& options,
    const VocabularyBands& bands,
    const AdaptiveInputImpl& tied) {
  TORCH_CHECK(
      tied.bands().ends == bands.ends && tied.options().factor == options.factor &&
          tied.options().channels == options.channels,
      "[adaptive_softmax] tied words need an adaptive input with the same cutoffs, factor and "
      "channels, but got bands that end at ",
      tied.bands().ends,
      " (here ",
      bands.ends,
      "), factor ",
      tied.options().factor,
      " (here ",
      options.factor,
      ") and ",
      tied.options().channels,
      " channels (here ",
      options.channels,
      ")");
}

}  // namespace

AdaptiveSoftmaxImpl::AdaptiveSoftmaxImpl(
    const AdaptiveSoftmaxOptions& options,
    const InitGenerator& generator,
    const AdaptiveInput& tied)
    : options_(options), bands_(make_bands(kSoftmaxOp, options.cutoffs, options.vocabulary)) {
  TORCH_CHECK(
      tied || !options.tie_projections,
      "[adaptive_softmax] tied projections need tied words, but the words are not tied");
  const int64_t channels = options.channels;
  const auto own = [&](const std::string& name, int64_t out, int64_t in) {
    return register_parameter(name, xavier_uniform({out, in}, in, out, generator));
  };
  if (tied) {
    check_tied(options, bands_, *tied);
    head_words_ = tied->table(0);
    if (head_words_.size(1) != channels)
      head_projection_ = own("head_projection", head_words_.size(1), channels);
    class_projection_ = own("class_projection", tails(), channels);
  } else {
    head_ = own("head", head_words() + tails(), channels);
  }
  for (int64_t i = 0; i < tails(); ++i) {
    const int64_t width =
        tied ? tied->table(i + 1).size(1) : band_width(kSoftmaxOp, channels, options.factor, i + 1);
    projections_.push_back(
        options.tie_projections ? tied->projection(i + 1)
                                : own(concat("tail", i, "_projection"), width, channels));
    words_.push_back(
        tied ? tied->table(i + 1) : own(concat("tail", i, "_words"), bands_.size(i + 1), width));
  }
}

/// One matrix [c0 + tails, C] for the loss, which sees many rows at a time; its
/// product is computed in `type`, its gradient added up in its own.
at::Tensor AdaptiveSoftmaxImpl::head_weight(at::ScalarType type) const {
  if (head_.defined())
    return head_;
  const at::Tensor words = head_projection_.defined()
      ? at::matmul(head_words_.to(type), head_projection_.to(type)).to(head_words_.scalar_type())
      : head_words_;
  return at::cat({words, class_projection_});
}

/// Logits [M, c0 + tails] without making that matrix: for single steps.
at::Tensor AdaptiveSoftmaxImpl::head_logits(const at::Tensor& hidden) const {
  if (head_.defined())
    return at::linear(hidden, head_);
  const at::Tensor words =
      head_projection_.defined() ? at::linear(hidden, head_projection_) : hidden;
  return at::cat({at::linear(words, head_words_), at::linear(hidden, class_projection_)}, 1);
}

at::Tensor AdaptiveSoftmaxImpl::tail_input(int64_t tail, const at::Tensor& hidden) const {
  const at::Tensor& projection = projections_[static_cast<size_t>(tail)];
  return options_.tie_projections ? at::matmul(hidden, projection.to(hidden.scalar_type()))
                                  : project(hidden, projection);
}

ops::CrossEntropySums AdaptiveSoftmaxImpl::loss(
    const at::Tensor& hidden,
    const at::Tensor& target,
    DropoutPlan& plan,
    const at::Tensor& gradient_scale) const {
  const double rate = plan.rate(options_.dropout);
  const at::Tensor input = ops::dropout(hidden, rate, plan.next_seed());
  const SplitTargets split = split_targets(target, bands_);
  const SplitTargets before = split_targets(to_tensor(plan.part().targets_before), bands_);
  ops::CrossEntropySums sums = ops::linear_cross_entropy(
      input,
      head_weight(input.scalar_type()),
      to_tensor(split.head),
      {.ignore_index = kPadId, .gradient_scale = gradient_scale});
  for (int64_t i = 0; i < tails(); ++i) {
    ops::Seed seed = plan.next_seed();  // drawn whether it is needed or not
    const auto tail = static_cast<size_t>(i);
    if (split.rows[tail].empty())
      continue;
    if (seed.rows > 0) {  // a tail's rows are those of its words
      seed.rows = std::ssize(split.rows[tail]);
      seed.rows_before = std::ssize(before.rows[tail]);
    }
    const at::Tensor rows =
        at::index_select(input, 0, ops::to_device(to_tensor(split.rows[tail]), input.device()));
    const ops::CrossEntropySums part = ops::linear_cross_entropy(
        ops::dropout(tail_input(i, rows), rate, seed),
        words_[tail],
        to_tensor(split.words[tail]),
        {.ignore_index = options_.fairseq_compatible ? kPadId : -1,
         .gradient_scale = gradient_scale});
    sums.loss = sums.loss + part.loss;
    sums.nll = sums.nll + part.nll;
  }
  return sums;
}

at::Tensor AdaptiveSoftmaxImpl::target_log_probabilities(
    const at::Tensor& hidden, const at::Tensor& target) const {
  std::vector<at::Tensor> parts;
  const int64_t chunk_rows = ops::rows_in_chunk(bands_.vocabulary());
  const auto targets = target.split(chunk_rows);
  const auto chunks = hidden.split(chunk_rows);
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    const SplitTargets split = split_targets(targets[chunk], bands_);
    at::Tensor scores = gather(log_softmax(head_logits(chunks[chunk])), to_tensor(split.head));
    for (int64_t i = 0; i < tails(); ++i) {
      const auto tail = static_cast<size_t>(i);
      if (split.rows[tail].empty())
        continue;
      const at::Tensor rows = ops::to_device(to_tensor(split.rows[tail]), hidden.device());
      const at::Tensor inside = log_softmax(
          at::linear(tail_input(i, at::index_select(chunks[chunk], 0, rows)), words_[tail]));
      scores = scores.index_add(0, rows, gather(inside, to_tensor(split.words[tail])));
    }
    parts.push_back(scores);
  }
  return at::cat(parts);
}

at::Tensor AdaptiveSoftmaxImpl::log_probabilities(const at::Tensor& hidden) const {
  const at::Tensor head = log_softmax(head_logits(hidden));
  std::vector<at::Tensor> parts = {head.narrow(1, 0, head_words())};
  for (int64_t i = 0; i < tails(); ++i)
    parts.push_back(
        log_softmax(at::linear(tail_input(i, hidden), words_[static_cast<size_t>(i)])) +
        head.narrow(1, head_words() + i, 1));
  return at::cat(parts, 1);
}

}  // namespace seqconv::internal
