#if defined(SEQCONV_KERNELS_TALK_HEADS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_HEADS_INL_H
#undef SEQCONV_KERNELS_TALK_HEADS_INL_H
#else
#define SEQCONV_KERNELS_TALK_HEADS_INL_H
#endif

#include "kernels/common/cache_line.h"
#include "kernels/talk/talk_heads.h"
#include "kernels/talk/talk_windows-inl.h"

/// Windows of lanes: each channel has those of its head.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR  // whose vectors hold no two heads

/// Numbers of heads -> those of their channels.
template <class A>
class HeadLanes {
 public:
  static constexpr int64_t L = kLanes<A>;
  static constexpr int64_t kVectors = kTalkTogether / L;
  /// Heads whose numbers may be read.
  static constexpr int64_t kHeads = kTalkTogether + L;

  HeadLanes(int64_t heads, int64_t head_channels) : alone_(head_channels == 1) {
    int64_t own = 0, left = head_channels;  // without divisions, which a step would feel
    for (int64_t c = 0; c < kTalkTogether; ++c) {
      if (c % L == 0)
        first_[c / L] = own;
      lookup_[c] = static_cast<hn::TFromD<IntTag<A>>>(own - first_[c / L]);
      if (--left == 0 && own + 1 < heads) {
        ++own;
        left = head_channels;
      }
    }
  }

  /// Vector v of channels of kHeads numbers.
  HWY_INLINE Vec<A> get(const A* of_heads, int64_t v) const {
    const auto some = load(of_heads + first_[v]);
    return alone_ ? some
                  : hn::TableLookupLanes(some, hn::SetTableIndices(Tag<A>(), lookup_ + v * L));
  }
  HWY_INLINE IntVec<A> get(const hn::TFromD<IntTag<A>>* of_heads, int64_t v) const {
    return hn::BitCast(IntTag<A>(), get(reinterpret_cast<const A*>(of_heads), v));
  }

 private:
  const bool alone_;
  int64_t first_[kVectors];
  HWY_ALIGN hn::TFromD<IntTag<A>> lookup_[kTalkTogether];
};

/// Rows between what is asked for and what is read.
inline constexpr int64_t kTalkAhead = 16;

/// One edge of the windows of some heads at a row.
template <class A>
struct HeadEdges {
  HWY_ALIGN hn::TFromD<IntTag<A>> row[HeadLanes<A>::kHeads];
  HWY_ALIGN A share[HeadLanes<A>::kHeads];
};

/// As Edge, of distances that are known to be within the sequence.
template <class A>
struct InnerEdge {
  IntVec<A> away;
  Vec<A> share;

  HWY_INLINE explicit InnerEdge(Vec<A> distance) {
    const Tag<A> d;
    const auto up = hn::Ceil(distance);
    away = hn::ConvertTo(IntTag<A>(), hn::IfThenZeroElse(hn::IsNaN(distance), up));
    share = hn::Sub(distance, hn::Sub(up, hn::Set(d, A(1))));
  }
};

/// The windows of some heads at a row.
template <class O, class A>
class HeadWindows {
 public:
  HWY_INLINE explicit HeadWindows(const TalkHeads<O>& heads) : heads_(heads) {}

  /// Makes those of the row so many after the first one. Rows of edges are kept
  /// as place(row).
  template <class Place>
  HWY_INLINE void make(int64_t row, const Place& place) {
    const TalkOffsets<O>& offsets = heads_.offsets;
    const int64_t t = offsets.first + row, at = row * offsets.stride;
    const bool inner = heads_.reach_left <= HWY_MIN(t, kExact) &&
        heads_.reach_right <= HWY_MIN(offsets.valid - t, kExact);
    make_side<-1>(offsets.left + at, offsets.max_left, t, inner, place, left);
    if (offsets.right != nullptr)
      make_side<1>(offsets.right + at, offsets.max_right, t, inner, place, right);
  }

  HeadEdges<A> left;
  HeadEdges<A> right;

 private:
  using Int = hn::TFromD<IntTag<A>>;
  static constexpr int64_t L = kLanes<A>;
  /// Whole numbers up to it, and those beside them, are exact in A.
  static constexpr int64_t kExact = int64_t{1} << 22;

  HWY_INLINE static IntVec<A> whole(int64_t n) { return hn::Set(IntTag<A>(), static_cast<Int>(n)); }

