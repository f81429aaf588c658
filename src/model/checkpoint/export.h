#pragma once

#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/enum_names.h"
#include "base/rooted_path.h"

namespace seqconv::internal {

/// The kinds of file that `seqconv export` writes.
enum class ExportFormat {
  kFairseq,  ///< a checkpoint under fairseq's or the TaLK repository's names
  kPytorch,  ///< a dictionary of tensors under our own names
};
template <>
struct EnumNames<ExportFormat> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, ExportFormat>>(
      {{"fairseq", ExportFormat::kFairseq}, {"pytorch", ExportFormat::kPytorch}});
};

/// Writes a model's parameters as a file that torch.load(weights_only=True)
/// reads, every bit as it is. kFairseq: {"args": None, "cfg": settings,
/// "model": tensors, ...} with the names of present fairseq (LightConv,
/// DynamicConv) or of the TaLK repository; import_checkpoint reads it back.
/// `model` is a model folder or a .safetensors file in one. UsageError for a
/// model that fairseq has no modules for; Error for an output that is a file of
/// a model folder or of a training.
void export_model(
    const RootedPath& model, ExportFormat format, const std::filesystem::path& output);

}  // namespace seqconv::internal
