#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/multiversion.h"
#include "seqconv/base/random.h"
#include "seqconv/kernels/dropout.h"
#include "seqconv/kernels/random_words.h"

namespace seqconv::kernels {

/// Elements that a kernel handles between two draws: words and data of a tile
/// stay in the first-level cache.
inline constexpr int64_t kTile = 512;

/// The dropout factors of a tile of elements: 0 or 1/(1-p).
template <class T>
class KeepMask {
 public:
  explicit KeepMask(const Dropout& drop)
      : seed_(drop.seed),
        threshold_(drop_threshold(drop.p)),
        scale_(static_cast<T>(1.0 / (1.0 - drop.p))),
        active_(drop.p > 0) {}

  bool active() const { return active_; }

  /// Draws for elements [first, first + count), count <= kTile.
  SEQCONV_INLINE void draw(int64_t first, int64_t count) {
    words_ = random_words(seed_, first, count, buffer_);
  }

  /// dropout(value) for element first + i of the last draw.
  SEQCONV_INLINE T apply(int64_t i, T value) const {
    return words_[i] >= threshold_ ? value * scale_ : T{0};
  }

 private:
  uint64_t seed_;
  uint32_t threshold_;
  T scale_;
  bool active_;
  const uint32_t* words_ = nullptr;
  alignas(64) uint32_t buffer_[kTile + kRandomWordsSlack];
};

/// Elements of one piece of an element-wise pass. Pieces begin at multiples of
/// it, whatever the number of threads.
inline constexpr int64_t kPiece = 8 * kTile;

/// Calls body(begin, end) on ranges of elements that begin at whole pieces.
template <class Body>
void for_pieces(
    int64_t count,
    const ParallelFor& parallel_for,
    const Body& body) {
  const int64_t pieces = (count + kPiece - 1) / kPiece;
  parallel_for(pieces, /*grain=*/4, [&](int64_t begin, int64_t end) {
    body(begin * kPiece, std::min(end * kPiece, count));
  });
}

}  // namespace seqconv::kernels
