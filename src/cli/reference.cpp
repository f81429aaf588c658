#include <filesystem>

#include "base/files.h"
#include "base/markdown.h"
#include "cli/completion.h"
#include "cli/engine_loader.h"
#include "cli/flags.h"
#include "cli/help.h"
#include "cli/man_pages.h"
#include "cli/program.h"

namespace seqconv::internal::cli {
namespace {

enum class Page { kCommandLine, kConfiguration, kInstalled };

}  // namespace
}  // namespace seqconv::internal::cli

template <>
struct seqconv::internal::EnumNames<seqconv::internal::cli::Page> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, seqconv::internal::cli::Page>>(
          {{"command-line", seqconv::internal::cli::Page::kCommandLine},
           {"configuration", seqconv::internal::cli::Page::kConfiguration},
           {"installed", seqconv::internal::cli::Page::kInstalled}});
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
  for (const CLI::App* below : shown_verbs(verb))
    describe(*below, name, depth + 1, text);
}

struct ReferenceFlags {
  Page page = Page::kCommandLine;
  std::string output = ".";  ///< a folder
};

// The forms of the help that an installation has in share/.
void write_installed(const std::filesystem::path& share, const CLI::App& app) {
  const auto pages = share / "man" / "man1";
  create_folder(pages);
  for (const auto& [name, text] : man_pages(app))
    write_file_atomically(pages / name, text);
  const auto completions = share / "bash-completion" / "completions";
  create_folder(completions);
  write_file_atomically(completions / "seqconv", bash_completion(app));
}

void run_reference(const ReferenceFlags& flags, const Program& program) {
  switch (flags.page) {
    case Page::kCommandLine: {
      std::string text = kIntroduction;
      describe(program.app, "seqconv", 0, text);
      program.out << text;
      return;
    }
    case Page::kConfiguration:
      program.out << engine().describe_config(ConfigFormat::kMarkdown);
      return;
    case Page::kInstalled:
      write_installed(flags.output, program.app);
      return;
  }
}

}  // namespace

void add_reference(Program& program) {
  auto flags = std::make_shared<ReferenceFlags>();
  CLI::App& verb = program.add_verb(
      "reference",
      "Write what the help says in another form",
      R"(Examples:
  seqconv reference command-line
  seqconv reference configuration
  seqconv reference installed --output share)");
  verb.group("");  // for who writes documents: not in --help
  add_choice(verb, "PAGE", flags->page, "command-line, configuration or installed")->required();
  verb.add_option("-o,--output", flags->output, "Folder for what is installed [.]")
      ->type_name("DIR");
  verb.callback(
      [&program, flags] { program.run = [&program, flags] { run_reference(*flags, program); }; });
}

}  // namespace seqconv::internal::cli
