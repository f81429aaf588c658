#include <cstdio>
#include <ostream>

#include "engine/verbs.h"
#include "seqconv/pipeline/model_folder.h"
#include "seqconv/pipeline/translator.h"
#include "seqconv/text/unicode.h"

namespace seqconv::engine {
namespace {

std::vector<std::string> read_lines(const std::string& path) {
  LineReader reader(path, BadBytes::kReject);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);)
    lines.push_back(line);
  return lines;
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
  const std::vector<std::string> sources = read_lines(arguments.source);
  const std::vector<std::string> targets = read_lines(arguments.target);
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
  const LoadedModel model = load_model(arguments.model);
  double total = 0;
  for (const double log_probability :
       score_pairs(model, sources, targets, arguments.batch_tokens)) {
    out << fixed(log_probability) << '\n';
    total += log_probability;
  }
  out << "total\t" << fixed(total) << '\n';
}

}  // namespace seqconv::engine
