#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "fuzz/readers.h"

// Arbitrary bytes as what a reader of foreign bytes reads. SEQCONV_FUZZ_TARGET
// names the reader; a wrong name lists them. An Error is what bad input shall
// give, in words of our own; anything else that is thrown is a finding. With
// SEQCONV_FUZZ_SHOW set, Errors are printed.
namespace seqconv::internal::fuzz {
namespace {

const Reader& chosen() {
  const char* const wanted = std::getenv("SEQCONV_FUZZ_TARGET");
  for (const Reader& reader : readers())
    if (wanted != nullptr && reader.name == std::string_view(wanted))
      return reader;
  std::cerr << "SEQCONV_FUZZ_TARGET must be one of";
  for (const Reader& reader : readers())
    std::cerr << ' ' << reader.name;
  std::cerr << '\n';
  std::exit(2);
}

/// Ends the process, so that libFuzzer keeps the input.
[[noreturn]] void give_up(const char* what, const char* message) {
  std::cerr << what << ": " << message << '\n';
  std::abort();
}

}  // namespace

}  // namespace seqconv::internal::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace seqconv::internal;
  static const fuzz::Reader& reader = fuzz::chosen();
  static const bool quiet = [] {
    set_log_level(LogLevel::kError);
    return true;
  }();
  (void)quiet;
  const char* const text = reinterpret_cast<const char*>(data);
  try {
    reader.read({text, size});
  } catch (const Error& error) {
    static const bool show = std::getenv("SEQCONV_FUZZ_SHOW") != nullptr;
    if (show)
      std::cerr << error.what() << '\n';
    if (fuzz::is_librarys(error.what(), {text, size}))
      fuzz::give_up("a library's text", error.what());
  } catch (const std::exception& error) {
    fuzz::give_up("an exception that is no Error", error.what());
  }
  return 0;
}
