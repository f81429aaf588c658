#include "base/json_members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

/// The members put together again.
std::string joined(std::string_view text) {
  std::string out;
  const auto members = json_members(text, "line");
  for (const JsonMember& member : *members)
    out += concat(out.empty() ? "" : ",", member.key, ":", member.value);
  return out;
}

TEST(JsonMembers, StayAsTheyWereWritten) {
  for (const char* text :
       {R"("id":123456789012345678901234567890)",
        R"("a":1.10,"b":-0,"c":1E+05,"d":0.1e-7)",
        R"("large":1e400,"small":-1e-400,"many":[1e999,{"x":-2.5E1000}])",
        R"("escapes":"\u00e9\ud83d\ude00\/\"}],:")",
        R"("z":1,"a":2,"m":3)",
        R"("twice":1,"twice":2)",
        R"("blanks in":" a : b , c ","":{})",
        R"("number in text":"1e400","k":true,"l":false,"n":null)",
        R"("nested":{"a":[1,[2,{"b":"]}"}]],"c":{}})"})
    EXPECT_EQ(joined(concat("{", text, "}")), text);
  EXPECT_EQ(joined("{}"), "");
}

TEST(JsonMembers, LoseTheBlanksBetweenTokensAlone) {
  EXPECT_EQ(
      joined(" {\t\"a\" : [ 1 , 2.0 ] , \"b c\" : \" d  e \" }\r"),
      R"("a":[1,2.0],"b c":" d  e ")");
}

TEST(JsonMembers, MayComeAfterByteOrderMarks) {
  for (const char* mark : {"\uFEFF", "\uFEFF\uFEFF", "\uFEFF\uFEFF\uFEFF \t"})
    EXPECT_EQ(joined(concat(mark, "{\"a\":\"\uFEFF1\"}")), "\"a\":\"\uFEFF1\"");
  for (const char* text : {"\uFEFF", " \uFEFF{}", "{\uFEFF}"})
    EXPECT_THAT(
        error_of([&] { json_members(text, "file:3"); }), HasSubstr("file:3: not valid JSON: "))
        << text;
}

TEST(JsonMembers, HaveTheNameThatIsMeant) {
  const auto members = json_members(R"({"te\u0078t": 1, "\"": 2})", "line");
  ASSERT_THAT(*members, SizeIs(2));
  EXPECT_EQ((*members)[0].name, "text");
  EXPECT_EQ((*members)[1].name, "\"");
}

TEST(JsonMembers, OfWhatIsNoObjectAreNone) {
  for (const char* text : {"[1]", "\"{}\"", "null", "1e999", " true "})
    EXPECT_FALSE(json_members(text, "line")) << text;
}

TEST(JsonMembers, OfWhatIsNotJsonAreAnError) {
  for (const char* text :
       {"",
        "hello",
        "{",
        R"({"a")",
        R"({"a":1,})",
        R"({"a":01})",
        R"({"a":1.})",
        R"({"a":.5})",
        R"({"a":+1})",
        R"({"a":1e})",
        R"({"a":1e400e})",
        R"({"a":1e400 2})",
        R"({"a":-})",
        R"({"a":NaN})",
        R"({"a":"\ud800"})",
        R"({"a":"\x"})",
        R"({"a":"x)",
        "{\"a\":\"\\",
        "{\"a\":\"x\ty\"}",
        R"({"a":1} {"b":2})"})
    EXPECT_THAT(
        error_of([&] { json_members(text, "file:3"); }), HasSubstr("file:3: not valid JSON: "))
        << text;
}

TEST(JsonMembers, NestedTooDeepAreAnError) {
  const std::string deep = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_EQ(error_of([&] { json_members(deep, "file:3"); }), "file:3: nested too deep");
}

TEST(JsonMembers, QuoteNoMoreOfALongLineThanAMessageHolds) {
  const std::string line = "{\"a\":\"" + std::string(1 << 20, 'x');
  const std::string message = error_of([&] { json_members(line, "file:3"); });
  EXPECT_LT(message.size(), 300u);
  EXPECT_THAT(message, AllOf(HasSubstr("parse error"), Not(HasSubstr("["))));
}

TEST(JsonMembers, OfALargeObjectTakeNoQuadraticTime) {
  std::string line = "{";
  for (int i = 0; i < 200'000; ++i)
    line += concat(i == 0 ? "" : ",", "\"k", i, "\":", i);
  EXPECT_THAT(*json_members(line + "}", "line"), SizeIs(200'000));
}

}  // namespace
}  // namespace seqconv::internal
