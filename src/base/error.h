#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Exceptions cross the border between the program and the engine library, so
/// their type must be one and the same on both sides.
#define SEQCONV_VISIBLE __attribute__((visibility("default")))

namespace seqconv::internal {

/// Anything that a user can cause or cure. The message says what was wanted,
/// what came instead, and where; the command line prints it and exits with 1.
class SEQCONV_VISIBLE Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  /// The exit code of a program that ends with it.
  virtual int exit_code() const { return 1; }
};

/// A wrong command line or configuration: exit code 2.
class SEQCONV_VISIBLE UsageError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 2; }
};

/// A signal asked to stop (base/signals.h): exit code 128 + signal.
class SEQCONV_VISIBLE Interrupted : public Error {
 public:
  Interrupted(int signal, const std::string& message) : Error(message), signal_(signal) {}
  int signal() const { return signal_; }
  int exit_code() const override { return 128 + signal_; }

 private:
  int signal_;
};

/// Concatenates anything that can be streamed.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Throws Error with the concatenated parts as its message.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(concat(parts...));
}

/// Throws UsageError with the concatenated parts as its message.
template <class... Parts>
[[noreturn]] void fail_usage(const Parts&... parts) {
  throw UsageError(concat(parts...));
}

/// Gives what `work` gives. Its Error gets what `where` gives, a place, and ":
/// " in front; an interruption passes as it is.
template <class Where, class Work>
auto located(const Where& where, const Work& work) {
  try {
    return work();
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    fail(where(), ": ", error.what());
  }
}

/// A text for a message: as it is, or its first 200 bytes and "...", never cut
/// inside a character.
std::string shorten(std::string_view text);

/// The candidate nearest to `word` by edit distance, or "" when none is near
/// enough to be a likely misspelling.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace seqconv::internal

/// Throws seqconv::internal::Error unless the condition holds. The message must
/// say what was wanted and what came: SEQCONV_CHECK(n > 0, "n must be > 0, but
/// got ", n)
#define SEQCONV_CHECK(condition, ...)         \
  do {                                        \
    if (!(condition)) [[unlikely]]            \
      ::seqconv::internal::fail(__VA_ARGS__); \
  } while (false)
