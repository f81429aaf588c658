#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/rooted_path.h"
#include "base/special_ids.h"

namespace seqconv::internal {

class LineReader;

/// A line of a file "symbol count".
struct CountedSymbol {
  std::string symbol;
  int64_t count = 0;
};

/// Reads a dict.txt, or what subword-nmt's get-vocab writes, line by line as it
/// is. Errors name file and line.
std::vector<CountedSymbol> read_symbol_counts(const std::filesystem::path& path);

/// Symbols and their ids, in fairseq's order: 0-3 are <s>, <pad>, </s>, <unk>;
/// the rest by descending count, ties by symbol (byte order); padded to a
/// multiple of 8 with madeupwordNNNN. The file format is fairseq's dict.txt.
class Vocabulary {
 public:
  /// Keeps symbols that come at least `min_count` times, and the `max_size`
  /// most frequent ones (0: all; the special symbols count), then pads to a
  /// multiple of `multiple`. Those of `counts` that are `required` stay
  /// whatever the limits.
  static Vocabulary build(
      const std::map<std::string, int64_t>& counts,
      int64_t min_count = 1,
      int64_t max_size = 0,
      int64_t multiple = 8,
      const std::set<std::string>& required = {});

  /// Reads a dict.txt that may be packed: "symbol count" a line, split at the last space. Errors
  /// name file and line (no count, duplicate symbol, invalid UTF-8, empty).
  static Vocabulary load(const RootedPath& path);
  /// The same for its text; `name` is for errors.
  static Vocabulary parse(const std::string& text, const std::string& name);
  /// The text of dict.txt, byte for byte as fairseq writes it.
  std::string to_text() const;

  /// All of them, by id.
  const std::vector<std::string>& symbols() const { return symbols_; }
  int64_t size() const { return static_cast<int64_t>(symbols_.size()); }
  /// The id of `symbol`; kUnknownId when it is not there.
  int32_t id(std::string_view symbol) const;
  /// The id that text of this spelling has: kUnknownId too where it spells <s>,
  /// <pad>, </s> or a slot.
  int32_t text_id(std::string_view symbol) const;
  /// The id of a token that a caller names: as text_id(), but slots have their ids.
  int32_t token_id(std::string_view symbol) const;
  /// Tells whether text of this spelling has an id of its own; <unk> counts as
  /// one.
  bool has(std::string_view symbol) const;
  /// The symbol of `id`; Error when it is out of range.
  const std::string& symbol(int32_t id) const;
  /// Says how often the symbol of `id`, which must be one, came in the training text; 0 of <s>,
  /// <pad>, </s> and <unk>, and where it is not known.
  int64_t count(int32_t id) const { return counts_[static_cast<size_t>(id)]; }
  /// Ids, ascending, of the rows that only fill the size up: madeupwordNNNN of
  /// count 0. A word of that spelling that was counted is a word.
  const std::vector<int32_t>& padding() const { return padding_; }

  /// The ids of slot_symbols() (text/slots.h), in their order; none where no text is protected.
  const std::vector<int32_t>& slots() const { return slots_; }
  /// The number of a slot, or kSlotJoin; nothing for other ids.
  std::optional<size_t> slot_of(int32_t id) const;
  /// Makes slots of the symbols that are spelled like them, and adds those that are missing at
  /// the end.
  void add_slots();
  /// Does that too, but an Error where one is missing; `name` is for the message.
  void need_slots(const std::string& name);

 private:
  static Vocabulary read(LineReader& reader, const std::string& name);
  Vocabulary();
  void add(std::string symbol, int64_t count);

  std::vector<std::string> symbols_;
  std::vector<int64_t> counts_;
  std::vector<int32_t> padding_;
  std::vector<int32_t> slots_;
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace seqconv::internal
