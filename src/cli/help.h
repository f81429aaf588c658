#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

/// Spells options for --help, docs/reference and the pages of man.
namespace seqconv::internal::cli {

/// "-m,--model"; of a positional one "CONFIG".
std::string names_of_option(const CLI::Option& option);

/// The text behind the names: "" of a switch; " FILE"; " FILE [FILE ...]" where
/// several values may stand behind one flag.
std::string values_of_option(const CLI::Option& option);

/// True when a flag of one value may be given several times.
bool is_repeatable(const CLI::Option& option);

/// Verbs that the help shows, in its order.
std::vector<const CLI::App*> shown_verbs(const CLI::App& app);

/// CLI11's, but for what these functions say.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
};

}  // namespace seqconv::internal::cli
