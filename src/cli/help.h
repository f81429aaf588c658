#pragma once

#include <CLI/CLI.hpp>
#include <string>

/// Spells options for --help and docs/reference.
namespace seqconv::internal::cli {

/// "-m,--model"; of a positional one "CONFIG".
std::string names_of_option(const CLI::Option& option);

/// The text behind the names: "" of a switch; " FILE"; " FILE [FILE ...]" where
/// several values may stand behind one flag.
std::string values_of_option(const CLI::Option& option);

/// True when a flag of one value may be given several times.
bool is_repeatable(const CLI::Option& option);

/// CLI11's, but for what these functions say.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
};

}  // namespace seqconv::internal::cli
