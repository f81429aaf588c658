#include <cstdio>
#include <ostream>

#include "engine/verbs.h"
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
  double total = 0;
  for (const double log_probability :
       score_pairs(model, sources, targets, arguments.batch_tokens)) {
    out << fixed(log_probability) << '\n';
    total += log_probability;
  }
  out << "total\t" << fixed(total) << '\n';
}

}  // namespace seqconv::engine
