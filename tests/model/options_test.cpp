#include "model/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/options.h"
#include "model/layers.h"

namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;

/// The message of the UsageError that this [model] table causes.
std::string message(const std::vector<std::string>& assignments) {
  Json table = Json::object();
  table["encoder"] = {{"kernel_sizes", 3}};
  table["decoder"] = {{"kernel_sizes", 3}};
  try {
    for (const std::string& assignment : assignments)
      apply_override(table, assignment);
    ModelOptions options;
    read_options(table, "model", options);
    options.validate("model");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(ModelOptionsErrors, ValidOptionsPass) {
  EXPECT_EQ(message({}), "");
}

TEST(ModelOptionsErrors, UnknownKeysNameTheNearest) {
  EXPECT_THAT(
      message({"encoder.kernel_size=3"}), HasSubstr("did you mean 'model.encoder.kernel_sizes'?"));
}

TEST(ModelOptionsErrors, UnknownBlocksNameTheValidOnes) {
  EXPECT_THAT(
      message({"encoder.block=fancyconv"}),
      HasSubstr("'lightconv', 'dynamicconv', 'talk', 'self_attention', 'average_attention' or "
                "'cnn', but got 'fancyconv'"));
}

TEST(ModelOptionsErrors, ListsHaveOneEntryOrOneALayer) {
  EXPECT_THAT(
      message({"encoder.layers=3", "encoder.kernel_sizes=[3, 5]"}),
      HasSubstr("model.encoder.kernel_sizes must have 1 or 3 entries (one a layer), but got 2"));
}

TEST(ModelOptionsErrors, PositionsOfASideAreCheckedAsTheModelsAre) {
  EXPECT_EQ(message({"encoder.max_positions=2"}), "");
  EXPECT_THAT(
      message({"encoder.max_positions=1"}),
      HasSubstr("model.encoder.max_positions must be at least 2 (a symbol and </s>), or 0 for that "
                "of the model, but got 1"));
  EXPECT_THAT(
      message({"decoder.max_positions=-3"}),
      HasSubstr("model.decoder.max_positions must be between 0"));
  EXPECT_THAT(
      message({"positions=rotary"}),
      HasSubstr("model.positions must be 'sinusoidal', 'learned' or 'none', but got 'rotary'"));
  const std::vector<std::string> narrow = {"dim=2", "encoder.heads=1", "decoder.heads=1"};
  const auto narrow_with = [&](std::vector<std::string> more) {
    more.insert(more.end(), narrow.begin(), narrow.end());
    return message(more);
  };
  EXPECT_EQ(narrow_with({"positions=none"}), "");
  EXPECT_EQ(narrow_with({"encoder.positions=none", "decoder.positions=learned"}), "");
  for (const char* side : {"encoder", "decoder"})
    EXPECT_THAT(
        narrow_with({"positions=none", concat(side, ".positions=sinusoidal")}),
        HasSubstr("model.dim must be at least 4 for sinusoidal positions"));
}

TEST(ModelOptionsErrors, AListForOneLayerHasOneEntry) {
  EXPECT_EQ(
      message({"encoder.layers=1", "encoder.kernel_sizes=[3, 5]"}),
      "model.encoder.kernel_sizes must have 1 entry, but got 2");
  EXPECT_EQ(
      message({"encoder.layers=1", "encoder.conv_dim=[0, 0]"}),
      "model.encoder.conv_dim must have 1 entry, but got 2");
}

TEST(ModelOptions, AnUnsetListIsItsDefault) {
  const Json defaults = write_options(StackOptions{});
  for (const auto& [key, value] : defaults.items()) {
    if (!value.is_array())
      continue;
    for (const char* nothing : {"", "[]", "\"\""}) {
      Json table = Json::object();
      apply_override(table, concat("encoder.", key, "=", nothing));
      ModelOptions options;
      options.encoder = {
          .block = {MixerKind::kTalk},
          .kernel_sizes = {5},
          .max_offsets = {5},
          .conv_heads = {5},
          .conv_dim = {5},
          .glu = false,
          .normalization = {kernels::Normalization::kTanh},
          .renormalize_edges = true,
          .conv_bias = true,
          .filter_bias = true,
          .query = {QuerySource::kBlockInput},
          .average_ffn = false};
      EXPECT_NE(write_options(options.encoder)[key], value) << key;
      read_options(table, "model", options);
      EXPECT_EQ(write_options(options.encoder)[key], value) << key;
    }
  }
}

TEST(ModelOptionsErrors, HeadsDivideTheChannels) {
  EXPECT_THAT(
      message({"dim=30", "encoder.heads=4"}),
      HasSubstr("model.encoder.heads must divide model.dim, but got 4 heads for dim = 30"));
}

TEST(ModelOptionsErrors, KernelSizesAreAtLeastOne) {
  EXPECT_THAT(
      message({"decoder.kernel_sizes=0"}),
      HasSubstr("model.decoder.kernel_sizes (layer 0: dynamicconv) must be between 1 and"));
}

TEST(ModelOptionsErrors, EmptyListsAreCalledSo) {
  EXPECT_EQ(
      message({"encoder.layers=3", "encoder.kernel_sizes=[]"}),
      "model.encoder.kernel_sizes (layer 0: dynamicconv) must have 1 or 3 entries (one a layer), "
      "but the list is empty ([])");
  EXPECT_EQ(
      message({"decoder.layers=1", "decoder.block=talk", "decoder.kernel_sizes=[]"}),
      "model.decoder.max_offsets (layer 0: talk) must have 1 entry, but the list is empty ([])");
}

TEST(ModelOptionsErrors, TalkNeedsItsReachAndNoKernels) {
  EXPECT_THAT(
      message({"encoder.block=talk"}),
      HasSubstr(
          "model.encoder.kernel_sizes is given, but model.encoder.block has talk layers only"));
  EXPECT_THAT(
      message({"encoder.max_offsets=3"}),
      HasSubstr("model.encoder.max_offsets is given, but model.encoder.block has no talk layer"));
}

TEST(ModelOptionsErrors, SelfAttentionHasNoGate) {
  EXPECT_THAT(
      message({"encoder.block=self_attention"}), HasSubstr("model.encoder.glu = true contradicts"));
}

TEST(ModelOptionsErrors, AverageAttentionAndCnnHaveNoGate) {
  EXPECT_THAT(
      message({"encoder.block=average_attention", "encoder.kernel_sizes=[]"}),
      HasSubstr(
          "model.encoder.glu = true contradicts model.encoder.block = \"average_attention\""));
  EXPECT_THAT(
      message({"decoder.block=cnn"}),
      HasSubstr("model.decoder.glu = true contradicts model.decoder.block = \"cnn\", which has no "
                "linear1 and no gate; set glu = false (layer 0: cnn)"));
  EXPECT_EQ(message({"decoder.block=cnn", "decoder.glu=false"}), "");
}

TEST(ModelOptionsErrors, AverageAttentionHasNoKernel) {
  EXPECT_THAT(
      message({"encoder.block=average_attention", "encoder.glu=false"}),
      HasSubstr("model.encoder.kernel_sizes is given, but model.encoder.block has "
                "average_attention layers only"));
}

TEST(ModelOptionsErrors, CnnNeedsItsKernelSize) {
  EXPECT_THAT(
      message({"encoder.block=cnn", "encoder.glu=false", "encoder.kernel_sizes=0"}),
      HasSubstr("model.encoder.kernel_sizes (layer 0: cnn) must be between 1"));
}

TEST(ModelOptionsErrors, KeysThatNoLayerReadsAreNamed) {
  const std::vector<std::string> attention = {"encoder.block=self_attention", "encoder.glu=false"};
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"normalization=sigmoid", "lightconv or dynamicconv"},
      {"conv_heads=4", "lightconv, dynamicconv or talk"},
      {"conv_dim=64", "lightconv, dynamicconv or talk"},
      {"renormalize_edges=true", "lightconv or dynamicconv"},
      {"conv_bias=true", "lightconv, dynamicconv or cnn"},
      {"filter_bias=true", "dynamicconv"},
      {"query=block_input", "dynamicconv"},
      {"average_ffn=false", "average_attention"}};
  for (const auto& [assignment, readers] : keys) {
    std::vector<std::string> assignments = attention;
    assignments.push_back("encoder." + assignment);
    const std::string key = assignment.substr(0, assignment.find('='));
    EXPECT_THAT(
        message(assignments),
        HasSubstr(concat(
            "model.encoder.",
            key,
            " is given, but model.encoder.block has no ",
            readers,
            " layer")));
  }
}

