#include "text/documents.h"

#include <gmock/gmock.h>

#include "support/errors.h"
#include "support/temporary_folder.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr const char* kStory = "(CNN) -- It rained.\r\n\r\n@entity1 was wet , says @entity2 .\n\n"
                               "@highlight\n\nIt rained\n\n@highlight \n\n@entity1 got\nwet\n"
                               "@highlight\n";

std::vector<std::string> read(const TextSource& source) {
  std::vector<std::string> texts;
  std::string text;
  for (TextSourceReader reader(source); reader.next(text);)
    texts.push_back(text);
  return texts;
}

TextSource both(const std::string& file, PairSide side, TextFormat format = TextFormat::kJson) {
  TextSource source(file);
  source.format = format;
  source.side = side;
  source.key = side == PairSide::kSource ? "in.text" : "out";
  return source;
}

TEST(Documents, LinesBecomeOneLine) {
  const std::vector<std::string> texts = {" a  b \r\n\n\tc\n", "", "d\u2028e"};
  EXPECT_EQ(document_line(texts), "a  b c d e");
  EXPECT_EQ(summary_line(texts), "a  b ␤ c ␤ d ␤ e");
  EXPECT_EQ(document_line({"\n \n"}), "");
  EXPECT_EQ(summary_line({}), "");
}

TEST(Documents, SentencesOfASummaryComeBack) {
  EXPECT_EQ(sentence_lines(summary_line({"a b.\nc", "d"})), "a b.\nc\nd");
  EXPECT_EQ(sentence_lines("a␤b  ␤  c ␤"), "a\nb\nc\n");
  EXPECT_EQ(sentence_lines("␤␤"), "\n\n");
  EXPECT_EQ(sentence_lines(" a b "), " a b ");
  EXPECT_EQ(sentence_lines(""), "");
}

TEST(Documents, AStoryIsAnArticleAndItsHighlights) {
  TemporaryFolder folder;
  const Story story = read_story(folder.write("a.story", kStory));
  EXPECT_EQ(story.article, "(CNN) -- It rained. @entity1 was wet , says @entity2 .");
  EXPECT_THAT(story.highlights, ElementsAre("It rained", "@entity1 got wet"));
}

TEST(TextSources, ReadBothSidesOfJsonLines) {
  TemporaryFolder folder;
  const std::string file = folder.write(
      "a.jsonl",
      R"({"in": {"text": "one\ntwo"}, "out": "x.\ny."}
{"out": ["z"], "in": {"text": ["a", "b\r\nc"]}}
{"in": {"text": ""}, "out": "only"}
)");
  EXPECT_THAT(read(both(file, PairSide::kSource)), ElementsAre("one two", "a b c", ""));
  EXPECT_THAT(read(both(file, PairSide::kTarget)), ElementsAre("x. ␤ y.", "z", "only"));
}

TEST(TextSources, PassBlankLinesBetweenObjectsOver) {
  TemporaryFolder folder;
  const std::string file =
      folder.write("a.jsonl", "\n{\"out\": \"a\"}\n \t\n\r\n{\"out\": \"b\"}\n{}\n\n");
  TextSourceReader reader(both(file, PairSide::kTarget));
  std::string text;
  EXPECT_TRUE(reader.next(text));
  EXPECT_EQ(text, "a");
  EXPECT_TRUE(reader.next(text));
  EXPECT_EQ(text, "b");
  EXPECT_EQ(reader.line_number(), 5);
  EXPECT_EQ(reader.blank_lines(), 3);
  EXPECT_THAT(error_of([&] { reader.next(text); }), HasSubstr("a.jsonl:6"));
  EXPECT_FALSE(reader.next(text));
  EXPECT_EQ(reader.blank_lines(), 4);
}

TEST(TextSources, ReadStoriesByTheirNames) {
  TemporaryFolder folder;
  folder.write("a.story", kStory);
  folder.write("b", "\n@highlight\nb\n");
  TextSource source =
      both(folder.write("list", "b\na\n a.story\r\n"), PairSide::kTarget, TextFormat::kStory);
  source.folders = {"nowhere", folder.path()};
  EXPECT_THAT(
      read(source),
      ElementsAre("b", "It rained ␤ @entity1 got wet", "It rained ␤ @entity1 got wet"));
  EXPECT_EQ(files_of(source).size(), 4U);
  source.side = PairSide::kSource;
  EXPECT_EQ(read(source)[0], "");
}

