#include "backend.h"

#include "engine_loader.h"
#include "flags.h"
#include "seqconv/base/threads.h"

namespace seqconv::cli {

void add_backend(CLI::App& app, BackendFlags& flags, const std::string& group) {
  CLI::Option* const options[] = {
      add_choice(
          app,
          "--backend",
          flags.kind,
          "What runs the model: runtime, on the CPU, or libtorch"),
      add_choice(
          app,
          "--compute-type",
          flags.compute,
          "Type of products: the model's, auto, float32, bfloat16 or int8"),
      add_integer(
          app,
          "--threads",
          flags.threads,
          "Threads: batches at a time (libtorch: within one); 0 = all cores",
          0,
          1024)};
  if (!group.empty())
    for (CLI::Option* option : options)
      option->group(group);
}

const BackendOpener& backend(const BackendFlags& flags) {
  switch (flags.kind) {
    case BackendKind::kRuntime: {
      static RuntimeBackends runtime;
      runtime = RuntimeBackends(flags.compute);
      return runtime;
    }
    case BackendKind::kLibTorch:
      break;
  }
  if (flags.compute == ComputeType::kBfloat16 ||
      flags.compute == ComputeType::kInt8)
    fail_usage(
        "--compute-type ",
        enum_name(flags.compute),
        " needs --backend runtime, but got libtorch");
  return engine().backends(flags.threads);
}

int64_t workers(const BackendFlags& flags) {
  return flags.kind == BackendKind::kRuntime ? thread_count(flags.threads) : 1;
}

}  // namespace seqconv::cli
