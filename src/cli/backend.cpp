#include "cli/backend.h"

#include "base/threads.h"
#include "cli/engine_loader.h"
#include "cli/flags.h"

namespace seqconv::internal::cli {

void add_backend(CLI::App& app, BackendFlags& flags, const std::string& group) {
  CLI::Option* const options[] = {
      add_choice(
          app, "--backend", flags.kind, "What runs the model: runtime, on the CPU, or libtorch"),
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
          1024),
      app.add_option("--device", flags.device, "Where: cpu, cuda, cuda:N (by libtorch) or auto")
          ->type_name("NAME")
          ->capture_default_str()};
  if (!group.empty())
    for (CLI::Option* option : options)
      option->group(group);
}

namespace {

DeviceName device_of(const BackendFlags& flags) {
  using Kind = DeviceName::Kind;
  const DeviceName name = parse_device_name("--device", flags.device);
  const bool none = name.kind == Kind::kAuto && !engine().sees_cuda();
  return none ? DeviceName{Kind::kCpu} : name;
}

}  // namespace

bool is_libtorch(const BackendFlags& flags) {
  return flags.kind == BackendKind::kLibTorch || device_of(flags).kind != DeviceName::Kind::kCpu;
}

const BackendOpener& backend(const BackendFlags& flags) {
  if (!is_libtorch(flags)) {
    static RuntimeBackends runtime;
    runtime = RuntimeBackends(flags.compute, flags.logits_megabytes << 20);
    return runtime;
  }
  const DeviceName device = device_of(flags);
  if (flags.compute == ComputeType::kInt8)
    fail_usage(
        "--compute-type ",
        enum_name(flags.compute),
        " needs --backend runtime on the CPU, but got ",
        device.kind == DeviceName::Kind::kCpu ? "libtorch" : "--device " + flags.device);
  return engine().backends(
      {.threads = flags.threads,
       .device = device,
       .bfloat16 = flags.compute == ComputeType::kBfloat16});
}

int64_t workers(const BackendFlags& flags) {
  return is_libtorch(flags) ? 1 : thread_count(flags.threads);
}

}  // namespace seqconv::internal::cli
