#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/protected_pieces.h"

/// Slots carry protected pieces through a model: symbols of its vocabulary that text never
/// spells. A sentence says which spelling each of its slots has.
namespace seqconv::internal {

/// A sentence has so many slots; pieces of further spellings are text as any other.
inline constexpr size_t kSlots = 8;

/// "<slot:1>" to "<slot:8>", and "<slot:join>": no blank is between what is beside it.
const std::vector<std::string>& slot_symbols();
/// The number of the symbol that joins, behind those of the slots.
inline constexpr size_t kSlotJoin = kSlots;

/// The spellings of a sentence's slots.
class Slots {
 public:
  /// No slot has a spelling.
  Slots() = default;
  /// Slots for the pieces of a clean line, each spelling once, by where it first stands.
  Slots(std::string_view line, const PieceKinds& kinds);

  size_t size() const { return spellings_.size(); }
  /// The spelling of a slot, from 0; "" for one without.
  std::string_view spelling(size_t slot) const {
    return slot < spellings_.size() ? std::string_view(spellings_[slot]) : std::string_view();
  }
  /// The slot of a spelling; nothing where none has it.
  std::optional<size_t> find(std::string_view spelling) const;

 private:
  std::vector<std::string> spellings_;
};

/// Slots of a sentence that has no pieces.
inline const Slots kNoSlots;

/// A piece of a line, and the slot that carries it.
struct PieceInSlot {
  size_t begin = 0;  ///< its first byte
  size_t end = 0;    ///< behind its last
  size_t slot = 0;

  bool operator==(const PieceInSlot&) const = default;
};

/// A line and what slots carry of it, from left to right.
struct LineInSlots {
  std::string line;
  std::vector<PieceInSlot> pieces{};
};

/// The pieces of a clean line whose spelling a slot has, from left to right.
std::vector<PieceInSlot> pieces_in_slots(
    std::string_view line, const PieceKinds& kinds, const Slots& slots);

/// A clean line in which a few code points that no text needs, U+FDD0 to U+FDEF, are U+FFFD:
/// they stand for slots while text is put together.
std::string without_stand_ins(std::string line);

/// Stands for a slot, or for what joins (kSlotJoin), among words.
std::string stand_in(size_t slot);

/// Text whose stand-ins become what they stand for: the spellings, the symbols of slots without
/// one, and nothing, with no blank on either side, for what joins.
LineInSlots fill_slots(std::string_view text, const Slots& slots);

}  // namespace seqconv::internal
