#include "seqconv/kernels/isa.h"

#include "kernels/tile_ops.h"

namespace seqconv::kernels {

#define SEQCONV_DECLARE_TABLES(isa)                   \
  namespace isa {                                     \
  extern const TileOps<float> kTileFloat;             \
  extern const TileOps<double> kTileDouble;           \
  extern const RowOps<float, float> kRowsFloat;       \
  extern const RowOps<double, double> kRowsDouble;    \
  extern const RowOps<BFloat16, float> kRowsBFloat16; \
  }

SEQCONV_DECLARE_TABLES(baseline)
#ifdef SEQCONV_X86
SEQCONV_DECLARE_TABLES(avx2)
SEQCONV_DECLARE_TABLES(avx512)
#define SEQCONV_CHOOSE(isa, table)             \
  return (isa) == Isa::kAvx512 ? avx512::table \
      : (isa) == Isa::kAvx2    ? avx2::table   \
                               : baseline::table
#else
#define SEQCONV_CHOOSE(isa, table) return baseline::table
#endif

namespace {

bool has_avx2() {
#ifdef SEQCONV_X86
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

bool has_avx512() {
#ifdef SEQCONV_X86
  return has_avx2() && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

}  // namespace

Isa best_isa() {
  static const Isa best = has_avx512() ? Isa::kAvx512
      : has_avx2()                     ? Isa::kAvx2
                                       : Isa::kBaseline;
  return best;
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas = {Isa::kBaseline};
  if (has_avx2())
    isas.push_back(Isa::kAvx2);
  if (has_avx512())
    isas.push_back(Isa::kAvx512);
  return isas;
}

template <>
const TileOps<float>& tile_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, kTileFloat);
}
template <>
const TileOps<double>& tile_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, kTileDouble);
}
template <>
const RowOps<float, float>& row_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, kRowsFloat);
}
template <>
const RowOps<double, double>& row_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, kRowsDouble);
}
template <>
const RowOps<BFloat16, float>& row_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, kRowsBFloat16);
}

}  // namespace seqconv::kernels
