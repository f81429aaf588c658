#pragma once

#include "kernels/cuda/common/host_device.h"

/// Neighbouring elements that are read or written at once.
namespace seqconv::internal::kernels::cuda {

/// Elements of 16 bits in words, as registers hold them: the compiler takes an
/// array of them apart at every copy.
template <class S, int V>
struct PairedElements {
  uint32_t word[V / 2];

  class Element {
   public:
    SEQCONV_HD Element(uint32_t& word, int i) : word_(word), shift_(i % 2 * 16) {}
    SEQCONV_HD operator S() const { return {static_cast<uint16_t>(word_ >> shift_)}; }
    SEQCONV_HD void operator=(S value) {
      word_ = (word_ & ~(0xffffu << shift_)) | static_cast<uint32_t>(value.bits) << shift_;
    }

   private:
    uint32_t& word_;
    int shift_;
  };
  SEQCONV_HD Element operator[](int i) { return {word[i / 2], i}; }
  SEQCONV_HD S operator[](int i) const {
    return {static_cast<uint16_t>(word[i / 2] >> (i % 2 * 16))};
  }
};

template <class S, int V, bool kPaired>
struct ElementsOf {
  using Type = S[V];
};
template <class S, int V>
struct ElementsOf<S, V, true> {
  using Type = PairedElements<S, V>;
};

/// V neighbouring elements, read or written at once where V > 1; then the
/// address is a multiple of V elements.
template <class S, int V>
struct alignas(sizeof(S) * V) Pack {
  static constexpr bool kPaired = sizeof(S) == 2 && V % 2 == 0;
  typename ElementsOf<S, V, kPaired>::Type v;
};
/// On the host: ends the program where the device would fault.
template <class Pack>
void check_aligned(const void* address) {
  if (reinterpret_cast<uintptr_t>(address) % alignof(Pack) != 0)
    std::abort();
}
template <class S, int V>
SEQCONV_HD Pack<S, V> load_pack(const S* from) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Pack<S, V>) == 16) {
    const ulonglong2 words = *reinterpret_cast<const ulonglong2*>(from);
    Pack<S, V> pack;
    memcpy(&pack, &words, sizeof(pack));
    return pack;
  } else {
    return *reinterpret_cast<const Pack<S, V>*>(from);
  }
#else
  check_aligned<Pack<S, V>>(from);
  Pack<S, V> pack;
  memcpy(static_cast<void*>(&pack), from, sizeof(pack));
  return pack;
#endif
}
template <class S, int V>
SEQCONV_HD void store_pack(S* to, const Pack<S, V>& pack) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Pack<S, V>) == 16) {
    ulonglong2 words;  // else it may be taken apart into four stores
    memcpy(&words, &pack, sizeof(words));
    *reinterpret_cast<ulonglong2*>(to) = words;
  } else {
    *reinterpret_cast<Pack<S, V>*>(to) = pack;
  }
#else
  check_aligned<Pack<S, V>>(to);
  memcpy(static_cast<void*>(to), &pack, sizeof(pack));
#endif
}
template <int V, class S>
SEQCONV_HD void widen_pack(const Pack<S, V>& pack, float (&to)[V]) {
  if constexpr (std::is_same_v<S, BFloat16> && Pack<S, V>::kPaired) {
    // By words: an instruction for an element, where the upper half of one
    // would take two.
    SEQCONV_UNROLL
    for (int v = 0; v < V; v += 2) {
      const uint32_t word = pack.v.word[v / 2];
      to[v] = std::bit_cast<float>(word << 16);
      to[v + 1] = std::bit_cast<float>(word & 0xffff0000u);
    }
  } else {
    unroll<V>([&](int v) { to[v] = widen(pack.v[v]); });
  }
}
/// Elements of a pack of at most 16 bytes, of V neighbours.
template <class S, int V>
inline constexpr int kPackOf = min<int>(V, 16 / sizeof(S));

/// V neighbours, in packs of at most 16 bytes, which is their alignment.
template <int V, class S>
SEQCONV_HD void load_wide(const S* from, float (&to)[V]) {
  constexpr int N = kPackOf<S, V>;
  SEQCONV_UNROLL
  for (int v = 0; v < V; v += N) {
    float part[N];
    widen_pack<N>(load_pack<S, N>(from + v), part);
    unroll<N>([&](int i) { to[v + i] = part[i]; });
  }
}
/// to += V neighbours, `share` of each.
template <int V, class S>
SEQCONV_HD void add_wide(const S* from, float share, float (&to)[V]) {
  float in[V];
  load_wide<V>(from, in);
  unroll<V>([&](int v) { to[v] += share * in[v]; });
}
template <int V, class S>
SEQCONV_HD void store_narrow(S* to, const float (&from)[V]) {
  constexpr int N = kPackOf<S, V>;
  SEQCONV_UNROLL
  for (int v = 0; v < V; v += N) {
    Pack<S, N> pack;
    if constexpr (Pack<S, N>::kPaired) {
      SEQCONV_UNROLL
      for (int i = 0; i < N; i += 2)
        pack.v.word[i / 2] = narrow_pair<S>(from[v + i], from[v + i + 1]);
    } else {
      unroll<N>([&](int i) { pack.v[i] = narrow<S>(from[v + i]); });
    }
    store_pack<S, N>(to + v, pack);
  }
}

/// use(i, load(i)) for i = begin, begin + step, ... below end: kAtOnce loads
/// are under way before the first is used. load may be called beyond the end.
template <int kAtOnce, class Load, class Use>
SEQCONV_DEVICE void load_ahead(int begin, int end, int step, const Load& load, const Use& use) {
  SEQCONV_NO_UNROLL
  for (int i0 = begin; i0 < end; i0 += kAtOnce * step) {
    decltype(load(0)) loaded[kAtOnce];
    unroll<kAtOnce>([&](int i) { loaded[i] = load(i0 + i * step); });
    unroll<kAtOnce>([&](int i) {
      if (i0 + i * step < end)
        use(i0 + i * step, loaded[i]);
    });
  }
}

}  // namespace seqconv::internal::kernels::cuda
