#include "runtime/probe.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <cmath>

#include "base/special_ids.h"
#include "libtorch/models/decoder.h"
#include "libtorch/models/encoder.h"
#include "libtorch/models/language_model.h"
#include "libtorch/models/layer_parts.h"
#include "libtorch/models/translation_model.h"
#include "libtorch/nn/dynamicconv.h"
#include "random_models.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "variants.h"

// What layers look at, against LibTorch's modules: their inputs come from the
// modules' own forward functions, the weights from plain tensor algebra.
namespace seqconv::internal {
namespace {

using testing::Variant;
using torch::nn::Module;

constexpr double kProbeBound = 2e-5;

template <class T>
const T& child(const Module& module, const std::string& name) {
  for (const auto& item : module.named_modules())
    if (item.key() == name)
      return *item.value()->as<T>();
  fail("no module ", name);
}

/// x [T, C] behind the short convolution `name` below `module`, if there is one, whose taps
/// are predicted from query [T, Q].
at::Tensor convolved(
    const Module& module, const std::string& name, const at::Tensor& x, const at::Tensor& query) {
  if (!module.named_modules().contains(name))
    return x;
  return child<ShortConvImpl>(module, name).forward(x.unsqueeze(0), query.unsqueeze(0), {})[0];
}

at::Tensor parameter(const Module& module, const std::string& name) {
  return module.named_parameters()[name];
}

/// x @ weight^T + bias of a linear map below `module`.
at::Tensor linear_map(const Module& module, const std::string& name, const at::Tensor& x) {
  return at::linear(x, parameter(module, name + ".weight"), parameter(module, name + ".bias"));
}

/// query [T, C], key [S, C] -> shares [T, H, S] of what `seen` [T, S] allows.
at::Tensor attention(
    const at::Tensor& query, const at::Tensor& key, int64_t heads, const at::Tensor& seen) {
  const auto split = [&](const at::Tensor& x) {
    return x.view({x.size(0), heads, -1}).transpose(0, 1);  // [H, T, R]
  };
  const at::Tensor q = split(query), k = split(key);
  at::Tensor scores = at::matmul(q, k.transpose(1, 2)) / std::sqrt(static_cast<double>(q.size(2)));
  scores = scores.masked_fill(seen.logical_not(), -INFINITY);
  return at::softmax(scores, -1).transpose(0, 1).contiguous();
}

/// [T, S]: whether position t may look at t + offset, offsets of [low, high].
at::Tensor band(int64_t steps, int64_t low, int64_t high) {
  const at::Tensor t = at::arange(steps);
  const at::Tensor offset = t.unsqueeze(0) - t.unsqueeze(1);
  return offset.ge(low).logical_and(offset.le(high));
}

/// Logits [T, H, K] -> taps.
at::Tensor taps(at::Tensor logits, const MixerOptions& mixer) {
  if (mixer.renormalize_edges) {
    const int64_t T = logits.size(0), K = mixer.kernel_size;
    const at::Tensor seen =
        at::arange(T).unsqueeze(1) + (at::arange(K) - mixer.padding_left()).unsqueeze(0);
    logits = logits.masked_fill(seen.lt(0).logical_or(seen.ge(T)).unsqueeze(1), -INFINITY);
  }
  return at::softmax(logits, -1);
}

at::Tensor windows(const at::Tensor& offsets, const MixerOptions& mixer) {
  const int64_t T = offsets.size(0), H = mixer.heads;
  const at::Tensor t = at::arange(T).unsqueeze(1);
  const at::Tensor far = offsets * mixer.max_offset;
  const at::Tensor left = at::minimum(far.slice(1, 0, H), t);
  const at::Tensor right =
      mixer.causal ? at::zeros_like(left) : at::minimum(far.slice(1, H, 2 * H), T - 1 - t);
  return at::stack({left, right}, -1);
}

/// What a block weighs of its input x [T, C].
at::Tensor expected_mixer(const Module& block, const MixerOptions& mixer, const at::Tensor& x) {
  const int64_t T = x.size(0), H = mixer.heads, K = mixer.kernel_size;
  if (mixer.kind == MixerKind::kSelfAttention) {
    const at::Tensor inner = linear_map(block, "attention.in_proj", x);  // [T, 3C]
    const auto qkv = convolved(block, "attention.in_conv", inner, x).chunk(3, -1);
    const int64_t left = mixer.padding_left();
    return attention(
        qkv[0],
        qkv[1],
        H,
        K > 0 ? band(T, -left, K - 1 - left) : band(T, -T, mixer.causal ? 0 : T));
  }
  if (mixer.kind == MixerKind::kCnn || mixer.kind == MixerKind::kAverageAttention)
    return {};
  at::Tensor hidden = linear_map(block, "linear1", x);
  if (mixer.glu)
    hidden = at::glu(hidden, -1);
  switch (mixer.kind) {
    case MixerKind::kLightConv:
      return at::softmax(parameter(block, "conv.weight"), -1);
    case MixerKind::kDynamicConv: {
      const auto& conv = child<DynamicConvImpl>(block, "conv");
      at::Tensor logits =
          at::matmul(mixer.query == QuerySource::kBlockInput ? x : hidden, conv.weight.t());
      if (conv.filter_bias.defined())
        logits = logits + conv.filter_bias;
      return taps(logits.view({T, H, K}), mixer);
    }
    case MixerKind::kTalk:
      return windows(at::sigmoid(linear_map(block, "conv.offsets", hidden)), mixer);
    default:
      return {};
  }
}

void expect_weights(const PositionWeights& found, const at::Tensor& wanted) {
  if (!wanted.defined()) {
    EXPECT_EQ(found.form, WeightForm::kNone);
    return;
  }
  const at::Tensor flat = wanted.contiguous().view({-1});
  ASSERT_EQ(static_cast<int64_t>(found.values.size()), flat.numel());
  EXPECT_EQ(found.width, wanted.size(-1));
  const auto* const numbers = flat.data_ptr<float>();
  for (size_t i = 0; i < found.values.size(); ++i)
    ASSERT_NEAR(found.values[i], numbers[i], kProbeBound) << "number " << i;
}

/// One side of a model, layer by layer: modules "SIDE.layerN".
class Walk {
 public:
  Walk(const Module& model, const char* side, const std::vector<int32_t>& ids)
      : model_(model), side_(side) {
    const at::Tensor tokens = at::tensor(std::vector<int64_t>(ids.begin(), ids.end())).unsqueeze(0);
    x_ = module<EmbeddingImpl>("embedding").forward(tokens, plan_);
  }

