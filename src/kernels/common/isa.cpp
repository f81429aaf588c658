// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/common/isa.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include <hwy/highway.h>

#include "base/made_once.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
namespace {

struct Tables {
  static const char* name() { return hwy::TargetName(HWY_TARGET); }
};

}  // namespace
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// Read once for each instruction set, like its neighbours, to know which.
#if HWY_ONCE
namespace seqconv::internal::kernels {
namespace {

bool has(Isa isa) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl");
  if (isa != Isa::kBaseline)
    return isa == Isa::kAvx2 ? avx2 : avx512;
#endif
  return isa == Isa::kBaseline;
}

}  // namespace

std::vector<Isa> compiled_isas() {
  std::vector<Isa> isas = {Isa::kBaseline};
#if HWY_TARGETS & HWY_AVX2
  isas.push_back(Isa::kAvx2);
#endif
#if HWY_TARGETS & HWY_AVX3
  isas.push_back(Isa::kAvx512);
#endif
  return isas;
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas = compiled_isas();
  std::erase_if(isas, [](Isa isa) { return !has(isa); });
  return isas;
}

const char* target_name(Isa isa) {
  SEQCONV_CHOOSE(isa, name());
}

Isa best_isa() {
  static MadeOnce<Isa> best;
  return best.get([] { return supported_isas().back(); });
}

}  // namespace seqconv::internal::kernels
#endif
