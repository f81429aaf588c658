#include "train/data_options.h"

#include "base/error.h"
#include "text/corpus/fairseq_data.h"

namespace seqconv::internal {
namespace {

void check_no_ids(const char* key, const std::vector<std::string>& files) {
  for (const std::string& file : files)
    if (is_fairseq_data(file))
      fail_usage(
          key,
          " must name JSON lines or lists of stories, but '",
          file,
          "' is binarised data by its name");
}

/// Keys of files that hold both sides, which are JSON lines or lists of
/// stories.
void check_documents(const DataOptions& data) {
  const bool source = !data.source_key.empty();
  const bool target = !data.target_key.empty();
  if (source != target)
    fail_usage(
        "data.source_key and data.target_key belong together, but only data.",
        source ? "source" : "target",
        "_key is given");
  if (source && data.source_key == data.target_key)
    fail_usage(
        "data.source_key and data.target_key must differ, but both are '", data.source_key, "'");
  if (source && !data.stories.empty())
    fail_usage("data.source_key is for JSON lines and data.stories for lists of story files: give "
               "one of them");
  const bool both = source || !data.stories.empty();
  if (data.train.empty() && data.valid.empty()) {
    if (both)
      fail_usage(
          "data.",
          source ? "source_key" : "stories",
          " says how data.train and data.valid are read, but they name no file");
    return;
  }
  const char* const key = data.train.empty() ? "valid" : "train";
  if (!both)
    fail_usage(
        "data.",
        key,
        " is a language model's text; translation has data.train_source and data.train_target, or "
        "set task = \"language_model\". Where files hold both sides, data.source_key and "
        "data.target_key (JSON lines) or data.stories must say so");
  check_no_ids("data.train", data.train);
  check_no_ids("data.valid", data.valid);
}

/// As many files of both sides, and of one kind.
void check_pair(
    const char* source_key,
    const std::vector<std::string>& source,
    const char* target_key,
    const std::vector<std::string>& target) {
  if (source.size() != target.size())
    fail_usage(
        source_key,
        " and ",
        target_key,
        " must name as many files, but got ",
        source.size(),
        " and ",
        target.size());
  for (size_t i = 0; i < source.size(); ++i)
    if (is_fairseq_data(source[i]) != is_fairseq_data(target[i]))
      fail_usage(
          source_key,
          " and ",
          target_key,
          " must both be binarised (.bin, .idx) or both be text, but got '",
          source[i],
          "' and '",
          target[i],
          "'");
}

/// Both files of binarised data decide the ids, and the stories of lists.
std::string content_of(const TextSource& source, uint64_t (*sum)(const RootedPath&)) {
  if (holds_ids(source)) {
    const FairseqFiles files = fairseq_files(source.file);
    return checksum_text(sum(files.index)) + "+" + checksum_text(sum(files.data));
  }
  const auto files = files_of(source);
  if (files.size() == 1)
    return checksum_text(sum(files[0]));
  std::string sums;
  for (const auto& file : files)
    sums += checksum_text(sum(file));
  return checksum_text(checksum(sums));
}

PairSources pairs_of(
    const DataOptions& data,
    const std::vector<std::string>& sources,
    const std::vector<std::string>& targets,
    const std::vector<std::string>& both) {
  PairSources pairs{{sources.begin(), sources.end()}, {targets.begin(), targets.end()}};
  for (const std::string& file : both) {
    pairs.source.push_back(data.source_of(file, PairSide::kSource));
    pairs.target.push_back(data.source_of(file, PairSide::kTarget));
  }
  return pairs;
}

void leave_out(const HeldOut& held_out, std::vector<TextSource>& sources) {
  for (size_t i = 0; i < held_out.lines.size(); ++i)
    sources.at(i).without = held_out.lines[i];
}

}  // namespace

DocumentOptions DataOptions::documents() const {
  if (!stories.empty())
    return {.format = TextFormat::kStory};
  if (source_key.empty())
    return {};
  return {TextFormat::kJson, source_key, target_key};
}

TextSource DataOptions::source_of(const std::string& file, PairSide side) const {
  TextSource source(file);
  source.format = documents().format;
  source.side = side;
  source.key = side == PairSide::kSource ? source_key : target_key;
  source.folders = stories;
  source.links = links;
  return source;
}

PairSources DataOptions::training_pairs() const {
  PairSources pairs = pairs_of(*this, train_source, train_target, train);
  leave_out(held_out, pairs.source);
  leave_out(held_out, pairs.target);
  return pairs;
}

PairSources DataOptions::validation_pairs() const {
  if (held_out.lines.empty())
    return pairs_of(*this, valid_source, valid_target, valid);
  if (train_source.empty())
    return pairs_of(*this, {}, {}, {held_out.file(HeldOut::kLines)});
  return pairs_of(*this, {held_out.file(HeldOut::kSource)}, {held_out.file(HeldOut::kTarget)}, {});
}

std::vector<TextSource> DataOptions::training_text() const {
  std::vector<TextSource> text(train.begin(), train.end());
  leave_out(held_out, text);
  return text;
}

std::vector<TextSource> DataOptions::validation_text() const {
  if (held_out.lines.empty())
    return {valid.begin(), valid.end()};
  return {held_out.file(HeldOut::kLines)};
}

void check_pair_data(const DataOptions& data) {
  check_documents(data);
  if (data.train_source.empty() && data.train.empty())
    fail_usage(
        "data.train_source must name at least one file, or data.train one that holds both sides");
  check_pair("data.train_source", data.train_source, "data.train_target", data.train_target);
  check_pair("data.valid_source", data.valid_source, "data.valid_target", data.valid_target);
}

void check_cuts(const DataOptions& data, const ModelOptions& model) {
  const auto check =
      [&](const char* key, int64_t most, const char* side, const StackOptions& stack) {
        const int64_t positions = model.max_positions_of(stack);
        if (most != 0 && (most < 2 || most > positions))
          fail_usage(
              "data.",
              key,
              " must be between 2 and model.",
              stack.max_positions > 0 ? side : "",
              "max_positions = ",
              positions,
              ", or 0 for no cut, but got ",
              most);
      };
  check("max_source_tokens", data.max_source_tokens, "encoder.", model.encoder);
  check("max_target_tokens", data.max_target_tokens, "decoder.", model.decoder);
}

Json describe_files(const DataOptions& data, uint64_t (*sum)(const RootedPath&)) {
  Json described = Json::object();
  const auto add = [&](const char* key, const std::vector<std::string>& files, bool both = false) {
    Json& sums = described[key] = Json::array();
    for (const std::string& file : files) {
      try {
        sums.push_back(
            content_of(both ? data.source_of(file, PairSide::kSource) : TextSource(file), sum));
      } catch (const Error& error) {
        fail("data.", key, ": ", error.what());
      }
    }
  };
  add("train_source", data.train_source);
  add("train_target", data.train_target);
  add("valid_source", data.valid_source);
  add("valid_target", data.valid_target);
  add("train", data.train, /*both=*/true);
  add("valid", data.valid, /*both=*/true);
  return described;
}

}  // namespace seqconv::internal