TEST(ModelOptionsErrors, ListsKeepTheDefaultWhereALayerHasNoSuchThing) {
  const std::vector<std::string> mixture = {
      "encoder.layers=2",
      "encoder.block=[\"lightconv\", \"talk\"]",
      "encoder.kernel_sizes=[3, 0]",
      "encoder.max_offsets=[0, 3]"};
  const auto with = [&](const std::string& assignment) {
    std::vector<std::string> assignments = mixture;
    assignments.push_back(assignment);
    return message(assignments);
  };
  EXPECT_EQ(with("encoder.normalization=sigmoid"), "");
  EXPECT_EQ(with("encoder.normalization=[\"sigmoid\", \"softmax\"]"), "");
  EXPECT_THAT(
      with("encoder.normalization=[\"softmax\", \"sigmoid\"]"),
      HasSubstr("model.encoder.normalization (layer 1: talk) must be the default: only lightconv "
                "or dynamicconv layers have one"));
  EXPECT_THAT(
      with("encoder.conv_bias=[false, true]"),
      HasSubstr("model.encoder.conv_bias (layer 1: talk) must be the default"));
  EXPECT_THAT(
      with("encoder.conv_heads=[4, 8, 4]"),
      HasSubstr("model.encoder.conv_heads must have 1 or 2 entries"));
  EXPECT_THAT(
      with("encoder.glu=[true, false, true]"),
      HasSubstr("model.encoder.glu must have 1 or 2 entries"));
}

