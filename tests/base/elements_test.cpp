#include "base/elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

/// A type, bits of its largest number, of an infinity and of two NaN.
struct Kind {
  ElementType type;
  uint64_t largest;
  std::vector<uint64_t> not_finite;
};

const std::vector<Kind> kKinds = {
    {ElementType::kF64,
     0xFFEFFFFFFFFFFFFF,
     {0xFFF0000000000000, 0x7FF8000000000000, 0x7FF0000000000001}},
    {ElementType::kF32, 0xFF7FFFFF, {0xFF800000, 0x7FC00000, 0x7F800001}},
    {ElementType::kF16, 0xFBFF, {0xFC00, 0x7E00, 0x7C01}},
    {ElementType::kBF16, 0xFF7F, {0xFF80, 0x7FC0, 0x7F81}}};

TEST(Elements, CountThoseThatAreNotFiniteWhereverTheyStand) {
  for (const Kind& kind : kKinds) {
    const size_t size = element_size(kind.type);
    for (const size_t all : {1, 4095, 4096, 4097, 9000}) {
      std::vector<std::byte> bytes(all * size);
      const auto set = [&](size_t at, uint64_t bits) {
        std::memcpy(bytes.data() + at * size, &bits, size);
      };
      for (size_t i = 0; i < all; ++i)
        set(i, kind.largest);
      EXPECT_EQ(count_not_finite(kind.type, bytes), 0u);
      size_t wanted = 0;
      for (const size_t at : {size_t{0}, all / 2, all - 1}) {
        if (at < wanted)
          continue;
        set(at, kind.not_finite[wanted]);
        EXPECT_EQ(count_not_finite(kind.type, bytes), ++wanted)
            << element_name(kind.type) << " " << at << " of " << all;
      }
    }
  }
}

TEST(Elements, WholeNumbersAreFinite) {
  const std::vector<std::byte> bytes(64, std::byte{0xFF});
  for (const auto type : {ElementType::kI64, ElementType::kI32, ElementType::kU8})
    EXPECT_EQ(count_not_finite(type, bytes), 0u);
}

TEST(Elements, AFileWithNumbersThatAreNotFiniteIsRefused) {
  TemporaryFolder folder;
  const auto path = folder.path() / "m.safetensors";
  std::vector<float> good = {1, std::numeric_limits<float>::max()};
  std::vector<float> bad = {1, NAN, 2, -INFINITY};
  const auto view = [](const std::vector<float>& values) {
    return TensorView{ElementType::kF32, {std::ssize(values)}, std::as_bytes(std::span(values))};
  };
  write_safetensors(path, {{"a.good", view(good)}}, {});
  require_finite(SafetensorsReader(path));
  write_safetensors(path, {{"a.good", view(good)}, {"b.bad", view(bad)}}, {});
  EXPECT_EQ(
      error_of([&] { require_finite(SafetensorsReader(path)); }),
      path.string() +
          ": tensor 'b.bad' must hold finite numbers, but 2 of them are NaN or infinite: the "
          "training diverged, or the file is damaged");
  EXPECT_THAT(
      error_of([&] { require_finite(1, "here"); }),
      HasSubstr("here must hold finite numbers, but 1 of them is NaN"));
}

}  // namespace
}  // namespace seqconv::internal
