#include <algorithm>
#include <cstdio>
#include <iostream>

#include "flags.h"
#include "program.h"
#include "seqconv/base/error.h"
#include "seqconv/base/log.h"
#include "seqconv/metrics/bleu.h"
#include "seqconv/metrics/chrf.h"
#include "seqconv/text/unicode.h"

namespace seqconv::cli {
namespace {

constexpr const char* kEvaluateExamples =
    "Hypotheses come from standard input, one a line. The first line of the\n"
    "output is the score, the second says how it came about (for BLEU and "
    "chrF\n"
    "of sacreBLEU with its signature).\n"
    "\n"
    "Examples:\n"
    "  seqconv evaluate bleu --reference ref.txt < hyp.txt\n"
    "  seqconv evaluate bleu --tokenizer none --lowercase --reference r < h\n"
    "  seqconv evaluate bleu --style multi-bleu --compound-split "
    "--reference r < h\n"
    "  seqconv evaluate chrf --word-order 2 --reference r1 r2 < h";

/// What the metrics share.
struct EvaluateFlags {
  std::vector<std::string> references;
  int64_t decimals = 2;
  bool json = false;
};

/// Lines without white space at their ends, as sacreBLEU's program reads them.
std::vector<std::string> read_lines(LineReader& reader) {
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);)
    lines.emplace_back(trim_end(line));
  return lines;
}

std::vector<std::vector<std::string>> read_references(
    const EvaluateFlags& flags) {
  std::vector<std::vector<std::string>> references;
  for (const std::string& file : flags.references) {
    LineReader reader(file, BadBytes::kReject);
    references.push_back(read_lines(reader));
  }
  return references;
}

// A hypothesis may hold anything: what is not UTF-8 counts as U+FFFD.
std::vector<std::string> read_hypotheses() {
  LineReader reader(std::cin, "standard input", BadBytes::kReplace);
  auto lines = read_lines(reader);
  if (reader.replaced_lines() > 0)
    log_warning(
        reader.replaced_lines(),
        " hypotheses held bytes that are not UTF-8, or NUL: replaced by "
        "U+FFFD and blanks");
  return lines;
}

void check_counts(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references,
    const EvaluateFlags& flags) {
  for (size_t i = 0; i < references.size(); ++i)
    if (references[i].size() != hypotheses.size())
      fail(
          "references must have as many lines as there are hypotheses, but ",
          flags.references[i],
          " has ",
          references[i].size(),
          " and standard input has ",
          hypotheses.size());
  if (hypotheses.empty())
    fail("standard input has no hypotheses: nothing to evaluate");
}

template <class Metric>
void write_score(
    const Metric& metric,
    double score,
    const std::string& name,
    const EvaluateFlags& flags,
    std::ostream& out) {
  if (flags.json) {
    out << Json{{"name", name}, {"score", score}, {"signature", metric.signature()}}
               .dump()
        << '\n';
    return;
  }
  char number[64];
  std::snprintf(
      number,
      sizeof number,
      "%.*f",
      static_cast<int>(flags.decimals),
      score);
  out << number << '\n'
      << metric.report(static_cast<int>(flags.decimals)) << '\n';
}

template <class Options, class Work>
void add_metric(
    CLI::App& evaluate,
    Program& program,
    const std::string& name,
    const std::string& summary,
    Work work) {
  struct State {
    EvaluateFlags flags;
    Options options;
  };
  auto state = std::make_shared<State>();
  CLI::App& verb = *evaluate.add_subcommand(name, summary);
  verb.fallthrough();
  verb.footer(kEvaluateExamples);
  verb.add_option(
          "-r,--reference",
          state->flags.references,
          "Reference translations, one file or several")
      ->type_name("FILE")
      ->required();
  add_integer(
      verb,
      "--decimals",
      state->flags.decimals,
      "Decimals of the score",
      0,
      15);
  verb.add_flag("--json", state->flags.json, "One JSON object instead of text");
  FlagVisitor visitor(
      verb,
      "Metric",
      {{"tokenizer", "--tokenize"}, {"smoothing", "--smooth"}});
  state->options.visit(visitor);
  verb.callback([&program, state, work] {
    program.run = [&program, state, work] {
      state->options.validate("-");
      const auto references = read_references(state->flags);
      const auto hypotheses = read_hypotheses();
      check_counts(hypotheses, references, state->flags);
      work(hypotheses, references, state->options, state->flags, program.out);
    };
  });
}

using Lines = std::vector<std::string>;

/// BLEU's own tokenizer wants text, and other scores come of what was tokenised
/// before. sacreBLEU warns from 100 lines on that end in a period by itself;
/// here a few are enough where they are most of those that end in one.
void warn_tokenized(const Lines& hypotheses, const BleuOptions& options) {
  constexpr int64_t kMany = 100;
  constexpr int64_t kFew = 10;
  if (options.style != BleuStyle::kSacreBleu ||
      options.tokenizer == BleuTokenizer::kNone)
    return;
  const auto ending = [&](std::string_view end) {
    return std::count_if(
        hypotheses.begin(),
        hypotheses.end(),
        [&](const std::string& line) { return line.ends_with(end); });
  };
  const int64_t alone = ending(" .");
  if (alone >= kMany || (alone >= kFew && 2 * alone > ending(".")))
    log_warning(
        alone,
        " of ",
        hypotheses.size(),
        " hypotheses end in ' .', as tokenised text does: BLEU is meant for "
        "text (seqconv tokenize --undo makes some of it), or for tokens with "
        "--tokenizer none");
}

void bleu(
    const Lines& hypotheses,
    const std::vector<Lines>& references,
    const BleuOptions& options,
    const EvaluateFlags& flags,
    std::ostream& out) {
  warn_tokenized(hypotheses, options);
  const Bleu metric = corpus_bleu(hypotheses, references, options);
  write_score(metric, metric.score().score, "BLEU", flags, out);
}

void chrf(
    const Lines& hypotheses,
    const std::vector<Lines>& references,
    const ChrfOptions& options,
    const EvaluateFlags& flags,
    std::ostream& out) {
  const Chrf metric = corpus_chrf(hypotheses, references, options);
  write_score(metric, metric.score(), metric.name(), flags, out);
}

}  // namespace

void add_evaluate(Program& program) {
  CLI::App& verb = program.add_verb(
      "evaluate",
      "Compare translations with references",
      kEvaluateExamples);
  verb.require_subcommand(0, 1);
  verb.callback([&verb] {
    if (verb.get_subcommands().empty())
      fail_usage("evaluate needs a verb of its own: bleu or chrf");
  });
  add_metric<BleuOptions>(verb, program, "bleu", "Corpus BLEU", bleu);
  add_metric<ChrfOptions>(verb, program, "chrf", "Corpus chrF", chrf);
}

}  // namespace seqconv::cli
