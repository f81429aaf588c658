#include "base/average_safetensors.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "base/safetensors.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AverageSafetensors : public ::testing::Test {
 protected:
  template <class T>
  std::filesystem::path write(
      const std::string& file,
      const std::string& name,
      const std::vector<T>& values,
      ElementType type) {
    const TensorView view = {
        type, {static_cast<int64_t>(values.size())}, std::as_bytes(std::span<const T>(values))};
    const auto path = folder_.path() / file;
    write_safetensors(path, {{name, view}}, {});
    return path;
  }

  std::vector<float> read(const std::filesystem::path& file, const std::string& name) {
    const SafetensorsReader reader(file);
    const TensorView& view = reader.at(name);
    EXPECT_EQ(view.type, ElementType::kF32);
    std::vector<float> values(static_cast<size_t>(view.count()));
    std::memcpy(values.data(), view.data.data(), view.data.size());
    return values;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(AverageSafetensors, TheMeanIsTakenElementByElement) {
  const auto a = write<float>("a", "w", {1, 2, -4}, ElementType::kF32);
  const auto b = write<float>("b", "w", {3, 2, 1}, ElementType::kF32);
  const auto c = write<double>("c", "w", {2, 5, 0}, ElementType::kF64);
  const auto out = folder_.path() / "out";
  average_safetensors({a, b, c}, out, {{"note", "mean"}});
  EXPECT_THAT(read(out, "w"), ElementsAre(2, 3, -1));
  EXPECT_EQ(SafetensorsReader(out).metadata().at("note"), "mean");
}

TEST_F(AverageSafetensors, ADecayWeighsEachAsManyTimesLessAsOthersFollow) {
  const auto a = write<float>("a", "w", {1, 2, -4}, ElementType::kF32);
  const auto b = write<float>("b", "w", {3, 2, 1}, ElementType::kF32);
  const auto c = write<double>("c", "w", {2, 5, 0}, ElementType::kF64);
  const auto out = folder_.path() / "out";
  average_safetensors({a, b, c}, out, {}, 0.5);
  EXPECT_THAT(
      read(out, "w"),
      ElementsAre(
          static_cast<float>((0.25 * 1 + 0.5 * 3 + 2) / 1.75),
          static_cast<float>((0.25 * 2 + 0.5 * 2 + 5) / 1.75),
          static_cast<float>((0.25 * -4 + 0.5 * 1) / 1.75)));
  average_safetensors({a}, out, {}, 0.5);
  EXPECT_THAT(read(out, "w"), ElementsAre(1, 2, -4));
}

TEST_F(AverageSafetensors, ADecayThatIsNoShareIsRefused) {
  const auto a = write<float>("a", "w", {1}, ElementType::kF32);
  const auto out = folder_.path() / "out";
  for (const double decay : {0.0, -0.5, 1.01, static_cast<double>(NAN)})
    EXPECT_THAT(
        testing::error_of([&] {
          average_safetensors({a, a}, out, {}, decay);
        }),
        HasSubstr("must be above 0 and at most 1"))
        << decay;
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(AverageSafetensors, SixteenBitTypesAreReadExactly) {
  // 1, -2.5, the smallest denormal 2^-24
  const auto half = write<uint16_t>("h", "w", {0x3C00, 0xC100, 0x0001}, ElementType::kF16);
  // 1, -2.5, 2^-24
  const auto brain = write<uint16_t>("b", "w", {0x3F80, 0xC020, 0x3380}, ElementType::kBF16);
  const auto out = folder_.path() / "out";
  average_safetensors({half, brain}, out, {});
  EXPECT_THAT(read(out, "w"), ElementsAre(1, -2.5f, 0x1p-24f));
}

TEST_F(AverageSafetensors, SumsDoNotLoseSmallParts) {
  // In float32 the sum 2^24 + 1 + 1 would stay 2^24.
  const auto a = write<float>("a", "w", {16777216}, ElementType::kF32);
  const auto b = write<float>("b", "w", {1}, ElementType::kF32);
  const auto out = folder_.path() / "out";
  average_safetensors({a, b, b, a}, out, {});
  EXPECT_THAT(read(out, "w"), ElementsAre(8388608.5f));
}

TEST_F(AverageSafetensors, NumbersThatAreNotFiniteAreRefused) {
  const auto good = write<float>("good", "w", {1, 2, 3}, ElementType::kF32);
  const auto nan = write<float>("nan", "w", {1, NAN, NAN}, ElementType::kF32);
  const auto up = write<float>("up", "w", {INFINITY, 1, 1}, ElementType::kF32);
  const auto half = write<uint16_t>("half", "w", {0x3C00, 0x7C00, 0}, ElementType::kF16);
  const auto large = write<double>("large", "w", {1e300, 0, 0}, ElementType::kF64);
  const auto out = folder_.path() / "out";
  const auto message = [&](const std::filesystem::path& second) {
    return testing::error_of([&] { average_safetensors({good, second, good}, out, {}); });
  };
  EXPECT_THAT(
      message(nan),
      HasSubstr("nan: tensor 'w' must hold finite numbers, but 2 of them are NaN or infinite"));
  EXPECT_THAT(message(up), HasSubstr("up: tensor 'w' must hold finite numbers"));
  EXPECT_THAT(message(half), HasSubstr("half: tensor 'w' must hold finite numbers"));
  EXPECT_THAT(message(large), HasSubstr("the mean of tensor 'w' is too large for float32"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(AverageSafetensors, TheOutputMayBeAnInput) {
  const auto a = write<float>("a", "w", {1}, ElementType::kF32);
  const auto b = write<float>("b", "w", {2}, ElementType::kF32);
  average_safetensors({a, b}, a, {});
  EXPECT_THAT(read(a, "w"), ElementsAre(1.5f));
}

TEST_F(AverageSafetensors, DifferencesAreErrorsThatNameFileAndTensor) {
  const auto a = write<float>("a", "weight", {1, 2}, ElementType::kF32);
  const auto other = write<float>("other", "weigth", {1, 2}, ElementType::kF32);
  const auto longer = write<float>("longer", "weight", {1, 2, 3}, ElementType::kF32);
  const auto whole = write<int64_t>("whole", "weight", {1, 2}, ElementType::kI64);
  const auto out = folder_.path() / "out";
  const auto message = [&](const std::filesystem::path& second) {
    return testing::error_of([&] { average_safetensors({a, second}, out, {}); });
  };
  EXPECT_THAT(message(other), HasSubstr("no tensor 'weight'"));
  EXPECT_THAT(
      message(longer),
      ::testing::AllOf(
          HasSubstr("longer: tensor 'weight' must have shape [2]"), HasSubstr("has [3]")));
  EXPECT_THAT(message(whole), HasSubstr("can be averaged"));
  EXPECT_THAT(message(folder_.path() / "absent"), HasSubstr("absent"));
  EXPECT_THAT(
      testing::error_of([&] { average_safetensors({}, out, {}); }),
      HasSubstr("at least one checkpoint"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace seqconv::internal
