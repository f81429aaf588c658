#include <gmock/gmock.h>
#include <malloc.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "models.h"
#include "runtime/api/arguments.h"
#include "seqconv/seqconv.h"

#ifdef __SANITIZE_ADDRESS__
extern "C" size_t __sanitizer_get_current_allocated_bytes();
#endif

/// The library as C sees it: include/seqconv/seqconv.h.
namespace seqconv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

using Model = std::unique_ptr<seqconv_model, decltype(&seqconv_close)>;
using Result = std::unique_ptr<seqconv_result, decltype(&seqconv_result_free)>;
using Queue = std::unique_ptr<seqconv_queue, decltype(&seqconv_queue_free)>;
using Token = std::unique_ptr<seqconv_cancel_token, decltype(&seqconv_cancel_token_free)>;

Result owned(seqconv_result* result) {
  return {result, seqconv_result_free};
}

Model open(const std::string& folder, const seqconv_runtime_options* options = nullptr) {
  const char* const name = folder.c_str();
  seqconv_model* model = nullptr;
  EXPECT_EQ(seqconv_open(&name, 1, options, &model), SEQCONV_OK) << seqconv_last_error();
  return {model, seqconv_close};
}

Queue new_queue() {
  seqconv_queue* queue = nullptr;
  EXPECT_EQ(seqconv_queue_new(&queue), SEQCONV_OK) << seqconv_last_error();
  return {queue, seqconv_queue_free};
}

Token new_token() {
  seqconv_cancel_token* token = nullptr;
  EXPECT_EQ(seqconv_cancel_token_new(&token), SEQCONV_OK) << seqconv_last_error();
  return {token, seqconv_cancel_token_free};
}

std::string string_of(const seqconv_text& text) {
  EXPECT_EQ(text.data[text.size], '\0');
  return {text.data, static_cast<size_t>(text.size)};
}

seqconv_translation_request asking(const char* text) {
  seqconv_translation_request request = SEQCONV_TRANSLATION_REQUEST_INIT;
  request.text = seqconv_text_of(text);
  return request;
}

/// The only result of a request.
Result translate(const Model& model, const seqconv_translation_request& request) {
  seqconv_result* result = nullptr;
  EXPECT_EQ(seqconv_translate(model.get(), &request, 1, nullptr, &result), SEQCONV_OK)
      << seqconv_last_error();
  return owned(result);
}

std::string best_of(const Result& result) {
  EXPECT_EQ(result->status, SEQCONV_OK) << result->error.data;
  return result->output_count == 0 ? "" : string_of(result->outputs[0]->text);
}

/// Bytes of the heap in use.
int64_t heap_bytes() {
#ifdef __SANITIZE_ADDRESS__
  return static_cast<int64_t>(__sanitizer_get_current_allocated_bytes());
#else
  const struct mallinfo2 all = ::mallinfo2();
  return static_cast<int64_t>(all.uordblks + all.hblkhd);
#endif
}

/// Search options that end nowhere soon.
struct Endless {
  seqconv_search_options search = SEQCONV_SEARCH_OPTIONS_INIT;
  seqconv_translation_request request = asking("dalan mira");

  Endless() {
    search.beam = 400;
    search.min_length = 1'000'000;
    search.max_length_b = 1'000'000;
    request.search = &search;
  }
  Endless(const Endless&) = delete;
  Endless& operator=(const Endless&) = delete;
};

// ---- Layout: a change breaks programs that are compiled (docs/versioning.md) -------------------

// A struct that has a size may grow at its end: kFirstSize becomes the number here before.
static_assert(sizeof(seqconv_text) == 16 && sizeof(seqconv_byte_range) == 16);
static_assert(sizeof(seqconv_aligned_tokens) == 16);
static_assert(sizeof(seqconv_term) == 32);
static_assert(sizeof(seqconv_runtime_options) == 88);
static_assert(offsetof(seqconv_runtime_options, threads) == 24);
static_assert(offsetof(seqconv_runtime_options, shortlist) == 64);
static_assert(offsetof(seqconv_runtime_options, max_wait_ms) == 72);
static_assert(offsetof(seqconv_runtime_options, terminology) == 80);
static_assert(sizeof(seqconv_search_options) == 80);
static_assert(offsetof(seqconv_search_options, max_length_a) == 48);
static_assert(offsetof(seqconv_search_options, stepwise_length_penalty) == 76);
static_assert(sizeof(seqconv_sampling_options) == 48);
static_assert(offsetof(seqconv_sampling_options, seed) == 40);
static_assert(sizeof(seqconv_model_info) == 104);
static_assert(offsetof(seqconv_model_info, search) == 96);
static_assert(sizeof(seqconv_output) == 96);
static_assert(offsetof(seqconv_output, source_shares) == 88);
static_assert(sizeof(seqconv_result) == 96);
static_assert(offsetof(seqconv_result, kept_bytes) == 88);
static_assert(sizeof(seqconv_translation_request) == 120);
static_assert(offsetof(seqconv_translation_request, timeout_ms) == 96);
static_assert(offsetof(seqconv_translation_request, terms) == 104);
static_assert(sizeof(seqconv_score_request) == 48);
static_assert(sizeof(seqconv_generation_request) == 72);
static_assert(offsetof(seqconv_generation_request, timeout_ms) == 64);
static_assert(sizeof(seqconv_call) == 40);
static_assert(sizeof(seqconv_event) == 24);
static_assert(sizeof(seqconv_scores) == 64);
static_assert(
    SEQCONV_OK == 0 && SEQCONV_TIMED_OUT == 5 && SEQCONV_PART == 8 && SEQCONV_MODEL_ERROR == 16 &&
    SEQCONV_ERROR == 22);

