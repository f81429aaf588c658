#include "golden_checks.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "libtorch/models/decoder.h"
#include "libtorch/models/encoder.h"
#include "libtorch/nn/dynamicconv.h"
#include "libtorch/nn/lightconv.h"
#include "libtorch/nn/talk.h"
#include "libtorch/ops/elementwise.h"

namespace seqconv::internal::testing {
namespace {

/// The convolution inside a block and what comes before it.
class ConvolutionProbe {
 public:
  ConvolutionProbe(const torch::nn::Module& model, const std::string& layer)
      : parameters_(model.named_parameters()), modules_(model.named_modules()), layer_(layer) {}

  /// x [1, T, C], the layer's input, normalised where it is pre-norm.
  std::pair<at::Tensor, at::Tensor> run(const at::Tensor& x) const {
    const at::Tensor weight = parameters_[layer_ + "block.linear1.weight"];
    const at::Tensor hidden = at::linear(x, weight, parameters_[layer_ + "block.linear1.bias"]);
    const int64_t width = parameters_[layer_ + "block.linear2.weight"].size(1);
    const at::Tensor input = weight.size(0) == 2 * width ? ops::glu(hidden) : hidden;
    return {input, convolve(input)};
  }

 private:
  at::Tensor convolve(const at::Tensor& x) const {
    DropoutPlan plan;
    const auto conv = modules_[layer_ + "block.conv"];
    if (const auto* talk = conv->as<TalkImpl>())
      return talk->forward(x, {}, plan);
    if (const auto* light = conv->as<LightConvImpl>())
      return light->forward(x, {}, plan);
    const auto* dynamic = conv->as<DynamicConvImpl>();
    SEQCONV_CHECK(dynamic, "another kind of convolution");
    return dynamic->forward(x, {}, plan);
  }

  torch::OrderedDict<std::string, at::Tensor> parameters_;
  torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>> modules_;
  std::string layer_;
};

/// Walks one side layer by layer, comparing what was recorded of a row.
class LayerWalk {
 public:
  LayerWalk(const GoldenModel& golden, const torch::nn::Module& model)
      : golden_(golden), model_(model) {}

  at::Tensor encoder(int64_t row) const {
    const auto& side = *find<EncoderImpl>("encoder");
    DropoutPlan plan;
    at::Tensor x = side.embedding()->forward(golden_.tokens("src", row), plan);
    compare("enc.embed", row, x);
    for (int64_t i = 0; i < golden_.options().encoder.layers; ++i) {
      const std::string layer = concat("encoder.layer", i, ".");
      probe(layer, concat("enc.layer", i), row, x);
      x = find<EncoderLayerImpl>(layer)->forward(x, {}, plan);
      compare(concat("enc.layer", i), row, x);
    }
    if (is_pre_norm(golden_.options().encoder))
      x = find<LayerNormImpl>("encoder.final_norm")->forward(x);
    return x;
  }

  void decoder(int64_t row, const at::Tensor& memory) const {
    const auto& side = *find<DecoderImpl>("decoder");
    DropoutPlan plan;
    at::Tensor x = side.embedding()->forward(golden_.tokens("prev_output", row), plan);
    compare("dec.embed", row, x);
    for (int64_t i = 0; i < golden_.options().decoder.layers; ++i) {
      const std::string layer = concat("decoder.layer", i, ".");
      probe(layer, concat("dec.layer", i), row, x);
      const auto* present = find<DecoderLayerImpl>(layer);
      CrossMemory seen;
      if (memory.defined())
        seen = present->memory(memory, {});
      x = present->forward(x, memory.defined() ? &seen : nullptr, plan);
      compare(concat("dec.layer", i), row, x);
    }
  }

 private:
  template <class Module>
  Module* find(std::string name) const {
    if (name.ends_with('.'))
      name.pop_back();
    auto* module = model_.named_modules()[name]->as<Module>();
    SEQCONV_CHECK(module, "no module '", name, "' of its kind");
    return module;
  }

  bool is_pre_norm(const StackOptions& side) const {
    return golden_.options().norm_of(side) == NormPlacement::kPre;
  }

  void probe(
      const std::string& layer,
      const std::string& recorded,
      int64_t row,
      const at::Tensor& x) const {
    const ModelOptions& options = golden_.options();
    const at::Tensor input =
        is_pre_norm(layer.starts_with("encoder") ? options.encoder : options.decoder)
        ? find<LayerNormImpl>(layer + "block_norm")->forward(x)
        : x;
    const auto [before, after] = ConvolutionProbe(model_, layer).run(input);
    compare(recorded + ".conv_in", row, before);
    compare(recorded + ".conv_out", row, after);
  }

  void compare(const std::string& name, int64_t row, const at::Tensor& x) const {
    SCOPED_TRACE(concat(name, ".row", row));
    expect_near(x, golden_.recorded(concat(name, ".row", row)), kOutputs);
  }

  const GoldenModel& golden_;
  const torch::nn::Module& model_;
};

}  // namespace

void expect_near(const at::Tensor& got, const at::Tensor& want, double bound) {
  ASSERT_EQ(got.sizes(), want.sizes());
  if (want.numel() == 0)
    return;
  const double difference = (got - want).abs().max().item<double>();
  EXPECT_TRUE(difference <= bound) << difference;  // not for NaN
}

at::Tensor row_of(const at::Tensor& recorded, int64_t row, int64_t steps) {
  return recorded[row].narrow(0, 0, steps).unsqueeze(0);
}

void expect_hypothesis(const Hypothesis& found, const Json& wanted) {
  EXPECT_EQ(found.tokens, wanted.at("tokens").get<std::vector<int32_t>>());
  EXPECT_NEAR(found.score, wanted.at("score").get<double>(), kOutputs);
  const auto scores = wanted.at("positional_scores").get<std::vector<double>>();
  ASSERT_EQ(found.token_scores.size(), scores.size());
  for (size_t i = 0; i < scores.size(); ++i)
    EXPECT_NEAR(found.token_scores[i], scores[i], kOutputs) << "token " << i;
}

void walk_layers(const GoldenModel& golden, const torch::nn::Module& model, int64_t row) {
  const at::NoGradGuard no_grad;
  const LayerWalk walk(golden, model);
  walk.decoder(row, golden.translates() ? walk.encoder(row) : at::Tensor());
}

}  // namespace seqconv::internal::testing
