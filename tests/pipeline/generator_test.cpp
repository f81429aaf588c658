#include "pipeline/generator.h"

#include <gmock/gmock.h>

#include <numbers>
#include <random>

#include "base/files.h"
#include "base/options.h"
#include "base/utf8.h"
#include "language_folder.h"
#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LanguageSettings;
using ::testing::StartsWith;

struct Generated {
  std::string text;
  GenerationReport report;
};

Generated generate(
    const LoadedLanguageModel& model, const std::string& prompt, const GenerationOptions& options) {
  Generated result;
  result.report = generate_text(make_system(model), prompt, options, [&](const std::string& text) {
    EXPECT_NE(text, "");
    result.text += text;
  });
  return result;
}

/// Ids with </s> between lines as text.
std::string lines_of(const TextPipeline& text, const std::vector<int64_t>& ids) {
  std::string lines;
  std::vector<int32_t> line;
  for (const int64_t id : ids) {
    line.push_back(static_cast<int32_t>(id));
    if (id != kEndId)
      continue;
    lines += text.decode(line) + "\n";
    line.clear();
  }
  return lines + text.decode(line);
}

class Generator : public testing::LanguageFolder {};

/// The most probable continuation, by one forward pass a token.
void expect_most_probable(
    const LoadedLanguageModel& model,
    const std::string& prompt,
    const std::vector<std::string>& lines) {
  std::vector<int64_t> ids = {kEndId};
  for (const std::string& line : lines) {
    if (&line != &lines.front())
      ids.push_back(kEndId);
    for (const int32_t id : model.text.text->encode(line))
      ids.push_back(id);
  }
  const auto prompt_tokens = std::ssize(ids) - 1;
  double log2_probability = 0;
  for (int step = 0; step < 25; ++step) {
    at::Tensor next = testing::next_probabilities(model, ids);
    next.narrow(0, 0, 2).fill_(-INFINITY);  // <s> and <pad> never come
    for (const int32_t id : model.text.text->vocabulary().padding())
      next[id] = -INFINITY;
    ids.push_back(next.argmax().item<int64_t>());
    log2_probability += next[ids.back()].item<double>() / std::numbers::ln2;
  }
  const Generated got = generate(model, prompt, {.length = 25, .sampling = {.temperature = 0}});
  EXPECT_EQ(
      got.text, replace_invalid_utf8(lines_of(*model.text.text, {ids.begin() + 1, ids.end()})));
  EXPECT_EQ(got.report.tokens, 25);
  EXPECT_EQ(got.report.prompt_tokens, prompt_tokens);
  EXPECT_NEAR(got.report.log2_probability, log2_probability, 1e-4 * std::abs(log2_probability));
}

TEST_F(Generator, AtTemperatureZeroTakesTheMostProbableToken) {
  for (const Subword subword : {Subword::kNone, Subword::kCharacters, Subword::kBytes}) {
    LanguageSettings settings;
    settings.text.subword = subword;
    const LoadedLanguageModel model = make(settings);
    expect_most_probable(model, "", {});
    expect_most_probable(model, "eins zwei", {"eins zwei"});
    expect_most_probable(model, "eins\n\ndrei", {"eins", "", "drei"});
    expect_most_probable(model, "acht\n", {"acht", ""});
  }
}

