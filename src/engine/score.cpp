#include <cmath>
#include <cstdio>
#include <ostream>

#include "engine/verbs.h"
#include "seqconv/base/log.h"
#include "seqconv/data/fairseq_data.h"
#include "seqconv/pipeline/model_folder.h"
#include "seqconv/pipeline/translator.h"
#include "seqconv/text/unicode.h"

namespace seqconv::engine {
namespace {

using Sentences = std::vector<std::vector<int32_t>>;

/// The ids of binarised data, or those of a text's lines.
Sentences read_ids(const std::string& path, const TextPipeline& text) {
  Sentences sentences;
  if (is_fairseq_data(path)) {
    const auto data = open_fairseq_data(path, text.vocabulary().size());
    for (int64_t i = 0; i < data->size(); ++i) {
      const auto ids = data->tokens(i);
      sentences.emplace_back(ids.begin(), ids.end());
    }
    return sentences;
  }
  LineReader reader(path, BadBytes::kReject);
  for (std::string line; reader.next(line);)
    sentences.push_back(text.encode(line));
  return sentences;
}

/// Sentence `index` as messages call it.
std::string place_of(const std::string& path, size_t index) {
  return concat(path, is_fairseq_data(path) ? ": sentence " : ":", index + 1);
}

/// Error for a sentence that learned positions do not reach.
void check_lengths(
    const std::string& path,
    const Sentences& sentences,
    const ModelOptions& model) {
  if (model.positions != PositionKind::kLearned)
    return;
  for (size_t i = 0; i < sentences.size(); ++i)
    if (std::ssize(sentences[i]) >= model.max_positions)
      fail(
          place_of(path, i),
          ": a line of ",
          sentences[i].size() + 1,
          " tokens is longer than the model's ",
          model.max_positions,
          " learned positions");
}

/// Warns of a text in another vocabulary.
void warn_of_unknown(const std::string& path, const Sentences& sentences) {
  SymbolCount count;
  for (const std::vector<int32_t>& ids : sentences)
    count += SymbolCount::of(ids);
  if (count.is_mostly_unknown())
    log_warning(path, ": ", count.warning());
}

// Six decimals whatever the size of the number.
std::string fixed(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", value);
  return text;
}

}  // namespace

void score(const ScoreArguments& arguments, std::ostream& out) {
  set_threads(arguments.threads);
  const LoadedModel model = load_model(arguments.model);
  const Sentences sources = read_ids(arguments.source, *model.text.source);
  const Sentences targets = read_ids(arguments.target, *model.text.target);
  if (sources.size() != targets.size())
    fail(
        "source and target must have as many lines, but ",
        arguments.source,
        " has ",
        sources.size(),
        " and ",
        arguments.target,
        " has ",
        targets.size());
  check_lengths(arguments.source, sources, model.options);
  check_lengths(arguments.target, targets, model.options);
  warn_of_unknown(arguments.source, sources);
  warn_of_unknown(arguments.target, targets);
  const std::vector<double> scores =
      score_pairs(model, sources, targets, arguments.batch_tokens);
  double total = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i]))
      fail(
          place_of(arguments.target, i),
          ": the model gives the pair no finite probability: its weights are "
          "too large, or damaged");
    out << fixed(scores[i]) << '\n';
    total += scores[i];
  }
  out << "total\t" << fixed(total) << '\n';
}

}  // namespace seqconv::engine
