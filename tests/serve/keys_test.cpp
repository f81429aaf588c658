#include "serve/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/languages.h"
#include "serve/metrics.h"
#include "serve/rate_limits.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

// SHA-256 of "abc", as FIPS 180-4 has it.
constexpr const char* kHashOfAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class Keys : public ::testing::Test {
 protected:
  ApiKeys read(const std::string& text) { return ApiKeys(folder_.write("keys", text)); }

  testing::TemporaryFolder folder_;
};

TEST_F(Keys, AreFoundByTheirHash) {
  const ApiKeys keys = read(std::string("# all\n\nanna ") + kHashOfAbc + " 30 # half a second\n");
  ASSERT_NE(keys.find("abc"), nullptr);
  EXPECT_EQ(keys.find("abc")->name, "anna");
  EXPECT_EQ(keys.find("abc")->requests_per_minute, 30);
  for (const char* wrong : {"", "ab", "abcd", "Abc", kHashOfAbc})
    EXPECT_EQ(keys.find(wrong), nullptr) << wrong;
  EXPECT_EQ(ApiKeys().find("abc"), nullptr);
}

TEST_F(Keys, AreRandomAndReadBack) {
  const NewApiKey one = make_api_key("one"), two = make_api_key("two");
  EXPECT_NE(one.key, two.key);
  EXPECT_EQ(one.key.size(), 64U);
  const ApiKeys keys = read(one.line + "\n" + two.line + "\n");
  EXPECT_EQ(keys.find(one.key)->name, "one");
  EXPECT_EQ(keys.find(two.key)->name, "two");
}

TEST_F(Keys, RefuseLinesThatAreNone) {
  const std::string good = std::string("anna ") + kHashOfAbc;
  for (const std::string& line :
       {std::string("anna"),
        good.substr(0, good.size() - 1),
        good + "0",
        good + " x",
        good + " -1",
        good + " 1 2",
        "anna " + std::string(64, 'g')}) {
    SCOPED_TRACE(line);
    EXPECT_THAT(testing::error_of([&] { read(line); }), HasSubstr("keys:1: a line must be NAME"));
  }
  const std::string other = std::string("otto ") + kHashOfAbc;
  EXPECT_THAT(testing::error_of([&] { read(good + "\n" + other); }), HasSubstr("keys:2: a name"));
}

TEST(RateLimits, LetSoManyThroughInAMinute) {
  RateLimits limits;
  const auto start = RateLimits::Clock::now();
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(limits.take("a", 6, start), std::nullopt);
  const auto wait = limits.take("a", 6, start);
  ASSERT_TRUE(wait.has_value());
  EXPECT_NEAR(*wait, 10, 1e-6);
  EXPECT_EQ(limits.take("b", 6, start), std::nullopt);
  EXPECT_NE(limits.take("a", 6, start + 9s), std::nullopt);
  EXPECT_EQ(limits.take("a", 6, start + 11s), std::nullopt);
  EXPECT_EQ(limits.take("c", 0, start), std::nullopt);
}

TEST(RateLimits, ForgetClients) {
  RateLimits limits;
  auto now = RateLimits::Clock::now();
  for (int i = 0; i < 100'000; ++i, now += 1ms)
    limits.take(std::to_string(i), 1, now);
  limits.take("last", 1, now + 2min);
  limits.take("last", 1, now + 4min);
  EXPECT_LE(limits.size(), 2U);
}

TEST(Languages, HaveNamesAndAliases) {
  EXPECT_EQ(language_name("de"), "German");
  EXPECT_EQ(language_name("pt-BR"), "Portuguese (Brazil)");
  EXPECT_EQ(language_name("PT_br"), "Portuguese (Brazil)");
  EXPECT_EQ(language_name("zt"), language_name("zh-Hant"));
  EXPECT_EQ(language_name("tlh"), "tlh");
  EXPECT_EQ(normal_code("DE"), "de");
}

TEST(Metrics, EscapeLabelsAndCount) {
  Metrics metrics;
  metrics.add_request("/translate", 200, 0.02);
  metrics.add_request("/translate", 200, 100);
  metrics.add_translation("de", "a\"b\\", 3, 10);
  const std::string text = metrics.text({{"seqconv_connections", "", 4}});
  for (const char* line :
       {"seqconv_requests_total{route=\"/translate\",status=\"200\"} 2\n",
        "seqconv_request_seconds_bucket{route=\"/translate\",le=\"0.025\"} 1\n",
        "seqconv_request_seconds_bucket{route=\"/translate\",le=\"+Inf\"} 2\n",
        "seqconv_translated_sentences_total{source=\"de\",target=\"a\\\"b\\\\\"} 3\n",
        "# TYPE seqconv_connections gauge\nseqconv_connections 4\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

}  // namespace
}  // namespace seqconv::internal
