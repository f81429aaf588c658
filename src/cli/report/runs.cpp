#include "cli/report/runs.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/json_members.h"

namespace seqconv::internal::report {
namespace fs = std::filesystem;
namespace {

/// The number that a JSON value is; NaN for others.
double json_number(const std::string& value) {
  double number = NAN;
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  return error == std::errc() && rest == end ? number : NAN;
}

/// No measurement is so large; what is could not be drawn.
constexpr double kMostOfANumber = 1e30;

bool is_usable(double number) {
  return std::abs(number) < kMostOfANumber;  // no NaN
}

/// Keys that place a record and are no measurements.
bool is_place(const std::string& key) {
  return key == "update" || key == "epoch" || key == "elapsed_seconds";
}

void add_record(const std::string& line, const std::string& where, Run& run) {
  const auto members = json_members(line, where);
  SEQCONV_CHECK(members, where, ": not a JSON object");
  std::string kind;
  double update = NAN;
  for (const JsonMember& member : *members) {
    if (member.name == "kind")
      kind = member.value;
    else if (member.name == "update")
      update = json_number(member.value);
  }
  SEQCONV_CHECK(
      !kind.empty() && is_usable(update) && update >= 0,
      where,
      ": a record has a 'kind' and an 'update'");
  if (kind != "\"train\"" && kind != "\"validation\"")
    return;
  Curves& curves = kind == "\"train\"" ? run.train : run.validation;
  for (const JsonMember& member : *members)
    if (const double number = json_number(member.value);
        is_usable(number) && !is_place(member.name))
      curves[member.name].push_back({update, number});
}

}  // namespace

std::optional<RootedPath> metrics_file(const RootedPath& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error) && path.path().extension() == ".jsonl")
    return path;
  const RootedPath file = path / "training" / "metrics.jsonl";
  if (fs::exists(fs::symlink_status(file, error)))
    return file;
  return std::nullopt;
}

Run read_run(const RootedPath& file, std::string name) {
  Run run{std::move(name)};
  const std::string text = read_file(file);
  int64_t number = 0, damaged = 0;
  std::string first;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::string where = concat(file.string(), ":", ++number);
    try {
      add_record(line, where, run);
    } catch (const Error& error) {
      if (++damaged == 1)
        first = error.what();
    }
  }
  SEQCONV_CHECK(
      !run.train.empty() || !run.validation.empty(),
      file.string(),
      " holds no record of training or validation",
      damaged == 0 ? "" : "; ",
      first);
  if (damaged > 0)
    run.notes.push_back(concat(
        file.string(),
        ": ",
        damaged,
        damaged == 1 ? " line is no record: " : " lines are no records; first ",
        first));
  return run;
}

std::vector<std::string> run_names(const std::vector<fs::path>& paths) {
  std::vector<std::string> names;
  for (const fs::path& path : paths) {
    fs::path folder = path.lexically_normal();
    if (folder.extension() == ".jsonl")
      folder = folder.parent_path().parent_path();
    if (!folder.has_filename())
      folder = folder.parent_path();
    names.push_back(folder.filename().empty() ? path.string() : folder.filename().string());
  }
  std::vector<std::string> unique = names;
  for (size_t i = 0; i < names.size(); ++i)
    if (std::ranges::count(names, names[i]) > 1)
      unique[i] = paths[i].string();
  return unique;
}

}  // namespace seqconv::internal::report