TEST_F(Generator, TheSeedDecides) {
  const LoadedLanguageModel model = make({});
  const auto text = [&](int64_t seed) {
    return generate(model, "eins", {.length = 60, .sampling = {.seed = seed}}).text;
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
  EXPECT_THAT(text(1), StartsWith("eins"));
}

TEST_F(Generator, AModelOfLinesStopsWhereOneOfBlocksGoesOn) {
  const LoadedLanguageModel blocks = make({});
  LoadedLanguageModel lines = blocks;
  lines.stream.samples = SampleKind::kLines;
  bool stopped = false;
  for (int64_t seed = 1; seed <= 20; ++seed) {
    const GenerationOptions options{.length = 100, .sampling = {.seed = seed}};
    const Generated all = generate(blocks, "eins", options);
    const Generated one = generate(lines, "eins", options);
    EXPECT_EQ(all.report.tokens, 100);
    EXPECT_EQ(one.text, all.text.substr(0, all.text.find('\n')));
    if (one.text == all.text)
      continue;
    stopped = true;
    EXPECT_EQ(
        one.report.tokens,
        std::ssize(lines.text.text->encode(one.text)));  // and </s>, not "eins"
  }
  EXPECT_TRUE(stopped);
}

TEST_F(Generator, GivesAsManyTokensAsAsked) {
  const LoadedLanguageModel model = make({});
  const Generated one = generate(model, "eins zwei", {.length = 1});
  EXPECT_EQ(one.report.tokens, 1);
  EXPECT_EQ(one.report.prompt_tokens, 2);
  EXPECT_EQ(generate(model, "", {.length = 30}).report.tokens, 30);
  EXPECT_EQ(
      testing::error_of<UsageError>([&] { generate(model, "eins", {.length = 0}); }),
      "length must be at least 1 token, but got 0");
}

TEST_F(Generator, LearnedPositionsBoundTheLength) {
  LanguageSettings settings;
  settings.model.positions = PositionKind::kLearned;
  settings.model.max_positions = 6;
  settings.stream.block_tokens = 6;
  const LoadedLanguageModel model = make(settings);
  EXPECT_EQ(generate(model, "", {.length = 6}).report.tokens, 6);
  EXPECT_EQ(generate(model, "eins zwei", {.length = 4}).report.tokens, 4);
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { generate(model, "eins zwei", {.length = 5}); }),
      HasSubstr("learned positions reach 6 tokens, but the prompt has 3"));
}

TEST_F(Generator, WithoutThePromptGivesWhatFollowsIt) {
  for (const Tokenizer tokenizer : {Tokenizer::kNone, Tokenizer::kMoses}) {
    LanguageSettings settings;
    settings.text.tokenizer = tokenizer;
    settings.text.language = tokenizer == Tokenizer::kMoses ? "de" : "";
    const LoadedLanguageModel model = make(settings);
    const GenerationOptions with{.length = 12};
    const std::string all = generate(model, "eins\nzwei drei", with).text;
    EXPECT_EQ(all.find("eins\nzwei drei"), 0u) << all;
    GenerationOptions without = with;
    without.show_prompt = false;
    EXPECT_EQ(
        generate(model, "eins\nzwei drei", without).text,
        all.substr(std::string_view("eins\nzwei drei").size()));
  }
}

TEST_F(Generator, StopsWhenItIsAskedTo) {
  const LoadedLanguageModel model = make({});
  int asked = 0;
  GenerationOptions options{.length = 30};
  options.stop = [&] { return ++asked > 3; };
  const Generated some = generate(model, "eins", options);
  EXPECT_TRUE(some.report.stopped);
  EXPECT_EQ(some.report.tokens, 3);
  options.stop = [] { return true; };
  EXPECT_EQ(generate(model, "eins", options).report.tokens, 0);
  EXPECT_FALSE(generate(model, "eins", {.length = 3}).report.stopped);
}

TEST_F(Generator, AnUnknownWordOfThePromptIsTold) {
  const LoadedLanguageModel model = make({});
  EXPECT_THAT(
      testing::error_of([&] { generate(model, "eins\nneun", {}); }),
      HasSubstr("the prompt: the symbol 'neun' is not in the model's"));
}

