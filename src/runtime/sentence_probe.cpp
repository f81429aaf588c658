#include "runtime/sentence_probe.h"

#include <span>
#include <utility>

#include "base/error.h"
#include "base/special_ids.h"

namespace seqconv::internal {
namespace {

void check_count(const SentenceToProbe& sentence, size_t symbols) {
  if (symbols == 0)
    fail_usage(sentence.name, " holds nothing that the model reads: no symbol is left of it");
  if (symbols > sentence.most_symbols)
    fail_usage(
        sentence.name,
        " has ",
        symbols,
        " symbols, but at most ",
        sentence.most_symbols,
        " can be shown");
}

/// Cuts a source behind the last symbol that can be shown, and notes it.
void cut_text(const TextPipeline& source, SentenceToProbe& sentence, SentenceProbe& found) {
  const std::vector<std::string> symbols = source.segment(sentence.text);
  if (symbols.size() <= sentence.most_symbols)
    return;
  found.notes.push_back(concat(
      "The text has ",
      symbols.size(),
      " symbols, of which the first ",
      sentence.most_symbols,
      " are read."));
  const auto ranges = source.find_ranges(sentence.text, symbols);
  sentence.text.resize(static_cast<size_t>(ranges[sentence.most_symbols - 1].end));
}

std::vector<std::string> symbols_of(const TextPipeline& text, std::span<const int32_t> ids) {
  std::vector<std::string> symbols;
  for (const int32_t id : ids)
    symbols.push_back(text.vocabulary().symbol(id));
  return symbols;
}

const std::string kEnd(kSpecialSymbols[kEndId]);

void add_ends(ProbedSymbols& symbols) {
  symbols.read = symbols.written;
  symbols.read.insert(symbols.read.begin(), kEnd);
  symbols.written.push_back(kEnd);
  symbols.given = true;
}

/// The ids of a translation by the model's own search.
std::vector<int32_t> translation_ids(
    const TextPipeline& text,
    const SentenceToProbe& sentence,
    const TranslateSentence& translate,
    SentenceProbe& found) {
  TranslationRequest request{.text = sentence.text};
  request.search.n_best = 1;
  const TranslationResult result = translate(request);
  SEQCONV_CHECK(result.ok(), sentence.name, " cannot be translated: ", result.error);
  found.notes.insert(found.notes.end(), result.notes.begin(), result.notes.end());
  found.translation = result.translations.at(0).text;
  std::vector<int32_t> ids;
  for (const std::string& symbol : result.translations[0].tokens)
    ids.push_back(text.vocabulary().id(symbol));
  if (!ids.empty() && ids.back() == kEndId)
    ids.pop_back();
  if (ids.size() > sentence.most_symbols) {
    found.notes.push_back(concat(
        "The translation has ",
        ids.size(),
        " symbols, of which the first ",
        sentence.most_symbols,
        " are shown."));
    ids.resize(sentence.most_symbols);
  }
  return ids;
}

ModelToRun to_run(const TranslationDescription& described, const ModelFiles& files) {
  return {described.options, described.vocabulary(), files.parameters};
}

ModelToRun to_run(const LanguageDescription& described, const ModelFiles& files) {
  return {described.options, described.vocabulary(), files.parameters};
}

}  // namespace

SentenceProber::SentenceProber(const ModelFiles& files)
    : described_(std::make_shared<const TranslationDescription>(
          read_translation_description(files.folder))),
      prober_(to_run(*described_, files)) {}

TranslatedSentence SentenceProber::translated(
    const TranslationText& text, SentenceToProbe sentence, const TranslateSentence& translate) {
  TranslatedSentence own;
  if (sentence.is_cut)
    cut_text(*text.source, sentence, own.found);
  own.source = text.source->encode(sentence.text);
  if (!sentence.is_cut)
    check_count(sentence, own.source.size());
  own.target = translation_ids(*text.target, sentence, translate, own.found);
  return own;
}

SentenceProbe SentenceProber::probe(TranslatedSentence sentence) const {
  const TranslationText& text = described_->text;
  SentenceProbe found = std::move(sentence.found);
  found.probe = prober_.probe(sentence.source, sentence.target);
  found.symbols.source =
      symbols_of(*text.source, std::span(sentence.source).first(found.probe.source_tokens));
  found.symbols.source.push_back(kEnd);
  found.symbols.written = symbols_of(*text.target, sentence.target);
  add_ends(found.symbols);
  return found;
}

SentenceProbe probe_translated(
    const ModelFiles& files, SentenceToProbe sentence, const TranslateSentence& translate) {
  TranslatedSentence own = SentenceProber::translated(
      read_translation_description(files.folder).text, std::move(sentence), translate);
  return SentenceProber(files).probe(std::move(own));
}

SentenceProbe probe_read(const ModelFiles& files, const SentenceToProbe& text) {
  const LanguageDescription described = read_language_description(files.folder);
  const std::vector<int32_t> symbols = described.text.text->encode(text.text);
  check_count(text, symbols.size());
  check_known(described.text, text.text, symbols, text.name);
  std::vector<int32_t> ids = {kEndId};
  ids.insert(ids.end(), symbols.begin(), symbols.end());
  SentenceProbe found;
  found.symbols.written = symbols_of(*described.text.text, symbols);
  add_ends(found.symbols);
  found.probe = probe_language(to_run(described, files), ids);
  return found;
}

SentenceProbe probe_alone(const ModelFiles& files) {
  SentenceProbe found;
  if (task_of_model(files.folder) == Task::kTranslation)
    found.probe =
        probe_translation(to_run(read_translation_description(files.folder), files), {}, {});
  else
    found.probe = probe_language(
        to_run(read_language_description(files.folder), files), std::vector<int32_t>{kEndId});
  return found;
}

std::string layer_title(const LayerProbe& layer) {
  const MixerOptions& mixer = layer.options.mixer;
  std::string title(enum_name(mixer.kind));
  if (const int64_t heads = layer.mixer.heads; heads > 0)
    title += concat(", ", heads, heads == 1 ? " head" : " heads");
  if (mixer.kernel_size > 0)
    title += concat(", ", mixer.kernel_size, " positions wide");
  if (mixer.max_offset > 0)
    title += concat(", reach of at most ", mixer.max_offset);
  return title;
}

const char* explanation_of(WeightForm form) {
  switch (form) {
    case WeightForm::kNone:
      return "Its positions have no weights of their own to show.";
    case WeightForm::kFixedTaps:
      return "Learned kernels, normalised as the model uses them: how much of the position at each "
             "offset a head takes.";
    case WeightForm::kTaps:
      return "The kernel that each position (row) predicts: how much of the position at each "
             "offset a head takes.";
    case WeightForm::kReach:
      return "The window of each position (row): all that it holds counts the same.";
    case WeightForm::kPositions:
      return "How much of each position (column) a position (row) takes.";
  }
  return "";
}

}  // namespace seqconv::internal
