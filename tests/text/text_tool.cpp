/// The text and metrics layers on the command line, for the Python tests that
/// compare them with other packages. Text comes on standard input.
///
///   text_tool bpe-learn MERGES MIN_FREQUENCY
///   text_tool bpe-apply CODES [SEPARATOR VOCABULARY THRESHOLD [GLOSSARY...]]
///   text_tool lower | clean | words
///   text_tool tokenize 13a|none|intl|char|zh
///   text_tool dictionary MULTIPLE
///   text_tool bleu|chrf KEY=VALUE... REFERENCE...
///   text_tool rouge KEY=VALUE...
///
/// rouge reads a summary and its references a line, with tabs between and "\\n"
/// for the ends of their sentences, and prints recall, precision and F of each
/// measure.
///   text_tool bleu|chrf|ter KEY=VALUE... REFERENCE...
///   text_tool bleu-counts KEY=VALUE...
///   text_tool bleu-of KEY=VALUE...
///   text_tool ter-words KEY=VALUE...
///   text_tool bleu-spm|bleu-mecab MODEL KEY=VALUE... REFERENCE...
///   text_tool mecab DICTIONARY
///   text_tool interval SAMPLES bleu|chrf|ter KEY=VALUE... REFERENCE...
///   text_tool compare bs|ar SAMPLES INTERVALS SYSTEM bleu|chrf|ter ...
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "base/characters.h"
#include "base/error.h"
#include "base/files.h"
#include "base/options.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/rouge.h"
#include "metrics/significance.h"
#include "metrics/ter.h"
#include "metrics/tercom_words.h"
#include "text/bpe.h"
#include "text/bpe_trainer.h"
#include "text/line_reader.h"
#include "text/mecab.h"
#include "text/segmenter.h"
#include "text/vocabulary.h"

namespace {

using seqconv::internal::BadBytes;
using seqconv::internal::LineReader;
using Arguments = std::vector<std::string>;

template <class Function>
void for_each_line(Function f) {
  LineReader reader(std::cin, "standard input", BadBytes::kReject);
  std::string line;
  while (reader.next(line))
    f(line);
}

void print_each_line(std::string (*change)(std::string_view)) {
  for_each_line([&](const std::string& line) { std::cout << change(line) << '\n'; });
}

template <class Function>
void for_each_line_with_end(Function f) {
  LineReader reader(std::cin, "standard input", BadBytes::kReject);
  std::string line;
  while (reader.next_with_end(line))
    f(line);
}

void apply_bpe(const Arguments& arguments) {
  seqconv::internal::BpeOptions options;
  if (arguments.size() > 1) {
    options.separator = arguments.at(1);
    if (!arguments.at(2).empty())
      options.vocabulary =
          seqconv::internal::read_bpe_vocabulary(arguments.at(2), std::stoll(arguments.at(3)));
    options.glossaries = {arguments.begin() + 4, arguments.end()};
  }
  const auto bpe = seqconv::internal::Bpe::load(arguments.at(0), options);
  for_each_line_with_end([&](const std::string& line) { std::cout << bpe.segment_line(line); });
}

template <class View>
void print_joined(const std::vector<View>& words) {
  const char* between = "";
  for (const auto& word : words) {
    std::cout << between << word;
    between = " ";
  }
  std::cout << '\n';
}

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  LineReader reader(path);
  std::string line;
  while (reader.next(line))
    lines.push_back(line);
  return lines;
}

/// A metric with its references.
template <class Options>
struct Evaluation {
  Options options;
  std::vector<std::vector<std::string>> references;

  explicit Evaluation(const Arguments& arguments) {
    seqconv::internal::Json table = seqconv::internal::Json::object();
    for (const std::string& argument : arguments) {
      if (argument.find('=') != std::string::npos)
        seqconv::internal::apply_override(table, argument);
      else
        references.push_back(read_lines(argument));
    }
    seqconv::internal::read_options(table, "metric", options);
  }

  /// Calls f(hypothesis, references) for each line.
  template <class Function>
  void for_each(const std::vector<std::string>& hypotheses, Function f) const {
    std::vector<std::string> row(references.size());
    for (size_t i = 0; i < hypotheses.size(); ++i) {
      for (size_t r = 0; r < references.size(); ++r)
        row[r] = references[r].at(i);
      f(hypotheses[i], row);
    }
  }
};

std::vector<std::string> read_hypotheses() {
  std::vector<std::string> hypotheses;
  for_each_line([&](const std::string& line) { hypotheses.push_back(line); });
  return hypotheses;
}

template <class Options, class Metric, class... Tokenizer>
void evaluate(const Arguments& arguments, Tokenizer... tokenizer) {
  const Evaluation<Options> evaluation(arguments);
  Metric metric(evaluation.options, tokenizer...);
  evaluation.for_each(
      read_hypotheses(), [&](const std::string& line, const auto& row) { metric.add(line, row); });
  std::cout << metric.report(/*decimals=*/9) << '\n';
}

