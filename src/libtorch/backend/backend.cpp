#include "libtorch/backend/backend.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <new>
#include <span>

#include "base/special_ids.h"
#include "libtorch/backend/libtorch_errors.h"
#include "libtorch/backend/parameters.h"
#include "libtorch/ops/device.h"
#include "search/wrapped_decoder.h"
#include "text/corpus/batch.h"

namespace seqconv::internal {
namespace {

/// Like guarded(), but memory that is too small is std::bad_alloc: callers go
/// on with less at a time.
template <class Work>
auto guarded_batch(at::Device device, const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const c10::Error& error) {
    if (!ops::is_out_of_memory(error))
      fail(error.what_without_backtrace());
  } catch (...) {
    guarded([] { throw; });
  }
  ops::empty_cache(device);
  throw std::bad_alloc();
}

/// As reports have it: the same for every device of a kind.
std::string name_of(const SequenceModel& model) {
  const bool small = model.parameters().front().scalar_type() == at::kBFloat16;
  const std::string name = concat("libtorch, ", small ? "bfloat16" : "float32");
  const at::Device device = model.device();
  return device.is_cpu() ? name : concat(name, ", ", at::DeviceTypeName(device.type(), true));
}

/// A step decoder of modules.
class TorchDecoder : public WrappedDecoder {
 public:
  TorchDecoder(std::unique_ptr<StepDecoder> decoder, at::Device device)
      : WrappedDecoder(std::move(decoder)), device_(device) {}

  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) override {
    return *guarded_batch(
        device_, [&] { return &WrappedDecoder::advance(parents, tokens, constraints, count); });
  }

 private:
  at::Device device_;
};

class TorchTranslation : public TranslationBackend {
 public:
  TorchTranslation(
      std::vector<TranslationModel> models, const std::vector<AlignmentOptions>& alignments)
      : models_(std::move(models)) {
    for (size_t i = 0; i < models_.size(); ++i) {
      const ModelOptions& options = models_[i]->options();
      alignments_.push_back(alignments[i].resolve(options.decoder.layers, options.decoder.heads));
      limits_ = limits_.within(
          {options.learned_positions(options.encoder), options.learned_positions(options.decoder)});
    }
  }

  std::unique_ptr<StepDecoder> start(
      const std::vector<std::vector<int32_t>>& sources) const override {
    return guarded_batch(device(), [&]() -> std::unique_ptr<StepDecoder> {
      return std::make_unique<TorchDecoder>(
          make_step_decoder(models_, make_batch(sources, {})), device());
    });
  }

  std::vector<double> score(
      const std::vector<std::vector<int32_t>>& sources,
      const std::vector<std::vector<int32_t>>& targets) const override {
    return guarded_batch(device(), [&] {
      SEQCONV_CHECK(
          models_.size() == 1, "one model scores at a time, but there are ", models_.size());
      const at::Tensor sums =  // [B]
          ops::to_host(models_[0]
                           ->target_log_probabilities(make_batch(sources, targets))
                           .sum(1, false, at::kDouble))
              .contiguous();
      const double* data = sums.const_data_ptr<double>();
      return std::vector<double>(data, data + sums.numel());
    });
  }

  std::vector<SourceShares> source_shares(
      const std::vector<int32_t>& source,
      const std::vector<std::vector<int32_t>>& targets) const override {
    if (targets.empty())
      return {};
    return guarded_batch(device(), [&] {
      const Batch read = make_batch({source}, {});
      const Batch batch = make_batch(std::vector(targets.size(), source), targets);
      std::vector<std::vector<SourceShares>> found;
      for (size_t m = 0; m < models_.size(); ++m)
        found.push_back(mean_of_heads(
            models_[m]->source_shares(read, batch, alignments_[m].layer), batch, alignments_[m]));
      return mean_shares(std::move(found));
    });
  }

  PositionLimits limits() const override { return limits_; }
  std::string name() const override { return name_of(*models_.front()); }

 private:
  at::Device device() const { return models_.front()->device(); }

  std::vector<TranslationModel> models_;
  std::vector<AlignmentOptions> alignments_;  // resolved
  PositionLimits limits_;
};

class TorchReader : public TextReader, private NextTokens {
 public:
  explicit TorchReader(const LanguageModel& model) : reader_(model) {}

