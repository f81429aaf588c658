#include "text/learning/learn_side.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "text/learning/sentencepiece_trainer.h"

namespace seqconv::internal {
namespace {

/// Counts how often each character comes in the symbols, as symbols of its own.
std::map<std::string, int64_t> count_characters(
    const Segmenter& segmenter, const WordCounts& counts) {
  std::map<std::string, int64_t> characters;
  for (const auto& [symbol, count] : counts)
    for (const std::string& character : segmenter.characters(symbol))
      characters[character] += count;
  return characters;
}

/// The vocabulary of counted symbols, within the options' limits. Where pieces
/// are split again it has the characters as well, so that no word of known
/// characters is unknown; the segmenter's required symbols it always has.
VocabularyPointer build_vocabulary(
    const TextOptions& options, const WordCounts& counts, const Segmenter& segmenter) {
  std::map<std::string, int64_t> kept;
  for (const auto& [symbol, count] : counts)
    if (count >= options.min_count)
      kept.emplace(symbol, count);
  if (options.falls_back())
    for (const auto& [symbol, count] : count_characters(segmenter, counts))
      if (count >= options.min_count)
        kept.emplace(symbol, 0);
  std::set<std::string> required;
  for (const std::string& symbol : segmenter.required()) {
    const auto found = counts.find(symbol);
    kept.emplace(symbol, found == counts.end() ? 0 : found->second);
    required.insert(symbol);
  }
  if (!options.protect.empty())
    for (const std::string& symbol : slot_symbols()) {
      kept.emplace(symbol, 0);
      required.insert(symbol);
    }
  const auto least = std::ssize(required) + kSpecialIds;
  if (options.max_vocabulary > 0 && options.max_vocabulary < least)
    fail_usage(
        "text.max_vocabulary must be >= ",
        least,
        " for the bytes and user-defined symbols of the SentencePiece model",
        options.protect.empty() ? "" : " and the slots of protected pieces",
        ", but got ",
        options.max_vocabulary);
  constexpr int64_t kMultiple = 8;
  auto vocabulary = std::make_shared<Vocabulary>(Vocabulary::build(
      kept,
      /*min_count=*/0,
      options.max_vocabulary,
      kMultiple,
      required));
  if (!options.protect.empty())
    vocabulary->add_slots();
  return vocabulary;
}

/// UsageError when a symbol does not reach SentencePiece as it is.
void check_user_symbols(
    const std::vector<std::string>& symbols, const std::vector<TextFile>& files) {
  for (const std::string& symbol : symbols)
    for (const TextFile& file : files)
      if (const std::string text = file.preparation.apply(symbol); text != symbol)
        fail_usage(
            "text.sentencepiece_user_symbols has '",
            symbol,
            "', which text.lowercase or text.tokenizer makes '",
            text,
            "' of before SentencePiece sees it");
}

}  // namespace

WordCounts count_symbols(const SegmenterPointer& segmenter, const std::vector<TextFile>& files) {
  WordCounts counts;
  std::string line;
  for (const TextFile& file : files) {
    const TextPipeline pipeline(segmenter, nullptr, file.preparation);
    TextSourceReader reader(file.source);
    while (reader.next(line))
      pipeline.visit_symbols(line, [&](std::string_view symbol) { ++counts[std::string(symbol)]; });
  }
  SEQCONV_CHECK(
      !counts.empty(),
      "a vocabulary needs text, but '",
      files.front().source.file,
      files.size() > 1 ? "' and the other files hold" : "' holds",
      " no line that is not blank");
  return counts;
}

SegmenterPointer learn_segmenter(const TextOptions& options, const std::vector<TextFile>& files) {
  if (options.subword == Subword::kBpe) {
    const WordCounts words = count_symbols(make_word_segmenter(), files);
    return make_bpe_segmenter(Bpe::parse(learn_bpe(words, options.subword_size), "learned codes"));
  }
  check_user_symbols(options.sentencepiece_user_symbols, files);
  const SentencePieceTraining training{
      .size = options.subword_size,
      .kind = options.sentencepiece_kind,
      .character_coverage = options.character_coverage,
      .byte_fallback = options.sentencepiece_byte_fallback,
      .user_symbols = options.sentencepiece_user_symbols};
  return make_sentencepiece_segmenter(train_sentencepiece(files, training), "trained model");
}

bool lacks_symbols(const Vocabulary& vocabulary, const WordCounts& counts) {
  return std::any_of(counts.begin(), counts.end(), [&](const auto& entry) {
    return !vocabulary.has(entry.first);
  });
}

LearnedSide learn_side(
    const TextOptions& options,
    const SegmenterPointer& segmenter,
    const std::vector<TextFile>& files) {
  LearnedSide side;
  const auto build = [&] {
    side.vocabulary = build_vocabulary(options, side.counts, *segmenter);
    side.segmenter = fit(options, segmenter, side.vocabulary);
  };
  side.counts = count_symbols(segmenter, files);
  build();
  if (!options.falls_back() || !lacks_symbols(*side.vocabulary, side.counts))
    return side;
  // Pieces that were split again count, too.
  side.counts = count_symbols(side.segmenter, files);
  build();
  if (lacks_symbols(*side.vocabulary, side.counts))
    side.counts = count_symbols(side.segmenter, files);
  return side;
}

}  // namespace seqconv::internal
