#include "seqconv/pipeline/translator.h"
#include "token_batches.h"
#include "workers.h"

namespace seqconv {

std::vector<double> score_pairs(
    const TranslationBackend& model,
    const std::vector<std::vector<int32_t>>& sources,
    const std::vector<std::vector<int32_t>>& targets,
    int64_t batch_tokens,
    int64_t workers) {
  SEQCONV_CHECK(
      sources.size() == targets.size(),
      "source and target must have the same number of lines, but got ",
      sources.size(),
      " and ",
      targets.size());
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < sources.size(); ++i)
    lengths.push_back(
        std::max(std::ssize(sources[i]), std::ssize(targets[i])) + 1);
  std::vector<double> scores(sources.size());
  const auto groups = group_by_tokens(lengths, batch_tokens, workers);
  share_work(groups.size(), workers, [&](size_t number) {
    const std::vector<size_t>& group = groups[number];
    std::vector<std::vector<int32_t>> source_rows, target_rows;
    for (const size_t item : group) {
      source_rows.push_back(sources[item]);
      target_rows.push_back(targets[item]);
    }
    const std::vector<double> found = model.score(source_rows, target_rows);
    for (size_t row = 0; row < group.size(); ++row)
      scores[group[row]] = found[row];
  });
  return scores;
}

}  // namespace seqconv
