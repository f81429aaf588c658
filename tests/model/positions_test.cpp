#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "base/files.h"
#include "model/checkpoint/export.h"
#include "model/checkpoint/fairseq_checkpoint.h"
#include "model/checkpoint/import.h"
#include "model/checkpoint/pytorch_writer.h"
#include "model/model_description.h"
#include "support.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

// Position embeddings of each side, in import and export.
namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using testing::edit_config;
using testing::error_of;
using ::testing::HasSubstr;
using testing::synthetic;
using testing::synthetic_import;
using testing::TemporaryFolder;

/// What positioned_checkpoint() makes of the positions of published.pt.
struct ChangedPositions {
  Json arguments = Json::object();  ///< over the stored ones
  Json task = Json::object();       ///< arguments of the task
  int64_t encoder = 0;              ///< learned ones; 0: no table
  int64_t decoder = 0;
  bool buffers = false;  ///< keeps those of sinusoidal positions
};

/// Writes a checkpoint of 2022 with other positions.
std::filesystem::path positioned_checkpoint(
    const std::filesystem::path& folder, const ChangedPositions& changed) {
  const FairseqCheckpoint published(synthetic("published.pt"), CheckpointWeights::kTrained);
  Json arguments = published.arguments();
  arguments.update(changed.arguments);
  PyTorchContent content{{{"cfg", {{"model", arguments}, {"task", changed.task}}}}, "model", {}};
  std::deque<std::vector<std::byte>> bytes;
  const auto add = [&](const std::string& name, const StridedTensor& tensor) {
    std::vector<std::byte>& own = bytes.emplace_back();
    tensor.visit([&](std::span<const std::byte> piece) {
      own.insert(own.end(), piece.begin(), piece.end());
    });
    content.tensors.push_back({name, {tensor.type, tensor.shape, own}});
  };
  int64_t dim = 0;
  for (const auto& [name, tensor] : published.tensors()) {
    add(name, tensor);
    if (name == "decoder.embed_tokens.weight")
      dim = tensor.shape[1];
  }
  if (changed.buffers)
    for (const char* side : {"encoder", "decoder"}) {
      std::vector<std::byte>& own = bytes.emplace_back(sizeof(float));
      content.tensors.push_back(
          {concat(side, ".embed_positions._float_tensor"), {ElementType::kF32, {1}, own}});
    }
  const auto add_table = [&](const std::string& side, int64_t learned) {
    if (learned == 0)
      return;
    std::vector<std::byte>& own = bytes.emplace_back();
    own.resize(static_cast<size_t>((learned + 2) * dim) * sizeof(float));
    content.tensors.push_back(
        {side + ".embed_positions.weight", {ElementType::kF32, {learned + 2, dim}, own}});
  };
  add_table("encoder", changed.encoder);
  add_table("decoder", changed.decoder);
  const auto file = folder / "positioned.pt";
  write_pytorch(file, content);
  return file;
}

/// A folder that imports changed copies of published.pt.
class ImportPositions : public ::testing::Test {
 protected:
  ModelOptions imported(
      const ChangedPositions& changed, const ImportRequest& like = synthetic_import({}, {})) {
    ImportRequest request = like;
    request.output = folder_.path() / "m";
    request.checkpoints = {positioned_checkpoint(folder_.path(), changed)};
    import_checkpoint(request);
    return read_translation_description(request.output).options;
  }

  std::string error(const ChangedPositions& changed) {
    return error_of([&] { imported(changed); });
  }

  int64_t version() const {
    return parse_json(read_file(folder_.path() / "m" / "config.json"), "config.json")
        .at("format_version");
  }

  TemporaryFolder folder_;
};

