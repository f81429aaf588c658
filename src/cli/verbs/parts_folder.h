#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/folder_lock.h"
#include "base/json.h"
#include "cli/verbs/failed_lines.h"
#include "cli/verbs/part_input.h"
#include "pipeline/limit_count.h"

/// A job whose output several processes write, each its part: the folder
/// OUTPUT.parts, until the parts are joined. docs/scaling.md shows it.
namespace seqconv::internal::verbs {

/// How far a part is.
struct PartProgress {
  int64_t offset = 0;    ///< byte of the input where its next line begins
  int64_t lines = 0;     ///< of the input in front of that byte
  int64_t bytes = 0;     ///< of output
  int64_t replaced = 0;  ///< lines that held bad bytes
  int64_t cut = 0;       ///< lines that were longer than the model takes
  int64_t blank = 0;     ///< blank lines between JSON objects
  LimitCount limits{};
  FailureSummary failed{};
  bool done = false;

  template <class Visitor>
  void visit(Visitor& v) {
    v("offset", offset, "Byte of the input where the next line begins");
    v("lines", lines, "Lines of the input in front of it");
    v("bytes", bytes, "Bytes of the output that belong to them");
    v("replaced", replaced, "Lines that held bad bytes");
    v("cut", cut, "Lines that were cut");
    v("blank", blank, "Blank lines between JSON objects");
    v("limits", limits, "Translations that end at their limit of length");
    v("failed", failed, "Lines that failed");
    v("done", done, "Whether that is all");
  }
};

/// What joining has found.
struct JoinedParts {
  int64_t missing = 0;           ///< parts that are not done; 0: the output is there
  bool here = false;             ///< whether this process has joined them
  PartProgress total{};          ///< of all parts, where it has
  std::vector<int64_t> bytes{};  ///< of each part that is done
};

class PartsFolder {
 public:
  /// Error when the output is there and its parts are not: such a job is done;
  /// when the folder is a link, or one that no job of ours has made.
  PartsFolder(const std::filesystem::path& output, InputPart part);

  /// Begins the job that `job` describes, or goes on with it. Error naming what
  /// differs where the folder holds another one.
  void enter(const Json& job);
  /// Keeps the part for this process, while the result lives. Error when
  /// another one has it.
  std::unique_ptr<FolderLock> lock() const;

  /// How far this part was when its record was written last. Nothing where
  /// there is no record or a torn one, which a warning says.
  std::optional<PartProgress> load() const;
  bool is_done() const;
  void save(const PartProgress& progress) const;
  /// The part's output.
  std::filesystem::path file() const { return name(part_.index, ".out"); }

  /// Writes the output where all parts are done, and removes the job's files,
  /// with the folder where nothing else is in it.
  JoinedParts join() const;

 private:
  std::filesystem::path name(int64_t part, const char* ending) const;
  std::optional<PartProgress> load(int64_t part) const;
  JoinedParts look() const;
  void write_output(const JoinedParts& joined) const;
  void check_output() const;
  void check_place() const;

  std::filesystem::path output_;
  std::filesystem::path folder_;
  InputPart part_;
  std::string job_;  // its checksum, once it is entered
};

}  // namespace seqconv::internal::verbs
