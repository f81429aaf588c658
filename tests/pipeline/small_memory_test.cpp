#include <ATen/ops/empty.h>
#include <gmock/gmock.h>

#include "libtorch/ops/device.h"
#include "pipeline/scorer.h"
#include "pipeline/translator.h"
#include "support/small_memory.h"
#include "translation_folder.h"

/// LibTorch's backend where a device's memory is too small for a batch.
namespace seqconv::internal {
namespace {

/// Errors as LibTorch words them: its own for "", else a library's.
constexpr const char* kFaults[] = {
    "",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
    "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`",
    "CUDA error: out of memory",
    "cudaErrorMemoryAllocation: no room"};

class SmallMemoryTest : public testing::TranslationFolder {
 protected:
  void SetUp() override {
    testing::TranslationFolder::SetUp();
    system_ = open({"model"});
    for (int i = 0; i < 8; ++i)
      lines_.emplace_back(i % 2 == 0 ? "eins zwei" : "drei vier acht");
  }

  std::vector<TranslationOutcome> translate(const std::vector<std::string>& lines) const {
    std::vector<TranslationInput> requests;
    for (const std::string& line : lines)
      requests.push_back({{.text = line}});
    TranslatorOptions options;
    options.search.max_length_a = 0;
    options.search.max_length_b = 6;
    return Translator(*system_, options).translate(requests);
  }

  std::optional<TranslationSystem> system_;
  std::vector<std::string> lines_;
};

TEST_F(SmallMemoryTest, SentencesThatDoNotFitTogetherGoOneByOne) {
  testing::SmallMemory memory;
  const auto wanted = translate(lines_);
  for (const char* const fault : kFaults) {
    memory.fault = fault;
    memory.refused = 0;
    memory.limit = memory.largest / 3;
    const auto found = translate(lines_);
    EXPECT_EQ(memory.refused, 1) << fault;
    for (size_t i = 0; i < lines_.size(); ++i) {
      ASSERT_EQ(found[i].error, "") << fault;
      EXPECT_EQ(found[i].translations[0].tokens, wanted[i].translations[0].tokens);
    }
  }
}

TEST_F(SmallMemoryTest, ASentenceThatDoesNotFitFailsAlone) {
  testing::SmallMemory memory;
  translate(lines_);
  memory.limit = memory.largest;
  for (int i = 0; i < 8; ++i)
    lines_.front() += lines_.front();
  const auto found = translate(lines_);
  EXPECT_EQ(found[0].status, Status::kOutOfMemory);
  EXPECT_EQ(found[0].error, kOutOfMemory);
  for (size_t i = 1; i < lines_.size(); ++i)
    EXPECT_EQ(found[i].error, "");
}

TEST_F(SmallMemoryTest, PairsThatDoNotFitTogetherAreScoredOneByOne) {
  const std::vector<int32_t> ids = system_->text.source->encode("eins zwei");
  const std::vector<std::vector<int32_t>> sides(8, ids);
  const auto score = [&] {
    return score_pairs(*system_->backend, sides, sides, /*batch_tokens=*/4096);
  };
  testing::SmallMemory memory;
  const std::vector<double> wanted = score();
  for (const char* const fault : kFaults) {
    memory.fault = fault;
    memory.limit = memory.largest / 3;
    const std::vector<double> found = score();
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], wanted[i], 1e-5) << fault;
  }
  memory.limit = 64;
  EXPECT_THROW(score(), std::bad_alloc);
}

TEST_F(SmallMemoryTest, OtherFaultsOfLibrariesAreErrors) {
  testing::SmallMemory memory;
  translate(lines_);
  memory.limit = memory.largest / 3;
  memory.fault = "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED";
  EXPECT_EQ(message([&] { translate(lines_); }), memory.fault);
}

TEST(OutOfMemory, IsWhatLibTorchSaysOfTheHost) {
  try {
    at::empty({int64_t{1} << 60});
    FAIL() << "so much memory is there";
  } catch (const c10::Error& error) {
    EXPECT_TRUE(ops::is_out_of_memory(error)) << error.what();
  }
}

}  // namespace
}  // namespace seqconv::internal
