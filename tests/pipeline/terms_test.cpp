#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/random.h"
#include "libtorch/backend/backend.h"
#include "pipeline/sentence_terms.h"
#include "pipeline/translator.h"
#include "runtime/runtime_backends.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"
#include "support/version_folders.h"

// Terms of models that have hardly learned anything, run by either backend.
namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Models of word pieces, one of them with protected pieces.
constexpr const char* kModels[] = {"fallback_3", "protected_pairs_6"};

Translator translator_of(
    const BackendOpener& opener, const std::string& model, const FilesBeside& beside = {}) {
  return {
      open_translation({testing::version_folders() / model}, opener, beside),
      {.search = {.beam = 2, .max_length_a = 2, .max_length_b = 40}}};
}

/// A model of word pieces, in the runtime.
Translator translator_of(const FilesBeside& beside = {}) {
  return translator_of(RuntimeBackends(), "fallback_3", beside);
}

TranslationOutcome translate(const Translator& translator, TranslationInput request) {
  return translator.translate({std::move(request)}).front();
}

std::string text_of(const TranslationOutcome& outcome) {
  return outcome.ok() ? outcome.translations.front().text : outcome.error;
}

/// Counts words in a text, between blanks, points or ends.
int64_t count_words(const std::string& text, const std::string& words) {
  std::string padded = " " + text + " ";
  for (char& c : padded)
    c = c == '.' || c == '!' ? ' ' : c;
  int64_t count = 0;
  for (size_t at = padded.find(" " + words + " "); at != padded.npos;
       at = padded.find(" " + words + " ", at + 1))
    ++count;
  return count;
}

/// Lines and terms of made-up words, drawn by a seed.
class MadeUpTerms {
 public:
  explicit MadeUpTerms(uint64_t seed) : seed_(seed) {}

  TranslationInput request() {
    TranslationInput request;
    const std::vector<std::string> words = {"dalan", "mira", "zo", "lurat", "tolu", "kebana"};
    size_t word = draw(2);
    for (; word < words.size(); word += 1 + draw(3)) {
      request.text += concat(request.text.empty() ? "" : " ", words[word]);
      if (draw(2) == 0)
        request.terms.push_back({words[word], target()});
    }
    return request;
  }

 private:
  size_t draw(size_t most) { return random_word(seed_, next_++) % most; }
  std::string target() {
    std::string target;
    for (size_t word = 1 + draw(2); word > 0; --word) {
      target += target.empty() ? "" : " ";
      for (size_t letter = 2 + draw(4); letter > 0; --letter)
        target += "dalnmirzotk"[draw(11)];
    }
    return target;
  }

  uint64_t seed_;
  uint64_t next_ = 0;
};

TEST(TermsOfModels, AllComeAsWholeWordsByEitherBackend) {
  const TorchBackends torch;
  const RuntimeBackends runtime;
  int64_t terms = 0;
  for (const char* const model : kModels)
    for (const BackendOpener* const opener :
         {static_cast<const BackendOpener*>(&torch), static_cast<const BackendOpener*>(&runtime)}) {
      SCOPED_TRACE(concat(model, " ", opener->name()));
      const Translator translator = translator_of(*opener, model);
      MadeUpTerms made(3);
      std::vector<TranslationInput> requests;
      for (int i = 0; i < testing::rounds(100); ++i)
        requests.push_back(made.request());
      const auto results = translator.translate(requests);
      for (size_t i = 0; i < requests.size(); ++i)
        for (const Term& term : requests[i].terms) {
          const int64_t wanted = count_words(requests[i].text, term.source);
          terms += wanted;
          EXPECT_GE(count_words(text_of(results[i]), term.target), wanted)
              << text_of(results[i]) << " of " << requests[i].text << ": " << term.target;
        }
    }
  EXPECT_GT(terms, 100);
}

TEST(TermsOfModels, ComeFromAFileAndFromRequestsWhichGoFirst) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "terms.tsv";
  std::ofstream(file) << "mira\ttolu zo\ndalan\tlurat\n";
  const Translator translator = translator_of({.terminology = file});
  EXPECT_EQ(count_words(text_of(translate(translator, {{.text = "Mira."}})), "tolu zo"), 1);
  const TranslationOutcome own =
      translate(translator, {{.text = "mira dalan", .terms = {{"mira", "kebana"}}}});
  EXPECT_EQ(count_words(text_of(own), "kebana"), 1) << text_of(own);
  EXPECT_EQ(count_words(text_of(own), "lurat"), 1) << text_of(own);
  EXPECT_EQ(count_words(text_of(own), "tolu zo"), 0) << text_of(own);
}

