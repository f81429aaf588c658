#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/report/runs.h"

namespace seqconv::internal::report {

/// One curve. Curves of one colour belong together; the thin ones are of less
/// weight.
struct Series {
  std::string name;
  size_t colour = 0;  ///< 0 to kMostRuns - 1
  bool thin = false;
  std::vector<Point> points{};  ///< finite, ascending by x
};

/// Curves over updates.
struct Chart {
  std::string id;     ///< a word, for file names
  std::string title;  ///< with the unit
  std::vector<Series> series{};
};

/// As many colours as there are.
inline constexpr size_t kMostRuns = 8;

/// Charts of what runs have in common and apart: loss, scores of validation,
/// learning rate, norm of the gradient, speed; charts without a point are left
/// out. At most kMostRuns runs.
std::vector<Chart> training_charts(const std::vector<Run>& runs);

/// A chart as an SVG element for a page: figure_style() is the page's.
std::string svg_of(const Chart& chart);
/// A chart as an SVG file.
std::string svg_file(const Chart& chart);
/// True for content that svg_file() has written.
bool is_svg_file(std::string_view content);

}  // namespace seqconv::internal::report
