#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear/linear_kernels.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include "kernels/linear/linear_kernels.h"
#include "kernels/linear/linear_tiles-inl.h"
#include "kernels/linear/packed_linear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
namespace {

template <class Products>
float prepare_row(const float* x, int64_t K, void* row) {
  static_assert(kLanes<float> <= kRowRoom);
  return Products::prepare(x, K, static_cast<typename Products::Input*>(row));
}

template <class Products>
constexpr LinearKernels make_table() {
  LinearKernels table{
      .panel = kPanel,
      .rows = kLinearRows,
      .group = Products::kGroup,
      .group_step = 1,
      .weight_bytes = sizeof(typename Products::Weight),
      .input_bytes = sizeof(typename Products::Input),
      .zero_point = 0,
      .prepare = nullptr,
      .multiply = multiply_block<Products>};
  if constexpr (!std::is_same_v<typename Products::Input, float>)
    table.prepare = prepare_row<Products>;
  if constexpr (std::is_same_v<typename Products::Input, uint8_t>)
    table.zero_point = kInputOffset;
  return table;
}
template <class Products>
inline constexpr LinearKernels kTable = make_table<Products>();

#ifdef SEQCONV_LINEAR_TILES
template <class Products>
constexpr LinearKernels make_tile_table() {
  LinearKernels table = make_table<Products>();
  table.rows = 2 * kTileRows;
  table.group_step = kTileGroups;
  table.multiply = multiply_block_by_tiles<Products>;
  return table;
}
template <class Products>
inline constexpr LinearKernels kTileTable = make_tile_table<Products>();
#endif

/// The tables of this instruction set.
struct Tables {
  static const LinearKernels& linear(WeightType type, NarrowProducts narrow) {
    switch (type) {
      case WeightType::kFloat32:
        break;
      case WeightType::kBfloat16:
#ifdef SEQCONV_LINEAR_TILES
        if (narrow == NarrowProducts::kTiles)
          return kTileTable<Bfloat16TileProducts>;
#endif
#ifdef SEQCONV_DOT_BFLOAT16
        if (narrow == NarrowProducts::kDot)
          return kTable<Bfloat16DotProducts>;
#endif
        return kTable<Bfloat16Products>;
      case WeightType::kInt8:
#ifdef SEQCONV_LINEAR_TILES
        if (narrow == NarrowProducts::kTiles)
          return kTileTable<Int8TileProducts>;
#endif
#ifdef SEQCONV_DOT_INT8
        if (narrow == NarrowProducts::kDot)
          return kTable<Int8DotProducts>;
#endif
        return kTable<Int8Products>;
    }
    return kTable<Float32Products>;
  }
};

}  // namespace
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::internal::kernels {

namespace {

#if defined(__x86_64__)
/// A bit of what the processor says of itself in leaf 7, for names that
/// __builtin_cpu_supports of some compilers does not know.
enum class Leaf7 { kAvxVnni, kAmxBf16, kAmxTile, kAmxInt8 };

bool says(Leaf7 bit) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const unsigned subleaf = bit == Leaf7::kAvxVnni ? 1 : 0;
  if (__get_cpuid_count(7, subleaf, &eax, &ebx, &ecx, &edx) == 0)
    return false;
  switch (bit) {
    case Leaf7::kAvxVnni:
      return (eax >> 4 & 1) != 0;
    case Leaf7::kAmxBf16:
      return (edx >> 22 & 1) != 0;
    case Leaf7::kAmxTile:
      return (edx >> 24 & 1) != 0;
    case Leaf7::kAmxInt8:
      return (edx >> 25 & 1) != 0;
  }
  return false;
}

/// True where this processor multiplies and adds narrow numbers at once, in
/// vectors of the instruction set.
bool has_dot(WeightType type, Isa isa) {
  switch (type) {
    case WeightType::kFloat32:
      return false;
    case WeightType::kBfloat16:
      return isa == Isa::kAvx512 && __builtin_cpu_supports("avx512bf16");
    case WeightType::kInt8:
      return isa == Isa::kAvx512 ? __builtin_cpu_supports("avx512vnni")
                                 : isa == Isa::kAvx2 && says(Leaf7::kAvxVnni);
  }
  return false;
}

/// The system must let a process use tiles, whose registers are large: for
/// good.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool has_tiles(WeightType type, Isa isa) {
  if (isa != Isa::kAvx512 || !says(Leaf7::kAmxTile))
    return false;
  switch (type) {
    case WeightType::kFloat32:
      return false;
    case WeightType::kBfloat16:
      return says(Leaf7::kAmxBf16) && may_use_tiles();
    case WeightType::kInt8:
      return says(Leaf7::kAmxInt8) && may_use_tiles();
  }
  return false;
}
#else
bool has_dot(WeightType, Isa) {
  return false;
}
bool has_tiles(WeightType, Isa) {
  return false;
}
#endif

}  // namespace

std::vector<LinearTarget> linear_targets(WeightType type) {
  std::vector<LinearTarget> targets;
  for (const Isa isa : supported_isas()) {
    targets.push_back({isa, NarrowProducts::kWidened});
    if (has_dot(type, isa))
      targets.push_back({isa, NarrowProducts::kDot});
    if (has_tiles(type, isa))
      targets.push_back({isa, NarrowProducts::kTiles});
  }
  return targets;
}

LinearTarget best_linear_target(WeightType type) {
  return linear_targets(type).back();
}

const LinearKernels& linear_kernels(WeightType type, LinearTarget target) {
  SEQCONV_CHOOSE(target.isa, linear(type, target.narrow));
}

}  // namespace seqconv::internal::kernels
#endif
