#include "train/device_checks.h"

#include <gmock/gmock.h>

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const at::Device kGpu(at::kCUDA, 2);

TEST(PrecisionFault, IsNoneWhereTheDeviceHasThePrecision) {
  for (const ComputeCapability capability :
       {ComputeCapability{8, 0}, {8, 9}, {9, 0}, {10, 0}, {12, 1}})
    for (const Precision precision :
         {Precision::kFloat32, Precision::kBFloat16, Precision::kFloat16})
      EXPECT_EQ(precision_fault(precision, kGpu, capability), "");
  for (const ComputeCapability capability : {ComputeCapability{5, 3}, {7, 5}})
    EXPECT_EQ(precision_fault(Precision::kFloat16, kGpu, capability), "");
  EXPECT_EQ(precision_fault(Precision::kFloat32, kGpu, {3, 5}), "");
  for (const at::Device device : {at::kCPU, at::kMeta})
    EXPECT_EQ(precision_fault(Precision::kBFloat16, device, {}), "");
  EXPECT_EQ(precision_fault(Precision::kFloat16, at::kMeta, {}), "");
}

TEST(PrecisionFault, SaysWhatWasWantedWhatTheDeviceIsAndWhatToDo) {
  EXPECT_EQ(
      precision_fault(Precision::kBFloat16, kGpu, {7, 5}),
      "training.precision is \"bfloat16\", which needs a CUDA device of compute capability 8.0 or "
      "above, but the model is trained on cuda:2 of compute capability 7.5: set training.precision "
      "to float32 or float16, or training.device to a device that has bfloat16");
  EXPECT_THAT(
      precision_fault(Precision::kFloat16, kGpu, {5, 2}),
      AllOf(
          HasSubstr("\"float16\", which needs a CUDA device of compute capability 5.3"),
          HasSubstr("cuda:2 of compute capability 5.2"),
          HasSubstr("set training.precision to float32, or")));
  EXPECT_THAT(
      precision_fault(Precision::kBFloat16, kGpu, {5, 2}), Not(HasSubstr("float32 or float16")));
}

TEST(PrecisionFault, OfACpuIsFloat16) {
  EXPECT_THAT(
      precision_fault(Precision::kFloat16, at::kCPU, {}),
      HasSubstr("the CPU, which has float32 and bfloat16 alone"));
}

}  // namespace
}  // namespace seqconv::internal
