#include "cli/verbs/request_options.h"

#include <algorithm>

#include "base/options.h"
#include "search/sampled_search.h"

namespace seqconv::internal::verbs {
namespace {

/// The options of draws beside those of sampling.
struct DrawOptions {
  bool sample = false;
  int64_t seed = 1;

  template <class Visitor>
  void visit(Visitor& v) {
    v("sample", sample, "Draw the translations");
    v("seed", seed, "Seed of the draws, at least 0");
  }
};

template <class Options>
std::vector<std::string> keys_of() {
  std::vector<std::string> keys;
  for (const OptionRow& row : describe_options<Options>(""))
    keys.push_back(row.key);
  return keys;
}

bool contains(const std::vector<std::string>& keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

/// UsageError for "n-best", which would else be left out in silence.
void refuse_spelling_of_flag(const std::string& field, const std::vector<std::string>& keys) {
  std::string key = field;
  std::ranges::replace(key, '-', '_');
  if (key != field && contains(keys, key))
    fail_usage("\"", field, "\" is no option of a request; \"", key, "\" is");
}

/// The fields that are keys of `Options`, with their values.
template <class Options>
Json table_of(
    const std::vector<JsonMember>& members,
    const std::function<bool(const std::string&)>& is_other) {
  static const std::vector<std::string> keys = keys_of<Options>();
  Json table = Json::object();
  for (const JsonMember& member : members) {
    if (is_other(member.name))
      continue;
    refuse_spelling_of_flag(member.name, keys);
    if (!contains(keys, member.name))
      continue;
    SEQCONV_CHECK(!table.contains(member.name), "\"", member.name, "\" comes twice");
    table[member.name] = parse_json(member.value, member.name);
  }
  return table;
}

std::vector<std::string> keys_in(const Json& table) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : table.items())
    keys.push_back(key);
  return keys;
}

}  // namespace

void read_request_options(
    const std::vector<JsonMember>& members,
    const std::function<bool(const std::string&)>& is_other,
    const DecodingOptions& all,
    TranslationRequest& request) {
  const Json search = table_of<SearchOptions>(members, is_other);
  const Json sampling = table_of<SamplingOptions>(members, is_other);
  const Json draws = table_of<DrawOptions>(members, is_other);
  if (search.empty() && sampling.empty() && draws.empty())
    return;
  const OptionNames names("");
  DrawOptions draw{.sample = request.sampling.has_value()};
  read_options(draws, "", draw);
  if (draw.seed < 0)
    fail_usage(names("seed"), " must be at least 0, but got ", draw.seed);
  SamplingOptions how = request.sampling.value_or(SamplingOptions());
  read_options(sampling, "", how);
  validate(how, names);
  read_options(search, "", request.search);
  if (sampling.contains("ban_unknown"))
    request.search.ban_unknown = how.ban_unknown;
  if (draws.contains("seed"))
    how.seed = static_cast<uint64_t>(draw.seed);
  DecodingOptions resolved = resolve_search(request.search, all);
  request.sampling.reset();
  if (draw.sample) {
    refuse_beside_draws(request.search, names);
    resolved = without_beam(resolved);
    how.ban_unknown = false;  // the search's says it
    request.sampling = how;
  } else {
    std::vector<std::string> given = keys_in(sampling);
    if (how.seed)
      given.emplace_back("seed");
    refuse_without_draws(given, names, "\"sample\": true");
  }
  resolved.validate(names);
}

}  // namespace seqconv::internal::verbs