  NextTokens& read(std::span<const int32_t> ids) override {
    guarded([&] {
      next_ = ops::to_host(reader_.read({ids.begin(), ids.end()})).contiguous();
      numbers_ = {next_.const_data_ptr<float>(), static_cast<size_t>(next_.numel())};
    });
    return *this;
  }

 private:
  int64_t vocabulary_size() const override { return std::ssize(numbers_); }
  std::span<const float> log_probabilities() override { return numbers_; }

  LanguageModelReader reader_;
  at::Tensor next_;                 // [V]
  std::span<const float> numbers_;  // its own
};

class TorchLanguage : public LanguageBackend {
 public:
  explicit TorchLanguage(LanguageModel model) : model_(std::move(model)) {}

  std::unique_ptr<TextReader> start() const override {
    return guarded(
        [&]() -> std::unique_ptr<TextReader> { return std::make_unique<TorchReader>(model_); });
  }

  std::vector<std::vector<float>> score(
      const std::vector<std::span<const int32_t>>& pieces) const override {
    return guarded([&] {
      const at::Tensor scores =  // [B, T]
          ops::to_host(model_->target_log_probabilities(make_stream_batch(pieces))).contiguous();
      std::vector<std::vector<float>> found;
      for (size_t i = 0; i < pieces.size(); ++i) {
        const float* row =
            scores.const_data_ptr<float>() + static_cast<int64_t>(i) * scores.size(1);
        found.emplace_back(row, row + pieces[i].size() - 1);
      }
      return found;
    });
  }

  int64_t max_tokens() const override { return model_->max_tokens(); }
  std::string name() const override { return name_of(*model_); }

 private:
  LanguageModel model_;
};

}  // namespace

std::vector<SourceShares> mean_of_heads(
    const at::Tensor& shares, const Batch& batch, const AlignmentOptions& alignment) {
  const at::Tensor mean =  // [B, T, S]
      ops::to_host(shares)
          .to(at::kFloat)
          .index_select(1, at::tensor(alignment.heads, at::kLong))
          .mean(1)
          .contiguous();
  std::vector<SourceShares> found;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const auto ids = std::span(batch.target_out)
                         .subspan(
                             static_cast<size_t>(row * batch.target_steps),
                             static_cast<size_t>(batch.target_steps));
    const int64_t steps = ids.rend() - std::find(ids.rbegin(), ids.rend(), kEndId);
    const int64_t sources = batch.source_lengths[static_cast<size_t>(row)];
    const at::Tensor own = mean[row].narrow(0, 0, steps).narrow(1, 0, sources).contiguous();
    const float* const data = own.const_data_ptr<float>();
    found.push_back({sources, {data, data + own.numel()}});
  }
  if (alignment.next_step)
    take_next_steps(found);
  return found;
}

std::shared_ptr<const TranslationBackend> make_torch_backend(
    std::vector<TranslationModel> models, const std::vector<AlignmentOptions>& alignments) {
  return std::make_shared<TorchTranslation>(std::move(models), alignments);
}

std::shared_ptr<const LanguageBackend> make_torch_backend(LanguageModel model) {
  return std::make_shared<TorchLanguage>(std::move(model));
}

TranslationSystem make_system(const LoadedModel& loaded) {
  return {loaded, make_torch_backend({loaded.model}, {loaded.alignment})};
}

LanguageSystem make_system(const LoadedLanguageModel& loaded) {
  return {loaded, make_torch_backend(loaded.model)};
}

std::shared_ptr<const TranslationBackend> TorchBackends::translation(
    const std::vector<ModelToRun>& models) const {
  return guarded([&] {
    std::vector<TranslationModel> modules;
    std::vector<AlignmentOptions> alignments;
    for (const ModelToRun& model : models) {
      modules.emplace_back(
          model.options, model.vocabulary.source, model.vocabulary.target, std::nullopt, device_);
      load_parameters(model.parameters, *modules.back());
      modules.back()->to(type_);
      modules.back()->eval();
      alignments.push_back(model.alignment);
    }
    return make_torch_backend(std::move(modules), alignments);
  });
}

std::shared_ptr<const LanguageBackend> TorchBackends::language(const ModelToRun& model) const {
  return guarded([&] {
    LanguageModel module(model.options, model.vocabulary.target, std::nullopt, device_);
    load_parameters(model.parameters, *module);
    module->to(type_);
    module->eval();
    return make_torch_backend(std::move(module));
  });
}

}  // namespace seqconv::internal
