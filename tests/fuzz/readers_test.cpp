#include "fuzz/readers.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

/// The fuzzers' readers, which are compiled with the other tests: each takes a
/// few bytes as the fuzzers give them.
namespace seqconv::internal {
namespace {

TEST(FuzzedReaders, TakeAnyBytes) {
  const std::string inputs[] = {
      "",
      "{\"text\": \"ein zwei\", \"beam\": 2}\n",
      "ein 5\nzwei 4\n",
      std::string(200, '\0'),
      "\xC3\x28 \xF4\x90\x80\x80"};
  for (const fuzz::Reader& reader : fuzz::readers()) {
    SCOPED_TRACE(reader.name);
    size_t read = 0;
    for (const std::string& bytes : inputs) {
      try {
        reader.read(bytes);
        ++read;
      } catch (const Error& error) {
        EXPECT_FALSE(fuzz::is_librarys(error.what(), bytes)) << error.what();
      }
    }
    EXPECT_TRUE(reader.name != "requests" || read > 1) << read;
  }
}

}  // namespace
}  // namespace seqconv::internal
