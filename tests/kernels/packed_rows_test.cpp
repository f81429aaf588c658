#include "base/error.h"
#include "linear_maps.h"
#include "support/errors.h"

// Packed weights of some rows of a matrix.
namespace seqconv::internal::kernels {
namespace {

using testing::LinearMap;
using testing::PackedLinearPass;
using testing::place;
using testing::serial;

TEST_P(PackedLinearPass, OfSomeRowsHasTheBitsOfAll) {
  for (const auto& [rows, K, N] :
       {std::tuple{1, 77, 203}, {5, 1, 40}, {9, 64, 130}, {20, 1025, 33}}) {
    const LinearMap map(rows, K, N, LinearEnd::kNone);
    std::vector<float> all(place(rows * N));
    LinearPass whole = map.pass(all);
    whole.residual = nullptr;
    const PackedLinear packed = map.packed(GetParam());
    packed_linear(packed, whole, serial);
    for (const int count : {0, 1, 7, 16, 33, 90}) {
      std::vector<int32_t> some;  // in any order, some of them twice
      for (int i = 0; i < count; ++i)
        some.push_back((i * 37 + i / 4 * 5) % N);
      const PackedLinear few = packed.rows(some);
      ASSERT_EQ(few.outputs(), count);
      ASSERT_EQ(few.inputs(), K);
      std::vector<float> bias, y(place(rows * count), 7);
      for (const int32_t row : some)
        bias.push_back(map.bias[place(row)]);
      LinearPass pass = map.pass(y);
      pass.bias = bias.data();
      pass.residual = nullptr;
      packed_linear(few, pass, serial);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(y[place(row * count + i)], all[place(row * N + some[place(i)])])
              << N << " outputs, " << count << " of them, row " << row;
    }
  }
}

TEST(PackedLinearErrors, AreRowsThatAreNotThere) {
  const std::vector<float> weight(6, 1.0F);
  const PackedLinear packed(weight.data(), 2, 3), gated(weight.data(), 2, 3, true);
  for (const int32_t row : {-1, 2})
    EXPECT_EQ(
        seqconv::internal::testing::error_of([&] {
          packed.rows(std::vector{0, row});
        }),
        concat("rows of weights must be in [0, 2), but got ", row));
  EXPECT_EQ(
      seqconv::internal::testing::error_of([&] { gated.rows(std::vector{0}); }),
      "rows of gated weights stand in two panels");
}

}  // namespace
}  // namespace seqconv::internal::kernels
