#include "runtime/embedding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/special_ids.h"

namespace seqconv::internal::runtime {

SinusoidalRows::~SinusoidalRows() {
  for (const std::atomic<const float*>& block : blocks_)
    delete[] block.load();
}

void SinusoidalRows::copy_row(int64_t past, float* out) const {
  const int64_t block = past / kBlock;
  if (block >= kBlocks)
    return make_row(past, out);
  std::copy_n(made_block(block) + past % kBlock * dim_, dim_, out);
}

/// One of several threads that make it at a time has made it.
const float* SinusoidalRows::made_block(int64_t block) const {
  std::atomic<const float*>& place = blocks_[static_cast<size_t>(block)];
  if (const float* const made = place.load(std::memory_order_acquire))
    return made;
  auto own = std::make_unique<float[]>(static_cast<size_t>(kBlock * dim_));
  for (int64_t i = 0; i < kBlock; ++i)
    make_row(block * kBlock + i, own.get() + i * dim_);
  const float* first = nullptr;
  return place.compare_exchange_strong(first, own.get()) ? own.release() : first;
}

void SinusoidalRows::make_row(int64_t past, float* out) const {
  const int64_t half = dim_ / 2;
  const double step = std::log(10000.0) / static_cast<double>(half - 1);
  const auto position = static_cast<double>(kFirstPosition + past);
  for (int64_t i = 0; i < half; ++i) {
    const double angle = position * std::exp(static_cast<double>(i) * -step);
    out[i] = static_cast<float>(std::sin(angle));
    out[half + i] = static_cast<float>(std::cos(angle));
  }
  if (dim_ % 2 == 1)
    out[dim_ - 1] = 0;
}

BandedWords::BandedWords(
    const ModelOptions& options,
    int64_t vocabulary,
    const Weights& weights,
    const std::string& name)
    : dim_(options.dim) {
  int64_t begin = 0;
  for (const int64_t end : band_ends(options.adaptive.input_cutoffs, vocabulary)) {
    const size_t i = bands_.size();
    bands_.push_back(
        {begin,
         end,
         weights.table(concat(name, "table", i)),
         weights.matrix(concat(name, "projection", i))});
    begin = end;
  }
}

void BandedWords::run(std::span<const int32_t> ids, float* y, Workspace& space) const {
  const auto rows = static_cast<int64_t>(ids.size());
  Workspace::Frame frame(space);
  int64_t* const places = frame.take<int64_t>(rows);
  float* const projected = frame.take(rows * dim_);
  std::fill_n(y, rows * dim_, 0.0F);
  for (const Band& band : bands_) {
    Workspace::Frame inner(space);
    const int64_t width = band.table.width();
    float* const words = inner.take(rows * width);
    int64_t count = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t id = ids[static_cast<size_t>(r)];
      if (id < band.begin || id >= band.end || id == kPadId)
        continue;
      band.table.copy_row(id - band.begin, words + count * width);
      places[count++] = r;
    }
    if (count == 0)
      continue;
    band.projection.run({.rows = count, .x = words, .y = projected});
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(projected + i * dim_, dim_, y + places[i] * dim_);
  }
}

Embedding::Embedding(const ModelOptions& options, const Weights& weights, const Place& place)
    : dim_(options.dim), vocabulary_(place.vocabulary) {
  const bool decodes = place.side == Side::kDecoder;
  const StackOptions& stack = decodes ? options.decoder : options.encoder;
  const std::string name = decodes ? "decoder.embedding." : "encoder.embedding.";
  if (decodes && !options.adaptive.input_cutoffs.empty())
    bands_.emplace(options, vocabulary_, weights, name + "bands.");
  else
    table_ = weights.table(place.table);
  if (decodes && options.input_width() != dim_)
    projection_ = weights.matrix(name + "projection");
  switch (options.positions_of(stack)) {
    case PositionKind::kSinusoidal:
      sinusoidal_ = std::make_unique<const SinusoidalRows>(dim_);
      break;
    case PositionKind::kLearned:
      learned_ = options.learned_positions(stack);
      positions_ = weights.table(name + "positions");
      break;
    case PositionKind::kNone:
      break;
  }
}

int64_t Embedding::max_tokens() const {
  return learned_ > 0 ? learned_ : std::numeric_limits<int32_t>::max();
}

void Embedding::look_up(std::span<const int32_t> ids, float* x, Workspace& space) const {
  if (bands_)
    return bands_->run(ids, x, space);
  const auto rows = static_cast<int64_t>(ids.size());
  Workspace::Frame frame(space);
  const int64_t width = table_->width();
  float* const words = projection_ ? frame.take(rows * width) : x;
  for (int64_t r = 0; r < rows; ++r)
    table_->copy_row(ids[static_cast<size_t>(r)], words + r * width);
  if (projection_)
    projection_->run({.rows = rows, .x = words, .y = x});
}

void Embedding::add_positions(std::span<const Word> words, float* x, Workspace& space) const {
  Workspace::Frame frame(space);
  float* const position = frame.take(dim_);
  const float scale = static_cast<float>(std::sqrt(static_cast<double>(dim_)));
  std::fill_n(position, dim_, 0.0F);
  int64_t made = -1;
  for (size_t r = 0; r < words.size(); ++r) {
    const int64_t past = words[r].past;
    SEQCONV_CHECK(
        learned_ == 0 || past < learned_,
        "[embedding] learned positions reach max_positions = ",
        learned_,
        " tokens, but got a sequence of ",
        past + 1);
    if (past != made) {
      if (positions_)
        positions_->copy_row(past + kFirstPosition, position);
      else if (sinusoidal_)
        sinusoidal_->copy_row(past, position);
      made = past;
    }
    float* const row = x + static_cast<int64_t>(r) * dim_;
    for (int64_t c = 0; c < dim_; ++c)
      row[c] = position[c] + scale * row[c];
  }
}

void Embedding::run(std::span<const Word> words, float* x, Workspace& space) const {
  Workspace::Frame frame(space);
  auto* const ids = frame.take<int32_t>(static_cast<int64_t>(words.size()));
  for (size_t r = 0; r < words.size(); ++r) {
    ids[r] = words[r].id;
    SEQCONV_CHECK(
        ids[r] >= 0 && ids[r] < vocabulary_,
        "ids must be in [0, ",
        vocabulary_,
        "), but got ",
        ids[r]);
  }
  look_up({ids, words.size()}, x, space);
  add_positions(words, x, space);
}

}  // namespace seqconv::internal::runtime