TEST(TermsOfModels, LeaveTextsWithoutThemAsTheyAre) {
  const Translator translator = translator_of();
  const auto plain = translate(translator, {{.text = "zo dalan."}});
  const auto results = translator.translate(
      {{{.text = "zo dalan.", .terms = {{"mira", "tolu"}}}},
       {{.text = "zo mira.", .terms = {{"mira", "kebana tolu"}}}}});
  EXPECT_EQ(text_of(results[0]), text_of(plain));
  EXPECT_EQ(results[0].translations[0].log_probability, plain.translations[0].log_probability);
  EXPECT_EQ(count_words(text_of(results[1]), "kebana tolu"), 1);
}

TEST(TermsOfModels, WhatCannotComeIsTold) {
  const Translator translator = translator_of();
  const auto unknown = translate(translator, {{.text = "mira", .terms = {{"mira", "ßß"}}}});
  EXPECT_THAT(unknown.notes, ElementsAre(HasSubstr("term 'ßß' is left out")));
  TranslationInput narrow{{.text = "mira", .terms = {{"mira", "tolu zo kebana lurat"}}}};
  narrow.search.max_length_a = 0;
  narrow.search.max_length_b = 2;
  narrow.search.min_length = 0;
  const auto cut = translate(translator, narrow);
  EXPECT_EQ(cut.status, Status::kOk);
  EXPECT_THAT(cut.notes, ElementsAre("term 'tolu zo kebana lurat' is not in the translation"));
  std::string many;
  for (int i = 0; i < 70; ++i)
    many += "mira ";
  const auto left = translate(translator, {{.text = many, .terms = {{"mira", "tolu"}}}});
  EXPECT_THAT(left.notes, ElementsAre(HasSubstr("6 terms are left out: a text has at most 64")));
}

TEST(TermsOfModels, BesideDrawsOrTokensAreInvalid) {
  const Translator translator = translator_of();
  TranslationInput drawn{{.text = "mira", .terms = {{"mira", "tolu"}}}};
  drawn.sampling = SamplingOptions();
  EXPECT_EQ(translate(translator, drawn).status, Status::kInvalid);
  TranslationInput tokens{{.terms = {{"mira", "tolu"}}}};
  tokens.tokens = std::vector<std::string>{"mira"};
  EXPECT_EQ(translate(translator, tokens).status, Status::kInvalid);
  const auto twice =
      translate(translator, {{.text = "mira", .terms = {{"mira", "tolu"}, {"mira", "zo"}}}});
  EXPECT_EQ(twice.status, Status::kInvalid);
  EXPECT_THAT(twice.error, HasSubstr("'mira' must have one translation"));
}

TEST(TermsOfModels, PiecesOfTermsMayStandThere) {
  const Translator translator = translator_of(RuntimeBackends(), "protected_pairs_6");
  const auto result =
      translate(translator, {{.text = "mira %1$s", .terms = {{"mira", "%1$s tolu"}}}});
  EXPECT_THAT(text_of(result), HasSubstr("%1$s tolu"));
}

TEST(TermsOfModels, HaveABlankInFrontWhereTheTextHas) {
  const std::vector<std::string> words = {"私", "の", "犬", "は", "走る", "猫", "と", "好き"};
  for (const bool has_blanks : {false, true}) {
    const testing::TemporaryFolder folder;
    const auto file = folder.path() / "train.ja";
    std::ofstream lines(file);
    for (int i = 0; i < 60; ++i) {
      for (size_t word = 0; word < words.size(); ++word)
        lines << (has_blanks && word > 0 ? " " : "")
              << words[(word * static_cast<size_t>(i) + word) % words.size()];
      lines << "\n";
    }
    lines.close();
    TextOptions options;
    options.subword_size = 24;
    options.sentencepiece_kind = SentencePieceKind::kBpe;
    const TranslationText text = TranslationText::create(options, {file}, {file});
    const TermWords terms(text.target);
    std::string symbols;
    for (const int32_t id : terms.encode("犬", kNoSlots))
      symbols += text.target->vocabulary().symbol(id);
    EXPECT_EQ(symbols, has_blanks ? "\u2581犬" : "犬");
  }
}

TEST(TermsOfModels, AFileThatIsNoneIsRefused) {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "terms.tsv";
  std::ofstream(file) << "mira\ttolu\nzo\n";
  try {
    translator_of({.terminology = file});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("terms.tsv:2: a term must be SOURCE<tab>TARGET"));
  }
}

}  // namespace
}  // namespace seqconv::internal
