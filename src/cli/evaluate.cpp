#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/checksum.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/evaluation.h"
#include "cli/flags.h"
#include "cli/parse_errors.h"
#include "cli/program.h"
#include "metrics/missing_words.h"
#include "text/mecab.h"
#include "text/packed_text.h"
#include "text/segmenter.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kEvaluateExamples =
    "Hypotheses come from standard input, one a line, or from the files of\n"
    "--hypotheses, one a system. For one system the first line of the output "
    "is\n"
    "the score, the second says how it came about, with its signature; for\n"
    "several there is a table.\n"
    "\n"
    "Examples:\n"
    "  seqconv evaluate bleu --reference ref.txt < hyp.txt\n"
    "  seqconv evaluate bleu --tokenizer none --lowercase --reference r < h\n"
    "  seqconv evaluate bleu --style multi-bleu --compound-split "
    "--reference r < h\n"
    "  seqconv evaluate chrf --word-order 2 --reference r1 r2 < h\n"
    "  seqconv evaluate ter --reference r --hypotheses a b --paired ar\n"
    "  seqconv evaluate rouge --reference r --confidence < h";

using Lines = std::vector<std::string>;

/// BLEU's own tokenizer wants text, and other scores come of what was tokenised
/// before. sacreBLEU warns from 100 lines on that end in a period by itself;
/// here a few are enough where they are most of those that end in one.
bool warn_tokenized(const Lines& hypotheses, const BleuOptions& options) {
  constexpr int64_t kMany = 100;
  constexpr int64_t kFew = 10;
  if (options.style != BleuStyle::kSacreBleu || options.tokenizer == BleuTokenizer::kNone)
    return false;
  const auto ending = [&](std::string_view end) {
    return std::count_if(hypotheses.begin(), hypotheses.end(), [&](const std::string& line) {
      return line.ends_with(end);
    });
  };
  const int64_t alone = ending(" .");
  const bool looks_tokenized = alone >= kMany || (alone >= kFew && 2 * alone > ending("."));
  if (looks_tokenized)
    log_warning(
        alone,
        " of ",
        hypotheses.size(),
        " hypotheses end in ' .', as tokenised text does: BLEU is meant for text (seqconv tokenize "
        "--undo makes some of it), or for tokens with --tokenizer none");
  return looks_tokenized;
}

/// Some metrics find no words in some languages. One system's warning is
/// enough.
template <class Options>
void warn_of_missing_words(const EvaluationText& text, const Options& options) {
  std::string warning;
  for (const EvaluationSystem& system : text.systems)
    if (warning.empty())
      warning = missing_words(system.lines, options, {"the hypotheses are"});
  if (warning.empty()) {
    Lines references;
    for (const Lines& line : text.references)
      if (!line.empty())
        references.push_back(line.front());
    warning = missing_words(references, options, {"the references are"});
  }
  if (!warning.empty())
    log_warning(warning);
}

const std::string kTokenizerFlag = "--tokenize,--tokenizer";

/// BLEU's options with what its tokenizers want.
struct BleuFlags : BleuOptions {
  std::string spm_model;
  std::string mecab_dictionary;
};

LineTokenizer mecab_tokenizer(const std::string& dictionary) {
  if (has_mecab() && dictionary.empty())
    fail_usage(
        typed_name(kTokenizerFlag),
        " ja-mecab needs the folder of MeCab's dictionary in --mecab-dictionary "
        "(/var/lib/mecab/dic/ipadic-utf8 of Debian's mecab-ipadic-utf8)");
  const MecabTokenizer tokenizer(dictionary);
  return {
      .split = [tokenizer](std::string_view line) { return tokenizer.split(line); },
      .name = concat("ja-mecab-", tokenizer.name())};
}

