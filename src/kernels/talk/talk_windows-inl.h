#if defined(SEQCONV_KERNELS_TALK_WINDOWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#undef SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#else
#define SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#endif

#include "kernels/talk/talk_distance-inl.h"

/// TaLK's windows, as places of prefix sums.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// The windows of kLanes entries, as the fields of TalkWindow.
template <class A>
struct WindowLanes {
  IntVec<A> low, behind;
  Vec<A> left, right;
};

HWY_INLINE void store_windows(
    const WindowLanes<float>& w,
    TalkWindow<float>* out) {
  const Tag<float> d;
  static_assert(sizeof(*out) == 4 * sizeof(float));
  hn::StoreInterleaved4(
      hn::BitCast(d, w.low),
      hn::BitCast(d, w.behind),
      w.left,
      w.right,
      d,
      reinterpret_cast<float*>(out));
}

/// Windows of double are for checks: one after the other.
HWY_INLINE void store_windows(
    const WindowLanes<double>& w,
    TalkWindow<double>* out) {
  constexpr int L = kLanes<double>;
  int32_t places[2][L];
  double parts[2][L];
  hn::StoreU(w.low, IntTag<double>(), places[0]);
  hn::StoreU(w.behind, IntTag<double>(), places[1]);
  hn::StoreU(w.left, Tag<double>(), parts[0]);
  hn::StoreU(w.right, Tag<double>(), parts[1]);
  for (int i = 0; i < L; ++i)
    out[i] = {places[0][i], places[1][i], parts[0][i], parts[1][i]};
}

/// Rows as places.
template <class A>
class Places {
 public:
  explicit Places(const TalkPlaces& places)
      : slots_(all_whole<A>(places.ring - 1)),
        shift_(std::countr_zero(static_cast<uint64_t>(places.pitch))) {}

  HWY_INLINE IntVec<A> of(IntVec<A> row) const {
    return hn::ShiftLeftSame(hn::And(row, slots_), shift_);
  }

 private:
  IntVec<A> slots_;
  int shift_;
};

/// Reads and writes whole vectors: the arrays have room for kTalkLanes more
/// entries.
template <class A>
void talk_windows(
    const TalkDistances<A>& in,
    const TalkPlaces& places,
    TalkWindow<A>* out) {
  const EntryMaker<A> maker(in);
  const Places<A> place(places);
  const auto origin = all_whole<A>(places.origin);
  for_entries(
      in,
      [&](auto entries, auto to_left, auto to_right, int64_t h, int64_t i)
          HWY_ATTR {
            const WindowEntries<A> e = maker.make(entries, to_left, to_right);
            const auto row = hn::Sub(e.t, origin);
            const auto behind = hn::Add(row, all_whole<A>(2));
            store_windows(
                WindowLanes<A>{
                    place.of(hn::Sub(row, e.left.whole)),
                    place.of(hn::Add(behind, e.right.whole)),
                    e.left.rest,
                    e.right.rest},
                out + h * in.pitch + i);
          });
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
