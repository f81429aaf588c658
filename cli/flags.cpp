#include "flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "seqconv/base/error.h"

namespace seqconv::cli {
std::string first_name(const std::string& flags) {
  return flags.substr(0, flags.find(','));
}

CLI::Option* add_integer(
    CLI::App& app,
    const std::string& flag,
    int64_t& value,
    const std::string& help,
    int64_t low,
    int64_t high) {
  const bool bounded = high < std::numeric_limits<int32_t>::max();
  const std::string range = bounded ? concat(", ", low, " to ", high)
      : low > 0                     ? concat(", at least ", low)
                                    : "";
  const auto read = [&value, flag, low, high](const std::string& text) {
    int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end || number < low || number > high)
      fail_usage(
          first_name(flag),
          " must be a whole number from ",
          low,
          " to ",
          high,
          ", but got '",
          text,
          "'");
    value = number;
  };
  return app.add_option_function<std::string>(flag, read, help + range)
      ->type_name("N")
      ->default_str(std::to_string(value));
}

CLI::Option* add_model(CLI::App& app, std::string& model) {
  return app
      .add_option(
          "-m,--model",
          model,
          "Model folder (its best checkpoint) or a .safetensors file in one")
      ->type_name("DIR")
      ->required();
}

CLI::Option* add_strict(CLI::App& app, bool& strict) {
  return app.add_flag(
      "--strict",
      strict,
      "Stop at the first line that fails; else the others are done first");
}

CLI::Option* add_real(
    CLI::App& app,
    const std::string& flag,
    double& value,
    const std::string& help) {
  const auto read = [&value, flag](const std::string& text) {
    double number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end || !std::isfinite(number))
      fail_usage(
          first_name(flag),
          " must be a finite number, but got '",
          text,
          "'");
    value = number;
  };
  return app.add_option_function<std::string>(flag, read, help)
      ->type_name("X")
      ->default_str(concat(value));
}

CLI::Option* add_repeated(
    CLI::App& app,
    const std::string& flag,
    std::vector<std::string>& values,
    const std::string& help) {
  return app.add_option(flag, values, help)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::vector<std::string> FlagVisitor::given() const {
  std::vector<std::string> keys;
  for (const auto& [key, option] : options_)
    if (option->count() > 0)
      keys.push_back(key);
  return keys;
}

std::string FlagVisitor::flag_name(const std::string& key) const {
  std::string flag = concat("--", key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  const auto synonym = synonyms_.find(key);
  if (synonym == synonyms_.end())
    return flag;
  const std::string& other = synonym->second;
  return other.starts_with('!') ? flag + "," + other : other + "," + flag;
}

}  // namespace seqconv::cli