TEST(TextSources, ReadStoriesByTheAddressesOfTheirArticles) {
  TemporaryFolder folder;
  const std::string address = "http://web.archive.org/web/x/http://cnn.com/1";
  folder.write("881ddeba9055c903ec48426a57011d647d903e4d.story", kStory);
  TextSource source = both(
      folder.write("list", address + "\r\nhttps://lost\n"), PairSide::kTarget, TextFormat::kStory);
  source.folders = {folder.path()};
  TextSourceReader reader(source);
  std::string text;
  EXPECT_TRUE(reader.next(text));
  EXPECT_EQ(text, "It rained ␤ @entity1 got wet");
  EXPECT_THAT(
      error_of([&] { reader.next(text); }),
      HasSubstr("list:2: there is no story '1c57072953144408a360da24785a6205eacbfd13'"));
}

TEST(TextSources, BadStoriesAreNamed) {
  TemporaryFolder folder;
  folder.write("good", kStory);
  folder.write("none", "No more.\n@highlight\n\n");
  folder.write("bytes", "a\n\xFF\n");
  const auto error = [&](const std::string& name) {
    TextSource source = both(
        folder.write("list", concat("good\n", name, "\n")), PairSide::kTarget, TextFormat::kStory);
    source.folders = {folder.path()};
    return error_of([&] { read(source); });
  };
  EXPECT_THAT(
      error("none"),
      AllOf(HasSubstr("list:2: "), HasSubstr("none: a story must have a line \"@highlight\"")));
  EXPECT_THAT(error("bytes"), HasSubstr("bytes:2: UTF-8 was wanted"));
  EXPECT_THAT(
      error("lost"), HasSubstr("list:2: there is no story 'lost', with or without '.story', in '"));
  EXPECT_THAT(error(" "), HasSubstr("list:2: the name of a story was wanted"));
  EXPECT_THAT(error(std::string(9999, 'x')), HasSubstr("there is no story"));
}

TEST(TextSources, JsonWithoutATextIsNamed) {
  TemporaryFolder folder;
  const auto error = [&](const std::string& line) {
    const std::string file = folder.write(
        "a.jsonl",
        R"({"in": {"text": "a"}, "out": "b"})"
        "\n" +
            line + "\n");
    return error_of([&] { read(both(file, PairSide::kTarget)); });
  };
  EXPECT_THAT(error("{}"), HasSubstr("a.jsonl:2: there is no \"out\""));
  EXPECT_THAT(error(R"({"out": 1})"), HasSubstr("a.jsonl:2: \"out\" must be"));
  EXPECT_THAT(error("{\"out\": "), HasSubstr("a.jsonl:2: not valid JSON"));
  EXPECT_THAT(
      error(R"({"out": ["a", "b"]})"),
      HasSubstr(
          "a.jsonl:2: \"out\" must be one text, but is a list of 2: \"out.0\" names the first"));
  EXPECT_THAT(
      error(R"({"out": "a \u0000"})"), HasSubstr("a.jsonl:2: \"out\" must be text, but holds NUL"));
}

TEST(TextSources, SubwordsAreLearnedFromTheSameTexts) {
  TemporaryFolder folder;
  const std::string file = folder.write(
      "a.jsonl",
      R"({"id": "zz", "in": {"text": "wet wet\ncat"}, "out": "cat.\nwet."})"
      "\n");
  for (const Subword kind : {Subword::kNone, Subword::kBpe, Subword::kSentencePiece}) {
    const auto text = TranslationText::create(
        {.subword = kind, .subword_size = 12},
        {both(file, PairSide::kSource)},
        {both(file, PairSide::kTarget)});
    EXPECT_THAT(text.source_samples, ElementsAre("wet wet cat"));
    EXPECT_THAT(text.target_samples, ElementsAre("cat. ␤ wet."));
    const auto& target = *text.target;
    const auto ids = target.encode("cat. ␤ wet.");
    EXPECT_EQ(target.decode(ids), "cat. ␤ wet.");
    EXPECT_THAT(target.vocabulary().symbols(), ::testing::Not(::testing::Contains(HasSubstr("z"))));
  }
}

}  // namespace
}  // namespace seqconv::internal