/// A struct that has grown since its first release.
struct Grown {
  size_t size;
  int64_t first;
  int64_t added;
};

}  // namespace
}  // namespace seqconv
template <>
constexpr size_t seqconv::internal::kFirstSize<seqconv::Grown> = 16;
namespace seqconv {
namespace {

TEST(CLayout, StructsOfOlderProgramsHaveTheDefaultsOfTheirTime) {
  const Grown defaults = {sizeof(Grown), 1, 2};
  const Grown newest = {24, 5, 6}, older = {16, 5, 6};
  EXPECT_EQ(internal::read_struct(&newest, defaults, "grown").added, 6);
  const Grown read = internal::read_struct(&older, defaults, "grown");
  EXPECT_EQ(read.first, 5);
  EXPECT_EQ(read.added, 2);
  EXPECT_EQ(read.size, sizeof(Grown));
  EXPECT_EQ(internal::read_struct<Grown>(nullptr, defaults, "grown").added, 2);
  for (const size_t size : {0, 8, 15, 25, 32}) {
    const Grown wrong = {size, 5, 6};
    EXPECT_THROW(internal::read_struct(&wrong, defaults, "grown"), internal::CallError) << size;
  }
}

// ---- Texts, tokens, scores ---------------------------------------------------------------------

TEST(CInterface, TranslatesAsTheClassesDo) {
  const Model model = open(kModel);
  const Translation wanted = Translator(kModel).translate("dalan mira");
  char* text = nullptr;
  ASSERT_EQ(seqconv_translate_text(model.get(), "dalan mira", &text), SEQCONV_OK);
  EXPECT_EQ(text, wanted.text);
  seqconv_free(text);
  const Result result = translate(model, asking("dalan mira"));
  const seqconv_output& best = *result->outputs[0];
  EXPECT_EQ(best_of(result), wanted.text);
  EXPECT_EQ(best.score, wanted.score);
  seqconv_result* joined = nullptr;
  ASSERT_EQ(
      seqconv_detokenize(model.get(), SEQCONV_TARGET, best.tokens, best.token_count, &joined),
      SEQCONV_OK);
  EXPECT_EQ(best_of(owned(joined)), wanted.text);
  ASSERT_EQ(best.token_count, std::ssize(wanted.tokens));
  for (int64_t i = 0; i < best.token_count; ++i) {
    EXPECT_EQ(string_of(best.tokens[i]), wanted.tokens[static_cast<size_t>(i)]);
    EXPECT_EQ(best.token_scores[i], wanted.token_scores[static_cast<size_t>(i)]);
  }
  // The Python package reads them as one block.
  for (int64_t i = 1; i < best.token_count; ++i)
    EXPECT_EQ(best.tokens[i - 1].data + best.tokens[i - 1].size + 1, best.tokens[i].data);
  EXPECT_EQ(best.pairs, nullptr);
  EXPECT_EQ(result->source_tokens, nullptr);
}

TEST(CInterface, TakesTokensInsteadOfTexts) {
  const Model model = open(kModel);
  const seqconv_text tokens[] = {seqconv_text_of("dalan"), {"miraculous", 4}};
  seqconv_translation_request request = SEQCONV_TRANSLATION_REQUEST_INIT;
  request.tokens = tokens;
  request.token_count = 2;
  EXPECT_EQ(best_of(translate(model, request)), best_of(translate(model, asking("dalan mira"))));
  const seqconv_text prefix[] = {seqconv_text_of("zo"), seqconv_text_of("nowhere")};
  request.prefix_tokens = prefix;
  request.prefix_token_count = 2;
  const Result begun = translate(model, request);
  EXPECT_THAT(best_of(begun), ::testing::StartsWith("zo <unk>"));
  EXPECT_THAT(string_of(begun->notes[0]), HasSubstr("1 of the 2 symbols of the target prefix"));
  request = SEQCONV_TRANSLATION_REQUEST_INIT;
  request.tokens = tokens;  // some, of which there are none
  EXPECT_EQ(best_of(translate(model, request)), "");
}

TEST(CInterface, HeedsTerms) {
  const Model model = open(kModel);
  const seqconv_term term{seqconv_text_of("mira"), seqconv_text_of("tolu kebana")};
  seqconv_translation_request request = asking("dalan mira");
  request.terms = &term;
  request.term_count = 1;
  EXPECT_THAT(best_of(translate(model, request)), HasSubstr("tolu kebana"));
  request.size = offsetof(seqconv_translation_request, terms);  // of an older header
  EXPECT_THAT(best_of(translate(model, request)), ::testing::Not(HasSubstr("tolu kebana")));
  request.size = sizeof(request);
  request.term_count = -1;
  seqconv_result* none = nullptr;
  EXPECT_EQ(seqconv_translate(model.get(), &request, 1, nullptr, &none), SEQCONV_OPTION_ERROR);
  EXPECT_THAT(seqconv_last_error(), HasSubstr("terms must be at least 0"));
}

TEST(CInterface, KeepsProtectedPieces) {
  const Model model = open(kProtectedModel);
  const Result text = translate(model, asking("dalan {name} mira %d"));
  EXPECT_THAT(best_of(text), ::testing::AllOf(HasSubstr("{name}"), HasSubstr("%d")));
  // Tokens have slots, which stay what they are.
  seqconv_result* found = nullptr;
  ASSERT_EQ(
      seqconv_tokenize(model.get(), SEQCONV_SOURCE, seqconv_text_of("%d {a}"), &found), SEQCONV_OK);
  const Result tokens = owned(found);
  const seqconv_output& output = *tokens->outputs[0];
  ASSERT_EQ(output.token_count, 2);
  EXPECT_EQ(string_of(output.tokens[1]), "<slot:2>");
  ASSERT_EQ(seqconv_detokenize(model.get(), SEQCONV_TARGET, output.tokens, 2, &found), SEQCONV_OK);
  EXPECT_EQ(best_of(owned(found)), "<slot:1> <slot:2>");
}

TEST(CInterface, MakesTokensOfTextsAndTextsOfTokens) {
  const Model model = open(kModel);
  seqconv_result* found = nullptr;
  ASSERT_EQ(
      seqconv_tokenize(model.get(), SEQCONV_SOURCE, seqconv_text_of(" dalan  zzz "), &found),
      SEQCONV_OK);
  const Result tokens = owned(found);
  const seqconv_output& output = *tokens->outputs[0];
  ASSERT_EQ(output.token_count, 2);
  EXPECT_EQ(string_of(output.tokens[1]), "zzz");
  ASSERT_EQ(seqconv_detokenize(model.get(), SEQCONV_TARGET, output.tokens, 2, &found), SEQCONV_OK);
  EXPECT_EQ(best_of(owned(found)), "dalan <unk>");
  EXPECT_EQ(
      seqconv_tokenize(model.get(), SEQCONV_SOURCE, seqconv_text_of("\xff"), &found),
      SEQCONV_INVALID);
  EXPECT_THAT(seqconv_last_error(), HasSubstr("must be UTF-8"));
  EXPECT_EQ(seqconv_tokenize(model.get(), 2, seqconv_text_of(""), &found), SEQCONV_OPTION_ERROR);
  const Model language = open(kLanguageModel);
  EXPECT_EQ(
      seqconv_tokenize(language.get(), SEQCONV_SOURCE, seqconv_text_of("a"), &found),
      SEQCONV_OPTION_ERROR);
}

TEST(CInterface, TellsAlignments) {
  const Model model = open(kModel);
  seqconv_translation_request request = asking("dalan mira");
  request.alignments = SEQCONV_ALIGNMENTS_SHARES;
  const Result result = translate(model, request);
  ASSERT_EQ(result->source_token_count, 3);
  EXPECT_EQ(string_of(result->source_tokens[2]), "</s>");
  EXPECT_EQ(result->source_ranges[1].begin, 6);
  const seqconv_output& best = *result->outputs[0];
  EXPECT_GT(best.pair_count, 0);
  EXPECT_LT(best.pairs[0].source, 2);
  float sum = 0;
  for (int64_t s = 0; s < 3; ++s)
    sum += best.source_shares[3 * (best.token_count - 1) + s];
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_EQ(best.token_ranges[best.token_count - 1].begin, best.text.size);
}

TEST(CInterface, SummarisesDocuments) {
  const Model model = open(kModel);
  const auto summary = [&](const char* text) {
    seqconv_result* result = nullptr;
    const seqconv_translation_request request = asking(text);
    EXPECT_EQ(seqconv_summarise(model.get(), &request, 1, nullptr, &result), SEQCONV_OK);
    return best_of(owned(result));
  };
  EXPECT_EQ(summary("dalan\n\n  mira\n"), best_of(translate(model, asking("dalan mira"))));
  seqconv_translation_request request = asking("dalan");
  request.alignments = SEQCONV_ALIGNMENTS_PAIRS;
  seqconv_result* result = nullptr;
  EXPECT_EQ(seqconv_summarise(model.get(), &request, 1, nullptr, &result), SEQCONV_OPTION_ERROR);
}

TEST(CInterface, ScoresTranslations) {
  const Model model = open(kModel);
  seqconv_score_request requests[] = {SEQCONV_SCORE_REQUEST_INIT, SEQCONV_SCORE_REQUEST_INIT};
  requests[0].source = seqconv_text_of("dalan");
  requests[0].target = seqconv_text_of("mira");
  requests[1].source = seqconv_text_of("\xff");
  seqconv_result* results[2];
  ASSERT_EQ(seqconv_score(model.get(), requests, 2, nullptr, results), SEQCONV_OK);
  const Result first = owned(results[0]), second = owned(results[1]);
  EXPECT_EQ(first->outputs[0]->log_probability, Scorer(kModel).score("dalan", "mira"));
  EXPECT_EQ(second->status, SEQCONV_INVALID);
  EXPECT_EQ(second->output_count, 0);
  EXPECT_THAT(string_of(second->error), HasSubstr("must be UTF-8"));
}

TEST(CInterface, GoesOnWithTexts) {
  const Model model = open(kLanguageModel);
  seqconv_generation_request requests[] = {
      SEQCONV_GENERATION_REQUEST_INIT, SEQCONV_GENERATION_REQUEST_INIT};
  const char* const prompt = "dalan\nmi";
  seqconv_result* found = nullptr;
  ASSERT_EQ(
      seqconv_tokenize(model.get(), SEQCONV_TARGET, seqconv_text_of(prompt), &found), SEQCONV_OK);
  const Result tokens = owned(found);
  EXPECT_EQ(string_of(tokens->outputs[0]->tokens[5]), "</s>");
  const seqconv_output& read = *tokens->outputs[0];
  ASSERT_EQ(
      seqconv_detokenize(model.get(), SEQCONV_TARGET, read.tokens, read.token_count, &found),
      SEQCONV_OK);
  EXPECT_EQ(best_of(owned(found)), prompt);
  requests[0].prompt = seqconv_text_of(prompt);
  requests[1].prompt_tokens = tokens->outputs[0]->tokens;
  requests[1].prompt_token_count = tokens->outputs[0]->token_count;
  requests[0].length = requests[1].length = 20;
  seqconv_result* results[2];
  ASSERT_EQ(seqconv_generate(model.get(), requests, 2, nullptr, results), SEQCONV_OK);
  const Result first = owned(results[0]), second = owned(results[1]);
  EXPECT_EQ(best_of(first), best_of(second));
  const seqconv_output& output = *first->outputs[0];
  ASSERT_EQ(output.token_count, 20);
  double sum = 0;
  for (int64_t i = 0; i < output.token_count; ++i)
    sum += output.token_scores[i];
  EXPECT_NEAR(sum, output.log_probability, 1e-4);
}

TEST(CInterface, MeasuresCorpora) {
  const seqconv_text hypotheses[] = {seqconv_text_of("the cat sat on the mat")};
  const seqconv_text references[] = {
      seqconv_text_of("the cat sat on a mat"), seqconv_text_of("THE CAT SAT ON THE MAT")};
  const auto score = [&](const char* metric, int64_t each, const char* options) {
    seqconv_scores* scores = nullptr;
    EXPECT_EQ(
        seqconv_evaluate(metric, hypotheses, references, 1, each, options, &scores), SEQCONV_OK)
        << seqconv_last_error();
    const double first = scores->values[0];
    EXPECT_THAT(string_of(scores->report), HasSubstr(string_of(scores->signature)));
    EXPECT_EQ(scores->count, std::string_view(metric) == "rouge" ? 3 : 1);
    seqconv_scores_free(scores);
    return first;
  };
  // sacreBLEU 2.5.1.
  EXPECT_NEAR(score("bleu", 1, nullptr), 53.7285, 1e-4);
  EXPECT_NEAR(score("bleu", 2, R"({"lowercase": true})"), 100, 1e-4);
  EXPECT_NEAR(score("ter", 1, nullptr), 100.0 / 6, 1e-4);
  EXPECT_EQ(score("exact", 1, "{}"), 0);
  EXPECT_NEAR(score("rouge", 1, nullptr), 83.333, 1e-3);
  seqconv_scores* scores = nullptr;
  const auto error = [&](const char* metric, int64_t count, const char* options) -> std::string {
    EXPECT_EQ(
        seqconv_evaluate(metric, hypotheses, references, count, 1, options, &scores),
        SEQCONV_OPTION_ERROR);
    return seqconv_last_error();
  };
  EXPECT_THAT(error("bleurt", 1, nullptr), HasSubstr("but got 'bleurt'"));
  EXPECT_THAT(error("bleu", 0, nullptr), HasSubstr("but got 0"));
  EXPECT_THAT(error("bleu", 1, "lowercase"), HasSubstr("JSON object"));
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100'000; ++i)
    deep += "[";
  EXPECT_THAT(error("bleu", 1, deep.c_str()), HasSubstr("JSON object"));
  deep += std::string(100'000, ']') + "}";
  EXPECT_THAT(error("bleu", 1, deep.c_str()), HasSubstr("plain values"));
  EXPECT_THAT(error("bleu", 1, R"({"lowercse": true})"), HasSubstr("lowercase"));
}

TEST(CInterface, SaysWhatAModelIs) {
  seqconv_runtime_options options = SEQCONV_RUNTIME_OPTIONS_INIT;
  options.threads = 3;
  const Model model = open(kModel, &options);
  const seqconv_model_info& info = *seqconv_info(model.get());
  EXPECT_EQ(info.task, SEQCONV_TASK_TRANSLATION);
  EXPECT_EQ(info.models, 1);
  EXPECT_EQ(info.threads, 3);
  EXPECT_EQ(info.file_bytes, std::filesystem::file_size(kModel + "/model.safetensors"));
  EXPECT_GT(4 * info.parameters, info.weight_bytes / 2);
  EXPECT_GT(info.weight_bytes, 0);
  EXPECT_GT(info.source_vocabulary, 4);
  EXPECT_EQ(info.max_source_tokens, 48);
  EXPECT_STREQ(info.compute, "float32");
  EXPECT_GT(info.search->beam, 0);
  // The two of an ensemble are counted together.
  const char* const both[] = {kModel.c_str(), kModel.c_str()};
  seqconv_model* two = nullptr;
  ASSERT_EQ(seqconv_open(both, 2, nullptr, &two), SEQCONV_OK);
  EXPECT_EQ(seqconv_info(two)->models, 2);
  EXPECT_EQ(seqconv_info(two)->parameters, 2 * info.parameters);
  seqconv_close(two);
  const Model language = open(kLanguageModel);
  EXPECT_EQ(seqconv_info(language.get())->task, SEQCONV_TASK_LANGUAGE_MODEL);
  EXPECT_EQ(seqconv_info(language.get())->search, nullptr);
  EXPECT_EQ(seqconv_info(nullptr), nullptr);
}

// ---- Errors ------------------------------------------------------------------------------------

TEST(CErrors, ArgumentsThatMakeNoSenseAreNamed) {
  seqconv_model* opened = nullptr;
  const char* const name = kModel.c_str();
  const auto expect = [](seqconv_status status, const char* text) {
    EXPECT_EQ(status, SEQCONV_OPTION_ERROR);
    EXPECT_THAT(seqconv_last_error(), HasSubstr(text));
  };
  expect(seqconv_open(&name, 1, nullptr, nullptr), "model must be given");
  expect(seqconv_open(nullptr, 1, nullptr, &opened), "folders must be given");
  const char* const none = nullptr;
  expect(seqconv_open(&none, 1, nullptr, &opened), "a folder must be given");
  seqconv_runtime_options options = SEQCONV_RUNTIME_OPTIONS_INIT;
  options.size = sizeof(options) + 8;
  expect(seqconv_open(&name, 1, &options, &opened), "seqconv_runtime_options.size must be");
  options.size = 0;
  expect(seqconv_open(&name, 1, &options, &opened), "but got 0");
  options = SEQCONV_RUNTIME_OPTIONS_INIT;
  options.follow_links = 2;
  expect(seqconv_open(&name, 1, &options, &opened), "follow_links must be 0 or 1, but got 2");
  options = SEQCONV_RUNTIME_OPTIONS_INIT;
  options.reserved = 1;
  expect(seqconv_open(&name, 1, &options, &opened), "reserved must be 0, but got 1");
  options = SEQCONV_RUNTIME_OPTIONS_INIT;
  options.task = 9;
  expect(seqconv_open(&name, 1, &options, &opened), "task must be between 0 and 2, but got 9");
  EXPECT_EQ(opened, nullptr);

  const Model model = open(kModel);
  seqconv_result* result = nullptr;
  const auto call = [&](const seqconv_translation_request& request) {
    return seqconv_translate(model.get(), &request, 1, nullptr, &result);
  };
  seqconv_translation_request request = asking("dalan");
  expect(seqconv_translate(nullptr, &request, 1, nullptr, &result), "model must be given");
  expect(seqconv_translate(model.get(), nullptr, 1, nullptr, &result), "requests must be given");
  expect(seqconv_translate(model.get(), &request, -1, nullptr, &result), "but got -1");
  expect(seqconv_translate(model.get(), &request, 1, nullptr, nullptr), "but got neither");
  request.text.size = -2;
  expect(call(request), "text must have a size");
  request.text = {nullptr, 3};
  expect(call(request), "text must have a size");
  request = asking("dalan");
  request.alignments = 3;
  expect(call(request), "alignments must be between 0 and 2, but got 3");
  request = asking("dalan");
  request.timeout_ms = -1;
  expect(call(request), "timeout_ms must be at least 0, but got -1");
  request = asking("dalan");
  request.token_count = 2;
  expect(call(request), "tokens must be");
  request = asking("dalan");
  request.stream = 7;
  expect(call(request), "stream must be 0 or 1");
  seqconv_search_options search = SEQCONV_SEARCH_OPTIONS_INIT;
  search.ban_unknown = 5;
  request = asking("dalan");
  request.search = &search;
  expect(call(request), "ban_unknown must be 0 or 1, but got 5");
  request = asking("dalan");
  expect(seqconv_translate_async(model.get(), &request, nullptr), "but got neither");
  EXPECT_EQ(result, nullptr);
}

TEST(CErrors, TextsAndTheirTokensTogetherAreInvalid) {
  const Model model = open(kModel), language = open(kLanguageModel);
  const seqconv_text tokens[] = {seqconv_text_of("dalan")};
  const auto expect = [](const Result& result, const char* text) {
    EXPECT_EQ(result->status, SEQCONV_INVALID);
    EXPECT_EQ(string_of(result->error), text);
  };
  seqconv_translation_request request = asking("mira");
  request.tokens = tokens;
  request.token_count = 1;
  expect(
      translate(model, request),
      "one of text and tokens must be given, not both, but the text is 'mira'");
  request.text = seqconv_text_of("");  // none
  EXPECT_EQ(best_of(translate(model, request)), best_of(translate(model, asking("dalan"))));
  request.prefix = seqconv_text_of("zo");
  request.prefix_tokens = tokens;
  request.prefix_token_count = 1;
  expect(
      translate(model, request),
      "one of prefix and prefix_tokens must be given, not both, but the prefix is 'zo'");
  seqconv_generation_request more = SEQCONV_GENERATION_REQUEST_INIT;
  more.prompt = seqconv_text_of("mi");
  more.prompt_tokens = tokens;
  more.prompt_token_count = 1;
  seqconv_result* result = nullptr;
  ASSERT_EQ(seqconv_generate(language.get(), &more, 1, nullptr, &result), SEQCONV_OK);
  expect(
      owned(result),
      "one of prompt and prompt_tokens must be given, not both, but the prompt is 'mi'");
}

TEST(CErrors, AreInWordsThatAreNotOfCpp) {
  const Model model = open(kModel);
  seqconv_result* result = nullptr;
  const seqconv_text token = seqconv_text_of("dalan");
  for (const int64_t count : {INT64_MAX, INT64_MAX / 16}) {
    EXPECT_EQ(
        seqconv_detokenize(model.get(), SEQCONV_TARGET, &token, count, &result),
        SEQCONV_OUT_OF_MEMORY);
    EXPECT_STREQ(seqconv_last_error(), "out of memory");
  }
  seqconv_runtime_options options = SEQCONV_RUNTIME_OPTIONS_INIT;
  options.compute = 5;
  const char* const name = kModel.c_str();
  seqconv_model* opened = nullptr;
  EXPECT_EQ(seqconv_open(&name, 1, &options, &opened), SEQCONV_OPTION_ERROR);
  EXPECT_STREQ(seqconv_last_error(), "compute must be between 0 and 4, but got 5");
}

TEST(CErrors, CallsOfAnotherTaskAreRefused) {
  const Model translation = open(kModel), language = open(kLanguageModel);
  seqconv_result* result = nullptr;
  const seqconv_translation_request text = asking("dalan");
  EXPECT_EQ(seqconv_translate(language.get(), &text, 1, nullptr, &result), SEQCONV_TASK_ERROR);
  EXPECT_STREQ(
      seqconv_last_error(),
      "seqconv_translate needs a translation model, but this is a language model");
  const seqconv_generation_request more = SEQCONV_GENERATION_REQUEST_INIT;
  EXPECT_EQ(seqconv_generate(translation.get(), &more, 1, nullptr, &result), SEQCONV_TASK_ERROR);
  EXPECT_EQ(seqconv_generate(nullptr, &more, 1, nullptr, &result), SEQCONV_OPTION_ERROR);
}

TEST(CErrors, AreOfTheirThread) {
  seqconv_model* model = nullptr;
  const char* const nowhere = "/nowhere";
  ASSERT_EQ(seqconv_open(&nowhere, 1, nullptr, &model), SEQCONV_MODEL_ERROR);
  std::thread([] { EXPECT_STREQ(seqconv_last_error(), ""); }).join();
  EXPECT_THAT(seqconv_last_error(), HasSubstr("/nowhere"));
  const std::string longest(20000, 'x');
  const char* const name = longest.c_str();
  ASSERT_EQ(seqconv_open(&name, 1, nullptr, &model), SEQCONV_MODEL_ERROR);
  EXPECT_GT(std::string_view(seqconv_last_error()).size(), 4000U);
  EXPECT_STREQ(seqconv_status_name(SEQCONV_TIMED_OUT), "timed out");
  EXPECT_STREQ(seqconv_status_name(99), "unknown status");
}

TEST(CErrors, FreeingNothingIsNothing) {
  seqconv_close(nullptr);
  seqconv_result_free(nullptr);
  seqconv_free(nullptr);
  seqconv_queue_free(nullptr);
  seqconv_cancel_token_free(nullptr);
  seqconv_scores_free(nullptr);
  seqconv_cancel(nullptr);
  EXPECT_EQ(seqconv_is_cancelled(nullptr), 0);
  EXPECT_EQ(seqconv_queue_descriptor(nullptr), -1);
  seqconv_event event = SEQCONV_EVENT_INIT;
  EXPECT_EQ(seqconv_queue_take(nullptr, 0, &event), SEQCONV_OPTION_ERROR);
}

// ---- Asynchronous requests ---------------------------------------------------------------------

bool is_readable(const Queue& queue) {
  pollfd one = {seqconv_queue_descriptor(queue.get()), POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

Result take(const Queue& queue, void** user = nullptr, int64_t timeout_ms = 60'000) {
  seqconv_event event = SEQCONV_EVENT_INIT;
  const seqconv_status status = seqconv_queue_take(queue.get(), timeout_ms, &event);
  EXPECT_TRUE(status == SEQCONV_OK || status == SEQCONV_EMPTY) << seqconv_last_error();
  if (user != nullptr)
    *user = event.user;
  return owned(event.result);
}

seqconv_call call_of(const Queue& queue, void* user = nullptr) {
  seqconv_call call = SEQCONV_CALL_INIT;
  call.queue = queue.get();
  call.user = user;
  return call;
}

TEST(CQueue, HasEachResultOnce) {
  const Model model = open(kModel);
  const Queue queue = new_queue();
  EXPECT_FALSE(is_readable(queue));
  EXPECT_EQ(take(queue, nullptr, 0), nullptr);
  const std::vector<std::string> texts = {"dalan", "mira dalan", "zo", "", "mira"};
  std::vector<std::string> wanted;
  for (const std::string& text : texts)
    wanted.push_back(best_of(translate(model, asking(text.c_str()))));
  constexpr size_t kRounds = 20;
  for (size_t i = 0; i < kRounds * texts.size(); ++i) {
    const seqconv_call call = call_of(queue, reinterpret_cast<void*>(i));
    const seqconv_translation_request request = asking(texts[i % texts.size()].c_str());
    ASSERT_EQ(seqconv_translate_async(model.get(), &request, &call), SEQCONV_OK);
  }
  std::set<size_t> heard;
  for (size_t i = 0; i < kRounds * texts.size(); ++i) {
    void* user = nullptr;
    const Result result = take(queue, &user);
    ASSERT_NE(result, nullptr);
    const auto number = reinterpret_cast<size_t>(user);
    EXPECT_TRUE(heard.insert(number).second);
    EXPECT_EQ(best_of(result), wanted[number % texts.size()]);
  }
  EXPECT_FALSE(is_readable(queue));
}

TEST(CQueue, IsReadableWhileItHoldsSomething) {
  const Model model = open(kModel);
  const Queue queue = new_queue();
  const seqconv_call call = call_of(queue);
  seqconv_score_request request = SEQCONV_SCORE_REQUEST_INIT;
  request.source = request.target = seqconv_text_of("dalan");
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(seqconv_score_async(model.get(), &request, &call), SEQCONV_OK);
  pollfd one = {seqconv_queue_descriptor(queue.get()), POLLIN, 0};
  ASSERT_EQ(::poll(&one, 1, 60'000), 1);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(take(queue)->status, SEQCONV_OK);
  EXPECT_FALSE(is_readable(queue));
}

TEST(CQueue, MayBeFreedBeforeItsResultsCome) {
  const Model model = open(kUnlimitedModel);
  const Endless endless;
  {
    const Queue queue = new_queue();
    const seqconv_call call = call_of(queue);
    const seqconv_translation_request request = asking("dalan");
    for (int i = 0; i < 10; ++i)
      ASSERT_EQ(seqconv_translate_async(model.get(), &request, &call), SEQCONV_OK);
    ASSERT_EQ(seqconv_translate_async(model.get(), &endless.request, &call), SEQCONV_OK);
  }
}

TEST(CQueue, OfAParentIsNoneOfAChilds) {
  const Queue queue = new_queue();
  const pid_t child = ::fork();
  if (child == 0) {
    seqconv_event event = SEQCONV_EVENT_INIT;
    ::_exit(seqconv_queue_take(queue.get(), 0, &event) == SEQCONV_WRONG_PROCESS ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(CAsync, AFullQueueRefusesAndLosesNothing) {
  seqconv_runtime_options options = SEQCONV_RUNTIME_OPTIONS_INIT;
  options.threads = 1;
  options.queue_limit = 3;
  const Model model = open(kUnlimitedModel, &options);
  const Queue queue = new_queue();
  const Token token = new_token();
  seqconv_call call = call_of(queue);
  call.cancel = token.get();
  const Endless endless;
  // The only thread has its work before others wait.
  ASSERT_EQ(seqconv_translate_async(model.get(), &endless.request, &call), SEQCONV_OK);
  std::this_thread::sleep_for(100ms);
  int accepted = 0;
  seqconv_status status = SEQCONV_OK;
  while (status == SEQCONV_OK && accepted < 10) {
    status = seqconv_translate_async(model.get(), &endless.request, &call);
    accepted += status == SEQCONV_OK ? 1 : 0;
  }
  EXPECT_EQ(status, SEQCONV_QUEUE_FULL);
  EXPECT_THAT(seqconv_last_error(), HasSubstr("queue_limit is 3"));
  EXPECT_EQ(accepted, 3);
  seqconv_cancel(token.get());
  for (int i = 0; i < 1 + accepted; ++i)
    EXPECT_EQ(take(queue)->status, SEQCONV_CANCELLED);
}

TEST(CAsync, RequestsWaitForOthersAsLongAsToldOrUntilABatchIsFull) {
  seqconv_runtime_options options = SEQCONV_RUNTIME_OPTIONS_INIT;
  options.threads = 1;
  options.max_wait_ms = 120;
  const Queue queue = new_queue();
  const seqconv_call call = call_of(queue);
  const seqconv_translation_request request = asking("dalan");
  {
    const Model model = open(kModel, &options);
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(seqconv_translate_async(model.get(), &request, &call), SEQCONV_OK);
    EXPECT_EQ(take(queue)->status, SEQCONV_OK);
    EXPECT_GE(std::chrono::steady_clock::now() - start, 120ms);
  }
  options.max_wait_ms = 60'000;
  const Model model = open(kModel, &options);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(seqconv_translate_async(model.get(), &request, &call), SEQCONV_OK);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(take(queue)->status, SEQCONV_OK);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60s);
  options.size = offsetof(seqconv_runtime_options, max_wait_ms);  // of an older header
  options.max_wait_ms = -1;
  EXPECT_NE(open(kModel, &options), nullptr);
  options.size = sizeof(options);
  options.max_wait_ms = 60'001;
  seqconv_model* none = nullptr;
  const std::string folder = kModel;
  const char* const name = folder.c_str();
  EXPECT_EQ(seqconv_open(&name, 1, &options, &none), SEQCONV_OPTION_ERROR);
  EXPECT_THAT(seqconv_last_error(), HasSubstr("max_wait_ms must be at most 60000"));
}

TEST(CAsync, ATimeoutEndsWhatIsUnderWayAndWhatWaits) {
  seqconv_runtime_options options = SEQCONV_RUNTIME_OPTIONS_INIT;
  options.threads = 1;
  const Model model = open(kUnlimitedModel, &options);
  const Queue queue = new_queue();
  const Token token = new_token();
  Endless first, second;
  // Another beam: it waits until the first ends, which has no timeout.
  second.search.beam = 300;
  second.request.timeout_ms = 30;
  seqconv_call call = call_of(queue);
  call.cancel = token.get();
  ASSERT_EQ(seqconv_translate_async(model.get(), &first.request, &call), SEQCONV_OK);
  const seqconv_call other = call_of(queue);
  ASSERT_EQ(seqconv_translate_async(model.get(), &second.request, &other), SEQCONV_OK);
  const Result waiting = take(queue);
  EXPECT_EQ(waiting->status, SEQCONV_TIMED_OUT);
  EXPECT_STREQ(waiting->error.data, "its timeout passed before it was done");
  EXPECT_FALSE(is_readable(queue));
  seqconv_cancel(token.get());
  EXPECT_EQ(take(queue)->status, SEQCONV_CANCELLED);
  first.request.timeout_ms = 30;
  ASSERT_EQ(seqconv_translate_async(model.get(), &first.request, &other), SEQCONV_OK);
  EXPECT_EQ(take(queue)->status, SEQCONV_TIMED_OUT);
  EXPECT_EQ(translate(model, first.request)->status, SEQCONV_TIMED_OUT);
}

TEST(CAsync, ATimeoutLeavesTheOthersOfAList) {
  const Model model = open(kUnlimitedModel);
  Endless endless;
  endless.request.timeout_ms = 50;
  const seqconv_translation_request requests[] = {endless.request, asking("dalan")};
  seqconv_result* results[2];
  ASSERT_EQ(seqconv_translate(model.get(), requests, 2, nullptr, results), SEQCONV_OK);
  EXPECT_EQ(owned(results[0])->status, SEQCONV_TIMED_OUT);
  EXPECT_EQ(owned(results[1])->status, SEQCONV_OK);
}

TEST(CAsync, FunctionsHearWhatQueuesHave) {
  const Model model = open(kLanguageModel);
  struct Heard {
    std::promise<std::pair<int32_t, std::string>> result;
  } heard;
  seqconv_call call = SEQCONV_CALL_INIT;
  call.user = &heard;
  call.heard = [](void* user, int64_t request, seqconv_result* result) -> int32_t {
    const Result own = owned(result);
    EXPECT_EQ(request, 0);
    static_cast<Heard*>(user)->result.set_value({own->status, string_of(own->outputs[0]->text)});
    return 0;
  };
  seqconv_generation_request request = SEQCONV_GENERATION_REQUEST_INIT;
  request.prompt = seqconv_text_of("dalan");
  request.length = 15;
  ASSERT_EQ(seqconv_generate_async(model.get(), &request, &call), SEQCONV_OK);
  seqconv_result* result = nullptr;
  ASSERT_EQ(seqconv_generate(model.get(), &request, 1, nullptr, &result), SEQCONV_OK);
  EXPECT_EQ(
      heard.result.get_future().get(),
      std::pair(int32_t{SEQCONV_OK}, string_of(owned(result)->outputs[0]->text)));
}

// ---- Streams -----------------------------------------------------------------------------------

/// Parts put together, and the result.
struct Stream {
  std::string text;
  size_t parts = 0;
  std::vector<std::string> texts;
  Result result{nullptr, seqconv_result_free};

  int32_t hear(seqconv_result* given) {
    Result own = owned(given);
    if (own->status != SEQCONV_PART) {
      result = std::move(own);
      return 0;
    }
    text.resize(static_cast<size_t>(own->kept_bytes));
    text += string_of(own->outputs[0]->text);
    texts.push_back(text);
    return ++parts == enough ? 1 : 0;
  }
  size_t enough = 0;

  static seqconv_call call(Stream& stream) {
    seqconv_call call = SEQCONV_CALL_INIT;
    call.user = &stream;
    call.heard = [](void* user, int64_t /*request*/, seqconv_result* result) {
      return static_cast<Stream*>(user)->hear(result);
    };
    return call;
  }
};

TEST(CStreams, PartsAreTheBeginningOfTheTranslation) {
  const Model model = open(kModel);
  seqconv_search_options search = SEQCONV_SEARCH_OPTIONS_INIT;
  seqconv_translation_request request = asking("dalan mira zo dalan");
  request.search = &search;
  request.stream = 1;
  search.max_length_b = 20;
  seqconv_sampling_options sampling = SEQCONV_SAMPLING_OPTIONS_INIT;
  size_t most = 0;
  for (const int64_t beam : {1, 2, 5, 0}) {
    search.beam = beam == 0 ? SEQCONV_OWN_INTEGER : beam;
    request.sampling = beam == 0 ? &sampling : nullptr;
    Stream stream;
    const seqconv_call call = Stream::call(stream);
    ASSERT_EQ(seqconv_translate(model.get(), &request, 1, &call, nullptr), SEQCONV_OK);
    const std::string whole = best_of(stream.result);
    for (const std::string& text : stream.texts)
      EXPECT_TRUE(whole.starts_with(text)) << whole << " | " << text;
    most = std::max(most, stream.parts);
    // Greedy and drawn texts come word by word.
    if (beam < 2) {
      EXPECT_GE(stream.parts + 2, static_cast<size_t>(stream.result->outputs[0]->token_count));
    }
    request.stream = 0;
    EXPECT_EQ(best_of(translate(model, request)), whole);
    request.stream = 1;
  }
  EXPECT_GT(most, 4U);
}

TEST(CStreams, EndWhenTheirCallerHasEnough) {
  const Model model = open(kUnlimitedModel);
  Endless endless;
  endless.search.beam = 1;
  endless.request.stream = 1;
  Stream stream;
  stream.enough = 3;
  const seqconv_call call = Stream::call(stream);
  ASSERT_EQ(seqconv_translate(model.get(), &endless.request, 1, &call, nullptr), SEQCONV_OK);
  EXPECT_EQ(best_of(stream.result), stream.text);
  EXPECT_EQ(stream.parts, 3U);
  const Model language = open(kLanguageModel);
  seqconv_generation_request more = SEQCONV_GENERATION_REQUEST_INIT;
  more.length = 1'000'000'000;
  more.stream = 1;
  Stream generated;
  generated.enough = 5;
  const seqconv_call second = Stream::call(generated);
  ASSERT_EQ(seqconv_generate(language.get(), &more, 1, &second, nullptr), SEQCONV_OK);
  EXPECT_EQ(best_of(generated.result), generated.text);
}

TEST(CStreams, ComeThroughQueuesInOrder) {
  const Model model = open(kLanguageModel);
  const Queue queue = new_queue();
  const seqconv_call call = call_of(queue);
  seqconv_generation_request request = SEQCONV_GENERATION_REQUEST_INIT;
  request.length = 40;
  request.stream = 1;
  ASSERT_EQ(seqconv_generate_async(model.get(), &request, &call), SEQCONV_OK);
  Stream stream;
  while (stream.result == nullptr)
    stream.hear(take(queue).release());
  EXPECT_EQ(best_of(stream.result), stream.text);
  EXPECT_GT(stream.parts, 5U);
}

// ---- Lifetimes ---------------------------------------------------------------------------------

TEST(CLifetime, ClosingTellsAllThatWaits) {
  const Queue queue = new_queue();
  {
    const Model model = open(kUnlimitedModel);
    const seqconv_call call = call_of(queue);
    const Endless endless;
    for (int i = 0; i < 9; ++i)
      ASSERT_EQ(seqconv_translate_async(model.get(), &endless.request, &call), SEQCONV_OK);
  }
  for (int i = 0; i < 9; ++i)
    EXPECT_EQ(take(queue, nullptr, 0)->status, SEQCONV_CANCELLED);
}

/// Asks for the next translation as soon as one is there.
struct Relay {
  seqconv_model* model;
  std::atomic<int> heard = 0;
  std::atomic<int> accepted = 0;

  void ask() {
    seqconv_call call = SEQCONV_CALL_INIT;
    call.user = this;
    call.heard = [](void* user, int64_t /*request*/, seqconv_result* result) -> int32_t {
      seqconv_result_free(result);
      ++static_cast<Relay*>(user)->heard;
      static_cast<Relay*>(user)->ask();
      return 1;  // concerns none of the others
    };
    const seqconv_translation_request request = asking("dalan mira");
    const seqconv_status status = seqconv_translate_async(model, &request, &call);
    accepted += status == SEQCONV_OK ? 1 : 0;
    EXPECT_TRUE(status == SEQCONV_OK || status == SEQCONV_CANCELLED);
  }
};

TEST(CLifetime, HearersMayAskForMoreWhileTheModelCloses) {
  for (int round = 0; round < 20; ++round) {
    seqconv_runtime_options options = SEQCONV_RUNTIME_OPTIONS_INIT;
    options.threads = 3;
    Model model = open(kModel, &options);
    Relay relay{model.get()};
    for (int i = 0; i < 3; ++i)
      relay.ask();
    std::this_thread::sleep_for(std::chrono::microseconds(500 * round));
    model.reset();
    EXPECT_EQ(relay.heard, relay.accepted);
  }
}

TEST(CQueue, OfAParentTakesNoRequestOfAChild) {
  const Model model = open(kModel);
  const Queue queue = new_queue();
  const pid_t child = ::fork();
  if (child == 0) {
    const seqconv_call call = call_of(queue);
    const seqconv_translation_request request = asking("dalan");
    const seqconv_status status = seqconv_translate_async(model.get(), &request, &call);
    ::_exit(status == SEQCONV_WRONG_PROCESS ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(CLifetime, CallsDoNotGrowMemory) {
  const Model model = open(kModel);
  const Queue queue = new_queue();
  const auto calls = [&](int count) {
    const seqconv_call call = call_of(queue);
    const seqconv_translation_request request = asking("dalan mira");
    for (int i = 0; i < count; ++i) {
      if (i % 2 == 0) {
        translate(model, request);
      } else {
        const Token token = new_token();
        seqconv_call own = call;
        own.cancel = token.get();
        ASSERT_EQ(seqconv_translate_async(model.get(), &request, &own), SEQCONV_OK);
        take(queue);
      }
      seqconv_model* none = nullptr;
      const char* const nowhere = "/nowhere";
      if (i % 16 == 0) {
        EXPECT_EQ(seqconv_open(&nowhere, 1, nullptr, &none), SEQCONV_MODEL_ERROR);
      }
    }
  };
  calls(200);
  // A model keeps memory for as many batches as have met so far: some rounds may grow by that.
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int round = 0; round < 5; ++round) {
    const int64_t before = heap_bytes();
    calls(400);
    least = std::min(least, heap_bytes() - before);
  }
  EXPECT_LT(least, 400 * 32);
}

}  // namespace
}  // namespace seqconv
