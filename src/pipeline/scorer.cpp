#include <ATen/ops/sum.h>

#include "seqconv/pipeline/translator.h"
#include "token_batches.h"

namespace seqconv {

std::vector<double> score_pairs(
    const LoadedModel& model,
    const std::vector<std::string>& sources,
    const std::vector<std::string>& targets,
    int64_t batch_tokens) {
  SEQCONV_CHECK(
      sources.size() == targets.size(),
      "source and target must have the same number of lines, but got ",
      sources.size(),
      " and ",
      targets.size());
  std::vector<std::vector<int32_t>> source_ids, target_ids;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < sources.size(); ++i) {
    source_ids.push_back(model.text.source->encode(sources[i]));
    target_ids.push_back(model.text.target->encode(targets[i]));
    lengths.push_back(
        static_cast<int64_t>(
            std::max(source_ids[i].size(), target_ids[i].size())) +
        1);
  }
  std::vector<double> scores(sources.size());
  for (const auto& group : group_by_tokens(lengths, batch_tokens)) {
    std::vector<std::vector<int32_t>> source_rows, target_rows;
    for (size_t item : group) {
      source_rows.push_back(source_ids[item]);
      target_rows.push_back(target_ids[item]);
    }
    const Batch batch = make_batch(source_rows, target_rows);
    const at::Tensor sums =  // [B]
        model.model->target_log_probabilities(batch).sum(1, false, at::kDouble);
    for (size_t row = 0; row < group.size(); ++row)
      scores[group[row]] = sums[static_cast<int64_t>(row)].item<double>();
  }
  return scores;
}

}  // namespace seqconv