  template <class T>
  const T& module(const std::string& name) const {
    return child<T>(model_, concat(side_, ".", name));
  }

  /// The mixer, and the look at the source with keys of `states` [1, S, C].
  void check(size_t number, const LayerProbe& layer, const at::Tensor& states = {}) const {
    const std::string name = concat("layer", number);
    const auto norm = [&](const std::string& key, const at::Tensor& x) {
      return layer.options.norm == NormPlacement::kPre
          ? module<LayerNormImpl>(name + key).forward(x)
          : x;
    };
    const Mixer& block = module<Mixer>(name + ".block");
    const at::Tensor normed = norm(".block_norm", x_);
    const at::Tensor seen =
        convolved(model_, concat(side_, ".", name, ".block_conv"), normed[0], normed[0])
            .unsqueeze(0);
    expect_weights(layer.mixer, expected_mixer(block, layer.options.mixer, seen[0]));
    if (!states.defined())
      return expect_weights(layer.source, {});
    DropoutPlan plan;
    at::Tensor y = x_ + block.forward(seen, {}, plan);
    if (layer.options.norm == NormPlacement::kPost)
      y = module<LayerNormImpl>(name + ".block_norm").forward(y);
    const Module& cross = module<CrossAttentionImpl>(name + ".cross_attention");
    const at::Tensor query = linear_map(cross, "query_proj", norm(".cross_attention_norm", y)[0]);
    const at::Tensor key = linear_map(cross, "key_value_proj", states[0]).chunk(2, -1)[0];
    expect_weights(
        layer.source,
        attention(
            query,
            key,
            layer.options.cross_heads,
            at::ones({query.size(0), key.size(0)}, at::kBool)));
  }

  void advance(size_t number, const CrossMemory* memory) {
    x_ = module<DecoderLayerImpl>(concat("layer", number)).forward(x_, memory, plan_);
  }
  void advance(size_t number) {
    x_ = module<EncoderLayerImpl>(concat("layer", number)).forward(x_, {}, plan_);
  }

