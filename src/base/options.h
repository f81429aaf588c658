#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/json.h"
#include "base/option_names.h"

/// Options are plain structs that say everything once:
///
///   struct AdamOptions {
///     double beta1 = 0.9;
///     template <class Visitor>
///     void visit(Visitor& v) {
///       v("beta1", beta1, "Decay of the first moment");
///     }
///   };
///
/// Reading (from TOML or JSON), writing, defaults and help are visitors.
namespace seqconv::internal {

/// Holds what there is to say about one option.
struct OptionRow {
  std::string key;       ///< "model.encoder.heads"
  std::string type;      ///< in words
  std::string standard;  ///< default, as JSON
  std::string help;
  KeyUse use;
};

/// Visits options that have `visit`. Public structs have none: for each there is a function
/// visit_options in its own namespace.
template <class Options, class Visitor>
requires requires(Options& options, Visitor& v) {
  options.visit(v);
}
void visit_options(Options& options, Visitor& v) {
  options.visit(v);
}

namespace detail {

template <class T>
constexpr bool kIsOptional = false;
template <class T>
constexpr bool kIsOptional<std::optional<T>> = true;

/// std::vector and what derives from one.
template <class T>
concept IsVector = requires(T list) {
  typename T::value_type;
  typename T::allocator_type;
  list.push_back(typename T::value_type{});
}
&&!std::is_same_v<T, std::string>;

void read_value(const Json& j, const std::string& where, bool& out);
void read_value(const Json& j, const std::string& where, int64_t& out);
void read_value(const Json& j, const std::string& where, double& out);
void read_value(const Json& j, const std::string& where, std::string& out);

/// UsageError for keys of `table` that no option has read.
void reject_unknown_keys(
    const Json& table, const std::string& path, const std::vector<std::string>& known);

std::string join_key(const std::string& path, const char* key);

/// A value for a message: short, never throws, whatever it holds.
std::string show_json(const Json& j);

class Writer {
 public:
  template <class T>
  void operator()(const char* key, T& value, const char* /*help*/, KeyUse /*use*/ = {}) {
    table_[key] = write(value);
  }
  Json take() { return std::move(table_); }

 private:
  template <class T>
  static Json write(T& value) {
    if constexpr (std::is_enum_v<T>) {
      return std::string(enum_name(value));
    } else if constexpr (IsVector<T>) {
      Json list = Json::array();
      for (size_t i = 0; i < value.size(); ++i) {
        typename T::value_type item = value[i];
        list.push_back(write(item));
      }
      return list;
    } else if constexpr (kIsOptional<T>) {
      return value ? write(*value) : Json();
    } else if constexpr (requires(Writer w) { value.visit(w); }) {
      Writer writer;
      value.visit(writer);
      return writer.take();
    } else {
      return value;
    }
  }

  Json table_ = Json::object();
};

/// The function that writes the defaults of options that have any.
template <class Options>
Json (*defaults_of())() {
  if constexpr (std::is_default_constructible_v<Options>)
    return [] {
      Writer writer;
      Options options;
      visit_options(options, writer);
      return writer.take();
    };
  else
    return nullptr;
}

class Reader {
 public:
  /// `defaults` writes the options as they are when nothing is said.
  Reader(const Json& table, std::string path, Json (*defaults)())
      : table_(table), path_(std::move(path)), defaults_(defaults) {}

  template <class T>
  void operator()(const char* key, T& value, const char* /*help*/, KeyUse /*use*/ = {}) {
    known_.emplace_back(key);
    const auto found = table_.find(key);
    if (found == table_.end())
      return;
    if (IsVector<T> && is_unset(*found) && defaults_ != nullptr)
      read(defaults_().at(key), join_key(path_, key), value);
    else
      read(*found, join_key(path_, key), value);
  }

  void finish() const { reject_unknown_keys(table_, path_, known_); }

 private:
  /// Recognises what takes a list's value of an included file away.
  static bool is_unset(const Json& j) {
    return j.is_string() ? j.get_ref<const std::string&>().empty() : j.is_array() && j.empty();
  }

