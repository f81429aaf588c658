#include "cli/parse_errors.h"

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/flags.h"
#include "cli/help.h"

namespace seqconv::internal::cli {
namespace {

/// The program, the verb, and the verb below it that were chosen.
std::vector<const CLI::App*> chosen_verbs(const CLI::App& app) {
  std::vector<const CLI::App*> verbs = {&app};
  for (auto below = app.get_subcommands(); !below.empty(); below = verbs.back()->get_subcommands())
    verbs.push_back(below.front());
  return verbs;
}

/// "; seqconv bpe learn --help shows the flags"
std::string flags_hint(const std::vector<const CLI::App*>& verbs) {
  std::string command;
  for (const CLI::App* verb : verbs)
    command += verb->get_name() + " ";
  return concat("; ", command, "--help shows the flags");
}

/// "evaluate bleu" of "bleu": the verb below another one; "" where there is none.
std::string path_of_verb(const CLI::App& app, const std::string& name) {
  for (const CLI::App* verb : app.get_subcommands({}))
    for (const CLI::App* below : verb->get_subcommands({}))
      if (below->get_name() == name)
        return concat(verb->get_name(), " ", name);
  return "";
}

/// "bleu, chrf or exact"
std::string list_verbs(const CLI::App& verb) {
  const auto below = verb.get_subcommands({});
  std::string list;
  for (size_t i = 0; i < below.size(); ++i)
    list += concat(i == 0 ? "" : i + 1 < below.size() ? ", " : " or ", below[i]->get_name());
  return list;
}

bool has_word(const std::string& text, const std::string& word) {
  std::istringstream words(text);
  for (std::string one; words >> one;)
    if (one == word || one == word + ",")
      return true;
  return false;
}

/// The flags that a shorter one may stand for, those which it begins and those of which it is a
/// value: "'--json-input' or '--format json'" of --json; "" where there are none.
std::string longer_flags(const std::vector<const CLI::App*>& verbs, const std::string& extra) {
  std::string list;
  const auto add = [&](const std::string& flag) {
    list += concat(list.empty() ? "" : " or ", "'", flag, "'");
  };
  if (!extra.starts_with("--") || extra.size() == 2)
    return list;
  for (const CLI::Option* option : verbs.back()->get_options())
    for (const std::string& name : option->get_lnames())
      if (concat("--", name).starts_with(extra + "-"))
        add("--" + name);
  for (const CLI::Option* option : verbs.back()->get_options())
    if (option->get_type_name() == "NAME" && has_word(option->get_description(), extra.substr(2)))
      add(concat("--", option->get_lnames().front(), " ", extra.substr(2)));
  return list;
}

/// Names the first argument that nobody knows, and the nearest that is known.
[[noreturn]] void reject_extras(const CLI::App& app, const std::vector<const CLI::App*>& verbs) {
  std::vector<std::string> known;
  for (const CLI::App* verb : verbs)
    for (const CLI::Option* option : verb->get_options())
      for (const std::string& name : option->get_lnames())
        known.push_back(concat("--", name));
  for (const CLI::App* below : verbs.back()->get_subcommands({}))
    known.push_back(below->get_name());
  const auto extras = app.remaining(true);
  const std::string extra = extras.empty() ? "" : extras.front();
  const std::string found = concat("unexpected argument '", extra, "'");
  if (const std::string path = path_of_verb(app, extra); verbs.size() == 1 && !path.empty())
    fail_usage(found, "; did you mean '", path, "'?");
  if (extra.starts_with("-") && verbs.size() == 2 && !verbs.back()->get_subcommands({}).empty())
    fail_usage(
        found, "; ", verbs.back()->get_name(), " needs a verb first: ", list_verbs(*verbs.back()));
  const std::string nearest = nearest_word(extra, known);
  if (!nearest.empty() && nearest != extra)
    fail_usage(found, "; did you mean '", nearest, "'?");
  const std::string longer = longer_flags(verbs, extra);
  fail_usage(found, longer.empty() ? flags_hint(verbs) : concat("; did you mean ", longer, "?"));
}

/// The flag of which an error of CLI11 tells, by the name in its text: the
/// longest, as one may begin like another. Null where it tells of none.
const CLI::Option* flag_of(const std::vector<const CLI::App*>& verbs, const std::string& text) {
  const CLI::Option* found = nullptr;
  for (const CLI::App* verb : verbs)
    for (const CLI::Option* option : verb->get_options()) {
      const std::string name = option->get_name();
      const bool told = text.starts_with(name + ":") || text.starts_with(name + " ") ||
          text.starts_with("Could not convert: " + name + " ") || text.ends_with(" for " + name);
      if (told && (!found || name.size() > found->get_name().size()))
        found = option;
    }
  return found;
}

/// "'3' and '4'"
std::string quoted(const std::vector<std::string>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text += concat(i == 0 ? "" : i + 1 < values.size() ? ", " : " and ", "'", values[i], "'");
  return text;
}

/// The flags that must stand beside this one and are not given.
std::string missing_flags(const CLI::Option& flag) {
  std::string names;
  for (const CLI::Option* other : flag.get_needs())
    if (other->count() == 0)
      names += concat(names.empty() ? "" : " and ", other->get_name());
  return names;
}

bool is_fault(const CLI::ParseError& error, CLI::ExitCodes code) {
  return error.get_exit_code() == static_cast<int>(code);
}

/// A flag's requirement, and what came instead.
std::string fault_of(const CLI::Option& flag, const CLI::ParseError& error) {
  const std::string name = typed_name(names_of_option(flag));
  const std::string value = flag.get_type_name();
  const std::vector<std::string>& given = flag.results();
  const auto is = [&](CLI::ExitCodes code) { return is_fault(error, code); };
  if (is(CLI::ExitCodes::RequiredError))
    return concat(
        name,
        " is required",
        value.empty() || flag.get_positional() ? "" : concat(", with a value ", value),
        ", but is not given");
  if (is(CLI::ExitCodes::RequiresError))
    return concat(name, " requires ", missing_flags(flag), ", but that is not given");
  if (is(CLI::ExitCodes::ArgumentMismatch))
    return flag.get_items_expected_max() < static_cast<int>(given.size())
        ? concat(name, " must be given once, but got the values ", quoted(given))
        : concat(name, " must have a value ", value, ", but got none");
  if (is(CLI::ExitCodes::ConversionError))
    return flag.get_items_expected_max() == 0
        ? concat(name, " must be true or false where it has a value, but got ", quoted(given))
        : concat(name, " must be ", value, ", but got ", quoted(given));
  return error.what();
}

/// Values that go as text into what is read or written, by the kinds that
/// --help names; other values are files, numbers, or names out of a list.
bool is_text(const CLI::Option& option) {
  const std::string kind = option.get_type_name();
  return kind == "KEY" || kind == "REGEX" || kind == "TEXT";
}

}  // namespace

void require_verb(CLI::App& verb) {
  verb.require_subcommand(0, 1);
  verb.callback([&verb] {
    if (verb.get_subcommands().empty())
      fail_usage(verb.get_name(), " needs a verb of its own: ", list_verbs(verb));
  });
}

void reject_command_line(const CLI::App& app, const CLI::ParseError& error) {
  const auto verbs = chosen_verbs(app);
  // A required flag is often missing as its name is misspelt.
  if (is_fault(error, CLI::ExitCodes::ExtrasError) ||
      (is_fault(error, CLI::ExitCodes::RequiredError) && app.remaining_size(true) > 0))
    reject_extras(app, verbs);
  const CLI::Option* const flag = flag_of(verbs, error.what());
  fail_usage(flag ? fault_of(*flag, error) : error.what(), flags_hint(verbs));
}

void reject_bad_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = typed_name(names_of_option(*option));
    if (option->get_type_size() == 0 || name == "--prompt" || name == "-p")
      continue;
    for (const std::string& value : option->results()) {
      if (value.empty())
        fail_usage(name, " must have a value, but got ''");
      if (is_text(*option) && find_invalid_utf8(value) != std::string::npos)
        fail_usage(name, " must be UTF-8, but got '", value, "'");
    }
  }
  for (const CLI::App* verb : app.get_subcommands())
    reject_bad_values(*verb);
}

}  // namespace seqconv::internal::cli