std::vector<std::string> split_fields(std::string line) {
  for (size_t at = 0; (at = line.find("\\n", at)) != std::string::npos; ++at) {
    line[at] = '\n';
    line.erase(at + 1, 1);
  }
  std::vector<std::string> fields;
  size_t start = 0;
  for (size_t end = 0; end != std::string::npos; start = end + 1) {
    end = line.find('\t', start);
    fields.push_back(line.substr(start, end - start));
  }
  return fields;
}

/// Keys and values alone.
template <class Options>
Options read_settings(const Arguments& arguments) {
  return Evaluation<Options>(arguments).options;
}

/// Of lines with a hypothesis and its references: the sums of
/// BleuStatistics::numbers(), in one line.
void print_bleu_counts(const Arguments& arguments) {
  seqconv::internal::Bleu bleu(read_settings<seqconv::internal::BleuOptions>(arguments));
  std::string line;
  while (std::getline(std::cin, line)) {
    std::vector<std::string> fields = split_fields(line);
    const std::string hypothesis = fields.at(0);
    fields.erase(fields.begin());
    bleu.add(hypothesis, fields);
  }
  for (const double number : bleu.statistics().numbers())
    std::cout << number << ' ';
  std::cout << '\n';
}

/// The score of such numbers.
void print_bleu_of(const Arguments& arguments) {
  const auto options = read_settings<seqconv::internal::BleuOptions>(arguments);
  std::vector<double> numbers;
  for (double number = 0; std::cin >> number;)
    numbers.push_back(number);
  std::cout << seqconv::internal::compute_bleu(
                   seqconv::internal::BleuStatistics::of_numbers(numbers), options)
                   .score
            << '\n';
}

void print_ter_words(const Arguments& arguments) {
  const auto options = read_settings<seqconv::internal::TerOptions>(arguments);
  for_each_line([&](const std::string& line) {
    const std::string text = seqconv::internal::metrics::space_tercom_words(line, options);
    print_joined(seqconv::internal::split_words(text));
  });
}

void evaluate_rouge(const Arguments& arguments) {
  seqconv::internal::Rouge rouge(read_settings<seqconv::internal::RougeOptions>(arguments));
  std::string line;
  std::cout.precision(12);
  while (std::getline(std::cin, line)) {
    std::vector<std::string> fields = split_fields(line);
    const std::string hypothesis = fields.at(0);
    fields.erase(fields.begin());
    const auto values = rouge.compare(hypothesis, fields);
    for (size_t i = 0; i < values.size(); ++i)
      std::cout << (i == 0 ? "" : " ") << values[i].recall << ' ' << values[i].precision << ' '
                << values[i].f;
    std::cout << '\n';
  }
}

seqconv::internal::LineTokenizer spm_tokenizer(const std::string& path) {
  const auto segmenter =
      seqconv::internal::make_sentencepiece_segmenter(seqconv::internal::read_file(path), path);
  return {[segmenter](std::string_view line) { return segmenter->split(line); }, "flores101"};
}

seqconv::internal::LineTokenizer mecab_tokenizer(const std::string& dictionary) {
  const seqconv::internal::MecabTokenizer mecab(dictionary);
  return {[mecab](std::string_view line) { return mecab.split(line); }, "ja-mecab-" + mecab.name()};
}

/// Of a model or dictionary, keys and values, and references.
void evaluate_with(
    seqconv::internal::LineTokenizer (*make_tokenizer)(const std::string&),
    const Arguments& arguments) {
  evaluate<seqconv::internal::BleuOptions, seqconv::internal::Bleu>(
      {arguments.begin() + 1, arguments.end()}, make_tokenizer(arguments.at(0)));
}

/// By the name of a metric: its statistics of each system, and how they make a
/// score.
struct Statistics {
  std::vector<seqconv::internal::SentenceStatistics> systems;
  seqconv::internal::ScoreOfSums score;
};

std::vector<double> to_numbers(const std::vector<seqconv::internal::ChrfCounts>& counts) {
  return seqconv::internal::Chrf::numbers(counts);
}
template <class Counts>
std::vector<double> to_numbers(const Counts& counts) {
  return counts.numbers();
}

template <class Options, class Metric>
Statistics count(const std::vector<std::vector<std::string>>& systems, const Arguments& arguments) {
  const Evaluation<Options> evaluation(arguments);
  const Metric metric(evaluation.options);
  Statistics statistics{.score = metric.score_of_sums()};
  for (const std::vector<std::string>& hypotheses : systems)
    evaluation.for_each(
        hypotheses,
        [&, &table = statistics.systems.emplace_back()](const std::string& line, const auto& row) {
          table.add(to_numbers(metric.count(line, row)));
        });
  return statistics;
}

