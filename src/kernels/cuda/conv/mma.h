#pragma once

#include "kernels/cuda/common/block.h"

/// Products of 16-bit matrices on tensor cores, mma.m16n8k16 with float32 sums,
/// and the same on the host by the instruction's documented layout. Compute
/// capability 7.5 knows the half of it for float16 and nothing for bfloat16:
/// plans keep that away (Device).
///
/// Lane l holds of A [16, 16] four pairs: rows l/4 and l/4 + 8, columns
/// 2 (l%4) and the next, then the same 8 columns on; of B [16, 8] two pairs:
/// rows 2 (l%4) and the next, column l/4, then 8 rows on; of C [16, 8] rows
/// l/4 and l/4 + 8, columns 2 (l%4) and the next.
namespace seqconv::internal::kernels::cuda {

/// Four 8 x 8 matrices of a warp: a whole A, or two B side by side.
struct Matrices {
  uint32_t pair[4];
};
struct MmaSum {
  float v[4];
};

/// Row and column, within 16 x 16, of the eight elements whose address lane l
/// gives for a load of four matrices: down first, then to the right ...
SEQCONV_HD int down_row(int lane) {
  return lane % 16;
}
SEQCONV_HD int down_column(int lane) {
  return lane / 16 * 8;
}
/// ... or to the right first, then down.
SEQCONV_HD int right_row(int lane) {
  return lane % 8 + lane / 16 * 8;
}
SEQCONV_HD int right_column(int lane) {
  return lane / 8 % 2 * 8;
}

/// Row and column in C of element e that lane l holds.
SEQCONV_HD int sum_row(int lane, int e) {
  return lane / 4 + e / 2 * 8;
}
SEQCONV_HD int sum_column(int lane, int e) {
  return lane % 4 * 2 + e % 2;
}

/// Loads four matrices from shared memory: row r of matrix m lies at
/// address(8 m + r), on a multiple of 16 bytes. kTransposed exchanges rows and
/// columns of each.
template <bool kTransposed, class Warp, class Address>
SEQCONV_DEVICE void load_matrices(Warp& warp, Lanes<Matrices>& to, const Address& address) {
#ifdef __CUDACC__
  warp.each([&](int lane) {
    const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(address(lane)));
    uint32_t(&p)[4] = to[lane].pair;
    if constexpr (kTransposed)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(p[0]), "=r"(p[1]), "=r"(p[2]), "=r"(p[3])
                   : "r"(from)
                   : "memory");
    else
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(p[0]), "=r"(p[1]), "=r"(p[2]), "=r"(p[3])
                   : "r"(from)
                   : "memory");
  });
#else
  std::array<const uint16_t*, kWarp> rows;
  bool aligned = true;
  warp.each([&](int lane) {
    const auto* const row = reinterpret_cast<const uint16_t*>(address(lane));
    aligned = aligned && reinterpret_cast<uintptr_t>(row) % 16 == 0;
    rows[static_cast<size_t>(lane)] = row;
  });
  warp.each([&](int lane) {
    for (int m = 0; m < 4; ++m) {
      const int a = 2 * (lane % 4), b = lane / 4;
      const auto at = [&](int r, int c) -> uint32_t {
        return rows[static_cast<size_t>(8 * m + r)][c];
      };
      const uint32_t low = kTransposed ? at(a, b) : at(b, a);
      const uint32_t high = kTransposed ? at(a + 1, b) : at(b, a + 1);
      // What the device would refuse shows as not a number.
      to[lane].pair[m] = aligned ? low | high << 16 : 0xffffffffu;
    }
  });
#endif
}

#ifdef __CUDACC__
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define SEQCONV_MMA(TYPE)                                                     \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 " \
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "               \
               "{%0, %1, %2, %3};"                                            \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])               \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
template <class S>
__device__ inline void mma_instruction(
    float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<S, BFloat16>)
    SEQCONV_MMA("bf16");
  else
    SEQCONV_MMA("f16");
}
#else
/// The 8 columns of A whose pairs are a0 and a1, times the 8 rows of B that b
/// holds.
__device__ inline void half_mma_instruction(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
               "{%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a0), "r"(a1), "r"(b));
}
template <class S>
__device__ inline void mma_instruction(
    float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<S, BFloat16>) {
    __trap();
  } else {
    half_mma_instruction(c, a[0], a[1], b0);
    half_mma_instruction(c, a[2], a[3], b1);
  }
}
#endif
#else
/// Element 0 or 1 of a pair.
template <class S>
float of_pair(uint32_t pair, int i) {
  return widen(S{static_cast<uint16_t>(pair >> (16 * i))});
}
#endif

/// sums(lane) += A * B, with B the first or the second half of `b`.
template <class S, class Warp, class Sums>
SEQCONV_DEVICE void multiply_add(
    Warp& warp, Lanes<Matrices>& a, Lanes<Matrices>& b, int half, const Sums& sums) {
#ifdef __CUDACC__
  warp.each([&](int lane) {
    mma_instruction<S>(
        sums(lane).v, a[lane].pair, b[lane].pair[2 * half], b[lane].pair[2 * half + 1]);
  });
#else
  // B by columns, so that a product goes through both in order.
  float left[16][16], right[8][16];
  warp.each([&](int lane) {
    for (int p = 0; p < 4; ++p)
      for (int i = 0; i < 2; ++i)
        left[lane / 4 + p % 2 * 8][2 * (lane % 4) + i + p / 2 * 8] = of_pair<S>(a[lane].pair[p], i);
    for (int p = 0; p < 2; ++p)
      for (int i = 0; i < 2; ++i)
        right[lane / 4][2 * (lane % 4) + i + p * 8] = of_pair<S>(b[lane].pair[2 * half + p], i);
  });
  warp.each([&](int lane) {
    for (int e = 0; e < 4; ++e) {
      const float* const row = left[sum_row(lane, e)];
      const float* const column = right[sum_column(lane, e)];
      float& sum = sums(lane).v[e];
      for (int k = 0; k < 16; ++k)
        sum += row[k] * column[k];
    }
  });
#endif
}

}  // namespace seqconv::internal::kernels::cuda
