#include <algorithm>

#include "base/error.h"
#include "pipeline/stop_scope.h"
#include "runtime/model.h"
#include "runtime/runtime_backends.h"

namespace seqconv::internal {
namespace {

using runtime::Decoder;

/// Ids of a text that are read at once.
constexpr size_t kReadAtATime = 256;

class RuntimeReader : public TextReader, private NextTokens {
 public:
  RuntimeReader(
      std::shared_ptr<const Decoder> decoder, std::shared_ptr<runtime::WorkspacePool> pool)
      : decoder_(std::move(decoder)),
        spaces_(std::move(pool)),
        kept_(spaces_->kept),
        space_(spaces_->scratch),
        past_(decoder_->start(kept_)),
        last_(static_cast<size_t>(decoder_->dim())) {}

  NextTokens& read(std::span<const int32_t> ids) override {
    SEQCONV_CHECK(!ids.empty(), "a language model must be given a token");
    for (const int32_t id : ids)
      SEQCONV_CHECK(
          id >= 0 && id < decoder_->vocabulary(),
          "tokens must be in [0, ",
          decoder_->vocabulary(),
          "), but got ",
          id);
    constexpr int32_t kItself[] = {0};
    for (size_t first = 0; first < ids.size(); first += kReadAtATime) {
      const auto part = ids.subspan(first, std::min(kReadAtATime, ids.size() - first));
      const auto steps = static_cast<int64_t>(part.size());
      StopScope::check();
      runtime::Workspace::Frame frame(space_);
      float* const hidden = frame.take(steps * decoder_->dim());
      decoder_->step(kItself, part, nullptr, {}, past_, hidden, space_);
      std::copy_n(hidden + (steps - 1) * decoder_->dim(), last_.size(), last_.begin());
    }
    all_.clear();
    return *this;
  }

 private:
  int64_t vocabulary_size() const override { return decoder_->vocabulary(); }

  std::span<const float> log_probabilities() override {
    if (all_.empty()) {
      all_.resize(static_cast<size_t>(vocabulary_size()));
      decoder_->output().log_probabilities(1, last_.data(), all_.data(), space_);
    }
    return all_;
  }

  void best(const RowConstraint& constraint, int64_t count, std::vector<Candidate>& out) override {
    if (!all_.empty())
      return NextTokens::best(constraint, count, out);
    decoder_->output().candidates(last_.data(), constraint, count, out, space_);
  }

  std::shared_ptr<const Decoder> decoder_;
  runtime::WorkspacePool::Loan spaces_;
  runtime::Workspace::Frame kept_;
  runtime::Workspace& space_;
  runtime::PastSteps past_;
  std::vector<float> last_;  // [C], what was read as the decoder sees it
  std::vector<float> all_;   // [V], empty until it is asked for
};

class RuntimeLanguage : public LanguageBackend {
 public:
  RuntimeLanguage(
      std::shared_ptr<const Decoder> decoder, kernels::WeightType type, int64_t weight_bytes)
      : decoder_(std::move(decoder)), type_(type), weight_bytes_(weight_bytes) {}

  std::unique_ptr<TextReader> start() const override {
    return std::make_unique<RuntimeReader>(decoder_, pool_);
  }

  std::vector<std::vector<float>> score(
      const std::vector<std::span<const int32_t>>& pieces) const override {
    runtime::Ids given, wanted;
    for (const std::span<const int32_t> piece : pieces) {
      SEQCONV_CHECK(
          piece.size() >= 2, "a piece of a text needs 2 ids at least, but has ", piece.size());
      given.add(piece.first(piece.size() - 1));
      wanted.add(piece.subspan(1));
    }
    std::vector<float> scores(wanted.ids.size());
    const runtime::WorkspacePool::Loan spaces(pool_);
    decoder_->score(
        given.sequences, given.ids, wanted.ids, nullptr, scores.data(), spaces->scratch);
    std::vector<std::vector<float>> found;
    auto next = scores.begin();
    for (const std::span<const int32_t> piece : pieces) {
      const auto end = next + static_cast<std::ptrdiff_t>(piece.size()) - 1;
      found.emplace_back(next, end);
      next = end;
    }
    return found;
  }

  int64_t max_tokens() const override { return decoder_->max_tokens(); }

  std::string name() const override { return concat("runtime, ", enum_name(type_)); }
  int64_t weight_bytes() const override { return weight_bytes_; }

 private:
  std::shared_ptr<const Decoder> decoder_;
  kernels::WeightType type_;
  int64_t weight_bytes_;
  std::shared_ptr<runtime::WorkspacePool> pool_ = std::make_shared<runtime::WorkspacePool>();
};

}  // namespace

std::shared_ptr<const LanguageBackend> RuntimeBackends::language(const ModelToRun& model) const {
  const runtime::Weights weights(model, Task::kLanguageModel, compute_);
  auto decoder = std::make_shared<const Decoder>(
      model.options, Task::kLanguageModel, model.vocabulary, weights);
  return std::make_shared<RuntimeLanguage>(std::move(decoder), weights.type(), weights.bytes());
}

}  // namespace seqconv::internal
