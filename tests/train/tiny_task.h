#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "train/train_loop.h"
#include "train/trainer.h"

namespace seqconv::internal::testing {

/// Sentences of random digit words and what they become, as files, and a
/// configuration that trains a one-layer model on them without dropout.
class TinyTask : public ::testing::Test {
 protected:
  TinyTask();

  /// `pairs` lines, reversed or copied, as NAME.source and NAME.target.
  void write_pairs(const std::string& name, int64_t pairs, uint64_t seed, bool reversed);

  /// Makes words of more than one digit of the text NAME, for BPE to learn
  /// from.
  void join_digits(const std::string& name);

  /// A request that writes into the folder `output`.
  TrainRequest request(const std::string& output) const;

  /// Trains as train_model does, calling `after_batch` after each one.
  static void train(
      const TrainRequest& request,
      const std::function<void(const RunSetup&, const Position&)>& after_batch,
      std::shared_ptr<Communicator> communicator = std::make_shared<SingleProcess>());

  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }

  /// The records of a run's metrics of one kind.
  std::vector<Json> records(const std::string& output, const std::string& kind) const;

  TemporaryFolder folder_;
  TrainConfig config_;
};

/// One layer a side of the given block, small enough for a test.
ModelOptions tiny_model(MixerKind kind);

/// Every list of files that [data] may name.
inline std::vector<std::vector<std::string>*> file_lists(DataOptions& data) {
  return {
      &data.train_source,
      &data.train_target,
      &data.valid_source,
      &data.valid_target,
      &data.train,
      &data.valid};
}

/// All tensors of a safetensors file, as bytes.
std::map<std::string, std::string> tensors_of(const std::filesystem::path& file);

}  // namespace seqconv::internal::testing