TEST(ModelOptionsErrors, ShortConvolutionsFitTheirLayers) {
  const std::vector<std::string> attention = {"encoder.block=self_attention", "encoder.glu=false"};
  const auto with = [&](std::vector<std::string> assignments) {
    for (std::string& assignment : assignments)
      assignment.insert(0, "encoder.short_conv.");
    assignments.insert(assignments.begin(), attention.begin(), attention.end());
    return message(assignments);
  };
  EXPECT_EQ(with({"place=qkv"}), "");
  EXPECT_EQ(with({"place=linear", "taps=low_rank", "rank=4", "kernel_size=1"}), "");
  EXPECT_EQ(message({"decoder.short_conv.place=block"}), "");
  EXPECT_EQ(
      message({"decoder.short_conv.place=qkv"}),
      "model.decoder.short_conv.place (layer 0) = \"qkv\" needs model.decoder.block = "
      "\"self_attention\", but got \"dynamicconv\"");
  EXPECT_EQ(
      with({"kernel_size=3"}),
      "model.encoder.short_conv.kernel_size is given, but no layer has short convolutions (a place "
      "other than none)");
  EXPECT_THAT(
      with({"place=qkv", "head_channels=8"}),
      HasSubstr("no layer has short convolutions with dynamic or low_rank taps"));
  EXPECT_THAT(
      with({"place=qkv", "taps=dynamic", "rank=8"}),
      HasSubstr("no layer has short convolutions with low_rank taps"));
  EXPECT_THAT(
      with({"place=qkv", "kernel_size=0"}),
      HasSubstr("model.encoder.short_conv.kernel_size (layer 0) must be between 1"));
  EXPECT_THAT(
      with({"place=qkv", "taps=low_rank", "rank=0"}),
      HasSubstr("model.encoder.short_conv.rank (layer 0) must be between 1"));
  EXPECT_EQ(
      with({"place=qkv", "group_channels=3"}),
      "model.encoder.short_conv.group_channels (layer 0) must divide model.dim, but got 3 and 512");
  EXPECT_THAT(
      with({"place=block", "taps=dynamic", "head_channels=-1"}),
      HasSubstr("model.encoder.short_conv.head_channels (layer 0) must be between 1"));
  EXPECT_EQ(
      message(
          {"decoder.block=self_attention",
           "decoder.glu=false",
           "decoder.ffn_dim=96",
           "decoder.short_conv.place=linear",
           "decoder.short_conv.taps=dynamic"}),
      "model.decoder.short_conv.head_channels (layer 0) must divide model.decoder.ffn_dim, but got "
      "64 and 96");
  EXPECT_THAT(
      with({"place=middle"}),
      HasSubstr("model.encoder.short_conv.place must be 'none', 'qkv', 'linear' or 'block'"));
  EXPECT_THAT(
      with({"place=[\"qkv\", \"none\"]"}),
      HasSubstr("model.encoder.short_conv.place must have 1 or 7 entries"));
  EXPECT_THAT(
      with({"place=qkv", "bias=[true, false]"}),
      HasSubstr("model.encoder.short_conv.bias must have 1 or 7 entries"));
  EXPECT_THAT(
      message(
          {"encoder.layers=2",
           "encoder.short_conv.place=[\"block\", \"none\"]",
           "encoder.short_conv.kernel_size=[3, 3]"}),
      HasSubstr("model.encoder.short_conv.kernel_size (layer 1) must be the default: it is for "
                "short convolutions"));
}

