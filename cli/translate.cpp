#include <unistd.h>

#include <iostream>

#include "backend.h"
#include "flags.h"
#include "program.h"
#include "seqconv/verbs/verbs.h"

namespace seqconv::cli {
namespace {

constexpr const char* kTranslateExamples =
    "Reads one sentence a line from standard input and writes one translation\n"
    "a line to standard output, in the order of the input; an empty line "
    "gives\n"
    "an empty line.\n"
    "\n"
    "Examples:\n"
    "  seqconv translate --model runs/numbers < input.txt > output.txt\n"
    "  seqconv translate --model a --model b --beam 8 < input.txt\n"
    "  seqconv translate --model a --input test.de-en.de.bin > output.txt\n"
    "  seqconv translate --model a --n-best 5 --format json < input.txt\n"
    "  seqconv translate --model a --shortlist a.shortlist < input.txt\n"
    "  seqconv translate --model a --sample --temperature 0.8 < input.txt\n"
    "  echo '{\"text\": \"zwei\", \"target_prefix\": \"t\", \"id\": 7}' |\n"
    "    seqconv translate --model a --json-input --format json\n"
    "\n"
    "Text with --n-best above 1: NUMBER<tab>SCORE<tab>TRANSLATION, NUMBER "
    "being\n"
    "that of the input line, from 1. JSON: one object a line with \"text\" "
    "and\n"
    "\"translations\", a list of {text, tokens, score, log_probability,\n"
    "token_scores}; --json-input keeps all fields of its objects as they are.\n"
    "SCORE is the natural log-probability divided by length^length-penalty.\n"
    "\n"
    "A line that is no such object fails: it gives an empty line or, as JSON, "
    "an\n"
    "object with \"error\" and \"line\". The others are translated, and the "
    "exit "
    "code\n"
    "is 1.";

struct TranslateFlags {
  TranslateArguments arguments;
  BackendFlags backend;
  std::unique_ptr<FlagVisitor> search;
  bool sample = false;
  SamplingOptions sampling_options;
  std::unique_ptr<FlagVisitor> sampling;
  CLI::Option* seed = nullptr;
  CLI::Option* buffer = nullptr;
  CLI::Option* shortlist = nullptr;
};

/// What is wrong whatever the model's own settings are: they may have a wider
/// beam than the default, which n-best lists must fit into.
void check_search(const TranslateArguments& arguments) {
  SearchOptions search = arguments.search;
  const auto& given = arguments.search_given;
  if (std::find(given.begin(), given.end(), "beam") == given.end())
    search.beam = std::clamp(search.n_best, search.beam, kMaxBeam);
  search.validate("");
}

/// What is asked for of draws, where translations are drawn.
void read_sampling(TranslateFlags& flags) {
  const auto& searched = flags.arguments.search_given;
  const std::vector<std::string> given = flags.sampling->given();
  if (!flags.sample) {
    if (!given.empty() || flags.seed->count() > 0)
      fail_usage(
          "temperature, top-k, top-p, ban-unknown and seed are those of draws: "
          "they need --sample");
    return;
  }
  if (std::find(searched.begin(), searched.end(), "beam") != searched.end())
    fail_usage("--beam is that of a search, but --sample draws translations; "
               "--n-best says how many");
  flags.sampling_options.validate("");
  flags.arguments.sampling = flags.sampling_options;
}

void add_shortlist_flag(CLI::App& verb, TranslateFlags& flags) {
  flags.shortlist = verb.add_option(
                            "--shortlist",
                            flags.arguments.shortlist,
                            "Choose among the words that it lists for a "
                            "sentence: see seqconv shortlist")
                        ->type_name("FILE")
                        ->group("Speed and memory");
}

/// A shortlist is heeded or refused.
void check_shortlist(const TranslateFlags& flags) {
  if (flags.shortlist->count() == 0)
    return;
  if (flags.arguments.shortlist.empty())
    fail_usage("--shortlist must name a file, but got ''");
  if (flags.backend.kind == BackendKind::kLibTorch)
    fail_usage("--shortlist is for --backend runtime alone, but --backend "
               "libtorch was given");
}

void run_translate(TranslateFlags& flags, std::ostream& out) {
  TranslateArguments& arguments = flags.arguments;
  arguments.search_given = flags.search->given();
  check_search(arguments);
  read_sampling(flags);
  check_shortlist(flags);
  // A person at the keyboard waits for each answer.
  if (flags.buffer->count() == 0 && arguments.input.empty() &&
      ::isatty(STDIN_FILENO))
    arguments.buffer_lines = 1;
  arguments.workers = workers(flags.backend);
  verbs::translate(arguments, backend(flags.backend), std::cin, out);
}

}  // namespace

void add_translate(Program& program) {
  auto flags = std::make_shared<TranslateFlags>();
  TranslateArguments& arguments = flags->arguments;
  CLI::App& verb = program.add_verb(
      "translate",
      "Translate lines of standard input or of a file",
      kTranslateExamples);
  add_repeated(
      verb,
      "-m,--model",
      arguments.models,
      "Model folder (its best checkpoint) or a .safetensors file in one; "
      "several vote")
      ->type_name("DIR")
      ->required();
  flags->search = std::make_unique<FlagVisitor>(verb, "Search");
  arguments.search.visit(*flags->search);
  verb.add_flag(
          "--sample",
          flags->sample,
          "Draw n-best translations, token by token, instead of searching for "
          "the best")
      ->group("Sampling");
  flags->sampling = std::make_unique<FlagVisitor>(verb, "Sampling");
  flags->sampling_options.visit(*flags->sampling);
  flags->seed = add_integer(
      verb,
      "--seed",
      arguments.seed,
      "Seed of the draws; a line's are a function of it and its number",
      0,
      std::numeric_limits<int64_t>::max());
  flags->seed->group("Sampling");
  verb.add_option(
          "--input",
          arguments.input,
          "Text, or fairseq's binarised data (.bin, .idx), instead of "
          "standard input")
      ->type_name("FILE")
      ->group("Input and output");
  add_choice(verb, "--format", arguments.format, "text or json")
      ->group("Input and output");
  verb.add_flag(
          "--json-input",
          arguments.json_input,
          "Input lines are objects with \"text\" and maybe \"target_prefix\"")
      ->group("Input and output");
  add_strict(verb, arguments.strict)->group("Input and output");
  verb.add_flag(
          "--stats",
          arguments.stats,
          "Sentences, tokens and their rate on standard error at the end")
      ->group("Input and output");
  add_integer(
      verb,
      "--batch-tokens",
      arguments.batch_tokens,
      "Most source tokens of a batch, padding counted",
      1)
      ->group("Speed and memory");
  flags->buffer = add_integer(
      verb,
      "--buffer-lines",
      arguments.buffer_lines,
      "Lines read, sorted by length and written at a time",
      1);
  flags->buffer->group("Speed and memory");
  add_shortlist_flag(verb, *flags);
  add_backend(verb, flags->backend, "Speed and memory");
  verb.callback([&program, flags] {
    program.run = [&program, flags] { run_translate(*flags, program.out); };
  });
}

}  // namespace seqconv::cli
