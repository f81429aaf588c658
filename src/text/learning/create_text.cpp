#include <algorithm>

#include "base/error.h"
#include "text/language_text.h"
#include "text/learning/learn_side.h"
#include "text/symbol_count.h"

/// Texts of models, learned from training files.
namespace seqconv::internal {
namespace {

using Files = std::vector<TextSource>;

bool names_dictionaries(const TextOptions& options) {
  const bool source = !options.source_dictionary.empty();
  const bool target = !options.target_dictionary.empty();
  return options.joined ? source || target : source && target;
}

/// Symbols of the training text, those that the vocabulary lacks as unknown.
SymbolCount count_missing(const WordCounts& counts, const Vocabulary& vocabulary) {
  SymbolCount sum;
  for (const auto& [symbol, count] : counts)
    sum += {count, vocabulary.has(symbol) ? 0 : count};
  return sum;
}

/// The first symbol of the files that the vocabulary lacks.
std::string first_missing(const TextPipeline& pipeline, const Files& files) {
  std::string line, first;
  for (const TextSource& file : files)
    for (TextSourceReader reader(file); first.empty() && reader.next(line);)
      pipeline.visit_symbols(line, [&](std::string_view symbol) {
        if (first.empty() && !pipeline.vocabulary().has(symbol))
          first = symbol;
      });
  return first;
}

/// Error when the dictionary lacks half of the text's symbols or more. They are
/// those of a segmenter that does not fall back, as any dictionary of the same
/// script would do for characters.
void check_dictionary(
    const TextOptions& options,
    const TextPipeline& pipeline,
    const WordCounts& counts,
    const Files& files) {
  const SymbolCount sum = count_missing(counts, pipeline.vocabulary());
  if (sum.is_mostly_unknown())
    fail(
        options.dictionary,
        ": wrong dictionary for this text: ",
        sum.unknown,
        " of ",
        sum.symbols,
        " symbols are unknown (the first: '",
        first_missing(pipeline, files),
        "')");
}

/// Learns what a given dictionary and a segmenter make of the files.
LearnedSide take_dictionary(
    const TextOptions& options,
    const SegmenterPointer& segmenter,
    const VocabularyPointer& vocabulary,
    const std::vector<TextFile>& prepared,
    const Files& files) {
  LearnedSide side{fit(options, segmenter, vocabulary), vocabulary, {}};
  if (files.empty())
    return side;
  side.counts = count_symbols(segmenter, prepared);
  const TextPipeline pipeline(segmenter, vocabulary, prepared.front().preparation);
  check_dictionary(options, pipeline, side.counts, files);
  if (options.falls_back() && lacks_symbols(*vocabulary, side.counts))
    side.counts = count_symbols(side.segmenter, prepared);
  return side;
}

}  // namespace

TranslationText TranslationText::create(
    const TextOptions& options,
    const std::vector<TextSource>& source_files,
    const std::vector<TextSource>& target_files) {
  check_translation_options(options);
  const SegmenterPointer given = given_segmenter(options);
  SEQCONV_CHECK(
      (!source_files.empty() && !target_files.empty()) || (given && names_dictionaries(options)),
      "text needs training files for both sides, but got ",
      source_files.size(),
      " source and ",
      target_files.size(),
      " target files");
  const Preparation source_lines(options, options.source_language);
  const Preparation target_lines(options, options.target_language);
  // Protected pieces that one side alone has are text in training.
  const auto sources = prepared_files(source_files, source_lines.unprotected());
  const auto targets = prepared_files(target_files, target_lines.unprotected());
  const auto make_side = [&](const std::vector<TextFile>& files,
                             const Preparation& preparation,
                             VocabularyPointer vocabulary) {
    auto segmenter = given ? given : learn_segmenter(options, files);
    if (vocabulary) {
      segmenter = fit(options, segmenter, vocabulary);
    } else {
      const LearnedSide side = learn_side(options, segmenter, files);
      segmenter = side.segmenter;
      vocabulary = side.vocabulary;
    }
    return std::make_shared<const TextPipeline>(segmenter, vocabulary, preparation);
  };
  TranslationText text;
  text.options = options;
  if (options.joined) {
    auto files = sources;
    files.insert(files.end(), targets.begin(), targets.end());
    text.source = make_side(files, source_lines, given_joined_vocabulary(options));
    text.target = other_side(text.source, target_lines);
  } else {
    text.source =
        make_side(sources, source_lines, given_vocabulary(options, options.source_dictionary));
    text.target =
        make_side(targets, target_lines, given_vocabulary(options, options.target_dictionary));
  }
  text.source_samples = pick_samples(source_files);
  text.target_samples = pick_samples(target_files);
  return text;
}

LanguageText LanguageText::create(
    const TextOptions& options, const std::vector<TextSource>& files) {
  check_language_options(options);
  const Preparation preparation(options, options.language);
  const std::vector<TextFile> prepared = prepared_files(files, preparation);
  const VocabularyPointer vocabulary = given_vocabulary(options, options.dictionary);
  SegmenterPointer segmenter = given_segmenter(options);
  SEQCONV_CHECK(
      !files.empty() || (vocabulary && segmenter),
      "the text of a language model needs training files, but got none");
  if (!segmenter)
    segmenter = learn_segmenter(options, prepared);
  const LearnedSide side = vocabulary
      ? take_dictionary(options, segmenter, vocabulary, prepared, files)
      : learn_side(options, segmenter, prepared);
  LanguageText text;
  text.options = options;
  text.text = std::make_shared<const TextPipeline>(side.segmenter, side.vocabulary, preparation);
  text.knows_unknown = side.counts.contains(std::string(kUnknownSymbol)) ||
      lacks_symbols(*side.vocabulary, side.counts);
  text.samples = pick_samples(files);
  return text;
}

}  // namespace seqconv::internal
