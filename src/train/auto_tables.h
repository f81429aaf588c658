#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

/// The tables that settings are chosen by (train/auto_settings.cpp), from measurement:
/// docs/your_own_data.md has them with their results, tools/tune_presets.py measures others.
namespace seqconv::internal {

/// Settings that a run's work decides: minutes of one thread.
struct WorkRow {
  double minutes;  ///< up to so many
  int64_t dim;
  int64_t ffn_dim;
  int64_t layers;
  int64_t max_tokens;
  double learning_rate;
  int64_t pieces;
};

inline constexpr auto kByWork = std::to_array<WorkRow>({
    {3, 128, 256, 2, 512, 2e-3, 2000},
    {6, 128, 256, 2, 512, 2e-3, 3000},
    {9, 128, 256, 3, 512, 2e-3, 3000},
    {40, 192, 384, 3, 512, 2e-3, 5000},
    {160, 256, 512, 3, 1024, 1.5e-3, 6000},
    {800, 256, 1024, 4, 2048, 1.5e-3, 8000},
    {6000, 512, 1024, 5, 4096, 1e-3, 16000},
    {HUGE_VAL, 512, 2048, 6, 8192, 7e-4, 32000},
});

/// Settings that the number of samples decides.
struct DataRow {
  int64_t samples;  ///< up to so many
  int64_t pieces;   ///< at most
  double work;      ///< minutes of one thread, at most: a larger model learns the text by heart
  int64_t epochs;   ///< at most, for the same reason
};

inline constexpr auto kByData = std::to_array<DataRow>({
    {2000, 500, 9, 100},
    {7000, 1500, 40, 80},
    {15000, 2000, 160, 60},
    {40000, 4000, 160, 40},
    {120000, 6000, 800, 30},
    {400000, 8000, 6000, 20},
    {2000000, 16000, HUGE_VAL, 20},
    {std::numeric_limits<int64_t>::max(), 32000, HUGE_VAL, 20},
});

/// Dropout that the number of passes over the text decides: a model that sees it once or twice
/// cannot learn it by heart, and learns faster without.
struct PassRow {
  double passes;  ///< up to so many
  double dropout;
};

inline constexpr auto kByPasses = std::to_array<PassRow>({
    {12, 0.05},
    {25, 0.1},
    {60, 0.2},
    {HUGE_VAL, 0.3},
});

}  // namespace seqconv::internal
