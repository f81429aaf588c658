#pragma once

#include <map>
#include <string>
#include <string_view>

namespace seqconv::internal {

/// The use of a key, which `visit` says behind its help where it is not the first.
enum class KeyUse {
  kNumbers,     ///< it decides numbers
  kMayChange,   ///< a run that is resumed may have another value
  kNoParameter  ///< it decides numbers, but no parameter's shape or meaning
};

/// Gives options their names in messages: those of keys, "search.beam", or of
/// the flags of a command line that stand for keys, "--beam". A check names an
/// option through this alone, so that nobody reads a name that he did not
/// write.
class OptionNames {
 public:
  /// The keys of the table called `path`; "": without one.
  OptionNames(std::string path) : path_(std::move(path)) {}
  OptionNames(const char* path) : path_(path) {}
  /// `flags`: the flag of each key.
  explicit OptionNames(std::map<std::string, std::string> flags) : flags_(std::move(flags)) {}

  /// "search.beam" or "--beam".
  std::string operator()(std::string_view key) const;

  /// An option with its value: "rouge.style = 'rouge_score'" or
  /// "--style rouge_score".
  std::string setting(std::string_view key, std::string_view value) const;

  /// A switch that is off: "rouge.stem = false" or "--no-stem".
  std::string off(std::string_view key) const;

 private:
  bool are_flags() const { return !flags_.empty(); }

  std::string path_;
  std::map<std::string, std::string> flags_;
};

}  // namespace seqconv::internal
