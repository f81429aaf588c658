#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/slots.h"

namespace seqconv::internal {

/// Both lines of a pair of a training text.
struct PairInSlots {
  LineInSlots source;
  LineInSlots target;
};

/// Finds what slots carry of two raw lines that belong together.
using FindPairPieces = std::function<PairInSlots(std::string_view source, std::string_view target)>;

/// Says whether pairs without protected pieces practise them.
enum class Practice { kNone, kSome };

/// Clean lines, and the pieces that both have: kSlots spellings at most. Pieces that one line
/// alone has are text.
///
/// With Practice::kSome, one in eight of the pairs of which neither line has a piece practises:
/// words that both have, each once and spelled alike (names, numbers, long words; three at most),
/// become pieces, or where there is none, a piece is put in front of both lines or behind them,
/// before the sign that ends both. The first slot that is taken differs from pair to pair, so
/// that all are learned. The choice depends on the two lines alone, so that every process,
/// and a run that goes on, makes the same one.
PairInSlots find_pair_pieces(
    std::string_view source,
    std::string_view target,
    const PieceKinds& kinds,
    Practice practice = Practice::kNone);

}  // namespace seqconv::internal
