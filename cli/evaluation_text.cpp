#include <algorithm>
#include <istream>

#include "evaluation.h"
#include "seqconv/base/error.h"
#include "seqconv/base/json.h"
#include "seqconv/base/log.h"
#include "seqconv/base/options.h"
#include "seqconv/text/unicode.h"

namespace seqconv::cli {
namespace {

using Lines = std::vector<std::string>;

/// The sign for a line feed inside a line, SYMBOL FOR NEWLINE.
constexpr std::string_view kLineFeedSign = "\xE2\x90\xA4";

/// Signs for line feeds become line feeds, which end the sentences of a
/// summary; white space at the end goes, as sacreBLEU's program has it.
std::string prepared(std::string_view line) {
  std::string text(trim_end(line));
  for (size_t at = 0; (at = text.find(kLineFeedSign, at)) != std::string::npos;)
    text.replace(at, kLineFeedSign.size(), "\n");
  return text;
}

/// What a key with dots names in an object; null where there is nothing.
const Json* find(const Json& object, const std::string& key) {
  const Json* value = &object;
  for (size_t start = 0; start <= key.size();) {
    const size_t end = std::min(key.find('.', start), key.size());
    const std::string part = key.substr(start, end - start);
    if (!value->is_object() || !value->contains(part))
      return nullptr;
    value = &(*value)[part];
    start = end + 1;
  }
  return value;
}

/// The texts that a key names in a line of JSON: one, or a list of them.
Lines json_texts(
    const std::string& line,
    const std::string& key,
    const std::string& where) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  SEQCONV_CHECK(
      object.is_object(),
      where,
      ": a line must be a JSON object, but got ",
      shorten(line));
  const Json* const value = find(object, key);
  SEQCONV_CHECK(value != nullptr, where, ": there is no \"", key, "\"");
  if (value->is_string())
    return {prepared(value->get_ref<const std::string&>())};
  Lines found;
  if (value->is_array())
    for (const Json& text : *value)
      if (text.is_string())
        found.push_back(prepared(text.get_ref<const std::string&>()));
  SEQCONV_CHECK(
      !found.empty() && found.size() == value->size(),
      where,
      ": \"",
      key,
      "\" must be a text or a list of texts, but got ",
      value->is_structured() ? value->type_name() : value->dump());
  return found;
}

/// The texts of each line: one where there is no key.
std::vector<Lines> read_texts(LineReader& reader, const std::string& key) {
  std::vector<Lines> texts;
  for (std::string line; reader.next(line);)
    texts.push_back(
        key.empty() ? Lines{prepared(line)}
                    : json_texts(line, key, reader.where()));
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

std::vector<EvaluationSystem> read_systems(
    const EvaluationFlags& flags,
    std::istream& in) {
  const std::string& key = flags.hypothesis_key;
  std::vector<EvaluationSystem> systems;
  for (const std::string& file : flags.hypotheses) {
    LineReader reader(file, BadBytes::kReplace);
    systems.push_back(read_system(file, reader, key));
  }
  if (systems.empty()) {
    const std::string name = "standard input";
    LineReader reader(in, name, BadBytes::kReplace);
    systems.push_back(read_system(name, reader, key));
  }
  const auto baseline =
      std::ranges::find(systems, flags.baseline, &EvaluationSystem::name);
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