LineTokenizer tokenizer_of(const BleuFlags& options) {
  if (options.tokenizer != BleuTokenizer::kSpm && !options.spm_model.empty())
    fail_usage("--spm-model is for --tokenizer spm");
  if (options.tokenizer == BleuTokenizer::kJaMecab)
    return mecab_tokenizer(options.mecab_dictionary);
  if (!options.mecab_dictionary.empty())
    fail_usage("--mecab-dictionary is for --tokenizer ja-mecab");
  if (options.spm_model.empty()) {
    if (options.tokenizer == BleuTokenizer::kSpm)
      fail_usage(typed_name(kTokenizerFlag), " spm needs a SentencePiece model in --spm-model");
    return {};
  }
  const std::string model = read_file(options.spm_model);
  return {
      .split = [segmenter = make_sentencepiece_segmenter(model, options.spm_model)](
                   std::string_view line) { return segmenter->split(line); },
      .name = concat("spm-", checksum_text(checksum(model)))};
}

struct RougeFlags : RougeOptions {
  std::vector<RougeValue> values = {RougeValue::kF};
};

template <class Options>
void add_own_flags(CLI::App& /*verb*/, Options& /*options*/) {}
void add_own_flags(CLI::App& verb, BleuFlags& options) {
  verb.add_option("--spm-model", options.spm_model, "SentencePiece model of --tokenizer spm")
      ->type_name("FILE")
      ->group("Metric");
  verb.add_option(
          "--mecab-dictionary",
          options.mecab_dictionary,
          "Folder of MeCab's dictionary for --tokenizer ja-mecab")
      ->type_name("DIR")
      ->group("Metric");
}
void add_own_flags(CLI::App& verb, RougeFlags& options) {
  verb.add_option_function<Lines>(
          "--values",
          [&options](const Lines& names) {
            options.values.clear();
            for (const std::string& name : names)
              options.values.push_back(parse_enum<RougeValue>(name, "--values"));
          },
          "What is told of each measure: f, recall, precision")
      ->type_name("NAME")
      ->default_str("f")
      ->group("Metric");
}

template <class Options>
void warn(const EvaluationText& text, const Options& options, const OptionNames& names) {
  if constexpr (std::is_same_v<Options, TerOptions>)
    if (const std::string idle = options.idle_options(names); !idle.empty())
      log_warning(idle);
  if constexpr (std::is_same_v<Options, BleuFlags>)
    std::ranges::any_of(text.systems, [&](const EvaluationSystem& system) {
      return warn_tokenized(system.lines, options);  // once is enough
    });
  warn_of_missing_words(text, options);
}

/// BLEU of a sentence takes the orders that it has, as sacreBLEU's.
template <class Options>
void prepare(const EvaluationFlags& flags, Options& options) {
  if constexpr (std::is_same_v<Options, BleuFlags>)
    options.effective_order |= flags.sentence && options.style == BleuStyle::kSacreBleu;
}

template <class Metric, class Options>
MakeMetric maker_of(const Options& options) {
  if constexpr (std::is_same_v<Options, BleuFlags>)
    return [options, tokenizer = tokenizer_of(options)] {
      return to_corpus_metric(Metric(options, tokenizer));
    };
  else if constexpr (std::is_same_v<Options, RougeFlags>)
    return [options] { return to_corpus_metric(Metric(options), /*first=*/0, options.values); };
  else
    return [options] { return to_corpus_metric(Metric(options)); };
}

void add_common_flags(CLI::App& verb, EvaluationFlags& flags) {
  verb.add_option("-r,--reference", flags.references, "References, one file or several")
      ->type_name("FILE")
      ->required();
  verb.add_option(
          "--hypotheses", flags.hypotheses, "Outputs of systems, a file each [standard input]")
      ->type_name("FILE");
  verb.add_option(
          "--hypothesis-key",
          flags.hypothesis_key,
          "Hypotheses are in JSON lines, under this key (a.b: b in a)")
      ->type_name("KEY");
  verb.add_option(
          "--reference-key",
          flags.reference_key,
          "References are in JSON lines, a text or a list of texts")
      ->type_name("KEY");
  add_integer(verb, "--threads", flags.threads, "Threads; 0 = all cores", 0, 1024);
  verb.add_flag(
      "--sentence",
      flags.sentence,
      "Scores of each sentence, a line each; BLEU of the orders that it has");
  add_integer(verb, "--decimals", flags.decimals, "Decimals of scores", 0, 15);
  add_choice(verb, "--format", flags.format, "text or json");
  verb.add_flag_callback(
      "--json", [&flags] { flags.format = OutputFormat::kJson; }, "The same as --format json");
}

