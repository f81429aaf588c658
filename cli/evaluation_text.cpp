#include <algorithm>
#include <filesystem>
#include <istream>

#include "evaluation.h"
#include "seqconv/base/error.h"
#include "seqconv/base/json_texts.h"
#include "seqconv/base/log.h"
#include "seqconv/text/documents.h"
#include "seqconv/text/unicode.h"

namespace seqconv::cli {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

/// The texts of each line: one where there is no key. White space at the end
/// goes, as sacreBLEU's program has it.
std::vector<Lines> read_texts(LineReader& reader, const std::string& key) {
  std::vector<Lines> texts;
  for (std::string line; reader.next(line);) {
    texts.push_back(
        key.empty() ? Lines{line} : json_line_texts(line, key, reader.where()));
    for (std::string& text : texts.back())
      text = sentence_lines(trim_end(text));
  }
  return texts;
}

/// A hypothesis may hold anything: what is not UTF-8 counts as U+FFFD.
EvaluationSystem read_system(
    const std::string& name,
    LineReader& reader,
    const std::string& key) {
  EvaluationSystem system{.name = name, .lines = {}};
  for (Lines& texts : read_texts(reader, key)) {
    SEQCONV_CHECK(
        texts.size() == 1,
        name,
        ":",
        system.lines.size() + 1,
        ": a system must have one hypothesis a line, but got ",
        texts.size());
    system.lines.push_back(std::move(texts[0]));
  }
  if (reader.replaced_lines() > 0)
    log_warning(
        reader.replaced_lines(),
        " hypotheses held bytes that are not UTF-8, or NUL: replaced by "
        "U+FFFD and blanks");
  if (system.lines.empty())
    fail(name, " has no hypotheses: nothing to evaluate");
  return system;
}

bool is_same_name(const std::string& one, const std::string& other) {
  return fs::path(one).lexically_normal() == fs::path(other).lexically_normal();
}

/// The files of --hypotheses, without a baseline that is named again: it is not
/// tested against itself ("base.txt *.txt").
std::vector<std::string> systems_to_read(const EvaluationFlags& flags) {
  std::vector<std::string> files = flags.hypotheses;
  if (!flags.paired)
    return files;
  const std::string baseline =
      flags.baseline.empty() ? files.at(0) : flags.baseline;
  const auto is_baseline = [&](const std::string& file) {
    return is_same_name(file, baseline);
  };
  const auto first = std::ranges::find_if(files, is_baseline);
  const auto again = std::remove_if(first + 1, files.end(), is_baseline);
  if (again != files.end())
    log_info(
        "--hypotheses names the baseline '",
        baseline,
        "' more than once: it is one system");
  files.erase(again, files.end());
  if (files.size() < 2)
    fail_usage(
        "--paired compares systems, but --hypotheses names '",
        baseline,
        "' alone");
  return files;
}

std::vector<EvaluationSystem> read_systems(
    const EvaluationFlags& flags,
    std::istream& in) {
  const std::string& key = flags.hypothesis_key;
  std::vector<EvaluationSystem> systems;
  for (const std::string& file : systems_to_read(flags)) {
    LineReader reader(file, BadBytes::kReplace);
    systems.push_back(read_system(file, reader, key));
  }
  if (systems.empty()) {
    const std::string name = "standard input";
    LineReader reader(in, name, BadBytes::kReplace);
    systems.push_back(read_system(name, reader, key));
  }
  const auto baseline = std::ranges::find_if(systems, [&](const auto& system) {
    return is_same_name(system.name, flags.baseline);
  });
  if (baseline != systems.end())
    std::rotate(systems.begin(), baseline, baseline + 1);
  return systems;
}

void check_flags(const EvaluationFlags& flags) {
  const size_t systems = std::max<size_t>(flags.hypotheses.size(), 1);
  if (flags.paired && systems < 2)
    fail_usage(
        "--paired compares systems: --hypotheses must name two files at "
        "least, but names ",
        flags.hypotheses.size());
  if (!flags.baseline.empty() && !flags.paired)
    fail_usage("--baseline is for --paired");
  if (!flags.baseline.empty() &&
      std::ranges::find(flags.hypotheses, flags.baseline) ==
          flags.hypotheses.end())
    fail_usage(
        "--baseline must be one of the files of --hypotheses, but got '",
        flags.baseline,
        "'");
  if (flags.samples != 0 && !flags.confidence && !flags.paired)
    fail_usage("--samples is for --confidence and --paired");
  if (flags.samples != 0)
    Resampling{.samples = flags.samples, .seed = flags.seed}.validate(
        OptionNames({{"samples", "--samples"}, {"seed", "--seed"}}));
}

}  // namespace

EvaluationText read_evaluation_text(
    const EvaluationFlags& flags,
    std::istream& in) {
  check_flags(flags);
  EvaluationText text;
  for (const std::string& file : flags.references) {
    LineReader reader(file, BadBytes::kReject);
    auto lines = read_texts(reader, flags.reference_key);
    if (text.references.empty())
      text.references.resize(lines.size());
    if (lines.size() != text.references.size())
      fail(
          "references must have the same number of lines, but ",
          flags.references[0],
          " has ",
          text.references.size(),
          " and ",
          file,
          " has ",
          lines.size());
    for (size_t i = 0; i < lines.size(); ++i)
      std::ranges::move(lines[i], std::back_inserter(text.references[i]));
  }
  text.systems = read_systems(flags, in);
  for (const EvaluationSystem& system : text.systems)
    if (system.lines.size() != text.references.size())
      fail(
          "references must have as many lines as there are hypotheses, but ",
          flags.references[0],
          " has ",
          text.references.size(),
          " and ",
          system.name,
          " has ",
          system.lines.size());
  return text;
}

}  // namespace seqconv::cli
