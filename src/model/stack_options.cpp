#include "model/mixer_rules.h"

namespace seqconv::internal {

void check_stack(
    const CheckedSide& side, const ModelOptions& model, const std::string& model_path) {
  const StackOptions& stack = side.stack;
  const std::string path = concat(model_path, ".", side.key);
  check_at_least(stack.layers, 1, path + ".layers");
  check_at_least(stack.ffn_dim, 0, path + ".ffn_dim");
  if (stack.max_positions == 1)
    fail_usage(
        path,
        ".max_positions must be at least 2 (a symbol and </s>), or 0 for that of the model, but "
        "got 1");
  check_at_least(stack.max_positions, 0, path + ".max_positions");
  check_mixer_lists(stack, path);
  const Keyed width{model.dim, model_path, "dim"};
  const Keyed heads{stack.heads, path, "heads"};
  check_at_least(heads.value, 1, heads.name());
  bool splits_model = side.attends;
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    check_mixer(stack, layer, width, path);
    if (is_as_wide_as_model(stack.block_at(layer)))
      splits_model = true;
  }
  if (splits_model)
    check_heads(heads, width);
  const bool own = stack.ffn_dim > 0;
  check_short_convs(
      stack, path, width, {model.ffn_dim_of(stack), own ? path : model_path, "ffn_dim"});
}

}  // namespace seqconv::internal
