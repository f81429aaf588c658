#include "seqconv/base/options.h"

// Some of toml++'s assertions fail on malformed input that it goes on to refuse
// properly; a debug build must refuse it as well, not abort.
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>

#include <cctype>
#include <cmath>
#include <filesystem>
#include <limits>

#include "json_guard.h"
#include "seqconv/base/files.h"
#include "seqconv/base/json_texts.h"

namespace seqconv {
namespace detail {
namespace {

[[noreturn]] void
wrong_type(const std::string& where, const char* wanted, const Json& j) {
  fail_usage(where, " must be ", wanted, ", but got ", show_json(j));
}

/// dump() calls itself for every level, so deep values are only named.
bool deeper_than(const Json& j, int levels) {
  if (!j.is_structured())
    return false;
  if (levels == 0)
    return true;
  return std::any_of(j.begin(), j.end(), [levels](const Json& item) {
    return deeper_than(item, levels - 1);
  });
}

}  // namespace

std::string show_json(const Json& j) {
  if (j.is_number_float() && !std::isfinite(j.get<double>()))
    return std::isnan(j.get<double>()) ? "nan" : "inf";
  if (deeper_than(j, 8))
    return "a deeply nested value";
  return shorten(json_line(j));
}

void read_value(const Json& j, const std::string& where, bool& out) {
  if (!j.is_boolean())
    wrong_type(where, "true or false", j);
  out = j.get<bool>();
}

void read_value(const Json& j, const std::string& where, int64_t& out) {
  if (!j.is_number_integer())
    wrong_type(where, "a whole number", j);
  if (j.is_number_unsigned() &&
      j.get<uint64_t>() > std::numeric_limits<int64_t>::max())
    wrong_type(where, "a whole number below 2^63", j);
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

constexpr int kMaxKeyParts = 32;
constexpr int kMaxIncludes = 64;

/// toml++ builds and destroys one level for each part of a dotted key by
/// recursion; a key of a million parts would overflow the stack.
void reject_deep_keys(const std::string& text, const std::string& where) {
  int line = 1, dots = 0;
  bool comment = false;
  for (const char c : text) {
    const bool in_key = std::isalnum(static_cast<unsigned char>(c)) ||
        c == '_' || c == '-' || c == '"' || c == '\'' || c == ' ' ||
        c == '\t' || c == '.';
    comment = c != '\n' && (comment || c == '#');
    dots = in_key ? dots + (c == '.' && !comment) : 0;
    if (dots >= kMaxKeyParts)
      fail_usage(
          where,
          ":",
          line,
          ": a key may have at most ",
          kMaxKeyParts,
          " parts");
    line += c == '\n';
  }
}

Json to_json(const toml::node& node, const std::string& file) {
  switch (node.type()) {
    case toml::node_type::table: {
      Json table = Json::object();
      for (const auto& [key, value] : *node.as_table())
        table[std::string(key.str())] = to_json(value, file);
      return table;
    }
    case toml::node_type::array: {
      Json list = Json::array();
      for (const toml::node& item : *node.as_array())
        list.push_back(to_json(item, file));
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
          file,
          ":",
          node.source().begin.line,
          ":",
          node.source().begin.column,
          ": dates and times are not configuration values (quote them)");
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

/// Reads files and what they include; knows which are open, so that a circle
/// is an error and not a hang.
class TomlLoader {
 public:
  explicit TomlLoader(std::filesystem::path named) : named_(std::move(named)) {}

  Json load(const std::filesystem::path& path) {
    return load(path, read_file(path));
  }

 private:
  Json load(const std::filesystem::path& path, const std::string& text) {
    std::error_code ignored;  // reading it will say what is wrong with it
    const auto id = std::filesystem::weakly_canonical(path, ignored);
    const std::string file = path.string();
    if (std::find(open_.begin(), open_.end(), id) != open_.end())
      fail_usage(file, ": the file includes itself");
    if (++files_ > kMaxIncludes)
      fail_usage(file, ": more than ", kMaxIncludes, " files are included");
    Json own = parse_toml(text, file);
    const auto include = own.find("include");
    if (include == own.end())
      return own;
    const Json names = include->is_array() ? *include : Json::array({*include});
    Json merged = Json::object();
    open_.push_back(id);
    for (const Json& name : names) {
      if (!name.is_string())
        fail_usage(
            file,
            ": include must be a file name, but got ",
            detail::show_json(name));
      merge(merged, load_included(included(path, name.get<std::string>())));
    }
    open_.pop_back();
    own.erase("include");
    merge(merged, own);
    return merged;
  }

  /// Any ordinary file: a configuration names the data and the output too, so
  /// whoever runs it trusts it. A pipe is not waited for.
  Json load_included(const std::filesystem::path& path) {
    const MappedFile file{path};
    return load(
        path,
        {reinterpret_cast<const char*>(file.bytes().data()),
         file.bytes().size()});
  }

  std::filesystem::path included(
      const std::filesystem::path& from,
      const std::filesystem::path& name) const {
    const auto beside = from.parent_path() / name;
    std::error_code none;
    if (named_.empty() || name.has_parent_path() || name.has_extension() ||
        std::filesystem::exists(beside, none))
      return beside;
    return named_ / concat(name.string(), ".toml");
  }

  std::filesystem::path named_;
  std::vector<std::filesystem::path> open_;
  int files_ = 0;
};

/// The value of an override: TOML if it is exactly one TOML value, else the
/// text itself ("a = 1" must not smuggle in further keys).
Json parse_toml_value(const std::string& text) {
  try {
    reject_deep_keys(text, "override");
    const toml::table table = toml::parse("value = " + text);
    const toml::node* value = table.get("value");
    if (table.size() != 1 || value == nullptr || value->is_date() ||
        value->is_time() || value->is_date_time())
      return text;
    return to_json(*value, "override");
  } catch (const toml::parse_error&) {
    return text;  // a bare word is a string
  }
}

std::string toml_value(const Json& value);

std::string toml_key(const std::string& key) {
  const bool bare =
      !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
            c == '-';
      });
  return bare ? key : toml_value(key);
}

std::string toml_value(const Json& value) {
  if (value.is_object() || value.is_array()) {
    std::string out;
    for (const auto& [key, item] : value.items()) {
      out += out.empty() ? "" : ", ";
      out += value.is_object() ? toml_key(key) + " = " : "";
      out += toml_value(item);
    }
    return value.is_object() ? "{" + out + "}" : "[" + out + "]";
  }
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double number = value.get<double>();
    return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  }
  SEQCONV_CHECK(!value.is_null(), "a table with null cannot be TOML");
  // JSON's strings are TOML's, but TOML wants DEL escaped as well.
  std::string text = json_line(value);
  for (size_t at = 0; (at = text.find('\x7f', at)) != std::string::npos;)
    text.replace(at, 1, "\\u007f");
  return text;
}

void write_table(const Json& table, const std::string& path, std::string& out) {
  for (const auto& [key, value] : table.items())
    if (!value.is_object())
      out += concat(toml_key(key), " = ", toml_value(value), "\n");
  for (const auto& [key, value] : table.items()) {
    if (!value.is_object())
      continue;
    const std::string section = detail::join_key(path, toml_key(key).c_str());
    out += concat("\n[", section, "]\n");
    write_table(value, section, out);
  }
}

bool is_utf8(const std::string& text) {
  try {
    Json(text).dump();  // refuses anything else
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

/// The parts of "model.encoder.kernels"; none may be empty.
std::vector<std::string> split_key(
    const std::string& key,
    const std::string& assignment) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= key.size();) {
    const size_t dot = std::min(key.find('.', start), key.size());
    parts.push_back(key.substr(start, dot - start));
    const bool blank = std::any_of(
        parts.back().begin(),
        parts.back().end(),
        [](unsigned char c) { return c <= ' ' || c == '"'; });
    if (parts.back().empty() || blank || parts.size() > kMaxKeyParts)
      fail_usage(
          "an override must be key=value, but got ",
          detail::show_json(assignment));
    start = dot + 1;
  }
  return parts;
}

}  // namespace

Json parse_toml(const std::string& text, const std::string& file) {
  reject_deep_keys(text, file);
  try {
    return to_json(toml::parse(text, file), file);
  } catch (const toml::parse_error& error) {
    fail_usage(
        file,
        ":",
        error.source().begin.line,
        ":",
        error.source().begin.column,
        ": ",
        error.description());
  }
}

Json load_toml(const std::string& path, const std::string& named) {
  return TomlLoader(named).load(path);
}

void apply_override(Json& table, const std::string& assignment) {
  if (!is_utf8(assignment))
    fail_usage(
        "an override must be UTF-8, but got ",
        detail::show_json(assignment));
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    fail_usage(
        "an override must be key=value, but got ",
        detail::show_json(assignment));
  const auto parts = split_key(assignment.substr(0, equals), assignment);
  Json* node = &table;
  std::string path;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!node->is_object())
      fail_usage(
          "override ",
          detail::show_json(assignment),
          ": '",
          path,
          "' is a value, not a table");
    path = detail::join_key(path, parts[i].c_str());
    Json& child = (*node)[parts[i]];
    if (i + 1 == parts.size())
      child = parse_toml_value(assignment.substr(equals + 1));
    else if (child.is_null())
      child = Json::object();
    node = &child;
  }
}

Json parse_json(std::string_view text, const std::string& where) {
  JsonGuard::check(text, kMaxJsonDepth, where);
  return Json::parse(text);
}

std::string to_toml(const Json& table) {
  std::string out;
  write_table(table, "", out);
  return out;
}

}  // namespace seqconv
