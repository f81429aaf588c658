#include "train/settings.h"

#include <map>
#include <set>
#include <string>

#include "base/options.h"
#include "model/mixer_rules.h"

namespace seqconv::internal {
namespace {

/// The full keys of a use.
template <class Options>
std::set<std::string> keys_of(KeyUse use, const std::string& path) {
  std::set<std::string> keys;
  for (const OptionRow& row : describe_options<Options>(path))
    if (row.use == use)
      keys.insert(row.key);
  return keys;
}

/// Whether a key says how that metric is computed which training.best_by names:
/// scores before and after a change could not be compared.
bool is_of_metric(const std::string& key, const std::string& best_by) {
  const std::string table = best_by.starts_with("rouge") ? "rouge" : best_by;
  return key.starts_with(concat("metrics.", table, "."));
}

bool is_free(
    const std::set<std::string>& free, const std::string& key, const std::string& best_by) {
  const bool other = key.starts_with("metrics.") && !is_of_metric(key, best_by);
  return other || key.starts_with("decoding.") || free.contains(key);
}

/// Leaves of a table by their full keys.
void flatten(const Json& table, const std::string& path, std::map<std::string, Json>& leaves) {
  for (const auto& [key, value] : table.items()) {
    const std::string where = detail::join_key(path, key.c_str());
    if (value.is_object())
      flatten(value, where, leaves);
    else
      leaves[where] = value;
  }
}

std::map<std::string, Json> flatten(const Json& table) {
  std::map<std::string, Json> leaves;
  flatten(table, "", leaves);
  return leaves;
}

/// A value and a list of it alone mean the same, and some keys were once one
/// value.
Json as_list(const Json& value) {
  return value.is_array() ? value : Json::array({value});
}

/// Writes every list of a side with one entry a layer.
struct EntryALayer {
  int64_t layers;

  template <class T>
  void operator()(const char*, T& value, const char*, KeyUse = {}) {
    if constexpr (requires { value.front(); }) {
      T full;
      for (int64_t layer = 0; layer < layers; ++layer)
        full.push_back(layer_entry(value, layer, typename T::value_type()));
      value = std::move(full);
    }
  }
};

/// One entry a layer, so that equal layers compare equal, and what the side has
/// of the model. A convolution as wide as the model is 0 wide; positions that
/// are not learned have no limit, and so no parameter.
StackOptions expanded(const StackOptions& options, const ModelOptions& model) {
  StackOptions full = options;
  full.norm = as_side_norm(model.norm_of(options));
  full.ffn_dim = model.ffn_dim_of(options);
  full.positions = as_side_positions(model.positions_of(options));
  full.max_positions = model.learned_positions(options);
  EntryALayer expand{options.layers};
  full.visit(expand);
  full.short_conv = expanded_short_convs(options);
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const auto at = static_cast<size_t>(layer);
    const int64_t width = options.conv_dim_at(layer, model.dim);
    full.conv_dim[at] = width == model.dim ? 0 : width;
    full.conv_heads[at] = options.conv_heads_at(layer);
  }
  return full;
}

std::map<std::string, Json> architecture(const ModelOptions& options) {
  ModelOptions full = options;
  full.encoder = expanded(options.encoder, options);
  full.decoder = expanded(options.decoder, options);
  for (int64_t* width : {&full.input_dim, &full.output_dim})
    *width = *width == options.dim ? 0 : *width;
  std::map<std::string, Json> leaves;
  flatten(write_options(full), "model", leaves);
  for (const char* key : {"norm", "ffn_dim", "positions", "max_positions"})
    leaves.erase(concat("model.", key));  // the sides' own say it
  return leaves;
}

}  // namespace

void check_same_settings(const Json& stored, const Json& present) {
  // A key that an older program did not know had its default.
  const Task task =
      parse_enum<Task>(stored.value("task", std::string(enum_name(Task::kTranslation))), "task");
  auto before = flatten(write_options(TrainConfig::defaults(task)));
  for (const auto& [key, value] : flatten(stored))
    before[key] = value;
  const auto now = flatten(present);
  const auto best = now.find("training.best_by");
  const std::string best_by = best == now.end() ? "" : best->second.get<std::string>();
  const auto free = keys_of<TrainConfig>(KeyUse::kMayChange, "");
  for (const auto& [key, value] : now) {
    if (!is_free(free, key, best_by) && as_list(before[key]) != as_list(value))
      fail_usage(
          "cannot resume: ",
          key,
          " was ",
          before[key].dump(),
          " when the run began and is now ",
          value.dump(),
          ", which changes the numbers; set it back, or start another run with --init-from");
  }
}

Json resumed_settings(const Json& settings, Json present) {
  const Json config = settings.value("config", Json::object());
  const Json began = config.value("text", Json::object());
  const Json has = settings.value("text", Json::object());
  Json& text = present["text"];
  for (auto option = text.begin(); option != text.end(); ++option)
    if (began.contains(option.key()) && has.contains(option.key()) &&
        has[option.key()] == option.value())
      option.value() = began[option.key()];
  check_same_settings(config, present);
  return present;
}

void check_same_architecture(
    const ModelOptions& wanted, const ModelOptions& given, const std::string& where) {
  const auto given_leaves = architecture(given);
  const auto dropouts = keys_of<ModelOptions>(KeyUse::kNoParameter, "model");
  for (const auto& [key, value] : architecture(wanted)) {
    if (dropouts.contains(key))
      continue;
    const auto found = given_leaves.find(key);
    const Json other = found == given_leaves.end() ? Json() : found->second;
    if (other != value)
      fail_usage(
          "cannot start from '",
          where,
          "': ",
          key,
          " is ",
          value.dump(),
          " in the configuration and ",
          other.dump(),
          " in that model");
  }
}

}  // namespace seqconv::internal
