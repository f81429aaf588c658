#include "seqconv/models/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace seqconv {
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
      message({"encoder.kernel_size=3"}),
      HasSubstr("did you mean 'model.encoder.kernel_sizes'?"));
}

TEST(ModelOptionsErrors, UnknownBlocksNameTheValidOnes) {
  EXPECT_THAT(
      message({"encoder.block=fancyconv"}),
      HasSubstr("'lightconv', 'dynamicconv', 'talk' or 'self_attention', but "
                "got 'fancyconv'"));
}

TEST(ModelOptionsErrors, ListsHaveOneEntryOrOneALayer) {
  EXPECT_THAT(
      message({"encoder.layers=3", "encoder.kernel_sizes=[3, 5]"}),
      HasSubstr("model.encoder.kernel_sizes must have 1 or 3 entries (one a "
                "layer), but got 2"));
}

TEST(ModelOptionsErrors, HeadsDivideTheChannels) {
  EXPECT_THAT(
      message({"dim=30", "encoder.heads=4"}),
      HasSubstr("model.encoder.heads must divide model.dim, but got 4 heads "
                "for dim = 30"));
}

TEST(ModelOptionsErrors, KernelSizesAreAtLeastOne) {
  EXPECT_THAT(
      message({"decoder.kernel_sizes=0"}),
      HasSubstr("model.decoder.kernel_sizes (layer 0: dynamicconv) must be "
                "between 1 and"));
}

TEST(ModelOptionsErrors, TalkNeedsItsReachAndNoKernels) {
  EXPECT_THAT(
      message({"encoder.block=talk"}),
      HasSubstr("model.encoder.kernel_sizes is given, but model.encoder.block "
                "has talk layers only"));
  EXPECT_THAT(
      message({"encoder.max_offsets=3"}),
      HasSubstr("model.encoder.max_offsets is given, but model.encoder.block "
                "has no talk layer"));
}

TEST(ModelOptionsErrors, SelfAttentionHasNoGate) {
  EXPECT_THAT(
      message({"encoder.block=self_attention"}),
      HasSubstr("model.encoder.glu = true contradicts"));
}

TEST(ModelOptionsErrors, RatesAreBelowOne) {
  for (const char* key :
       {"dropout",
        "attention_dropout",
        "activation_dropout",
        "input_dropout",
        "weight_dropout"}) {
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
}  // namespace seqconv