 private:
  const Module& model_;
  std::string side_;
  mutable DropoutPlan plan_;
  at::Tensor x_;
};

std::vector<Variant> probe_variants() {
  using enum MixerKind;
  std::vector<Variant> variants = testing::all_variants();
  const auto same = [](StackOptions&) {};
  for (const MixerKind kind : {kLightConv, kDynamicConv, kTalk, kSelfAttention}) {
    variants.push_back(testing::variant(concat("Pre_", enum_name(kind)), kind, same));
    variants.back().options.norm = NormPlacement::kPre;
  }
  // The witness knows softmax alone.
  std::erase_if(variants, [](const Variant& variant) {
    for (const StackOptions& side : {variant.options.encoder, variant.options.decoder})
      for (const auto normalization : side.normalization)
        if (normalization != kernels::Normalization::kSoftmax)
          return true;
    return false;
  });
  return variants;
}

class Probe : public ::testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(
    Models, Probe, ::testing::ValuesIn(probe_variants()), [](const auto& info) {
      return info.param.name;
    });

TEST_P(Probe, SaysWhatEachLayerOfATranslationModelLooksAt) {
  const at::NoGradGuard no_grad;
  const testing::TemporaryFolder folder;
  const ModelOptions& options = GetParam().options;
  const ModelToRun file =
      testing::random_translation_model(options, folder.path() / "model.safetensors", 3);
  TranslationModel model(options, file.vocabulary.source, file.vocabulary.target, 3);
  testing::randomise(*model, 3);
  model->eval();
  std::vector<int32_t> source = testing::random_ids(11, file.vocabulary.source, 8);
  std::vector<int32_t> target = testing::random_ids(7, file.vocabulary.target, 9);
  const ModelProbe found = probe_translation(file, source, target);
  ASSERT_EQ(found.encoder.size(), 2U);
  ASSERT_EQ(found.decoder.size(), 2U);

  source.push_back(kEndId);
  target.insert(target.begin(), kEndId);
  Walk encoder(*model, "encoder", source);
  for (size_t i = 0; i < 2; ++i) {
    SCOPED_TRACE(concat("encoder layer ", i));
    encoder.check(i, found.encoder[i]);
    encoder.advance(i);
  }
  const at::Tensor tokens =
      at::tensor(std::vector<int64_t>(source.begin(), source.end())).unsqueeze(0);
  DropoutPlan plan;
  const at::Tensor states = child<EncoderImpl>(*model, "encoder").forward(tokens, {}, plan);
  const auto memories = child<DecoderImpl>(*model, "decoder").memories(states, {});
  Walk decoder(*model, "decoder", target);
  for (size_t i = 0; i < 2; ++i) {
    SCOPED_TRACE(concat("decoder layer ", i));
    decoder.check(i, found.decoder[i], states);
    decoder.advance(i, &memories[i]);
  }
}

TEST_P(Probe, SaysWhatEachLayerOfALanguageModelLooksAt) {
  const at::NoGradGuard no_grad;
  const testing::TemporaryFolder folder;
  const ModelOptions options = testing::as_language_model(GetParam().options);
  const ModelToRun file =
      testing::random_language_model(options, folder.path() / "model.safetensors", 4);
  LanguageModel model(options, file.vocabulary.target, 4);
  testing::randomise(*model, 4);
  const auto ids = testing::random_ids(9, file.vocabulary.target, 5);
  const ModelProbe found = probe_language(file, ids);
  EXPECT_TRUE(found.encoder.empty());
  ASSERT_EQ(found.decoder.size(), 2U);
  Walk decoder(*model, "decoder", ids);
  for (size_t i = 0; i < 2; ++i) {
    SCOPED_TRACE(concat("layer ", i));
    decoder.check(i, found.decoder[i]);
    decoder.advance(i, nullptr);
  }
}

TEST(ProbeErrors, NameWhatIsWrong) {
  const testing::TemporaryFolder folder;
  const ModelToRun file = testing::random_translation_model(
      testing::small_options(MixerKind::kLightConv), folder.path() / "model.safetensors");
  EXPECT_THAT(
      testing::error_of([&] {
        probe_translation(file, {5, 400}, {});
      }),
      ::testing::HasSubstr("), but got 400"));
  EXPECT_EQ(
      testing::error_of([&] { probe_language(file, {}); }),
      "a language model must be given a token");
}

}  // namespace
}  // namespace seqconv::internal