  /// Edges on the side to which rows are counted by `kSign`.
  template <int kSign, class Place>
  HWY_INLINE void make_side(
      const O* offsets, int64_t most, int64_t t, bool inner, const Place& place, HeadEdges<A>& out)
      const {
    const int64_t count = heads_.count;
    if (heads_.prefetches)
      prefetch_lines<OwnCache::kSecond>(
          offsets + kTalkAhead * heads_.offsets.stride, count * static_cast<int64_t>(sizeof(O)));
    const auto max = hn::Set(Tag<A>(), static_cast<A>(most));
    const auto row = whole(t);
    const auto put = [&](const auto& edge, int64_t h) HWY_ATTR {
      const auto at = kSign < 0 ? hn::Sub(row, edge.away) : hn::Add(row, edge.away);
      hn::Store(place(at), IntTag<A>(), out.row + h);
      hn::Store(edge.share, Tag<A>(), out.share + h);
    };
    if (inner) {
      for (int64_t h = 0; h < count; h += L)
        put(InnerEdge<A>(hn::Mul(load_some<A>(offsets + h, count - h), max)), h);
      return;
    }
    const auto before = whole(t), behind = whole(heads_.offsets.valid - 1 - t);
    const auto min = hn::Neg(kSign < 0 ? behind : before);
    for (int64_t h = 0; h < count; h += L)
      put(Edge<A>(
              hn::Mul(load_some<A>(offsets + h, count - h), max), min, kSign < 0 ? before : behind),
          h);
  }

  const TalkHeads<O> heads_;
};

/// Channels that are worked on together: kTalkTogether, or `count` where these
/// are not whole.
template <class S, bool kWhole>
class TogetherChannels {
 public:
  using A = AccumulatorOf<S>;

  HWY_INLINE explicit TogetherChannels(int64_t count) : count_(count) {}

  HWY_INLINE int64_t count() const { return kWhole ? kTalkTogether : count_; }
  HWY_INLINE Vec<A> get(const S* row, int64_t c) const {
    return kWhole ? load_wide(row + c) : load_some<A>(row + c, count_ - c);
  }
  HWY_INLINE void put(Vec<A> v, S* row, int64_t c, bool streaming) const {
    if (streaming)
      store_streaming(v, row + c);
    else if (kWhole)
      store_narrow(v, row + c);
    else
      store_some<A>(v, row + c, count_ - c);
  }

 private:
  const int64_t count_;
};

/// The two numbers of each of some pairs. Two loads of a pair at once where
/// there is an instruction for as many.
HWY_INLINE void gather_pairs(const float* pairs, IntVec<float> at, Vec<float>& a, Vec<float>& b) {
  const Tag<float> d;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  const hn::Repartition<double, Tag<float>> dd;
  const hn::RebindToSigned<decltype(dd)> di;
  const hn::Half<IntTag<float>> half;
  const auto* const words = reinterpret_cast<const double*>(pairs);
  const auto low = hn::GatherIndex(dd, words, hn::PromoteTo(di, hn::LowerHalf(half, at)));
  const auto high = hn::GatherIndex(dd, words, hn::PromoteTo(di, hn::UpperHalf(half, at)));
  a = hn::ConcatEven(d, hn::BitCast(d, high), hn::BitCast(d, low));
  b = hn::ConcatOdd(d, hn::BitCast(d, high), hn::BitCast(d, low));
#else
  const auto first = hn::Add(at, at);
  a = hn::GatherIndex(d, pairs, first);
  b = hn::GatherIndex(d, pairs + 1, first);
#endif
}
HWY_INLINE void gather_pairs(
    const double* pairs, IntVec<double> at, Vec<double>& a, Vec<double>& b) {
  const Tag<double> d;
  const auto first = hn::Add(at, at);
  a = hn::GatherIndex(d, pairs, first);
  b = hn::GatherIndex(d, pairs + 1, first);
}

/// True if vectors are put together faster of so many parts than lane by lane.
template <int kParts, class A>
inline constexpr bool kHasParts =
    (kParts == 2 || kParts == 4) && kLanes<A> / kParts * sizeof(A) >= (kParts == 2 ? 8 : 16);

/// The vector whose parts lie where those at p would, moved by at[0], at[1], ...
template <int kParts, class A>
HWY_INLINE Vec<A> load_parts(const A* p, const hn::TFromD<IntTag<A>>* at) {
  const Tag<A> d;
  const hn::Half<Tag<A>> half;
  constexpr int64_t kPart = kLanes<A> / kParts;
  if constexpr (kParts == 2) {
    return hn::Combine(d, hn::LoadU(half, p + kPart + at[1]), hn::LoadU(half, p + at[0]));
  } else {
    const hn::Half<hn::Half<Tag<A>>> quarter;
    const auto get = [&](int64_t n) HWY_ATTR { return hn::LoadU(quarter, p + n * kPart + at[n]); };
    return hn::Combine(d, hn::Combine(half, get(3), get(2)), hn::Combine(half, get(1), get(0)));
  }
}

#endif
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
