#include "cli/man_pages.h"

#include <cctype>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/help.h"
#include "seqconv/version.h"

namespace seqconv::internal::cli {
namespace {

constexpr std::string_view kExamplesTitle = "Examples:";

// Text that troff gives out as it is: signs that it would make typographic ones of, and lines
// that it would take for requests.
std::string roff(std::string_view text) {
  static const std::map<char, const char*> kSigns = {
      {'\\', "\\(rs"},
      {'-', "\\-"},
      {'\'', "\\(aq"},
      {'`', "\\(ga"},
      {'^', "\\(ha"},
      {'~', "\\(ti"}};
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto sign = kSigns.find(text[i]);
    if (text[i] == '.' && (i == 0 || text[i - 1] == '\n'))
      escaped += "\\&.";
    else if (sign != kSigns.end())
      escaped += sign->second;
    else
      escaped += text[i];
  }
  return escaped;
}

std::string bold_roff(std::string_view text) {
  return concat("\\fB", roff(text), "\\fR");
}

std::string with_stop(const std::string& text) {
  return text.ends_with('.') ? text : text + ".";
}

// `.TP`, the names and values of an option, and its meaning.
std::string option_item(const CLI::Option& option) {
  std::string text = concat(".TP\n", bold_roff(names_of_option(option)));
  text += roff(values_of_option(option));
  if (is_repeatable(option))
    text += " (repeatable)";
  text += concat("\n", with_stop(roff(option.get_description())));
  if (option.get_required())
    text += "\nRequired.";
  else if (option.get_type_size() != 0 && !option.get_default_str().empty())
    text += concat("\nDefault: ", bold_roff(option.get_default_str()), ".");
  for (const CLI::Option* other : option.get_needs())
    text += concat("\nNeeds ", bold_roff(other->get_name()), ".");
  return text + "\n";
}

// The options of each group of the help, under its title where it is not "Options".
std::string option_items(const CLI::App& verb) {
  std::string text;
  for (const bool positional : {true, false})
    for (const std::string& group : verb.get_groups()) {
      std::string items;
      for (const CLI::Option* option : verb.get_options())
        if (option->get_group() == group && option->get_positional() == positional)
          items += option_item(*option);
      if (!items.empty() && !positional && group != "Options")
        text += concat(".SS \"", roff(group), "\"\n");
      text += items;
    }
  return text;
}

std::string synopsis(const CLI::App& verb, const std::string& path) {
  std::string text = bold_roff(path) + " [options]";
  if (verb.get_parent() == nullptr || !shown_verbs(verb).empty())
    text += " \\fIverb\\fR [options]";
  for (const CLI::Option* option : verb.get_options())
    if (option->get_positional())
      text += concat(
          option->get_required() ? " " : " [",
          roff(names_of_option(*option) + values_of_option(*option)),
          option->get_required() ? "" : "]");
  return text + "\n";
}

// Paragraphs of a footer. Those with lines that are set in stand as they are.
std::string footer_paragraphs(const std::string& footer, bool examples) {
  std::string text;
  std::string rest = footer + "\n\n";
  for (size_t end; (end = rest.find("\n\n")) != rest.npos; rest.erase(0, end + 2)) {
    const std::string paragraph = rest.substr(0, end);
    if (paragraph.empty() || paragraph.starts_with(kExamplesTitle) != examples)
      continue;
    const std::string shown = examples ? paragraph.substr(kExamplesTitle.size() + 1) : paragraph;
    if (shown.find("\n ") != shown.npos || shown.starts_with(' '))
      text += concat(".PP\n.nf\n", roff(shown), "\n.fi\n");
    else
      text += concat(".PP\n", roff(shown), "\n");
  }
  return text;
}

// A verb's own verbs, each with its options.
std::string own_verbs(const CLI::App& verb, const std::string& path) {
  std::string text;
  for (const CLI::App* below : shown_verbs(verb)) {
    const std::string name = path + " " + below->get_name();
    text += concat(".SH \"", roff(name), "\"\n", with_stop(roff(below->get_description())));
    text += concat("\n.PP\n", synopsis(*below, name), option_items(*below));
  }
  return text;
}

std::string page_name(const CLI::App& verb) {
  return "seqconv-" + verb.get_name();
}

std::string verb_list(const CLI::App& app) {
  std::string text = ".SH VERBS\n";
  for (const CLI::App* verb : shown_verbs(app))
    text += concat(
        ".TP\n",
        bold_roff(page_name(*verb)),
        "(1)\n",
        with_stop(roff(verb->get_description())),
        "\n");
  return text;
}

std::string man_page(const CLI::App& verb, const std::string& name) {
  const bool whole = verb.get_parent() == nullptr;
  const std::string path = whole ? "seqconv" : "seqconv " + verb.get_name();
  const std::string title = verb.get_description();
  std::string heading;
  for (const char c : name)
    heading += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string text = concat(".TH ", roff(heading), " 1 \"\" \"seqconv ", SEQCONV_VERSION, "\"\n");
  text += concat(".SH NAME\n", roff(name), " \\- ");
  text += concat(whole ? "train and run attention\\-free sequence models" : roff(title), "\n");
  text += concat(".SH SYNOPSIS\n", synopsis(verb, path), ".SH DESCRIPTION\n");
  text += concat(
      with_stop(roff(title)), "\n", footer_paragraphs(verb.get_footer(), /*examples=*/false));
  if (whole)
    text += verb_list(verb);
  text += concat(".SH OPTIONS\n", option_items(verb));
  if (!whole)
    text += own_verbs(verb, path);
  const std::string examples = footer_paragraphs(verb.get_footer(), /*examples=*/true);
  if (!examples.empty())
    text += concat(".SH EXAMPLES\n", examples);
  if (!whole)
    text += concat(".SH SEE ALSO\n", bold_roff("seqconv"), "(1)\n");
  return text;
}

}  // namespace

std::map<std::string, std::string> man_pages(const CLI::App& app) {
  std::map<std::string, std::string> pages = {{"seqconv.1", man_page(app, "seqconv")}};
  for (const CLI::App* verb : shown_verbs(app))
    pages[page_name(*verb) + ".1"] = man_page(*verb, page_name(*verb));
  return pages;
}

}  // namespace seqconv::internal::cli
