#include "model/checkpoint/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "model/checkpoint/pytorch_file.h"
#include "model/model_description.h"
#include "support.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using testing::edit_config;
using testing::error_of;
using ::testing::HasSubstr;
using testing::synthetic;
using testing::synthetic_import;
using testing::TemporaryFolder;

class Export : public ::testing::TestWithParam<const char*> {
 protected:
  /// Imports the file under test; the model's folder.
  std::filesystem::path imported() const {
    const auto model = folder_.path() / "model";
    import_checkpoint(synthetic_import({GetParam()}, model));
    return model;
  }

  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(
    Models,
    Export,
    ::testing::Values("published.pt", "half.pt", "light_strided.pt", "talk.pt"),
    [](const auto& info) {
      const std::string name = info.param;
      return name.substr(0, name.find('.'));
    });

TEST_P(Export, ImportedAgainIsTheSameBitByBit) {
  const auto model = imported();
  const auto file = folder_.path() / "out.pt";
  export_model(model, ExportFormat::kFairseq, file);
  ImportRequest request = synthetic_import({}, folder_.path() / "again");
  request.checkpoints = {file};
  import_checkpoint(request);
  EXPECT_EQ(
      read_file(model / "model.safetensors"),
      read_file(folder_.path() / "again" / "model.safetensors"));
  EXPECT_EQ(
      write_options(read_translation_description(model).options),
      write_options(read_translation_description(folder_.path() / "again").options));
}

TEST_P(Export, PytorchHoldsOurParameters) {
  const auto model = imported();
  const auto path = folder_.path() / "out.pt";
  export_model(model, ExportFormat::kPytorch, path);
  const PyTorchFile file(path);
  const SafetensorsReader ours(model / "model.safetensors");
  ASSERT_EQ(file.root().entries().size(), ours.tensors().size());
  for (const auto& [key, value] : file.root().entries()) {
    const std::string name(key.node().text);
    SCOPED_TRACE(name);
    const StridedTensor tensor = file.tensor(value, name);
    const TensorView& wanted = ours.at(name);
    EXPECT_EQ(tensor.type, wanted.type);
    EXPECT_EQ(tensor.shape, wanted.shape);
    tensor.visit([&](std::span<const std::byte> bytes) {
      EXPECT_TRUE(std::ranges::equal(bytes, wanted.data));
    });
  }
}

TEST(ExportCuts, OfSourcesComeBack) {
  const TemporaryFolder folder;
  const auto model = folder.path() / "model";
  import_checkpoint(synthetic_import({"published.pt"}, model));
  edit_config(model, [&](Json& config) {
    config["text"]["max_source_tokens"] = 20;
    config["format_version"] = 5;
  });
  const auto file = folder.path() / "out.pt";
  export_model(model, ExportFormat::kFairseq, file);
  ImportRequest request = synthetic_import({}, folder.path() / "again");
  request.checkpoints = {file};
  import_checkpoint(request);
  const auto again = read_translation_description(request.output);
  EXPECT_EQ(again.text.max_source_tokens, 20);
  EXPECT_EQ(again.options.max_positions, 64);
}

/// Changes the architecture of an imported model and exports it.
std::string export_error(const std::string& key, const Json& value) {
  const TemporaryFolder folder;
  const auto model = folder.path() / "model";
  import_checkpoint(synthetic_import({"published.pt"}, model));
  edit_config(model, [&](Json& config) {
    config["architecture"]["decoder"][key] = value;
    config["format_version"] = 3;
  });
  return error_of<UsageError>(
      [&] { export_model(model, ExportFormat::kFairseq, folder.path() / "out.pt"); });
}

TEST(ExportErrors, NameWhatFairseqHasNoModuleFor) {
  EXPECT_THAT(
      export_error("query", "block_input"),
      HasSubstr("no module for decoder layer 0: its kernels are predicted"));
  EXPECT_THAT(export_error("normalization", "tanh"), HasSubstr("its normalization is tanh"));
  EXPECT_THAT(export_error("renormalize_edges", true), HasSubstr("its edges are renormalised"));
  EXPECT_THAT(
      export_error("positions", "none"),
      HasSubstr("positions on both sides or on neither, but this model's decoder alone has none"));
}

TEST(ExportErrors, NameAParameterThatDoesNotFit) {
  const TemporaryFolder folder;
  const auto model = folder.path() / "model";
  import_checkpoint(synthetic_import({"published.pt"}, model));
  edit_config(model, [&](Json& config) { config["architecture"]["ffn_dim"] = 8; });
  EXPECT_THAT(
      error_of([&] { export_model(model, ExportFormat::kPytorch, folder.path() / "out.pt"); }),
      HasSubstr("feed_forward.fc1.weight"));
}

TEST(ExportErrors, NameATensorThatIsNotFinite) {
  const TemporaryFolder folder;
  const auto model = folder.path() / "model";
  import_checkpoint(synthetic_import({"half.pt"}, model));
  std::string file = read_file(model / "model.safetensors");
  file[file.size() - 1] = file[file.size() - 2] = '\xFF';  // a float16 NaN
  write_file_atomically(model / "model.safetensors", file);
  for (const auto format : {ExportFormat::kFairseq, ExportFormat::kPytorch})
    EXPECT_THAT(
        error_of([&] { export_model(model, format, folder.path() / "out.pt"); }),
        ::testing::AllOf(
            HasSubstr("model.safetensors: parameter '"),
            HasSubstr("1 of them is NaN or infinite")));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out.pt"));
}

class ExportedFile : public ::testing::Test {
 protected:
  ExportedFile() {
    import_checkpoint(synthetic_import({"published.pt"}, model_));
    std::filesystem::create_directories(model_ / "training" / "data");
  }

