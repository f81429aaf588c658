#include "base/markdown.h"
#include "cli/engine_loader.h"
#include "cli/flags.h"
#include "cli/help.h"
#include "cli/program.h"

namespace seqconv::internal::cli {
namespace {

enum class Page { kCommandLine, kConfiguration };

}  // namespace
}  // namespace seqconv::internal::cli

template <>
struct seqconv::internal::EnumNames<seqconv::internal::cli::Page> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, seqconv::internal::cli::Page>>(
          {{"command-line", seqconv::internal::cli::Page::kCommandLine},
           {"configuration", seqconv::internal::cli::Page::kConfiguration}});
};

namespace seqconv::internal::cli {
namespace {

constexpr const char* kIntroduction =
    "# Command line\n\n"
    "`seqconv VERB --help` prints the same. Whole numbers (N) go from 0 to\n"
    "2,147,483,647 where nothing else is said; numbers (X) are finite. This "
    "page\n"
    "is written by `tools/make_reference.sh`.\n";

// "`-m,--model DIR` (repeatable)", "`CONFIG`".
std::string spelling(const CLI::Option& option) {
  const std::string text = markdown_code(names_of_option(option) + values_of_option(option));
  return is_repeatable(option) ? text + " (repeatable)" : text;
}

std::string table(const CLI::App& verb) {
  std::string rows;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty() || option == verb.get_help_ptr())
      continue;
    const std::string standard =
        option->get_required() ? "required" : markdown_code(option->get_default_str());
    rows += markdown_row({spelling(*option), standard, markdown_text(option->get_description())});
  }
  if (rows.empty())
    return "";
  return concat("\n", markdown_row({"option", "default", "meaning"}), "|---|---|---|\n", rows);
}

void describe(const CLI::App& verb, const std::string& path, int depth, std::string& text) {
  const std::string name = depth == 0 ? path : path + " " + verb.get_name();
  text += concat("\n", std::string(depth == 2 ? 3 : 2, '#'), " ", name, "\n\n");
  text += markdown_text(verb.get_description());
  text += text.ends_with('.') ? "\n" : ".\n";
  text += table(verb);
  // A verb's own verbs repeat its footer.
  if (depth < 2 && !verb.get_footer().empty())
    text += concat("\n```text\n", verb.get_footer(), "\n```\n");
  for (const CLI::App* below : verb.get_subcommands({}))
    if (!below->get_group().empty())
      describe(*below, name, depth + 1, text);
}

void run_reference(Page page, const Program& program) {
  switch (page) {
    case Page::kCommandLine: {
      std::string text = kIntroduction;
      describe(program.app, "seqconv", 0, text);
      program.out << text;
      return;
    }
    case Page::kConfiguration:
      program.out << engine().describe_config(ConfigFormat::kMarkdown);
      return;
  }
}

}  // namespace

void add_reference(Program& program) {
  auto page = std::make_shared<Page>(Page::kCommandLine);
  CLI::App& verb = program.add_verb(
      "reference",
      "Write a page of docs/reference as Markdown",
      R"(Examples:
  seqconv reference command-line
  seqconv reference configuration)");
  verb.group("");  // for who writes documents: not in --help
  add_choice(verb, "PAGE", *page, "command-line or configuration")->required();
  verb.callback(
      [&program, page] { program.run = [&program, page] { run_reference(*page, program); }; });
}

}  // namespace seqconv::internal::cli
