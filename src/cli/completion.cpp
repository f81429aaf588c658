#include "cli/completion.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/help.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kCompletionBegin =
    R"(# Completion of seqconv for bash, written by its verb reference.
_seqconv() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local path='' flags='' folders='' verbs='' word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ '|)";

constexpr const char* kCompletionMiddle = R"(' == *"|$path $word|"* ]]; then
      path=${path:+$path }$word
    fi
  done
  case $path in
)";

// The rest goes to bash, which completes names of files.
constexpr const char* kCompletionEnd = R"(  esac
  COMPREPLY=()
  if [[ " $folders " == *" $previous "* ]]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -d -- "$current")
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current")
  elif [[ -n $verbs ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$current")
  fi
}
complete -o bashdefault -o default -F _seqconv seqconv
)";

void add_word(std::string& list, const std::string& word) {
  list += concat(list.empty() ? "" : " ", word);
}

struct CompletionScript {
  std::string verbs;  ///< " bpe|bpe learn|", all of them
  std::string cases;  ///< what each offers
};

void add_completions(
    const CLI::App& app,
    const std::string& path,
    const std::string& shared,
    CompletionScript& script) {
  std::string flags, folders, verbs;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || option->get_positional())
      continue;
    std::string names = names_of_option(*option);
    std::replace(names.begin(), names.end(), ',', ' ');
    add_word(flags, names);
    if (option->get_type_name() == "DIR")
      add_word(folders, names);
  }
  const std::vector<const CLI::App*> shown = shown_verbs(app);
  for (const CLI::App* verb : shown)
    add_word(verbs, verb->get_name());
  script.cases += concat("    '", path, "')\n      flags='", flags, shared, "'\n");
  if (!folders.empty())
    script.cases += concat("      folders='", folders, "'\n");
  if (!verbs.empty())
    script.cases += concat("      verbs='", verbs, "'\n");
  script.cases += "      ;;\n";
  for (const CLI::App* verb : shown) {
    script.verbs += concat(path, " ", verb->get_name(), "|");
    add_completions(
        *verb,
        path.empty() ? verb->get_name() : path + " " + verb->get_name(),
        " -q --quiet",
        script);
  }
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  CompletionScript script;
  add_completions(app, "", "", script);
  return concat(kCompletionBegin, script.verbs, kCompletionMiddle, script.cases, kCompletionEnd);
}

}  // namespace seqconv::internal::cli
