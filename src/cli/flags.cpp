#include "cli/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace seqconv::internal::cli {
namespace {

/// A function's own, so that it is there before any flag is added.
std::vector<std::string>& command_line() {
  static std::vector<std::string> words;
  return words;
}

bool was_typed(const std::string& name) {
  return std::ranges::any_of(command_line(), [&](const std::string& word) {
    return word == name || word.starts_with(name + "=");
  });
}

}  // namespace

void remember_command_line(int argc, const char* const* argv) {
  command_line().assign(argv, argv + argc);
}

const std::vector<std::string>& typed_command_line() {
  return command_line();
}

std::string typed_name(const std::string& flags) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= flags.size();) {
    const size_t end = std::min(flags.find(',', begin), flags.size());
    names.push_back(flags.substr(begin, end - begin));
    if (names.back().starts_with('!'))
      names.back().erase(0, 1);
    begin = end + 1;
  }
  const auto typed = std::ranges::find_if(names, was_typed);
  if (typed != names.end())
    return *typed;
  const auto is_long = [](const std::string& name) { return name.starts_with("--"); };
  const auto longer = std::ranges::find_if(names, is_long);
  return longer == names.end() ? names.front() : *longer;
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
          typed_name(flag),
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

namespace {

constexpr const char* kFollowLinks =
    "Links in folders that are read may lead out of them, as in a trusted cache";

}  // namespace

CLI::Option* add_follow_links(CLI::App& app, Links& links) {
  return app.add_flag_callback(
      "--follow-links", [&links] { links = Links::kAnywhere; }, kFollowLinks);
}

CLI::Option* add_follow_links(CLI::App& app, RootedPath& folder) {
  return app.add_flag_callback(
      "--follow-links",
      [&folder] { folder = RootedPath(folder.path(), Links::kAnywhere); },
      kFollowLinks);
}

CLI::Option* add_path(
    CLI::App& app, const std::string& flag, RootedPath& path, const std::string& help) {
  return app.add_option_function<std::string>(
      flag, [&path](const std::string& given) { path = RootedPath(given, path.links()); }, help);
}

CLI::Option* add_model(CLI::App& app, RootedPath& model) {
  CLI::Option* const option = add_path(
      app, "-m,--model", model, "Model folder (its best checkpoint) or a .safetensors file in one");
  add_follow_links(app, model);
  return option->type_name("DIR")->required();
}

CLI::Option* add_checkpoint(CLI::App& app, std::string& checkpoint) {
  return app
      .add_option(
          "--checkpoint",
          checkpoint,
          "Parameters of a model folder: best, last (of its run) or update-N")
      ->type_name("NAME")
      ->capture_default_str();
}

CLI::Option* add_strict(CLI::App& app, bool& strict) {
  return app.add_flag(
      "--strict", strict, "Stop at the first line that fails; else the others are done first");
}

CLI::Option* add_real(
    CLI::App& app, const std::string& flag, double& value, const std::string& help) {
  const auto read = [&value, flag](const std::string& text) {
    double number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end || !std::isfinite(number))
      fail_usage(typed_name(flag), " must be a finite number, but got '", text, "'");
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

std::map<std::string, std::string> FlagVisitor::names() const {
  std::map<std::string, std::string> names;
  for (const auto& [key, option] : options_)
    names[key] = typed_name(flag_name(key));
  return names;
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

}  // namespace seqconv::internal::cli