  std::string refusal(const std::filesystem::path& output) const {
    return error_of([&] { export_model(model_, ExportFormat::kPytorch, output); });
  }

  TemporaryFolder folder_;
  std::filesystem::path model_ = folder_.path() / "model";
};

TEST_F(ExportedFile, ReplacesNoPartOfAModel) {
  const std::string before = read_file(model_ / "model.safetensors");
  const auto link = folder_.path() / "link.pt";
  std::filesystem::create_symlink(model_ / "model.safetensors", link);
  std::filesystem::create_symlink(model_ / "notes", folder_.path() / "x.pt");
  folder_.write("model/notes", "");
  const auto other = folder_.path() / "other";
  import_checkpoint(synthetic_import({"talk.pt"}, other));
  for (const auto& output : {model_ / "model.safetensors", link})
    EXPECT_THAT(refusal(output), HasSubstr("the model's own file"));
  for (const auto& output :
       {model_ / "config.json",
        model_ / "notes",
        model_ / "new" / ".." / "config.json",
        folder_.path() / "x.pt",
        other / "model.safetensors"})
    EXPECT_THAT(refusal(output), HasSubstr("would replace a file"));
  for (const char* name : {"best.safetensors", "source.dict.txt", "bpe.codes", "a.model"})
    EXPECT_THAT(refusal(model_ / name), HasSubstr("the name of a part"));
  for (const char* name : {"training/x.pt", "training/data/x.pt"})
    EXPECT_THAT(refusal(model_ / name), HasSubstr("files of a training"));
  EXPECT_TRUE(before == read_file(model_ / "model.safetensors"));
}

TEST_F(ExportedFile, HasAnyOtherNameAndMayBeReplacedElsewhere) {
  for (const auto& output :
       {model_ / "checkpoint.pt",
        folder_.path() / "out.pt",
        folder_.path() / "out.pt",
        folder_.path() / "model.safetensors"}) {
    export_model(model_, ExportFormat::kPytorch, output);
    EXPECT_NO_THROW(PyTorchFile{output});
  }
}

}  // namespace
}  // namespace seqconv::internal