TEST_F(ImportPositions, OfTheTaskCutSources) {
  const auto cut = [&](const Json& task) {
    imported({.task = task});
    return read_translation_description(folder_.path() / "m").text.max_source_tokens;
  };
  EXPECT_EQ(cut({{"max_source_positions", 20}}), 0);
  EXPECT_EQ(cut({{"truncate_source", false}, {"max_source_positions", 20}}), 0);
  EXPECT_EQ(cut({{"truncate_source", true}, {"max_source_positions", 20}}), 20);
  // The default is more than the 64 positions of the model.
  EXPECT_EQ(cut({{"truncate_source", 1}}), 64);
  for (const Json& truncates : {Json("True"), Json(1.0)})
    EXPECT_THAT(
        error({.task = {{"truncate_source", truncates}}}),
        HasSubstr("truncate_source must be true or false, but is"));
  for (const Json& most : {Json(1), Json("20"), Json(2.5)})
    EXPECT_THAT(
        error({.task = {{"truncate_source", true}, {"max_source_positions", most}}}),
        HasSubstr("max_source_positions, to which truncate_source cuts, must be a whole number "
                  "from 2, but is"));
}

TEST_F(ImportPositions, AreFoundForEachSide) {
  ModelOptions found = imported(
      {.arguments = {{"max_source_positions", 20}, {"encoder_learned_pos", true}}, .encoder = 20});
  EXPECT_EQ(found.learned_positions(found.encoder), 20);
  EXPECT_EQ(found.positions_of(found.decoder), PositionKind::kSinusoidal);
  EXPECT_EQ(found.max_positions_of(found.decoder), 64);
  EXPECT_EQ(version(), 3);
  found = imported(
      {.arguments = {{"max_target_positions", 20}, {"decoder_learned_pos", true}},
       .decoder = 20,
       .buffers = true});
  EXPECT_EQ(found.positions_of(found.encoder), PositionKind::kSinusoidal);
  EXPECT_EQ(found.max_positions_of(found.encoder), 64);
  EXPECT_EQ(found.learned_positions(found.decoder), 20);
  found = imported({.arguments = {{"max_source_positions", 20}}, .encoder = 20, .decoder = 64});
  EXPECT_EQ(found.learned_positions(found.encoder), 20);
  EXPECT_EQ(found.learned_positions(found.decoder), 64);
  EXPECT_EQ(found.encoder.positions, SidePositions::kAuto);
  found = imported({.encoder = 64, .decoder = 64});
  EXPECT_EQ(found.encoder.max_positions, 0);
  EXPECT_EQ(version(), 1);
}

TEST_F(ImportPositions, MayBeNone) {
  const Json none = {{"no_token_positional_embeddings", true}};
  ModelOptions found = imported({.arguments = none});
  EXPECT_EQ(found.positions, PositionKind::kNone);
  EXPECT_EQ(found.positions_of(found.encoder), PositionKind::kNone);
  EXPECT_EQ(version(), 3);
  // Where nothing tells, they are the usual ones, unless a preset says so.
  found = imported({});
  EXPECT_EQ(found.positions, PositionKind::kSinusoidal);
  EXPECT_EQ(version(), 1);
  ImportRequest request = synthetic_import({}, {});
  request.preset = [](ModelOptions& options) { options.positions = PositionKind::kNone; };
  found = imported({}, request);
  EXPECT_EQ(found.positions_of(found.encoder), PositionKind::kNone);
  EXPECT_EQ(found.positions_of(found.decoder), PositionKind::kNone);
  found = imported({.buffers = true}, request);
  EXPECT_EQ(found.positions_of(found.encoder), PositionKind::kSinusoidal);
  EXPECT_EQ(found.positions_of(found.decoder), PositionKind::kSinusoidal);
}

TEST_F(ImportPositions, KeepLengthsThatLimitNothingInOneKey) {
  const ModelOptions found =
      imported({.arguments = {{"max_source_positions", 20}, {"max_target_positions", 30}}});
  EXPECT_EQ(found.max_positions, 30);
  EXPECT_EQ(found.encoder.max_positions, 0);
  EXPECT_EQ(version(), 1);
}