TEST_F(Generator, OneTaskIsNotTheOther) {
  make({});
  EXPECT_THAT(
      testing::error_of([&] { load_model(folder_.path() / "model"); }),
      AllOf(
          HasSubstr("must hold a translation model"),
          HasSubstr("seqconv perplexity and generate")));
  const std::string file = folder_.path() / "train";
  const TextOptions words{.subword = Subword::kNone};
  write_description(TranslationDescription{
      .folder = folder_.path() / "translation",
      .text = TranslationText::create(words, {file}, {file})});
  EXPECT_THAT(
      testing::error_of([&] { load_language_model(folder_.path() / "translation"); }),
      AllOf(HasSubstr("must hold a language model"), HasSubstr("seqconv translate and score")));
}

/// A text of every length of UTF-8, words that break into pieces, and repeats.
const std::string kCorpus = "das große Größenwahnsinn größer größte das\n"
                            "日本語 の 文字 と 😀😀 emoji 😀\n"
                            "naïve café größer größte große naïve 日本語\n";

class Streamed : public ::testing::TestWithParam<Subword> {
 protected:
  Streamed() {
    TextOptions options{.subword = GetParam(), .subword_size = 30};
    if (GetParam() == Subword::kSentencePiece) {
      options.subword_size = 60;
      options.character_coverage = 1;
    }
    text_ = LanguageText::create(options, {folder_.write("text", kCorpus)}).text;
  }

  /// Adds all ids and compares with the whole line's text.
  void expect_whole(const std::vector<int32_t>& ids) {
    TextStream stream(text_);
    std::string all;
    const auto take = [&](const std::string& piece) {
      EXPECT_EQ(find_invalid_utf8(piece), std::string::npos)
          << "within a character after '" << all << "'";
      all += piece;
    };
    for (const int32_t id : ids)
      take(stream.add(id));
    all += stream.finish();
    EXPECT_EQ(all, text_->decode(ids));
  }

  testing::TemporaryFolder folder_;
  std::shared_ptr<const TextPipeline> text_;
};

INSTANTIATE_TEST_SUITE_P(
    Text,
    Streamed,
    ::testing::Values(
        Subword::kNone,
        Subword::kBpe,
        Subword::kSentencePiece,
        Subword::kCharacters,
        Subword::kBytes),
    [](const auto& info) { return std::string(enum_name(info.param)); });

TEST_P(Streamed, LinesComeOutWhole) {
  std::string line;
  for (const std::string part : {"das große 日本語", "naïve 😀😀 café"}) {
    expect_whole(text_->encode(part));
    line += part + " ";
  }
  while (text_->encode(line).size() < 200)
    line += "größte 文字 😀 das ";
  line.pop_back();
  expect_whole(text_->encode(line));
}

TEST_P(Streamed, TextComesAsSoonAsItIsThere) {
  TextStream stream(text_);
  const std::vector<int32_t> ids = text_->encode("das große naïve das das");
  size_t most = 0, shown = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    shown += stream.add(ids[i]).size();
    const std::vector<int32_t> so_far(ids.begin(), ids.begin() + i + 1);
    most = std::max(most, text_->decode(so_far).size() - shown);
  }
  EXPECT_LE(most, 3u);  // a character that is not complete
}

TEST_P(Streamed, AnEndIsALineBreakAndBeginsAnew) {
  TextStream stream(text_);
  std::string all;
  const std::vector<int32_t> ids = text_->encode("das große");
  for (int line = 0; line < 2; ++line) {
    for (const int32_t id : ids)
      all += stream.add(id);
    all += stream.add(kEndId);
  }
  EXPECT_EQ(all, "das große\ndas große\n");
  EXPECT_EQ(stream.add(kEndId), "\n");
  EXPECT_EQ(stream.finish(), "");
}

TEST_P(Streamed, WhatIsPassedOverIsNotGivenOut) {
  TextStream stream(text_);
  std::string all;
  for (const int32_t id : text_->encode("das große"))
    stream.add(id);
  stream.pass_over();
  const std::vector<int32_t> ids = text_->encode("das große naïve das");
  const auto read = std::ssize(text_->encode("das große"));
  for (auto id = ids.begin() + read; id != ids.end(); ++id)
    all += stream.add(*id);
  EXPECT_EQ(all + stream.finish(), " naïve das");
}

