#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "base/option_names.h"
#include "base/options.h"
#include "base/rooted_path.h"

namespace seqconv::internal::cli {

/// Remembers how the flags of this process are typed, for messages.
void remember_command_line(int argc, const char* const* argv);
/// The command line that was remembered, the program's own name first.
const std::vector<std::string>& typed_command_line();

/// One of the names of a flag, "-a,--b,!--no-b", for messages: the one that was
/// typed, or else the first long one.
std::string typed_name(const std::string& flags);

/// Adds `--name N` for a whole number within [low, high], which the help says
/// too. Unlike CLI11's own reader it takes nothing but digits and refuses what
/// does not fit.
CLI::Option* add_integer(
    CLI::App& app,
    const std::string& flag,
    int64_t& value,
    const std::string& help,
    int64_t low,
    int64_t high = std::numeric_limits<int32_t>::max());

/// Adds `--follow-links`: files of folders may be links out of them.
CLI::Option* add_follow_links(CLI::App& app, Links& links);
/// The same for a folder, whose path stays.
CLI::Option* add_follow_links(CLI::App& app, RootedPath& folder);

/// Adds `flag` for a path; what its links may do stays.
CLI::Option* add_path(
    CLI::App& app, const std::string& flag, RootedPath& path, const std::string& help);

/// Adds `-m,--model DIR`, which must be given, and `--follow-links`.
CLI::Option* add_model(CLI::App& app, RootedPath& model);

/// Adds `--checkpoint NAME` for add_model's folder; choose_checkpoint() reads it.
CLI::Option* add_checkpoint(CLI::App& app, std::string& checkpoint);

/// Adds `--strict`: the first line that fails ends the run.
CLI::Option* add_strict(CLI::App& app, bool& strict);

/// Adds `--name X` for a finite number.
CLI::Option* add_real(
    CLI::App& app, const std::string& flag, double& value, const std::string& help);

/// Adds a flag that may be repeated, with one value each time.
CLI::Option* add_repeated(
    CLI::App& app,
    const std::string& flag,
    std::vector<std::string>& values,
    const std::string& help);

/// Adds `--name NAME` for one of an enum's names.
template <class E>
CLI::Option* add_choice(CLI::App& app, const std::string& flag, E& value, const std::string& help) {
  return app
      .add_option_function<std::string>(
          flag,
          [&value, flag](const std::string& name) {
            value = parse_enum<E>(name, typed_name(flag));
          },
          help)
      ->type_name("NAME")
      ->default_str(std::string(enum_name(value)));
}

/// Turns an options struct into flags: `length_penalty` becomes
/// `--length-penalty`, with the default and the help that the struct states.
class FlagVisitor {
 public:
  /// `synonyms`: other flags for a key, {"tokenizer", "--tokenize"}, or one
  /// that says no, {"lowercase", "!--no-lowercase"}.
  FlagVisitor(CLI::App& app, std::string group, std::map<std::string, std::string> synonyms = {})
      : app_(app), group_(std::move(group)), synonyms_(std::move(synonyms)) {}

  template <class T>
  void operator()(const char* key, T& value, const char* help) {
    CLI::Option* option;
    if constexpr (std::is_same_v<T, int64_t>)
      option = add_integer(app_, flag_name(key), value, help, 0);
    else if constexpr (std::is_same_v<T, double>)
      option = add_real(app_, flag_name(key), value, help);
    else if constexpr (std::is_same_v<T, std::string>)
      option = app_.add_option(flag_name(key), value, help)->type_name("NAME");
    else if constexpr (std::is_same_v<T, std::vector<std::string>>)
      option = add_repeated(app_, flag_name(key), value, help);
    else if constexpr (std::is_same_v<T, bool>)
      option = app_.add_flag(
          value ? concat(flag_name(key), ",!", flag_name(concat("no_", key))) : flag_name(key),
          value,
          help);
    else
      option = add_choice(app_, flag_name(key), value, help);
    options_.emplace_back(key, option->group(group_));
  }

  /// Keys that the command line has set.
  std::vector<std::string> given() const;
  /// The flags by their keys, as they were typed where they were.
  std::map<std::string, std::string> names() const;

 private:
  std::string flag_name(const std::string& key) const;

  CLI::App& app_;
  std::string group_;
  std::map<std::string, std::string> synonyms_;
  std::vector<std::pair<std::string, CLI::Option*>> options_;
};

}  // namespace seqconv::internal::cli
