#include "text/protected_pieces.h"

#include <gmock/gmock.h>

#include <chrono>

#include "base/utf8.h"
#include "support/made_up_pieces.h"
#include "support/rounds.h"

namespace seqconv::internal {
namespace {

using testing::all_piece_kinds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kMadeUpKinds;
using testing::MadeUpPieces;

std::vector<std::string> pieces_of(
    std::string_view text, const PieceKinds& kinds = all_piece_kinds()) {
  std::vector<std::string> pieces;
  for (const ProtectedPiece& piece : find_pieces(text, kinds))
    pieces.emplace_back(piece.of(text));
  return pieces;
}

TEST(ProtectedPieces, ArePrintfForms) {
  EXPECT_THAT(
      pieces_of("%1$s, %-5.2f%d: %(user)s %5.*f %lu %@ 9%%"),
      ElementsAre("%1$s", "%-5.2f", "%d", "%(user)s", "%5.*f", "%lu", "%@", "9", "%%"));
  EXPECT_THAT(
      pieces_of(
          "100%ige, 50% increase, 5 % der, 50%-iger, %(a b)s % %", {PieceKind::kPlaceholders}),
      IsEmpty());
}

TEST(ProtectedPieces, AreFieldsInBraces) {
  EXPECT_THAT(
      pieces_of("({name}), {0} {} {0:.2f} {{ a.b | upper }} {{{raw}}} ${x} #{y} %{z} {名}"),
      ElementsAre(
          "{name}",
          "{0}",
          "{}",
          "{0:.2f}",
          "{{ a.b | upper }}",
          "{{{raw}}}",
          "${x}",
          "#{y}",
          "%{z}",
          "{名}"));
  EXPECT_THAT(pieces_of("{ a } {\"k\":v} {a b} {{ }} { } $x {"), IsEmpty());
  EXPECT_THAT(pieces_of("{{a}"), ElementsAre("{a}"));
  EXPECT_THAT(pieces_of("{" + std::string(100, 'x') + "}"), IsEmpty());
}

TEST(ProtectedPieces, AreUrlsWithoutPunctuationBehindThem) {
  EXPECT_THAT(
      pieces_of("(http://a.org/b_(c)), www.x.org. HTTPS://a.b/c?d=e&f=[1]! ftp://f.g/h;"),
      ElementsAre("http://a.org/b_(c)", "www.x.org", "HTTPS://a.b/c?d=e&f=[1]", "ftp://f.g/h"));
  EXPECT_THAT(
      pieces_of("https://de.org/Köln, https://x.jp/を見る <https://a.b>"),
      ElementsAre("https://de.org/Köln", "https://x.jp/", "https://a.b"));
  EXPECT_THAT(pieces_of("http:// xhttp://a.b hxxp://c www. awww.x.y"), IsEmpty());
}

TEST(ProtectedPieces, AreEmailAddresses) {
  EXPECT_THAT(
      pieces_of("john.doe+tag@mail-2.example.co.uk. x@y.de-Adresse <m@köln.de>, メールa@b.jp"),
      ElementsAre("john.doe+tag@mail-2.example.co.uk", "x@y.de", "m@köln.de", "a@b.jp"));
  EXPECT_THAT(pieces_of("a@b @b.org a@ a@b.c ..@x.org"), IsEmpty());
}

TEST(ProtectedPieces, AreNumbersWithTheirSeparators) {
  EXPECT_THAT(
      pieces_of("3.14 1,000,000 -5 12:30 10km 3rd 第3章 5. 3-5 +7 \u22124 1\u00A0000 \u0663\u0664"),
      ElementsAre(
          "3.14",
          "1,000,000",
          "-5",
          "12:30",
          "10",
          "3",
          "3",
          "5",
          "3",
          "5",
          "+7",
          "\u22124",
          "1\u00A0000",
          "\u0663\u0664"));
  EXPECT_THAT(pieces_of("mp3 A4 v1 x_5 H2O"), IsEmpty());
}

TEST(ProtectedPieces, AreThoseOfTheWantedKindsAlone) {
  const std::string text = "{a} http://b.c/5 d@e.fg 6";
  EXPECT_THAT(pieces_of(text, {}), IsEmpty());
  EXPECT_THAT(pieces_of(text, {PieceKind::kPlaceholders}), ElementsAre("{a}"));
  EXPECT_THAT(pieces_of(text, {PieceKind::kUrls}), ElementsAre("http://b.c/5"));
  EXPECT_THAT(pieces_of(text, {PieceKind::kEmails}), ElementsAre("d@e.fg"));
  EXPECT_THAT(pieces_of(text, {PieceKind::kNumbers}), ElementsAre("5", "6"));
}

TEST(ProtectedPieces, OfTenKindsAreFoundWholeBetweenBlanks) {
  MadeUpPieces made(1);
  for (int round = 0; round < testing::rounds(4000); ++round) {
    const std::string piece = made.piece(round % kMadeUpKinds);
    EXPECT_THAT(pieces_of(piece), ElementsAre(piece));
    EXPECT_THAT(pieces_of("so " + piece + " geht es"), ElementsAre(piece));
    EXPECT_THAT(pieces_of("(" + piece + "), \"" + piece + "\"."), ElementsAre(piece, piece));
  }
}

/// Whatever is found in a text is found again where it stands between blanks.
TEST(ProtectedPieces, AreTheSameAlone) {
  constexpr std::string_view kSigns = "%%%{}{}$#(()))1299..,,:://@@ww- +aabdsx_[]h'";
  std::mt19937 random(7);
  for (int round = 0; round < testing::rounds(40000); ++round) {
    std::string text;
    for (size_t i = 0; i < 12; ++i) {
      const size_t pick = random() % (kSigns.size() + 4);
      const char* const others[] = {"http://", "www.", "ö", "章"};
      text += pick < kSigns.size() ? std::string(1, kSigns[pick]) : others[pick - kSigns.size()];
    }
    for (const std::string& piece : pieces_of(text)) {
      EXPECT_THAT(pieces_of(piece), ElementsAre(piece)) << text;
      EXPECT_EQ(find_invalid_utf8(piece), std::string::npos);
    }
  }
}

TEST(ProtectedPieces, AreFoundInLinearTime) {
  const auto begin = std::chrono::steady_clock::now();
  for (const char* const part :
       {"{", "%", "a@", "a.", "1.", "http://", "www.", "%(", "{{", "a@a.aa", "(", "((http://a)"}) {
    std::string text;
    while (text.size() < 200'000)
      text += part;
    find_pieces(text, all_piece_kinds());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace seqconv::internal