TEST(ModelOptions, ShortConvolutionsAreResolvedForALayer) {
  StackOptions stack{.layers = 2, .block = {MixerKind::kSelfAttention}, .glu = false};
  stack.short_conv.place = {ShortConvPlace::kLinear, ShortConvPlace::kNone};
  stack.short_conv.taps = {ShortConvTaps::kDynamic, ShortConvTaps::kStatic};
  ModelOptions options;
  options.encoder.kernel_sizes = {3};
  options.decoder = stack;
  options.validate("model");
  const auto conv = [&](int64_t layer) {
    return layer_options(options, Task::kTranslation, Side::kDecoder, layer).mixer.short_conv;
  };
  EXPECT_EQ(conv(0).heads(512), 8);
  EXPECT_EQ(conv(0).groups(512), 512);
  EXPECT_EQ(conv(0).reach(), 3);
  EXPECT_EQ(conv(0).padding_left(), 3);
  EXPECT_EQ(conv(1).reach(), 0);
  EXPECT_FALSE(conv(1).behind_qkv() || conv(1).before_blocks());
}

TEST(ModelOptionsErrors, RenormalizedEdgesNeedASoftmax) {
  const std::string two = "encoder.layers=2";
  const std::string edges = "encoder.renormalize_edges=[false, true]";
  EXPECT_EQ(message({two, edges}), "");
  EXPECT_EQ(message({two, edges, "encoder.normalization=[\"tanh\", \"softmax\"]"}), "");
  EXPECT_THAT(
      message({two, edges, "encoder.normalization=tanh"}),
      HasSubstr("model.encoder.renormalize_edges = true needs model.encoder.normalization = "
                "\"softmax\", but got \"tanh\" (layer 1: dynamicconv)"));
}

TEST(ModelOptionsErrors, ConvolutionHeadsDivideTheChannels) {
  EXPECT_THAT(
      message({"encoder.layers=2", "encoder.conv_heads=[8, 7]"}),
      HasSubstr("model.encoder.conv_heads must divide model.dim, but got 7 heads for dim = 512"));
}

TEST(ModelOptionsErrors, HeadsDivideTheConvolutionsWidth) {
  EXPECT_THAT(
      message({"encoder.conv_dim=20"}),
      HasSubstr("model.encoder.heads must divide model.encoder.conv_dim, but got 8 heads for "
                "conv_dim = 20"));
  EXPECT_THAT(
      message({"decoder.conv_dim=20", "decoder.conv_heads=3"}),
      HasSubstr("model.decoder.conv_heads must divide model.decoder.conv_dim, but got 3 heads for "
                "conv_dim = 20"));
  // No head of this encoder splits the model's own width.
  const std::vector<std::string> five = {"heads=5", "conv_dim=20"};
  EXPECT_EQ(message({"encoder." + five[0], "encoder." + five[1]}), "");
  // The decoder's attention to the source does.
  EXPECT_THAT(
      message({"decoder." + five[0], "decoder." + five[1]}),
      HasSubstr("model.decoder.heads must divide model.dim, but got 5 heads for dim = 512"));
  EXPECT_THAT(
      message({"encoder.conv_dim=-8"}), HasSubstr("model.encoder.conv_dim must be between 1 and"));
}

TEST(ModelOptionsErrors, AFeedForwardWidthIsNotNegative) {
  EXPECT_EQ(message({"encoder.ffn_dim=64"}), "");
  EXPECT_THAT(
      message({"encoder.ffn_dim=-64"}), HasSubstr("model.encoder.ffn_dim must be between 0 and"));
}

