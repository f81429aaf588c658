#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "seqconv/runtime/runtime.h"
#include "sound_models.h"
#include "support/temporary_folder.h"

// What opening a model takes of memory. Not in the tests with sanitizers, which
// keep what was freed.
namespace seqconv {
namespace {

using testing::options_of;
using testing::write_sound_model;

constexpr double kMegabyte = 1e6;

/// A line of /proc/self/status in bytes: memory in use now, or at most.
double memory(const std::string& line) {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;)
    if (double kilobytes = 0; name == line && status >> kilobytes)
      return 1024 * kilobytes;
  ADD_FAILURE() << "no " << line;
  return 0;
}

/// What was in use at most is forgotten.
void forget_peak() {
  std::ofstream("/proc/self/clear_refs") << 5;
}

/// Some 40 MB of float32, in matrices of 2 MB at most.
ModelOptions large_options() {
  ModelOptions options =
      options_of(BlockKind::kDynamicConv, Task::kTranslation);
  options.dim = 256;
  options.ffn_dim = 1024;
  options.encoder.layers = options.decoder.layers = 5;
  options.encoder.kernel_sizes = options.decoder.kernel_sizes = {3};
  return options;
}

TEST(RuntimeMemory, OpeningAModelTakesThePackedWeightsAlone) {
  const testing::TemporaryFolder folder;
  const ModelToRun model = write_sound_model(
      large_options(),
      Task::kTranslation,
      folder.path() / "model",
      0,
      {2000, 2000});
  const auto bytes =
      static_cast<double>(std::filesystem::file_size(model.parameters));
  ASSERT_GT(bytes, 30 * kMegabyte);
  for (const auto& [type, part] :
       {std::pair(ComputeType::kFloat32, 1.0),
        std::pair(ComputeType::kBfloat16, 0.5),
        std::pair(ComputeType::kInt8, 0.25)}) {
    forget_peak();
    const double before = memory("VmRSS:");
    const auto backend = RuntimeBackends(type).translation({model});
    EXPECT_LT(memory("VmHWM:") - before, 1.3 * part * bytes + 6 * kMegabyte)
        << enum_name(type);
  }
}

}  // namespace
}  // namespace seqconv
