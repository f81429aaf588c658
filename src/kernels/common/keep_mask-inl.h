#if defined(SEQCONV_KERNELS_KEEP_MASK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_KEEP_MASK_INL_H
#undef SEQCONV_KERNELS_KEEP_MASK_INL_H
#else
#define SEQCONV_KERNELS_KEEP_MASK_INL_H
#endif

#include "base/random.h"
#include "kernels/common/chunks.h"
#include "kernels/common/random_words-inl.h"
#include "kernels/dropout.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

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
  HWY_INLINE void draw(int64_t first, int64_t count) {
    words_ = draw_words(seed_, first, count, buffer_);
  }

  /// dropout(value) for element first + i of the last draw.
  HWY_INLINE T apply(int64_t i, T value) const {
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

/// Calls each(i, keep) for the elements [begin, end), where keep(value) is
/// dropout of a value of element i; without dropout it is the value.
template <class T, class Each>
HWY_INLINE void for_kept(const Dropout& drop, int64_t begin, int64_t end, const Each& each) {
  KeepMask<T> mask(drop);
  for (int64_t first = begin; first < end; first += kTile) {
    const int64_t n = HWY_MIN(kTile, end - first);
    if (mask.active()) {
      mask.draw(first, n);
      for (int64_t i = 0; i < n; ++i)
        each(first + i, [&](T value) HWY_ATTR { return mask.apply(i, value); });
    } else {
      for (int64_t i = 0; i < n; ++i)
        each(first + i, [](T value) HWY_ATTR { return value; });
    }
  }
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
