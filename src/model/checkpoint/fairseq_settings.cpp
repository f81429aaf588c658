#include "model/checkpoint/fairseq_settings.h"

#include "base/error.h"
#include "model/checkpoint/fairseq_mixers.h"

namespace seqconv::internal {
namespace {

/// "[8,4]" for a list, "8" for a single entry.
std::string cutoff_text(const std::vector<int64_t>& cutoffs) {
  std::string text;
  for (const int64_t cutoff : cutoffs)
    text += concat(text.empty() ? "" : ",", cutoff);
  return text;
}

void check_uniform(const StackOptions& stack, const std::string& side, int64_t dim) {
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    if (stack.block_at(layer) != stack.block_at(0) ||
        stack.conv_dim_at(layer, dim) != stack.conv_dim_at(0, dim) ||
        stack.glu_at(layer) != stack.glu_at(0) ||
        stack.normalization_at(layer) != stack.normalization_at(0))
      fail_usage(
          "fairseq's layers of a side are of one kind, but layer ",
          layer,
          " of the ",
          side,
          " differs from layer 0 in block, conv_dim, glu or normalization");
    if (stack.conv_heads_at(layer) != stack.heads)
      fail_usage(
          "fairseq's convolutions have as many heads as attention, but layer ",
          layer,
          " of the ",
          side,
          " has ",
          stack.conv_heads_at(layer),
          " and ",
          stack.heads);
  }
}

void check_activation(const ModelOptions& options) {
  const bool talk = is_talk(options);
  if ((options.activation == FeedForwardActivation::kRelu && talk) ||
      (options.activation == FeedForwardActivation::kSwish && !talk))
    fail_usage(
        "the activation of ",
        talk ? "TaLK models is swish" : "fairseq's models is relu",
        ", but this model's is ",
        enum_name(options.activation));
}

void add_stack(
    Json& settings,
    const ModelOptions& options,
    const StackOptions& stack,
    const std::string& side) {
  const bool talk = is_talk(options);
  check_uniform(stack, side, options.dim);
  settings[side + "_embed_dim"] = options.dim;
  settings[side + "_conv_dim"] = stack.conv_dim_at(0, options.dim);
  settings[side + "_ffn_embed_dim"] = options.ffn_dim_of(stack);
  settings[side + "_layers"] = stack.layers;
  settings[side + "_attention_heads"] = stack.heads;
  Json widths = Json::array();
  for (int64_t layer = 0; layer < stack.layers; ++layer)
    widths.push_back(talk ? stack.max_offset_at(layer) : stack.kernel_size_at(layer));
  settings[side + "_kernel_size_list"] = widths;
  settings[side + "_glu"] = stack.glu_at(0);
  if (const char* type = fairseq_mixer(stack.block_at(0))->conv_type)
    settings[side + "_conv_type"] = type;
  settings[side + "_normalize_before"] = options.norm_of(stack) == NormPlacement::kPre;
  settings[side + "_learned_pos"] = options.positions_of(stack) == PositionKind::kLearned;
}

/// A language model has its decoder's length under both names.
void add_positions(Json& settings, const ModelOptions& options, Task task) {
  const StackOptions& source = task == Task::kTranslation ? options.encoder : options.decoder;
  const auto has_none = [&](const StackOptions& side) {
    return options.positions_of(side) == PositionKind::kNone;
  };
  const bool none = has_none(options.decoder);
  if (has_none(source) != none)
    fail_usage(
        "fairseq's models have positions on both sides or on neither, but this model's ",
        none ? "decoder" : "encoder",
        " alone has none");
  settings["no_token_positional_embeddings"] = none;
  settings["max_source_positions"] = options.max_positions_of(source);
  settings["max_target_positions"] = options.max_positions_of(options.decoder);
}

void add_adaptive(Json& settings, const ModelOptions& options) {
  const AdaptiveOptions& adaptive = options.adaptive;
  const auto cutoffs = [](const std::vector<int64_t>& list) {
    return list.empty() ? Json() : Json(cutoff_text(list));
  };
  const bool banded = !adaptive.input_cutoffs.empty();
  const bool softmax = !adaptive.softmax_cutoffs.empty();
  settings["adaptive_input"] = banded;
  settings["adaptive_input_cutoff"] = cutoffs(adaptive.input_cutoffs);
  settings["adaptive_input_factor"] = adaptive.input_factor;
  settings["adaptive_softmax_cutoff"] = cutoffs(adaptive.softmax_cutoffs);
  settings["adaptive_softmax_factor"] = adaptive.softmax_factor;
  settings["adaptive_softmax_dropout"] = adaptive.softmax_dropout;
  settings["tie_adaptive_weights"] = banded && softmax && options.tie != Tying::kNone;
  settings["tie_adaptive_proj"] = adaptive.tie_projections;
  settings["character_embeddings"] = false;
  if (adaptive.input_dim > 0)
    settings["decoder_input_dim"] = adaptive.input_dim;
}

Json task_part(Task task, const TaskSettings& settings) {
  if (task == Task::kLanguageModel)
    return {{"_name", "language_modeling"}};
  const auto known = [](const std::string& language) {
    return language.empty() ? Json() : Json(language);
  };
  Json part = {
      {"_name", "translation"},
      {"source_lang", known(settings.source_language)},
      {"target_lang", known(settings.target_language)},
      {"left_pad_source", true},
      {"left_pad_target", false}};
  if (settings.max_source_tokens > 0) {
    part["truncate_source"] = true;
    part["max_source_positions"] = settings.max_source_tokens;
  }
  return part;
}

}  // namespace

bool is_talk(const ModelOptions& options) {
  return is_talk(options.decoder.block_at(0));
}

Json fairseq_settings(const ModelOptions& options, Task task, const TaskSettings& settings) {
  check_activation(options);
  const bool translates = task == Task::kTranslation;
  if (translates && is_talk(options) != is_talk(options.encoder.block_at(0)))
    fail_usage("no other program has TaLK convolutions on one side only, but this model does");
  std::string name = is_talk(options) ? "talkconv" : "lightconv";
  if (!translates)
    name += "_lm";
  Json model = {{"_name", name}, {"arch", name}};
  if (translates)
    add_stack(model, options, options.encoder, "encoder");
  add_stack(model, options, options.decoder, "decoder");
  model["decoder_input_dim"] = options.input_width();
  model["decoder_output_dim"] = options.output_width();
  model["dropout"] = options.dropout;
  model["attention_dropout"] = options.attention_dropout;
  model["relu_dropout"] = options.activation_dropout;
  model["input_dropout"] = options.input_dropout;
  model["weight_dropout"] = options.weight_dropout;
  model["weight_softmax"] = options.decoder.normalization_at(0) == kernels::Normalization::kSoftmax;
  model["share_all_embeddings"] = translates && options.tie == Tying::kAll;
  model["share_decoder_input_output_embed"] =
      options.tie != Tying::kNone && options.adaptive.softmax_cutoffs.empty();
  add_positions(model, options, task);
  if (!translates || !options.adaptive.softmax_cutoffs.empty())
    add_adaptive(model, options);
  return {{"_name", nullptr}, {"model", model}, {"task", task_part(task, settings)}};
}

}  // namespace seqconv::internal
