#include "train/engine/engine.h"

#include <ATen/Parallel.h>

#include <cstdlib>

#include "base/error.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/threads.h"
#include "libtorch/backend/backend.h"
#include "libtorch/backend/device.h"
#include "libtorch/backend/libtorch_errors.h"
#include "train/engine/functions.h"

namespace seqconv::internal::engine {

void set_threads(int64_t threads) {
  if (threads > 0)  // else LibTorch's own choice
    at::set_num_threads(static_cast<int>(thread_count(threads)));
}

namespace {

const EngineTable kTable{
    .set_log_level = [](LogLevel level) { seqconv::internal::set_log_level(level); },
    .train = [](const TrainArguments& arguments) { guarded([&] { train(arguments); }); },
    .describe_config =
        [](ConfigFormat format) { return guarded([&] { return describe_config(format); }); },
    .backends = [](const BackendArguments& arguments) -> const BackendOpener& {
      static TorchBackends backends;
      set_threads(arguments.threads);
      const Launch launch = find_launch([](const char* name) { return std::getenv(name); });
      backends = guarded([&] {
        return TorchBackends(
            open_device(arguments.device, launch.local_rank),
            arguments.bfloat16 ? at::kBFloat16 : at::kFloat);
      });
      return backends;
    },
    .sees_cuda = [] { return guarded([] { return seqconv::internal::sees_cuda(); }); },
};

}  // namespace
}  // namespace seqconv::internal::engine

extern "C" SEQCONV_VISIBLE const seqconv::internal::EngineTable* seqconv_engine() {
  return &seqconv::internal::engine::kTable;
}