TEST(ModelOptionsErrors, SharedMatricesHaveOneWidth) {
  EXPECT_EQ(message({"input_dim=64", "output_dim=96", "tie=none"}), "");
  EXPECT_EQ(message({"input_dim=64", "output_dim=64", "tie=decoder"}), "");
  EXPECT_EQ(message({"input_dim=512", "output_dim=0", "tie=all"}), "");
  EXPECT_THAT(
      message({"input_dim=64", "tie=decoder"}),
      HasSubstr("model.tie = \"decoder\" makes the embedding the output matrix, which needs "
                "model.input_dim and model.output_dim to be equal, but got 64 and 512"));
  EXPECT_THAT(
      message({"input_dim=64", "output_dim=64", "tie=all"}),
      HasSubstr("model.tie = \"all\" shares the encoder's embedding, whose width is model.dim = "
                "512, but model.input_dim is 64"));
  EXPECT_THAT(message({"input_dim=-1"}), HasSubstr("model.input_dim must be between 0 and"));
  EXPECT_THAT(message({"output_dim=2000000"}), HasSubstr("model.output_dim must be between 0 and"));
}

TEST(ModelOptionsErrors, UnknownNormalisationsNameTheValidOnes) {
  EXPECT_THAT(
      message({"encoder.normalization=softmin"}),
      HasSubstr("model.encoder.normalization must be 'none', 'softmax', "));
}

TEST(ModelOptions, ATableWithoutTheNewKeysMeansTheDefaults) {
  // What an earlier version wrote into a model folder.
  const Json table = parse_json(
      R"({"layers": 3, "block": ["dynamicconv"], "kernel_sizes": [3, 7, 15],
          "max_offsets": [], "heads": 4, "conv_heads": 0, "glu": true})",
      "test");
  StackOptions stack;
  read_options(table, "model.encoder", stack);
  for (int64_t layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(stack.conv_heads_at(layer), 4);
    EXPECT_TRUE(stack.glu_at(layer));
    EXPECT_EQ(stack.normalization_at(layer), kernels::Normalization::kSoftmax);
    EXPECT_FALSE(stack.renormalize_edges_at(layer));
    EXPECT_FALSE(stack.conv_bias_at(layer));
    EXPECT_FALSE(stack.filter_bias_at(layer));
    EXPECT_EQ(stack.query_at(layer), QuerySource::kConvInput);
  }
  ModelOptions options;
  options.encoder = stack;
  options.decoder = stack;
  EXPECT_NO_THROW(options.validate("model"));
}

TEST(ModelOptions, ListsGiveEveryLayerItsOwn) {
  const Json table = parse_json(
      R"({"layers": 2, "block": "lightconv", "kernel_sizes": 3, "heads": 4,
          "conv_heads": [0, 8], "glu": [true, false],
          "normalization": ["l2", "none"], "conv_bias": [false, true]})",
      "test");
  StackOptions stack;
  read_options(table, "model.encoder", stack);
  EXPECT_EQ(stack.conv_heads_at(0), 4);
  EXPECT_EQ(stack.conv_heads_at(1), 8);
  EXPECT_TRUE(stack.glu_at(0));
  EXPECT_FALSE(stack.glu_at(1));
  EXPECT_EQ(stack.normalization_at(0), kernels::Normalization::kL2);
  EXPECT_EQ(stack.normalization_at(1), kernels::Normalization::kNone);
  EXPECT_TRUE(stack.conv_bias_at(1));
}

TEST(ModelOptionsErrors, RatesAreBelowOne) {
  for (const char* key :
       {"dropout", "attention_dropout", "activation_dropout", "input_dropout", "weight_dropout"}) {
    EXPECT_THAT(
        message({std::string(key) + "=1.0"}),
        HasSubstr(concat("model.", key, " must be in [0, 1), but got 1")));
  }
}

TEST(ModelOptionsErrors, SinusoidalPositionsNeedFourChannels) {
  EXPECT_THAT(
      message({"dim=3", "encoder.heads=1", "decoder.heads=1"}),
      HasSubstr("model.dim must be at least 4 for sinusoidal positions"));
}

}  // namespace
}  // namespace seqconv::internal