TEST_F(ImportPositions, ContradictNoArgument) {
  const Json none = {{"no_token_positional_embeddings", true}};
  const std::string said = "the stored argument no_token_positional_embeddings";
  EXPECT_THAT(error({.arguments = none, .encoder = 64}), HasSubstr(said));
  EXPECT_THAT(
      error({.arguments = none, .buffers = true}),
      AllOf(HasSubstr(said), HasSubstr("embed_positions._float_tensor'")));
  EXPECT_THAT(
      error({.arguments = {{"encoder_learned_pos", true}}, .decoder = 64}),
      HasSubstr("the stored argument encoder_learned_pos contradicts the tensors, where "
                "'encoder.embed_positions.weight' is not there"));
  EXPECT_THAT(
      error({.arguments = {{"decoder_learned_pos", false}}, .decoder = 64}),
      HasSubstr("'decoder.embed_positions.weight' is there"));
  EXPECT_THAT(
      error({.encoder = 20}),
      HasSubstr("the stored argument max_source_positions = 64 contradicts the shape of "
                "'encoder.embed_positions.weight', which says 20"));
}

TEST(ExportPositions, AreThoseOfEachSide) {
  const TemporaryFolder folder;
  const Json none = {{"no_token_positional_embeddings", true}};
  const auto file = folder.path() / "out.pt";
  for (const ChangedPositions& changed :
       {ChangedPositions{.arguments = {{"max_source_positions", 20}}, .encoder = 20},
        ChangedPositions{
            .arguments = {{"max_source_positions", 20}, {"max_target_positions", 30}},
           .encoder = 20,
           .decoder = 30},
        ChangedPositions{.arguments = {{"max_target_positions", 30}}, .decoder = 30},
        ChangedPositions{.arguments = none}}) {
    ImportRequest request = synthetic_import({}, folder.path() / "model");
    request.checkpoints = {positioned_checkpoint(folder.path(), changed)};
    import_checkpoint(request);
    export_model(request.output, ExportFormat::kFairseq, file);
    const FairseqCheckpoint written(file, CheckpointWeights::kTrained);
    const Json& arguments = written.arguments();
    EXPECT_EQ(arguments.at("no_token_positional_embeddings"), changed.arguments == none);
    EXPECT_EQ(arguments.at("encoder_learned_pos"), changed.encoder > 0);
    EXPECT_EQ(arguments.at("decoder_learned_pos"), changed.decoder > 0);
    EXPECT_EQ(
        arguments.at("max_source_positions"), changed.arguments.value("max_source_positions", 64));
    EXPECT_EQ(
        arguments.at("max_target_positions"), changed.arguments.value("max_target_positions", 64));
    const auto before = read_translation_description(request.output);
    request.checkpoints = {file};
    request.output = folder.path() / "again";
    import_checkpoint(request);
    EXPECT_EQ(
        write_options(before.options),
        write_options(read_translation_description(request.output).options));
    EXPECT_EQ(
        read_file(folder.path() / "model" / "model.safetensors"),
        read_file(folder.path() / "again" / "model.safetensors"));
  }
}

TEST(ExportPositions, OnlySinesOfTheTalkRepositoryHaveABuffer) {
  const TemporaryFolder folder;
  const auto model = folder.path() / "model";
  import_checkpoint(synthetic_import({"talk.pt"}, model));
  const auto buffers = [&](const char* positions) {
    edit_config(model, [&](Json& config) {
      config["architecture"]["positions"] = positions;
      config["format_version"] = 3;
    });
    const auto file = folder.path() / "out.pt";
    export_model(model, ExportFormat::kFairseq, file);
    const FairseqCheckpoint written(file, CheckpointWeights::kTrained);
    return std::pair(
        written.bookkeeping().contains("encoder.embed_positions._float_tensor"),
        written.bookkeeping().contains("decoder.embed_positions._float_tensor"));
  };
  EXPECT_EQ(buffers("sinusoidal"), std::pair(true, true));
  EXPECT_EQ(buffers("none"), std::pair(false, false));
}

}  // namespace
}  // namespace seqconv::internal
