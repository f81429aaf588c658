#include "libtorch/models/device_candidates.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/fmax.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <span>
#include <tuple>

#include "base/special_ids.h"
#include "libtorch/models/tensors.h"
#include "libtorch/ops/device.h"
#include "search/candidates.h"

// Words are counted from </s> here, the first one that may come.
namespace seqconv::internal {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr int64_t kLowBits = 0xffffffff;

/// int64 numbers of scores, none of them NaN, and words: the better candidate
/// has the smaller one, which is its score's order above, its word below. A
/// score's bits without the sign order as its size does.
at::Tensor keys_of(const at::Tensor& scores, const at::Tensor& words) {
  const at::Tensor bits = scores.view(at::kInt);
  const at::Tensor size = bits.bitwise_and(0x7fffffff);
  const at::Tensor cost = at::where(bits.lt(0), size, size.neg());
  return cost.to(at::kLong).mul(kLowBits + 1).add(words);
}

Candidate candidate_of(int64_t key) {
  const auto cost = static_cast<int32_t>(key >> 32);
  const auto size = std::bit_cast<float>(std::abs(cost));
  return {static_cast<int32_t>(key & kLowBits) + kEndId, cost > 0 ? -size : size};
}

/// The `count` smallest of each row [N, M], ascending; all where they are less.
at::Tensor first_of(const at::Tensor& keys, int64_t count) {
  return std::get<0>(keys.topk(
      std::min(count, keys.size(1)),
      1,
      /*largest=*/false,
      /*sorted=*/true));
}

at::Tensor counting(int64_t count, const at::Tensor& beside) {
  return at::arange(count, beside.options().dtype(at::kLong));
}

/// Minus infinity for NaN.
void copy_scores(const at::Tensor& scores, at::Tensor out) {
  at::fmax_out(out, scores, at::scalar_tensor(kMinusInfinity, at::kFloat));
}

void add_place(std::vector<int64_t>& places, int64_t token, int64_t words) {
  if (is_producible(token) && token - kEndId < words)
    places.push_back(token - kEndId);
}

/// What may not come among the first `words` of scores [N, W] gets minus
/// infinity.
void forbid(const at::Tensor& scores, const StepConstraints& constraints, int64_t words) {
  std::vector<int64_t> places;
  const auto take_away_from = [&](const at::Tensor& rows) {
    if (places.empty())
      return;
    const auto count = static_cast<int64_t>(places.size());
    const at::Tensor there =  // [1, count]
        ops::to_device(view_ids(places, {1, count}), scores.device());
    rows.scatter_(1, there.expand({rows.size(0), count}), kMinusInfinity);
    places.clear();
  };
  for (const int32_t token : constraints.excluded)
    add_place(places, token, words);
  take_away_from(scores);
  for (size_t row = 0; row < constraints.rows.size(); ++row) {
    const size_t before = places.size();
    for (const int32_t token : constraints.rows[row].banned)
      add_place(places, token, words);
    for (size_t i = before; i < places.size(); ++i)
      places[i] += static_cast<int64_t>(row) * scores.size(1);
  }
  take_away_from(scores.view({1, -1}));
}

/// Scores with penalties, minus infinity of words that may not come, in blocks:
/// [N, B, block].
at::Tensor allowed_scores(const at::Tensor& scores, const StepConstraints& constraints) {
  constexpr auto kBlock = static_cast<int64_t>(kWordBlock);
  const int64_t rows = scores.size(0), words = scores.size(1) - kEndId;
  const int64_t blocks = (words + kBlock - 1) / kBlock;
  const at::Tensor allowed = at::full({rows, blocks * kBlock}, kMinusInfinity, scores.options());
  copy_scores(scores.narrow(1, kEndId, words), allowed.narrow(1, 0, words));
  if (constraints.unknown_penalty != 0 && words > kUnknownId - kEndId) {
    const at::Tensor unknown = allowed.select(1, kUnknownId - kEndId);
    unknown.copy_(unknown.to(at::kDouble).sub(constraints.unknown_penalty));
  }
  forbid(allowed, constraints, words);
  return allowed.view({rows, blocks, kBlock});
}

/// Keys of the best words, [N, at most count]. The best `count` blocks, by
/// their largest score and then their place, hold them all: a word elsewhere
/// comes after the best of each of these. So few words need keys.
at::Tensor best_keys(const at::Tensor& blocks, int64_t count) {
  const int64_t rows = blocks.size(0), size = blocks.size(2);
  const at::Tensor places =  // [N, K, 1]
      first_of(keys_of(blocks.amax(2), counting(blocks.size(1), blocks)), count)
          .bitwise_and(kLowBits)
          .unsqueeze(2);
  const at::Tensor scores =  // [N, K, block]
      blocks.gather(1, places.expand({rows, places.size(1), size}));
  const at::Tensor words = places.mul(size).add(counting(size, blocks));
  return first_of(keys_of(scores, words).view({rows, -1}), count);
}

/// Keys of what the rows are forced to, whose word counts as 0, [N, 1]; other
/// rows' mean nothing.
at::Tensor forced_keys(const at::Tensor& scores, std::span<const RowConstraint> rows) {
  std::vector<int64_t> ids;
  for (const RowConstraint& row : rows) {
    SEQCONV_CHECK(
        row.forced < scores.size(1),
        "a forced token must be below the vocabulary size ",
        scores.size(1),
        ", but got ",
        row.forced);
    ids.push_back(std::max(row.forced, 0));
  }
  const at::Tensor there = ops::to_device(view_ids(ids, {scores.size(0), 1}), scores.device());
  at::Tensor forced = scores.gather(1, there);
  copy_scores(forced, forced);
  return keys_of(forced, counting(1, forced));
}

bool any_forced(const StepConstraints& constraints) {
  return std::ranges::any_of(
      constraints.rows, [](const RowConstraint& row) { return row.forced >= 0; });
}

/// Of one row, whose last key is that of a forced word where any row has one.
void read_row(std::span<const int64_t> keys, int32_t forced, std::vector<Candidate>& out) {
  out.clear();
  if (forced >= 0)
    out.push_back({forced, candidate_of(keys.back()).score});
  else
    std::ranges::transform(keys, std::back_inserter(out), candidate_of);
  std::erase_if(out, [](const Candidate& candidate) { return candidate.score == kMinusInfinity; });
}

void select_whole_row(
    const at::Tensor& scores,
    const StepConstraints& constraints,
    size_t row,
    int64_t count,
    std::vector<Candidate>& out) {
  const at::Tensor here = ops::to_host(scores[static_cast<int64_t>(row)]).contiguous();
  const std::span numbers(here.const_data_ptr<float>(), static_cast<size_t>(here.numel()));
  select_row({numbers}, constraints, row, count, out);
}

}  // namespace

void select_rows(
    const at::Tensor& scores,
    const StepConstraints& constraints,
    int64_t count,
    std::vector<std::vector<Candidate>>& out) {
  const bool forced = any_forced(constraints);
  at::Tensor keys = best_keys(allowed_scores(scores, constraints), count);
  if (forced)
    keys = at::cat({keys, forced_keys(scores, constraints.rows)}, 1);
  keys = ops::to_host(keys).contiguous();
  const auto width = static_cast<size_t>(keys.size(1));
  const int64_t* own = keys.const_data_ptr<int64_t>();
  out.resize(static_cast<size_t>(keys.size(0)));
  for (size_t row = 0; row < out.size(); ++row, own += width) {
    const int32_t only = forced ? constraints.rows[row].forced : -1;
    read_row({own, width - (forced && only < 0 ? 1 : 0)}, only, out[row]);
    if (out[row].empty())
      select_whole_row(scores, constraints, row, count, out[row]);
  }
}

}  // namespace seqconv::internal
