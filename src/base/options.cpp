#include "seqconv/base/options.h"

#include <toml++/toml.h>

#include <cmath>
#include <filesystem>

#include "seqconv/base/files.h"

namespace seqconv {
namespace detail {
namespace {

[[noreturn]] void
wrong_type(const std::string& where, const char* wanted, const Json& j) {
  fail_usage(where, " must be ", wanted, ", but got ", j.dump());
}

}  // namespace

void read_value(const Json& j, const std::string& where, bool& out) {
  if (!j.is_boolean())
    wrong_type(where, "true or false", j);
  out = j.get<bool>();
}

void read_value(const Json& j, const std::string& where, int64_t& out) {
  if (!j.is_number_integer())
    wrong_type(where, "a whole number", j);
  out = j.get<int64_t>();
}

void read_value(const Json& j, const std::string& where, double& out) {
  if (!j.is_number())
    wrong_type(where, "a number", j);
  out = j.get<double>();
  if (!std::isfinite(out))
    wrong_type(where, "a finite number", j);
}

void read_value(const Json& j, const std::string& where, std::string& out) {
  if (!j.is_string())
    wrong_type(where, "a string", j);
  out = j.get<std::string>();
}

void reject_unknown_keys(
    const Json& table,
    const std::string& path,
    const std::vector<std::string>& known) {
  for (const auto& [key, value] : table.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end())
      continue;
    const std::string nearest = nearest_word(key, known);
    std::string advice;
    if (!nearest.empty()) {
      advice =
          concat("; did you mean '", join_key(path, nearest.c_str()), "'?");
    } else {
      advice = "; valid keys:";
      for (const std::string& k : known)
        advice += " " + k;
    }
    fail_usage("unknown key '", join_key(path, key.c_str()), "'", advice);
  }
}

std::string join_key(const std::string& path, const char* key) {
  return path.empty() ? std::string(key) : path + "." + key;
}

}  // namespace detail

namespace {

Json to_json(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table: {
      Json table = Json::object();
      for (const auto& [key, value] : *node.as_table())
        table[std::string(key.str())] = to_json(value);
      return table;
    }
    case toml::node_type::array: {
      Json list = Json::array();
      for (const toml::node& item : *node.as_array())
        list.push_back(to_json(item));
      return list;
    }
    case toml::node_type::string:
      return node.as_string()->get();
    case toml::node_type::integer:
      return node.as_integer()->get();
    case toml::node_type::floating_point:
      return node.as_floating_point()->get();
    case toml::node_type::boolean:
      return node.as_boolean()->get();
    default:
      fail_usage(
          "line ",
          node.source().begin.line,
          ": dates and times are not configuration values");
  }
}

void merge(Json& into, const Json& from) {
  for (const auto& [key, value] : from.items()) {
    if (value.is_object() && into.contains(key) && into[key].is_object())
      merge(into[key], value);
    else
      into[key] = value;
  }
}

Json load_toml(const std::filesystem::path& path, int depth) {
  if (depth > 8)
    fail_usage(path.string(), ": includes are nested deeper than 8 files");
  Json own;
  try {
    own = to_json(toml::parse(read_file(path), path.string()));
  } catch (const toml::parse_error& error) {
    fail_usage(
        path.string(),
        ":",
        error.source().begin.line,
        ":",
        error.source().begin.column,
        ": ",
        error.description());
  } catch (const UsageError& error) {
    fail_usage(path.string(), ": ", error.what());
  }
  const auto include = own.find("include");
  if (include == own.end())
    return own;
  Json files = include->is_array() ? *include : Json::array({*include});
  Json merged = Json::object();
  for (const Json& file : files) {
    if (!file.is_string())
      fail_usage(
          path.string(),
          ": include must be a file name, but got ",
          file);
    merge(
        merged,
        load_toml(path.parent_path() / file.get<std::string>(), depth + 1));
  }
  own.erase("include");
  merge(merged, own);
  return merged;
}

Json parse_toml_value(const std::string& text) {
  try {
    return to_json(*toml::parse("value = " + text).get("value"));
  } catch (const toml::parse_error&) {
    return text;  // a bare word is a string
  }
}

void write_table(const Json& table, const std::string& path, std::string& out) {
  for (const auto& [key, value] : table.items())
    if (!value.is_object())
      out += concat(key, " = ", value.dump(), "\n");
  for (const auto& [key, value] : table.items()) {
    if (!value.is_object())
      continue;
    const std::string section = detail::join_key(path, key.c_str());
    out += concat("\n[", section, "]\n");
    write_table(value, section, out);
  }
}

}  // namespace

Json load_toml(const std::string& path) {
  return load_toml(path, 0);
}

void apply_override(Json& table, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    fail_usage("an override must be key=value, but got '", assignment, "'");
  const std::string key = assignment.substr(0, equals);
  Json* node = &table;
  size_t start = 0;
  for (;;) {
    const size_t dot = key.find('.', start);
    const std::string part = key.substr(start, dot - start);
    if (part.empty())
      fail_usage("an override must be key=value, but got '", assignment, "'");
    if (!node->is_object())
      fail_usage(
          "override '",
          assignment,
          "': '",
          key.substr(0, start - 1),
          "' is a value, not a table");
    if (dot == std::string::npos) {
      (*node)[part] = parse_toml_value(assignment.substr(equals + 1));
      return;
    }
    if (!node->contains(part))
      (*node)[part] = Json::object();
    node = &(*node)[part];
    start = dot + 1;
  }
}

std::string to_toml(const Json& table) {
  std::string out;
  write_table(table, "", out);
  return out;
}

}  // namespace seqconv
