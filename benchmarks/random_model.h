#pragma once

#include <filesystem>
#include <string>

#include "pipeline/system.h"

namespace seqconv::bench {
using namespace internal;

/// The sizes that decoding is measured at: tiny (3+3 layers, width 256/512, 4
/// heads, 6,000 words), iwslt (7+6, 512/1024, 4, 10,000), base (7+6, 512/2048,
/// 8, 32,000), big (7+6, 1024/4096, 16, 32,000). `kind`: what all layers mix
/// with; a convolution's kernels grow from 3 to 31.
ModelToRun sized_model(const std::string& size, MixerKind kind);

/// Writes parameters of random numbers, of the scale of a fresh model's, where
/// model.parameters says. Speed depends on the shapes alone.
void write_random_parameters(const ModelToRun& model, Task task);

/// Writes a translation model of random numbers as a model folder, its words w4, w5, ...
void save_random_model(const ModelToRun& model, const std::filesystem::path& folder);

/// A folder that is gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace seqconv::bench
