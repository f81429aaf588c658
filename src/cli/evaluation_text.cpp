#include <algorithm>
#include <filesystem>
#include <istream>

#include "base/characters.h"
#include "base/error.h"
#include "base/json_texts.h"
#include "base/log.h"
#include "cli/evaluation.h"
#include "text/documents.h"
#include "text/line_reader.h"

namespace seqconv::internal::cli {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

/// The texts of a file's lines.
struct FileTexts {
  std::vector<Lines> texts;      ///< one a line where there is no key
  std::vector<int64_t> numbers;  ///< of the lines
};

/// `optional`: null is no text.
Lines texts_of_line(
    const std::string& line, const std::string& key, const std::string& where, bool optional) {
  if (key.empty())
    return {line};
  const Json object = json_line_object(line, where);
  return optional ? json_optional_texts(object, key, where) : json_texts(object, key, where);
}

/// White space at the end of texts goes, as sacreBLEU's program has it.
FileTexts read_texts(
    LineReader& reader, const std::string& name, const std::string& key, bool optional) {
  FileTexts file;
  int64_t blank = 0;
  for (std::string line; reader.next(line);) {
    if (!key.empty() && is_blank(line)) {
      ++blank;
      continue;
    }
    const std::string where = reader.where();
    file.numbers.push_back(reader.line_number());
    file.texts.push_back(texts_of_line(line, key, where, optional));
    for (std::string& text : file.texts.back())
      text = sentence_lines(trim_end(text));
  }
  if (blank > 0)
    log_info(
        name, ": ", blank, blank == 1 ? " blank line was skipped" : " blank lines were skipped");
  return file;
}

/// A hypothesis may hold anything: what is not UTF-8 counts as U+FFFD.
EvaluationSystem read_system(
    const std::string& name,
    LineReader& reader,
    const std::string& key,
    const std::string& advice = "") {
  EvaluationSystem system{.name = name, .lines = {}};
  FileTexts file = read_texts(reader, name, key, /*optional=*/false);
  system.numbers = std::move(file.numbers);
  for (Lines& texts : file.texts) {
    SEQCONV_CHECK(
        texts.size() == 1,
        name,
        ":",
        system.numbers[system.lines.size()],
        ": a system must have one hypothesis a line, but got ",
        texts.size());
    system.lines.push_back(std::move(texts[0]));
  }
  if (reader.replaced_lines() > 0)
    log_warning(
        reader.replaced_lines(),
        " hypotheses held bytes that are not UTF-8, or NUL: replaced by U+FFFD and blanks");
  if (system.lines.empty())
    fail(name, " has no hypotheses: nothing to evaluate", advice);
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
  const std::string baseline = flags.baseline.empty() ? files.at(0) : flags.baseline;
  const auto is_baseline = [&](const std::string& file) { return is_same_name(file, baseline); };
  const auto first = std::ranges::find_if(files, is_baseline);
  const auto again = std::remove_if(first + 1, files.end(), is_baseline);
  if (again != files.end())
    log_info("--hypotheses names the baseline '", baseline, "' more than once: it is one system");
  files.erase(again, files.end());
  if (files.size() < 2)
    fail_usage("--paired compares systems, but --hypotheses names '", baseline, "' alone");
  return files;
}

std::vector<EvaluationSystem> read_systems(const EvaluationFlags& flags, std::istream& in) {
  const std::string& key = flags.hypothesis_key;
  std::vector<EvaluationSystem> systems;
  for (const std::string& file : systems_to_read(flags)) {
    LineReader reader(file, BadBytes::kReplace);
    systems.push_back(read_system(file, reader, key));
  }
  if (systems.empty()) {
    const std::string name = "standard input";
    LineReader reader(in, name, BadBytes::kReplace);
    const size_t references = flags.references.size();
    systems.push_back(read_system(
        name,
        reader,
        key,
        references < 2 ? ""
                       : concat(
                             "; --reference took ",
                             references,
                             " files, and a file of hypotheses goes to --hypotheses")));
  }
  const auto baseline = std::ranges::find_if(
      systems, [&](const auto& system) { return is_same_name(system.name, flags.baseline); });
  if (baseline != systems.end())
    std::rotate(systems.begin(), baseline, baseline + 1);
  return systems;
}

void check_flags(const EvaluationFlags& flags) {
  const size_t systems = std::max<size_t>(flags.hypotheses.size(), 1);
  if (flags.paired && systems < 2)
    fail_usage(
        "--paired compares systems: --hypotheses must name two files at least, but names ",
        flags.hypotheses.size());
  if (!flags.baseline.empty() && !flags.paired)
    fail_usage("--baseline is for --paired");
  if (!flags.baseline.empty() &&
      std::ranges::find(flags.hypotheses, flags.baseline) == flags.hypotheses.end())
    fail_usage(
        "--baseline must be one of the files of --hypotheses, but got '", flags.baseline, "'");
  if (flags.sentence && (flags.confidence || flags.paired))
    fail_usage(
        flags.paired ? "--paired" : "--confidence",
        " is of a corpus and cannot be given with --sentence");
  if (flags.samples != 0 && !flags.confidence && !flags.paired)
    fail_usage("--samples is for --confidence and --paired");
  if (flags.samples == 1)
    fail_usage("--samples must be 0 or at least 2, but got 1");
  if (flags.samples != 0)
    Resampling{.samples = flags.samples, .seed = flags.seed}.validate(
        OptionNames({{"samples", "--samples"}, {"seed", "--seed"}}));
}

}  // namespace

EvaluationText read_evaluation_text(const EvaluationFlags& flags, std::istream& in) {
  check_flags(flags);
  EvaluationText text;
  std::vector<int64_t> numbers;  // of the first file's lines
  for (const std::string& file : flags.references) {
    LineReader reader(file, BadBytes::kReject);
    FileTexts read = read_texts(reader, file, flags.reference_key, /*optional=*/true);
    std::vector<Lines>& lines = read.texts;
    if (numbers.empty())
      numbers = std::move(read.numbers);
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
  for (size_t i = 0; i < text.references.size(); ++i)
    SEQCONV_CHECK(
        !text.references[i].empty(),
        flags.references[0],
        ":",
        numbers[i],
        ": a line needs at least one reference, but has none");
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

}  // namespace seqconv::internal::cli
