#pragma once

#include <CLI/CLI.hpp>

/// Says in our words why a command line cannot be read.
namespace seqconv::internal::cli {

/// Throws UsageError for what CLI11 did not read: names the flag as it was
/// typed, what was wanted, and what came.
[[noreturn]] void reject_command_line(const CLI::App& app, const CLI::ParseError& error);

/// Lets `verb` be followed by one of the verbs below it; UsageError that lists them where none is.
void require_verb(CLI::App& verb);

/// UsageError for a flag whose value is empty, a variable that nobody has set,
/// or is text and not UTF-8. A prompt may be either: it is repaired like the
/// text of a file.
void reject_bad_values(const CLI::App& app);

}  // namespace seqconv::internal::cli
