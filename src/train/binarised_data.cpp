#include "train/binarised_data.h"

#include <algorithm>
#include <iterator>

#include "base/characters.h"
#include "base/error.h"
#include "base/utf8.h"
#include "text/corpus/fairseq_data.h"

namespace seqconv::internal {
namespace {

constexpr size_t kSamples = 5;
constexpr int64_t kTried = 1000;         // sentences, when they are not like our text
constexpr size_t kLongestSample = 1000;  // bytes

/// The key and name of a binarised file of [data]; two empty strings when there
/// is none.
std::pair<std::string, std::string> first_binarised(const DataOptions& data) {
  const std::pair<const char*, const std::vector<std::string>&> lists[] = {
      {"data.train_source", data.train_source},
      {"data.train_target", data.train_target},
      {"data.valid_source", data.valid_source},
      {"data.valid_target", data.valid_target},
      {"data.train", data.train},
      {"data.valid", data.valid}};
  for (const auto& [key, files] : lists)
    for (const std::string& file : files)
      if (is_fairseq_data(file))
        return {key, file};
  return {};
}

/// What would be learned from text, as the keys that would name it instead;
/// empty when nothing would.
std::string missing_keys(const TrainConfig& config) {
  const TextOptions& text = config.text;
  if (text.subword == Subword::kBpe && text.bpe_codes.empty())
    return "text.bpe_codes";
  if (text.subword == Subword::kSentencePiece && text.sentencepiece_model.empty())
    return "text.sentencepiece_model";
  if (config.task == Task::kLanguageModel)
    return text.dictionary.empty() ? "text.dictionary" : "";
  const bool source = !text.source_dictionary.empty();
  const bool target = !text.target_dictionary.empty();
  if (text.joined)
    return source || target ? "" : "text.source_dictionary";
  if (source && target)
    return "";
  return source ? "text.target_dictionary" : "text.source_dictionary";
}

}  // namespace

void check_named_text(const TrainConfig& config) {
  const auto [key, file] = first_binarised(config.data);
  const std::string missing = missing_keys(config);
  if (!file.empty() && !missing.empty())
    fail_usage(
        key,
        " names binarised data ('",
        file,
        "'), from whose ids nothing can be learned: ",
        missing,
        " must name the file that they were made with, but got none");
}

std::vector<TextSource> text_files(const std::vector<TextSource>& files) {
  std::vector<TextSource> text;
  std::ranges::remove_copy_if(files, std::back_inserter(text), holds_ids);
  return text;
}

bool binarised_unknown(const std::vector<TextSource>& files, int64_t vocabulary) {
  for (const TextSource& file : files) {
    if (!holds_ids(file))
      continue;
    const auto sentences = open_fairseq_data(file.file, vocabulary);
    for (int64_t i = 0; i < sentences->size(); ++i) {
      const auto ids = sentences->tokens(i);
      if (std::find(ids.begin(), ids.end(), kUnknownId) != ids.end())
        return true;
    }
  }
  return false;
}

std::vector<std::string> binarised_samples(
    const std::vector<TextSource>& files, const TextPipeline& text) {
  std::vector<std::string> samples;
  for (const TextSource& file : files) {
    if (!holds_ids(file))
      continue;
    const auto sentences = open_fairseq_data(file.file, text.vocabulary().size());
    const int64_t most = std::min(sentences->size(), kTried);
    for (int64_t i = 0; i < most && samples.size() < kSamples; ++i) {
      const auto found = sentences->tokens(i);
      const std::vector<int32_t> ids(found.begin(), found.end());
      const std::string line = text.decode(ids);
      if (line.size() <= kLongestSample && !is_blank(line) &&
          find_invalid_utf8(line) == std::string::npos && text.encode(line) == ids)
        samples.push_back(line);
    }
  }
  return samples;
}

}  // namespace seqconv::internal
