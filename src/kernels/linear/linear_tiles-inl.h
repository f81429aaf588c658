#if defined(SEQCONV_KERNELS_LINEAR_TILES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_LINEAR_TILES_INL_H
#undef SEQCONV_KERNELS_LINEAR_TILES_INL_H
#else
#define SEQCONV_KERNELS_LINEAR_TILES_INL_H
#endif

#include "kernels/linear/linear_end-inl.h"
#include "kernels/linear/linear_products-inl.h"

/// packed_linear() by the matrix unit (AMX): registers are tiles of 16 rows of
/// 64 bytes. A tile of inputs has 16 rows of x, one of weights 16 groups of
/// inputs for 16 outputs, which is how panels lie anyway. Instructions are
/// written as such: only the caller knows whether the processor has them.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

#undef SEQCONV_LINEAR_TILES
#if HWY_TARGET == HWY_AVX3
#define SEQCONV_LINEAR_TILES

inline constexpr int kTileRows = 16;
/// Groups of inputs of a tile, whatever they are.
inline constexpr int kTileGroups = 16;
inline constexpr int kGroupBytes = 4;
static_assert(kPanel == 32);

struct Int8TileProducts : Int8DotProducts {};
struct Bfloat16TileProducts : Bfloat16DotProducts {};

/// Tiles of the calling thread, all of full size, as long as it lives.
class TileRegisters {
 public:
  TileRegisters() {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, unused[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } sizes;
    static_assert(sizeof(sizes) == 64);
    for (int i = 0; i < 8; ++i) {
      sizes.row_bytes[i] = kTileGroups * kGroupBytes;
      sizes.rows[i] = kTileRows;
    }
    asm volatile("ldtilecfg %0" : : "m"(sizes));
  }
  ~TileRegisters() { asm volatile("tilerelease"); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
};

template <int T>
HWY_INLINE void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(T));
}
template <int T>
HWY_INLINE void load_tile(const void* first, int64_t row_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(first), "r"(row_bytes), "i"(T) : "memory");
}
template <int T>
HWY_INLINE void store_tile(void* first, int64_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(first), "r"(row_bytes), "i"(T) : "memory");
}
/// Tile kSum += inputs kX times weights kW.
template <class Products, int kSum, int kX, int kW>
HWY_INLINE void multiply_tiles() {
  if constexpr (std::is_same_v<Products, Int8TileProducts>)
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kW));
  else
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kW));
}

/// Where tiles of one product begin. Bytes.
struct TileWalk {
  const std::byte* x;  ///< at the first of its rows
  int64_t x_bytes;     ///< from a row to the next
  const std::byte* w;  ///< at the first panel
  int64_t w_pitch;     ///< from a panel to the next
  int64_t groups;      ///< a multiple of kTileGroups
  std::byte* sums;     ///< [rows, kSumStride] of four bytes
};

inline constexpr int64_t kSumBytes = kSumStride * 4;
inline constexpr int64_t kVectorBytes = kTileGroups * kGroupBytes;
inline constexpr int64_t kGroupPitch = kPanel * kGroupBytes;

/// 32 rows times a panel: two tiles of rows times two of outputs.
template <class Products>
HWY_INLINE void sum_tall(const TileWalk& at) {
  zero_tile<0>();
  zero_tile<1>();
  zero_tile<2>();
  zero_tile<3>();
  const std::byte* x = at.x;
  const std::byte* w = at.w;
  for (int64_t g = 0; g < at.groups; g += kTileGroups) {
    load_tile<4>(x, at.x_bytes);
    load_tile<6>(w, kGroupPitch);
    multiply_tiles<Products, 0, 4, 6>();
    load_tile<7>(w + kVectorBytes, kGroupPitch);
    multiply_tiles<Products, 1, 4, 7>();
    load_tile<5>(x + kTileRows * at.x_bytes, at.x_bytes);
    multiply_tiles<Products, 2, 5, 6>();
    multiply_tiles<Products, 3, 5, 7>();
    x += kTileGroups * kGroupBytes;
    w += kTileGroups * kGroupPitch;
  }
  std::byte* const below = at.sums + kTileRows * kSumBytes;
  store_tile<0>(at.sums, kSumBytes);
  store_tile<1>(at.sums + kVectorBytes, kSumBytes);
  store_tile<2>(below, kSumBytes);
  store_tile<3>(below + kVectorBytes, kSumBytes);
}

/// 16 rows times one panel or two.
template <class Products, int kPanels>
HWY_INLINE void sum_wide(const TileWalk& at) {
  zero_tile<0>();
  zero_tile<1>();
  if constexpr (kPanels == 2) {
    zero_tile<2>();
    zero_tile<3>();
  }
  const std::byte* x = at.x;
  const std::byte* w = at.w;
  for (int64_t g = 0; g < at.groups; g += kTileGroups) {
    load_tile<4>(x, at.x_bytes);
    load_tile<6>(w, kGroupPitch);
    multiply_tiles<Products, 0, 4, 6>();
    load_tile<7>(w + kVectorBytes, kGroupPitch);
    multiply_tiles<Products, 1, 4, 7>();
    if constexpr (kPanels == 2) {
      load_tile<6>(w + at.w_pitch, kGroupPitch);
      multiply_tiles<Products, 2, 4, 6>();
      load_tile<7>(w + at.w_pitch + kVectorBytes, kGroupPitch);
      multiply_tiles<Products, 3, 4, 7>();
    }
    x += kTileGroups * kGroupBytes;
    w += kTileGroups * kGroupPitch;
  }
  store_tile<0>(at.sums, kSumBytes);
  store_tile<1>(at.sums + kVectorBytes, kSumBytes);
  if constexpr (kPanels == 2) {
    store_tile<2>(at.sums + 2 * kVectorBytes, kSumBytes);
    store_tile<3>(at.sums + 3 * kVectorBytes, kSumBytes);
  }
}

/// As multiply_block(). Rows of x, which are copies, go on to the end of a
/// tile: what stands there does not matter.
template <class Products>
void multiply_block_by_tiles(const LinearBlock& block) {
  constexpr int64_t kTall = 2 * kTileRows;
  alignas(64) typename Products::Sum sums[kTall * kSumStride];
  const TileRegisters tiles;
  TileWalk at{
      .x_bytes = block.x_stride * int64_t{sizeof(typename Products::Input)},
      .w_pitch = block.groups * kGroupPitch,
      .groups = block.groups};
  for (int64_t row = 0; row < block.rows; row += kTall) {
    const int64_t rows = HWY_MIN(kTall, block.rows - row);
    at.x = static_cast<const std::byte*>(block.x) + row * at.x_bytes;
    for (int64_t p = 0; p < block.panel_count; ++p) {
      at.w = static_cast<const std::byte*>(block.panels) + p * at.w_pitch;
      at.sums = reinterpret_cast<std::byte*>(sums + p * kPanel);
      if (rows > kTileRows) {
        sum_tall<Products>(at);
      } else if (p + 1 < block.panel_count) {
        sum_wide<Products, 2>(at);
        ++p;
      } else {
        sum_wide<Products, 1>(at);
      }
    }
    end_block(block, row, rows, sums);
  }
}
#endif

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
