#include "cli/help.h"

#include "base/error.h"

namespace seqconv::internal::cli {
namespace {

bool takes_many(const CLI::Option& option) {
  return option.get_expected_max() >= CLI::detail::expected_max_vector_size;
}

}  // namespace

std::string names_of_option(const CLI::Option& option) {
  if (option.get_positional())
    return option.get_name(/*positional=*/true);
  std::string names;
  const auto add = [&](const char* dashes, const std::string& name) {
    names += concat(names.empty() ? "" : ",", dashes, name);
  };
  for (const std::string& name : option.get_snames())
    add("-", name);
  for (const std::string& name : option.get_lnames())
    add("--", name);
  return names;
}

bool is_repeatable(const CLI::Option& option) {
  return takes_many(option) && !option.get_positional() && !option.get_allow_extra_args();
}

std::string values_of_option(const CLI::Option& option) {
  if (option.get_positional())
    return takes_many(option) ? " ..." : "";
  const std::string type = option.get_type_name();
  if (type.empty())  // a switch
    return "";
  return takes_many(option) && !is_repeatable(option) ? concat(" ", type, " [", type, " ...]")
                                                      : concat(" ", type);
}

std::vector<const CLI::App*> shown_verbs(const CLI::App& app) {
  std::vector<const CLI::App*> shown;
  for (const CLI::App* verb : app.get_subcommands({}))
    if (!verb->get_group().empty())
      shown.push_back(verb);
  return shown;
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool /*positional*/) const {
  return names_of_option(*option);
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  std::string text = values_of_option(*option);
  const std::string standard = option->get_default_str();
  if (option->get_type_size() != 0 && !standard.empty())
    text += "=" + standard;
  if (is_repeatable(*option))
    text += " (repeatable)";
  if (option->get_required())
    text += " REQUIRED";
  for (const CLI::Option* other : option->get_needs())
    text += " Needs: " + other->get_name();
  return text;
}

}  // namespace seqconv::internal::cli
