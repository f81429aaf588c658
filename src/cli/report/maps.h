#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace seqconv::internal::report {

/// Names along one side of a map, which a hidden_list `id` of the page holds
/// too.
struct Axis {
  std::string id;
  std::vector<std::string> labels;
};

/// Says how a map is drawn.
struct MapStyle {
  std::string name;       ///< of the map, for who points at it
  double full = 1;        ///< the magnitude that has full colour, above 0
  bool labelled = false;  ///< with names at its sides, in larger cells
};

/// A matrix as coloured cells: one hue for positive numbers, another for
/// negative ones.
struct HeatMap {
  MapStyle style;
  Axis rows;
  Axis columns;
  std::vector<float> values{};  ///< [rows, columns]
  /// Columns are relative: column j of row i means row i + j - shift.
  std::optional<int64_t> shift{};
};
std::string svg_of(const HeatMap& map);

/// The window of each of T positions among the others, as bars.
struct WindowMap {
  MapStyle style;  ///< full: the furthest reach
  Axis positions;
  std::vector<float> reach{};  ///< [T, 2]: to the left and to the right
};
std::string svg_of(const WindowMap& map);

}  // namespace seqconv::internal::report