Statistics count_all(
    const std::vector<std::vector<std::string>>& systems, const Arguments& arguments) {
  const std::string& metric = arguments.at(0);
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (metric == "bleu")
    return count<seqconv::internal::BleuOptions, seqconv::internal::Bleu>(systems, rest);
  if (metric == "chrf")
    return count<seqconv::internal::ChrfOptions, seqconv::internal::Chrf>(systems, rest);
  return count<seqconv::internal::TerOptions, seqconv::internal::Ter>(systems, rest);
}

void print_interval(const Arguments& arguments) {
  const Statistics statistics =
      count_all({read_hypotheses()}, {arguments.begin() + 1, arguments.end()});
  const auto interval = seqconv::internal::bootstrap_interval(
      statistics.systems.at(0), statistics.score, {.samples = std::stoll(arguments.at(0))});
  std::cout << interval.mean << ' ' << interval.half_width << '\n';
}

/// A line for each system: score, p-value, mean and half width; "-" for what it
/// does not have.
void compare(const Arguments& arguments) {
  seqconv::internal::PairedTest test;
  test.kind =
      seqconv::internal::parse_enum<seqconv::internal::PairedTestKind>(arguments.at(0), "test");
  test.resampling.samples = std::stoll(arguments.at(1));
  test.interval_samples = std::stoll(arguments.at(2));
  const Statistics statistics = count_all(
      {read_hypotheses(), read_lines(arguments.at(3))}, {arguments.begin() + 4, arguments.end()});
  for (const auto& system :
       seqconv::internal::compare_systems(statistics.systems, statistics.score, test)) {
    std::cout << system.score << ' ';
    if (system.p_value)
      std::cout << *system.p_value << ' ';
    else
      std::cout << "- ";
    if (system.interval)
      std::cout << system.interval->mean << ' ' << system.interval->half_width << '\n';
    else
      std::cout << "- -\n";
  }
}

void run(const std::string& verb, const Arguments& arguments) {
  if (verb == "bpe-learn") {
    seqconv::internal::WordCounts counts;
    for_each_line_with_end(
        [&](const std::string& line) { seqconv::internal::count_words(line, counts); });
    std::cout << seqconv::internal::learn_bpe(
        counts, std::stoll(arguments.at(0)), std::stoll(arguments.at(1)));
  } else if (verb == "bpe-apply") {
    apply_bpe(arguments);
  } else if (verb == "lower") {
    print_each_line(seqconv::internal::to_lower);
  } else if (verb == "clean") {
    print_each_line(seqconv::internal::clean_line);
  } else if (verb == "words") {
    for_each_line(
        [](const std::string& line) { print_joined(seqconv::internal::split_words(line)); });
  } else if (verb == "tokenize") {
    const auto tokenizer = seqconv::internal::parse_enum<seqconv::internal::BleuTokenizer>(
        arguments.at(0), "tokenizer");
    for_each_line([&](const std::string& line) {
      print_joined(seqconv::internal::tokenize(line, tokenizer));
    });
  } else if (verb == "dictionary") {
    std::map<std::string, int64_t> counts;
    for_each_line([&](const std::string& line) {
      for (std::string_view word : seqconv::internal::split_words(line))
        ++counts[std::string(word)];
    });
    std::cout << seqconv::internal::Vocabulary::build(counts, 1, 0, std::stoll(arguments.at(0)))
                     .to_text();
  } else if (verb == "bleu") {
    evaluate<seqconv::internal::BleuOptions, seqconv::internal::Bleu>(arguments);
  } else if (verb == "bleu-counts") {
    print_bleu_counts(arguments);
  } else if (verb == "bleu-of") {
    print_bleu_of(arguments);
  } else if (verb == "ter-words") {
    print_ter_words(arguments);
  } else if (verb == "chrf") {
    evaluate<seqconv::internal::ChrfOptions, seqconv::internal::Chrf>(arguments);
  } else if (verb == "rouge") {
    evaluate_rouge(arguments);
  } else if (verb == "ter") {
    evaluate<seqconv::internal::TerOptions, seqconv::internal::Ter>(arguments);
  } else if (verb == "bleu-spm") {
    evaluate_with(spm_tokenizer, arguments);
  } else if (verb == "bleu-mecab") {
    evaluate_with(mecab_tokenizer, arguments);
  } else if (verb == "mecab") {
    const seqconv::internal::MecabTokenizer mecab(arguments.at(0));
    for_each_line([&](const std::string& line) { print_joined(mecab.split(line)); });
  } else if (verb == "interval") {
    print_interval(arguments);
  } else if (verb == "compare") {
    compare(arguments);
  } else {
    seqconv::internal::fail_usage("unknown verb '", verb, "'");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::cout.precision(17);
  try {
    const Arguments arguments(argv + 1, argv + argc);
    run(arguments.at(0), {arguments.begin() + 1, arguments.end()});
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
