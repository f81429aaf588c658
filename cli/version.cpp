#include "version.h"

#include "seqconv/base/error.h"

namespace seqconv::cli {
namespace {

std::string processor_features() {
  std::string features;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2"))
    features += " avx2";
  if (__builtin_cpu_supports("fma"))
    features += " fma";
  if (__builtin_cpu_supports("avx512f"))
    features += " avx512f";
  if (__builtin_cpu_supports("avx512vnni"))
    features += " avx512vnni";
#endif
  return features.empty() ? " baseline" : features;
}

}  // namespace

std::string version_text() {
  return concat(
      "seqconv ",
      SEQCONV_VERSION,
      "\ncompiler: ",
      SEQCONV_COMPILER,
      "\nbuild: ",
      SEQCONV_BUILD_TYPE,
      "\nlibtorch: ",
      SEQCONV_TORCH_VERSION,
      " (loaded by train, translate and score only)",
      "\nprocessor:",
      processor_features());
}

}  // namespace seqconv::cli
