#include "train/held_out.h"

#include <algorithm>
#include <unordered_set>

#include "base/characters.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "text/line_reader.h"
#include "train/prepared_data.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

/// The most that is held out: one sample in so many.
constexpr int64_t kLeastKept = 10;

/// The files of the training text whose lines decide, and those beside them.
struct Sides {
  const std::vector<std::string>& lines;
  const std::vector<std::string>& beside;
  const char* name;  ///< of the file with the former
};

bool has_pairs_of_files(const DataOptions& data) {
  return !data.train_source.empty();
}

/// Files of one kind are wanted: a run has one place for its validation text.
Sides sides_of(const TrainConfig& config) {
  static const std::vector<std::string> kNone;
  const DataOptions& data = config.data;
  if (config.task == Task::kLanguageModel || !has_pairs_of_files(data))
    return {data.train, kNone, HeldOut::kLines};
  if (!data.train.empty())
    fail_usage("data.hold_out takes samples of data.train_source or of data.train, but both are "
               "given: name validation text, or set data.hold_out = 0");
  return {data.train_source, data.train_target, HeldOut::kSource};
}

/// A line of a file that has text.
struct Line {
  size_t file;
  int64_t number;  ///< from 1
  uint64_t hash;
};

template <class Take>
void read_lines(const std::string& file, const Take& take) {
  LineReader reader{fs::path(file)};
  for (std::string line; reader.next(line);) {
    stop_preparing_if_asked();
    take(line, reader.line_number());
  }
}

/// Those that have text: a source's.
std::vector<Line> lines_of(const std::vector<TextSource>& files) {
  std::vector<Line> lines;
  std::string text;
  for (size_t i = 0; i < files.size(); ++i)
    for (TextSourceReader reader(files[i]); reader.next(text);) {
      stop_preparing_if_asked();
      if (!is_blank(text))
        lines.push_back({i, reader.line_number(), checksum(clean_line(text))});
    }
  return lines;
}

/// The lines to hold out, in the order of the files.
std::vector<Line> choose(std::vector<Line> lines, const TrainConfig& config) {
  const auto all = static_cast<int64_t>(lines.size());
  const int64_t wanted = std::min(config.data.hold_out, all / kLeastKept);
  if (wanted == 0)
    fail_usage(
        "data.hold_out = ",
        config.data.hold_out,
        " needs ",
        kLeastKept,
        " training samples or more, but there are ",
        all,
        ": name validation text, or set data.hold_out = 0");
  if (config.task == Task::kLanguageModel)
    return {lines.end() - wanted, lines.end()};
  // Equal sources have equal hashes: all of them come along, or none.
  std::vector<uint64_t> hashes;
  hashes.reserve(lines.size());
  for (const Line& line : lines)
    hashes.push_back(line.hash);
  const auto last = hashes.begin() + wanted;
  std::nth_element(hashes.begin(), last, hashes.end());
  const uint64_t limit = *last;
  std::erase_if(lines, [&](const Line& line) { return line.hash >= limit; });
  if (lines.empty())
    fail_usage("data.hold_out: a tenth of the training samples or more have one source; name "
               "validation text, or set data.hold_out = 0");
  return lines;
}

HeldOut held_out_of(const std::vector<Line>& lines, size_t files, const fs::path& folder) {
  HeldOut held;
  held.folder = folder.string();
  std::vector<std::vector<int64_t>> numbers(files);
  for (const Line& line : lines)
    numbers[line.file].push_back(line.number);
  for (auto& list : numbers)
    held.lines.push_back(std::make_shared<const std::vector<int64_t>>(std::move(list)));
  return held;
}

/// The lines that are held out, and hashes of the others where they are asked for.
std::string take_lines(
    const std::vector<std::string>& files,
    const HeldOut& held,
    const std::function<void(const std::string& line, bool taken)>& see) {
  std::string text;
  for (size_t i = 0; i < files.size(); ++i) {
    auto next = held.lines[i]->begin();
    read_lines(files[i], [&](const std::string& line, int64_t number) {
      const bool taken = next != held.lines[i]->end() && *next == number;
      if (taken) {
        text += line + "\n";
        ++next;
      }
      see(line, taken);
    });
  }
  return text;
}

/// Lines that are held out and stand among the others too.
struct SharedLines {
  std::unordered_set<uint64_t> kept;
  std::vector<uint64_t> taken;

  int64_t count() const {
    return std::ranges::count_if(taken, [&](uint64_t hash) { return kept.contains(hash); });
  }
};

fs::path list_file(const fs::path& folder) {
  return folder / "validation.json";
}

}  // namespace

bool holds_out(const TrainConfig& config) {
  const DataOptions& data = config.data;
  return data.hold_out > 0 && data.valid_source.empty() && data.valid.empty();
}

HeldOut hold_out(const TrainConfig& config, const fs::path& folder) {
  const Sides sides = sides_of(config);
  const bool is_pairs = config.task == Task::kTranslation;
  const std::vector<Line> lines = choose(
      lines_of(is_pairs ? config.data.training_pairs().source : config.data.training_text()),
      config);
  HeldOut held = held_out_of(lines, sides.lines.size(), folder);
  const auto nothing = [](const std::string&, bool) {};
  Json list = {{"lines", Json::array()}};
  for (const auto& numbers : held.lines)
    list["lines"].push_back(*numbers);
  write_file_atomically(held.file(sides.name), take_lines(sides.lines, held, nothing));
  std::string shared;
  if (!sides.beside.empty()) {
    SharedLines targets;
    write_file_atomically(
        held.file(HeldOut::kTarget),
        take_lines(sides.beside, held, [&](const std::string& line, bool taken) {
          const uint64_t hash = checksum(clean_line(line));
          if (taken)
            targets.taken.push_back(hash);
          else
            targets.kept.insert(hash);
        }));
    if (const int64_t count = targets.count())
      shared = concat(
          "; ",
          count,
          " of their targets stand in the training text too, beside "
          "another source");
  }
  write_file_atomically(list_file(folder), list.dump() + "\n");
  log_info(
      "no validation text is given: ",
      lines.size(),
      is_pairs ? " training samples, chosen by a hash of the source,"
               : " lines at the end of the training text",
      " are held out (data.hold_out = ",
      config.data.hold_out,
      ")",
      shared);
  return held;
}

HeldOut open_held_out(const TrainConfig& config, const fs::path& folder) {
  const Sides sides = sides_of(config);
  HeldOut held;
  held.folder = folder.string();
  const RootedPath file{list_file(folder)};
  const Json list = parse_json(read_file(file), file.string());
  try {
    for (const Json& numbers : list.at("lines"))
      held.lines.push_back(
          std::make_shared<const std::vector<int64_t>>(numbers.get<std::vector<int64_t>>()));
  } catch (const Json::exception& error) {
    fail(file.string(), " is damaged: ", error.what());
  }
  SEQCONV_CHECK(
      held.lines.size() == sides.lines.size(),
      file.string(),
      ": lines of ",
      sides.lines.size(),
      " files were wanted, but there are those of ",
      held.lines.size());
  return held;
}

}  // namespace seqconv::internal
