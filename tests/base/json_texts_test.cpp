#include "base/json_texts.h"

#include <gmock/gmock.h>

#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

TEST(JsonTexts, DotsLeadIntoObjectsAndLists) {
  const std::string line =
      R"({"a": {"b": "one", "c": ["two", "three"]}, "d.e": "four", "d": {"e":
      "five"}, "": "six"})";
  const auto texts = [&](const std::string& key) { return json_line_texts(line, key, "file:1"); };
  EXPECT_THAT(texts("a.b"), ElementsAre("one"));
  EXPECT_THAT(texts("a.c"), ElementsAre("two", "three"));
  EXPECT_THAT(texts("a.c.1"), ElementsAre("three"));
  EXPECT_THAT(texts("d.e"), ElementsAre("four"));
  EXPECT_THAT(texts(""), ElementsAre("six"));
}

TEST(JsonTexts, SayWhatIsNotThere) {
  const std::string line = R"({"a": {"b": [1]}, "c": [], "d": 5, "e": "text", "f": [["x"]]})";
  const auto error = [&](const std::string& key) {
    return error_of([&] { json_line_texts(line, key, "file:7"); });
  };
  for (const std::string key :
       {"x",
        "a.x",
        "a.b.1",
        "a.b.x",
        "a.b.-1",
        "e.x",
        "a..b",
        "a.",
        ".a",
        "c.0",
        "d.0",
        "c.99999999999999999999999"})
    EXPECT_EQ(error(key), concat("file:7: there is no \"", key, "\""));
  for (const std::string key : {"a", "a.b", "c", "d", "f", "a.b.0"})
    EXPECT_THAT(
        error(key),
        AllOf(
            HasSubstr(concat("file:7: \"", key, "\" must be a text or a list")),
            HasSubstr("but got ")));
}

TEST(JsonTexts, ALineMustBeAnObject) {
  const auto error = [](const std::string& line) {
    return error_of([&] { json_line_texts(line, "a", "file:7"); });
  };
  for (const std::string line : {"", "{", "{'a': 1}", R"({"a": "\ud800"})"})
    EXPECT_THAT(error(line), HasSubstr("file:7: not valid JSON: ")) << line;
  for (const std::string line : {"[]", "3", R"("a")", "null"})
    EXPECT_THAT(error(line), HasSubstr("must be a JSON object, but got "));
  EXPECT_THAT(error(R"({"a": "x", "a": "y"})"), HasSubstr("file:7: 'a' comes twice"));
  EXPECT_THAT(error("{\"a\": " + std::string(100'000, '[')), HasSubstr("file:7: nested too deep"));
}

}  // namespace
}  // namespace seqconv::internal
