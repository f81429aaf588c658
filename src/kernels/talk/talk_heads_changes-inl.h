#if defined(SEQCONV_KERNELS_TALK_HEADS_CHANGES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_HEADS_CHANGES_INL_H
#undef SEQCONV_KERNELS_TALK_HEADS_CHANGES_INL_H
#else
#define SEQCONV_KERNELS_TALK_HEADS_CHANGES_INL_H
#endif

#include "kernels/talk/talk_heads-inl.h"

/// Changes of a sum that goes from row to row, each lane's at a row of its own.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

/// A ring of rows. Each channel has two numbers at a row: one is added to the
/// sums of later rows, one to that of this row alone. kR: channels of a head,
/// where there are kTalkTogether channels, or 0.
template <class O, class A, int kR>
class RowChanges {
 public:
  HWY_INLINE RowChanges(A* rows, int64_t ring, const TalkHeads<O>& heads)
      : rows_(rows), ring_(ring), heads_(heads.count), width_(heads.head_channels) {}

  HWY_INLINE void clear() {
    for (int64_t i = 0; i < ring_ * kRow; i += L)
      hn::Store(hn::Zero(d_), d_, rows_ + i);
  }

  /// Keeps what will be added of channels from c on.
  HWY_INLINE void put(Vec<A> later, Vec<A> here, int64_t c) {
    if constexpr (kR == 1) {
      hn::StoreInterleaved2(later, here, d_, change_ + 2 * c);
    } else if constexpr (kPairs) {
      const hn::Repartition<double, Tag<A>> dd;
      hn::StoreInterleaved2(
          hn::BitCast(dd, later),
          hn::BitCast(dd, here),
          dd,
          reinterpret_cast<double*>(change_ + 2 * c));
    } else {
      hn::Store(later, d_, change_ + c);
      hn::Store(here, d_, change_ + kPitch + c);
    }
  }
  /// Adds it at the heads' edges: what stands outside of rows first .. end-1 is
  /// moved to the rows beside these.
  HWY_INLINE void add(const HeadEdges<A>& edges, int64_t first, int64_t end) {
    find(edges, first, end);
    if constexpr (kPairs)
      add_parts<2 * kR>(rows_, change_);
    else if constexpr (kR > 0)
      add_planes<kR>();
    else
      add_heads();
  }
  /// Adds it to one row.
  HWY_INLINE void add_to(int64_t row) {
    A* const to = rows_ + (row & (ring_ - 1)) * kRow;
    for (int64_t i = 0; i < kRow; i += L)
      hn::Store(hn::Add(hn::Load(d_, to + i), hn::Load(d_, change_ + i)), d_, to + i);
  }

  /// Takes the changes of a row's channels from c on, and leaves none.
  HWY_INLINE void take(int64_t row, int64_t c, Vec<A>& later, Vec<A>& here) {
    A* const from = rows_ + (row & (ring_ - 1)) * kRow;
    A* const low = from + (kPairs ? 2 * c : c);
    A* const high = from + (kPairs ? 2 * c + L : kPitch + c);
    if constexpr (kR == 1) {
      hn::LoadInterleaved2(d_, low, later, here);
    } else if constexpr (kPairs) {
      const hn::Repartition<double, Tag<A>> dd;
      hn::Vec<decltype(dd)> first, second;
      hn::LoadInterleaved2(dd, reinterpret_cast<const double*>(low), first, second);
      later = hn::BitCast(d_, first);
      here = hn::BitCast(d_, second);
    } else {
      later = hn::Load(d_, low);
      here = hn::Load(d_, high);
    }
    hn::Store(hn::Zero(d_), d_, low);
    hn::Store(hn::Zero(d_), d_, high);
  }

  /// Zero where no share of an edge was NaN.
  HWY_INLINE Vec<A> not_numbers() const { return hn::Load(d_, not_numbers_); }

 private:
  static constexpr Tag<A> d_{};
  static constexpr IntTag<A> di_{};
  using Int = hn::TFromD<IntTag<A>>;
  static constexpr int64_t L = kLanes<A>;
  static constexpr int64_t kPitch = kTalkTogether;
  static constexpr int64_t kRow = 2 * kPitch;

  /// True where the two numbers of a head's channels lie side by side: one
  /// load and one store are enough then.
  static constexpr bool kPairs = kR == 1 || (kR == 2 && sizeof(A) == 4 && kLanes<A> > 2);

  HWY_INLINE int64_t heads() const { return kR > 0 ? kPitch / HWY_MAX(1, kR) : heads_; }

  /// Elements from the first row to those of the edges.
  HWY_INLINE void find(const HeadEdges<A>& edges, int64_t first, int64_t end) {
    const auto least = hn::Set(di_, static_cast<Int>(first - 1));
    const auto most = hn::Set(di_, static_cast<Int>(end));
    const auto mask = hn::Set(di_, static_cast<Int>(ring_ - 1));
    auto off = not_numbers();
    for (int64_t h = 0; h < heads(); h += L) {
      const auto row = hn::Min(hn::Max(hn::Load(di_, edges.row + h), least), most);
      hn::Store(hn::ShiftLeft<kShift>(hn::And(row, mask)), di_, at_ + h);
      const auto share = hn::Load(d_, edges.share + h);
      off = hn::Add(off, hn::Sub(share, share));
    }
    hn::Store(off, d_, not_numbers_);
  }

  /// Heads have N neighbouring numbers each.
  template <int N>
  HWY_INLINE void add_parts(A* rows, const A* change) const {
    const hn::CappedTag<A, N> part;
    for (int64_t h = 0; h < heads(); ++h) {
      A* const to = rows + at_[h] + h * N;
      hn::StoreU(hn::Add(hn::LoadU(part, to), hn::LoadU(part, change + h * N)), part, to);
    }
  }
  template <int N>
  HWY_INLINE void add_planes() const {
    add_parts<N>(rows_, change_);
    add_parts<N>(rows_ + kPitch, change_ + kPitch);
  }
  HWY_INLINE void add_heads() const {
    for (int64_t h = 0; h < heads_; ++h)
      for (int64_t c = h * width_; c < (h + 1) * width_; ++c) {
        rows_[at_[h] + c] += change_[c];
        rows_[at_[h] + kPitch + c] += change_[kPitch + c];
      }
  }
  static constexpr int kShift = std::countr_zero(static_cast<uint64_t>(kRow));

  A* const rows_;
  const int64_t ring_;
  const int64_t heads_;
  const int64_t width_;
  HWY_ALIGN A change_[kRow] = {};
  HWY_ALIGN A not_numbers_[kLanes<A>] = {};
  HWY_ALIGN Int at_[HeadLanes<A>::kHeads];
};

#endif
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