  template <class T>
  static void read(const Json& j, const std::string& where, T& value) {
    if constexpr (std::is_enum_v<T>) {
      std::string name;
      read_value(j, where, name);
      value = parse_enum<T>(name, where);
    } else if constexpr (IsVector<T>) {
      T items;
      const auto add = [&](const Json& entry, const std::string& place) {
        typename T::value_type item{};  // a list of bool has no references
        read(entry, place, item);
        items.push_back(std::move(item));
      };
      if (is_unset(j)) {
        value.clear();
        return;
      }
      if (j.is_array()) {
        for (size_t i = 0; i < j.size(); ++i)
          add(j[i], concat(where, "[", i, "]"));
      } else {  // a single entry stands for a list of one
        add(j, where);
      }
      value = std::move(items);
    } else if constexpr (kIsOptional<T>) {
      typename T::value_type given{};
      read(j, where, given);
      value = given;
    } else if constexpr (requires(Reader r) { value.visit(r); }) {
      if (!j.is_object())
        fail_usage(where, " must be a table, but got ", show_json(j));
      Reader reader(j, where, defaults_of<T>());
      value.visit(reader);
      reader.finish();
    } else {
      read_value(j, where, value);
    }
  }

  const Json& table_;
  std::string path_;
  Json (*defaults_)();
  std::vector<std::string> known_;
};

/// A type in words: "list of whole number", "'post' or 'pre'".
template <class T>
std::string type_in_words() {
  if constexpr (std::is_enum_v<T>)
    return enum_list<T>();
  else if constexpr (IsVector<T>)
    return "list of " + type_in_words<typename T::value_type>();
  else if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else if constexpr (std::is_same_v<T, int64_t>)
    return "whole number";
  else if constexpr (std::is_same_v<T, double>)
    return "number";
  else
    return "string";
}

class Describer {
 public:
  Describer(std::string path, std::vector<OptionRow>& rows) : path_(std::move(path)), rows_(rows) {}

  template <class T>
  void operator()(const char* key, T& value, const char* help, KeyUse use = {}) {
    const std::string where = join_key(path_, key);
    if constexpr (requires(Describer d) { value.visit(d); }) {
      Describer inner(where, rows_);
      value.visit(inner);
    } else {
      Writer writer;
      writer(key, value, help);
      rows_.push_back({where, type_in_words<T>(), writer.take()[key].dump(), help, use});
    }
  }

 private:
  std::string path_;
  std::vector<OptionRow>& rows_;
};

}  // namespace detail

/// Fills `options` from a table. Keys that are absent keep their value; [] and
/// "" give a list its default back; unknown keys and wrong types are
/// UsageErrors that name the key (and the nearest valid one). `path` prefixes
/// keys in messages, for example "model.encoder".
template <class Options>
void read_options(const Json& table, const std::string& path, Options& options) {
  if (!table.is_object())
    fail_usage(path, " must be a table, but got ", detail::show_json(table));
  detail::Reader reader(table, path, detail::defaults_of<Options>());
  visit_options(options, reader);
  reader.finish();
}

/// All options, defaults included, as a table.
template <class Options>
Json write_options(const Options& options) {
  detail::Writer writer;
  Options copy = options;
  visit_options(copy, writer);
  return writer.take();
}

/// One row for each option, in order.
template <class Options>
std::vector<OptionRow> describe_options(const std::string& path) {
  std::vector<OptionRow> rows;
  detail::Describer describer(path, rows);
  Options defaults;
  visit_options(defaults, describer);
  return rows;
}

/// Merges the tables of `from` into those of `into`, whose other values it replaces.
void merge_tables(Json& into, const Json& from);

/// Reads a TOML file into a table. `include = "other.toml"` (a path relative
/// to the file, or a list) is merged first, so that the file's own keys win. An
/// include NAME without folder or extension, of which there is no file beside,
/// is NAME.toml of the folder `named`, if one is given. Errors name file and
/// line.
Json load_toml(const std::string& path, const std::string& named = "");

/// The same of a text that came from `file`; `include` is a key like others.
Json parse_toml(const std::string& text, const std::string& file);

/// Sets `key.sub = value` from "key.sub=value". The value is read as TOML
/// (numbers, booleans, lists, quoted strings); anything else is a string.
void apply_override(Json& table, const std::string& assignment);

/// Reads JSON that may come from a stranger: Error naming `where` when it is
/// malformed, names a key twice or is nested deeper than any file of ours.
Json parse_json(std::string_view text, const std::string& where);

/// The table as TOML text: scalars first, then one [section] a sub-table.
std::string to_toml(const Json& table);

}  // namespace seqconv::internal