TEST_P(Streamed, WhateverComesNothingIsLost) {
  std::mt19937 random(5);
  const auto size = static_cast<uint32_t>(text_->vocabulary().size());
  for (int line = 0; line < 50; ++line) {
    std::vector<int32_t> ids(200);
    for (int32_t& id : ids)
      id = static_cast<int32_t>(3 + random() % (size - 3));
    std::replace(ids.begin(), ids.end(), kEndId, 4);
    TextStream stream(text_);
    std::string all;
    for (const int32_t id : ids) {
      const std::string piece = stream.add(id);
      EXPECT_EQ(find_invalid_utf8(piece), std::string::npos);
      all += piece;
    }
    all += stream.finish();
    EXPECT_EQ(all, replace_invalid_utf8(text_->decode(ids)));
  }
}

/// A model of bytes may go on for ever without making a character.
TEST(StreamedBytes, AreHeardThoughTheyMakeNoCharacter) {
  testing::TemporaryFolder folder;
  const auto text = LanguageText::create(
                        {.subword = Subword::kSentencePiece,
                         .subword_size = 300,
                         .sentencepiece_byte_fallback = true},
                        {folder.write("text", kCorpus)})
                        .text;
  for (const char* byte : {"<0x80>", "<0xE6>", "<0xF0>"}) {
    const int32_t id = text->vocabulary().id(byte);
    ASSERT_NE(id, kUnknownId) << byte;
    TextStream stream(text);
    std::string all;
    for (int i = 0; i < 20'000; ++i) {
      all += stream.add(id);
      // A sign is three bytes; three of them may become a character still.
      ASSERT_GE(std::ssize(all), 3 * (i + 1 - 3)) << byte;
    }
    all += stream.finish();
    EXPECT_EQ(all, text->decode(std::vector<int32_t>(20'000, id)));
  }
}

TEST_F(Generator, MosesTokensComeByWholeLines) {
  LanguageSettings settings;
  settings.training = "The dog's asleep (here).\nA man, a \"dog\".\n";
  settings.text.tokenizer = Tokenizer::kMoses;
  settings.text.language = "en";
  const LoadedLanguageModel model = make(settings);
  TextStream stream(model.text.text);
  for (const char* line : {"The dog's asleep (here).", "A man, a \"dog\"."}) {
    for (const int32_t id : model.text.text->encode(line))
      EXPECT_EQ(stream.add(id), "");
    EXPECT_EQ(stream.add(kEndId), std::string(line) + "\n");
  }
  stream.add(model.text.text->encode("dog").front());
  EXPECT_EQ(stream.finish(), "dog");
  const Json config = Json::parse(read_file(folder_.path() / "model" / "config.json"));
  EXPECT_EQ(config["format_version"], 2);
}

class ProtectedGenerator : public Generator {
 protected:
  LoadedLanguageModel make_protected() {
    LanguageSettings settings;
    settings.training += "( ),\n";
    settings.text.protect = {PieceKind::kPlaceholders, PieceKind::kUrls};
    return make(settings);
  }
};

TEST_F(ProtectedGenerator, SpellsThePiecesOfEachLineOfAPrompt) {
  const LoadedLanguageModel model = make_protected();
  const std::string prompt = "eins {a} zwei\ndrei (%d), http://a.b {a}";
  EXPECT_THAT(generate(model, prompt, {.length = 1}).text, StartsWith(prompt));
}

TEST_F(ProtectedGenerator, DrawsSlotsOfTheLineAlone) {
  const LoadedLanguageModel model = make_protected();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string text =
        generate(
            model, "eins {a}", {.length = 60, .sampling = {.seed = seed}, .show_prompt = false})
            .text;
    EXPECT_EQ(text.find("<slot:"), std::string::npos) << text;
    EXPECT_EQ(text.find("{a}", text.find('\n')), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace seqconv::internal
