#pragma once

namespace CLI {
class App;
}

namespace seqconv::internal::cli {

/// Error naming both flags where what a verb was told to write, also by links,
/// is a file that it was told to read, a file of a model or run folder that it
/// reads, or that folder itself. Standard output and standard input count as
/// well where they are files. Nothing is read but names, and a verb that writes
/// what is not there yet is never stopped.
void check_overwriting(const CLI::App& app);

}  // namespace seqconv::internal::cli
