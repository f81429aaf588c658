#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace seqconv::cli {

/// Adds `--name N` for a whole number within [low, high]. Unlike CLI11's own
/// reader it takes nothing but digits and refuses what does not fit.
CLI::Option* add_integer(
    CLI::App& app,
    const std::string& flag,
    int64_t& value,
    const std::string& help,
    int64_t low,
    int64_t high = std::numeric_limits<int32_t>::max());

/// Adds `--name X` for a finite number.
CLI::Option* add_real(
    CLI::App& app,
    const std::string& flag,
    double& value,
    const std::string& help);

/// Adds a flag that may be repeated, with one value each time.
CLI::Option* add_repeated(
    CLI::App& app,
    const std::string& flag,
    std::vector<std::string>& values,
    const std::string& help);

/// Turns an options struct into flags: `length_penalty` becomes
/// `--length-penalty`, with the default and the help that the struct states.
class FlagVisitor {
 public:
  FlagVisitor(CLI::App& app, std::string group)
      : app_(app), group_(std::move(group)) {}

  template <class T>
  void operator()(const char* key, T& value, const char* help) {
    static_assert(
        std::is_same_v<T, int64_t> || std::is_same_v<T, double>,
        "only numbers can be flags");
    CLI::Option* option;
    if constexpr (std::is_same_v<T, int64_t>)
      option = add_integer(app_, flag_name(key), value, help, 0);
    else
      option = add_real(app_, flag_name(key), value, help);
    options_.emplace_back(key, option->group(group_));
  }

  /// Keys that the command line has set.
  std::vector<std::string> given() const;

 private:
  static std::string flag_name(std::string key);

  CLI::App& app_;
  std::string group_;
  std::vector<std::pair<std::string, CLI::Option*>> options_;
};

}  // namespace seqconv::cli
