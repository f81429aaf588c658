#include "text/corpus/pair_pieces.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "support/made_up_pieces.h"
#include "support/rounds.h"

namespace seqconv::internal {
namespace {

using testing::all_piece_kinds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> spelled(const LineInSlots& line) {
  std::vector<std::string> pieces;
  for (const PieceInSlot& piece : line.pieces)
    pieces.push_back(
        std::to_string(piece.slot) + line.line.substr(piece.begin, piece.end - piece.begin));
  return pieces;
}

TEST(PairPieces, AreThoseThatBothLinesHave) {
  const PairInSlots pair =
      find_pair_pieces("{a} {b} 5 {c} {a}", "{c}, {d} {a} 6", all_piece_kinds());
  EXPECT_THAT(spelled(pair.source), ElementsAre("0{a}", "1{c}", "0{a}"));
  EXPECT_THAT(spelled(pair.target), ElementsAre("1{c}", "0{a}"));
}

TEST(PairPieces, AreNoMoreThanThereAreSlots) {
  std::string line;
  for (int i = 0; i < 12; ++i)
    line += "{" + std::to_string(i) + "} ";
  const PairInSlots pair = find_pair_pieces(line, line, all_piece_kinds(), Practice::kSome);
  EXPECT_THAT(pair.source.pieces, SizeIs(kSlots));
  EXPECT_EQ(pair.source.pieces, pair.target.pieces);
}

/// Pairs that practise, and how often each of their pieces is spelled so.
std::map<std::string, int> practised(
    const std::string& source, const std::string& target, std::set<size_t>& slots) {
  std::map<std::string, int> pieces;
  for (int i = 0; i < testing::rounds(4000); ++i) {
    const std::string number = " n" + std::string(1 + static_cast<size_t>(i % 7), 'o');
    const std::string add = number + std::string(static_cast<size_t>(i / 7 % 97), 'z');
    const PairInSlots pair = find_pair_pieces(
        source + add + ".", target + " so" + add.substr(3) + ".", {}, Practice::kSome);
    EXPECT_EQ(pair.source.pieces.size(), pair.target.pieces.size());
    if (pair.source.pieces.empty())
      continue;
    ++pieces[""];
    for (const PieceInSlot& piece : pair.source.pieces) {
      const auto same = std::ranges::find(pair.target.pieces, piece.slot, &PieceInSlot::slot);
      EXPECT_NE(same, pair.target.pieces.end());
      const std::string spelling = pair.source.line.substr(piece.begin, piece.end - piece.begin);
      EXPECT_EQ(spelling, pair.target.line.substr(same->begin, same->end - same->begin));
      ++pieces[spelling];
      slots.insert(piece.slot);
    }
  }
  return pieces;
}

TEST(PairPieces, ArePractisedByNamesNumbersAndLongWords) {
  std::set<size_t> slots;
  auto pieces =
      practised("Tom gab in 2019 die elektronisch die", "Tom elektronisch in 2019 die", slots);
  EXPECT_NEAR(pieces[""], testing::rounds(4000) / 8.0, testing::rounds(4000) / 25.0);
  EXPECT_GT(pieces["Tom"], 0);
  EXPECT_GT(pieces["2019"], 0);
  EXPECT_GT(pieces["elektronisch"], 0);
  EXPECT_EQ(pieces["in"] + pieces["die"], 0);
  EXPECT_THAT(slots, SizeIs(kSlots));
}

TEST(PairPieces, ArePractisedAtTheEndsOfOtherLines) {
  std::set<size_t> slots;
  const auto pieces = practised("ein hund", "a dog", slots);
  EXPECT_EQ(pieces.at("x"), pieces.at(""));
  EXPECT_THAT(slots, SizeIs(kSlots));
}

TEST(PairPieces, AreFewWithoutPractice) {
  EXPECT_THAT(find_pair_pieces("Tom 7", "Tom 7", {}).source.pieces, IsEmpty());
  EXPECT_THAT(
      find_pair_pieces("", "", all_piece_kinds(), Practice::kSome).source.pieces, IsEmpty());
}

}  // namespace
}  // namespace seqconv::internal