/// Gives the flag of the seed, which is for these alone.
CLI::Option* add_significance_flags(CLI::App& verb, EvaluationFlags& flags) {
  const std::string group = "Significance";
  verb.add_flag("--confidence", flags.confidence, "95 % intervals by bootstrap resampling")
      ->group(group);
  verb.add_option_function<std::string>(
          "--paired",
          [&flags](const std::string& name) {
            flags.paired = parse_enum<PairedTestKind>(name, "--paired");
          },
          "Test of each system against the baseline: bs (bootstrap) or ar (approximate "
          "randomisation)")
      ->type_name("NAME")
      ->group(group);
  verb.add_option("--baseline", flags.baseline, "Which of --hypotheses the baseline is [the first]")
      ->type_name("FILE")
      ->group(group);
  add_integer(verb, "--samples", flags.samples, "Samples to draw; 0 = 1,000, of ar 10,000", 0)
      ->group(group);
  return add_integer(verb, "--seed", flags.seed, "Seed of the samples", 0)->group(group);
}

template <class Metric, class Options>
void add_metric(
    CLI::App& evaluate, Program& program, const std::string& name, const std::string& summary) {
  struct State {
    EvaluationFlags flags;
    Options options;
    std::unique_ptr<FlagVisitor> visitor;
    CLI::Option* seed = nullptr;
  };
  auto state = std::make_shared<State>();
  CLI::App& verb = *evaluate.add_subcommand(name, summary);
  verb.fallthrough();
  verb.footer(kEvaluateExamples);
  add_common_flags(verb, state->flags);
  state->visitor = std::make_unique<FlagVisitor>(
      verb,
      "Metric",
      std::map<std::string, std::string>{
          {"tokenizer", "--tokenize"},
          {"smoothing", "--smooth"},
          {"smoothing_value", "--smooth-value"},
          {"exceptions", "--rouge-exceptions"}});
  state->options.visit(*state->visitor);
  add_own_flags(verb, state->options);
  state->seed = add_significance_flags(verb, state->flags);
  verb.callback([&program, state] {
    program.run = [&program, state] {
      prepare(state->flags, state->options);
      const OptionNames names(state->visitor->names());
      state->options.validate(names);
      if (state->seed->count() > 0 && !state->flags.confidence && !state->flags.paired)
        fail_usage("--seed is for --confidence and --paired");
      const MakeMetric make = maker_of<Metric>(state->options);
      make();  // what is wrong with it is said before anything is read
      PackedText in(std::cin, "standard input");
      const EvaluationText text = read_evaluation_text(state->flags, in);
      warn(text, state->options, names);
      cli::evaluate(state->flags, text, make, program.out);
    };
  });
}

}  // namespace

void add_evaluate(Program& program) {
  CLI::App& verb = program.add_verb(
      "evaluate", "Compare translations or summaries with references", kEvaluateExamples);
  require_verb(verb);
  add_metric<Bleu, BleuFlags>(verb, program, "bleu", "Corpus BLEU");
  add_metric<Chrf, ChrfOptions>(verb, program, "chrf", "Corpus chrF");
  add_metric<Ter, TerOptions>(verb, program, "ter", "Translation edit rate");
  add_metric<Rouge, RougeFlags>(verb, program, "rouge", "ROUGE");
  add_metric<ExactMatch, ExactOptions>(
      verb, program, "exact", "Share of lines that equal a reference");
}

}  // namespace seqconv::internal::cli
