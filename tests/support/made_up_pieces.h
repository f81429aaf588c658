#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "text/protected_pieces.h"

/// Protected pieces that a test makes up, of ten kinds.
namespace seqconv::internal::testing {

inline constexpr int kMadeUpKinds = 10;

class MadeUpPieces {
 public:
  explicit MadeUpPieces(uint32_t seed) : random_(seed) {}

  int64_t below(int64_t limit) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
  }

  /// A name of small letters and perhaps digits.
  std::string name() {
    std::string text;
    for (int64_t i = 1 + below(8); i > 0; --i)
      text += static_cast<char>('a' + below(26));
    return below(4) == 0 ? text + std::to_string(below(100)) : text;
  }

  /// A piece of one of the kinds, 0 to 9.
  std::string piece(int kind) {
    const auto pick = [&](const std::string& signs) {
      return std::string(1, signs[static_cast<size_t>(below(std::ssize(signs)))]);
    };
    switch (kind) {
      case 0:
        return "%" + std::to_string(1 + below(9)) + "$" + pick("sdfx@");
      case 1:
        return "%" + pick("-0+#") + std::to_string(1 + below(9)) + "." + std::to_string(below(9)) +
            pick("feg");
      case 2:
        return "%(" + name() + ")" + pick("sd");
      case 3:
        return "{" + std::to_string(below(20)) + "}";
      case 4:
        return below(3) == 0 ? "{{ " + name() + "." + name() + " }}" : "{" + name() + "}";
      case 5:
        return pick("$#") + "{" + name() + "}";
      case 6:
        return (below(2) == 0 ? "https://" : "http://") + name() + ".org/" + name() + "?" + name() +
            "=" + std::to_string(below(1000)) + "&x=(" + name() + ")";
      case 7:
        return "www." + name() + "." + name() + "/~" + name();
      case 8:
        return name() + "." + name() + "+" + name() + "@" + name() + "-" + name() + ".co.uk";
      default:
        return number();
    }
  }

  /// A line of words with pieces among them, blanks or signs beside these.
  std::string line(const std::vector<std::string>& words, int64_t pieces) {
    std::string text;
    const auto add_words = [&] {
      for (int64_t i = below(4); i > 0; --i)
        text += (text.empty() || text.back() == ' ' ? "" : " ") +
            words[static_cast<size_t>(below(std::ssize(words)))];
    };
    constexpr std::array<std::array<const char*, 2>, 6> kAround = {
        {{"", ""}, {"(", ")"}, {"\"", "\","}, {"", "."}, {"", ""}, {"", ""}}};
    for (int64_t i = 0; i < pieces; ++i) {
      add_words();
      const auto& around = kAround[static_cast<size_t>(below(kAround.size()))];
      text += (text.empty() ? "" : " ") + std::string(around[0]) +
          piece(static_cast<int>(below(kMadeUpKinds))) + around[1];
    }
    add_words();
    return text;
  }

 private:
  std::string number() {
    std::string text = below(5) == 0 ? "-" : "";
    text += std::to_string(below(1000));
    for (int64_t groups = below(3); groups > 0; --groups)
      text += (below(2) == 0 ? "." : ",") + std::to_string(below(1000));
    return text;
  }

  std::mt19937 random_;
};

inline PieceKinds all_piece_kinds() {
  return {PieceKind::kPlaceholders, PieceKind::kUrls, PieceKind::kEmails, PieceKind::kNumbers};
}

}  // namespace seqconv::internal::testing
