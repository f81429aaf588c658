#include "kernels/cuda/dropout/kept_elements.h"
#include "kernels/cuda_support.h"

/// The kernel of dropout masks of the device, run thread by thread on the host.
namespace seqconv::internal::kernels::cuda::testing {
namespace {

TEST(CudaKeptElements, AreThoseOfTheRandomWords) {
  const auto seed = static_cast<int64_t>(0xfedcba9876543210ULL);
  for (const int64_t count : {0, 1, 3, 4, 511, 512, 515, 1500})
    for (const int64_t first : {int64_t{0}, int64_t{1}, int64_t{6}, int64_t{1} << 40})
      for (const double p : {0.0, 0.3, 1 - 1e-12}) {
        SCOPED_TRACE(concat(count, " from ", first, ", p = ", p));
        const auto kept = std::make_unique<bool[]>(static_cast<size_t>(count));
        HostLauncher launcher;
        run(launcher,
            KeptElements{
                .seed = &seed,
                .first = first,
                .count = count,
                .threshold = drop_threshold(p),
                .kept = kept.get()});
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(
              kept[static_cast<size_t>(i)],
              random_word(static_cast<uint64_t>(seed), static_cast<uint64_t>(first + i)) >=
                  drop_threshold(p))
              << i;
      }
}

}  // namespace
}  // namespace seqconv::internal::kernels::cuda::testing
