#include "cli/report/maps.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/report/html.h"

namespace seqconv::internal::report {
namespace {

constexpr int kLevels = 24;  // of opacity
constexpr double kCell = 16, kLetter = 6.2, kLongest = 17;

/// Two signs of base 64 for a share of the full colour in [-1, 1].
std::string signs_of(double share) {
  static constexpr std::string_view kSigns =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const double bounded = std::isfinite(share) ? std::clamp(share, -1.0, 1.0) : 0;
  const auto code = static_cast<size_t>(std::lround(bounded * 2047) + 2048);
  return {kSigns[code / 64], kSigns[code % 64]};
}

std::string packed(const std::vector<float>& values, double full) {
  std::string text;
  text.reserve(2 * values.size());
  for (const float value : values)
    text += signs_of(static_cast<double>(value) / full);
  return text;
}

/// At most kLongest characters, with "…" for what is cut.
std::string short_label(const std::string& label) {
  const auto characters = split_characters(label);
  if (static_cast<double>(characters.size()) <= kLongest)
    return label;
  std::string cut;
  for (size_t i = 0; i + 1 < static_cast<size_t>(kLongest); ++i)
    cut += characters[i];
  return cut + "\u2026";
}

double letters(const Axis& axis) {
  size_t most = 0;
  for (const std::string& label : axis.labels)
    most = std::max(most, split_characters(short_label(label)).size());
  return static_cast<double>(most);
}

/// Cells and the room for names beside them, in pixels.
struct Layout {
  double cell, left, top, width, height;
};

Layout layout_of(const MapStyle& style, const Axis& rows, const Axis& columns) {
  const auto R = static_cast<double>(rows.labels.size());
  const auto C = static_cast<double>(columns.labels.size());
  Layout layout{};
  const double longer = std::max(R, C);
  layout.cell = style.labelled ? kCell : std::clamp(240 / longer, 3.0, 10.0);
  if (style.labelled) {
    layout.left = letters(rows) * kLetter + 10;
    layout.top = letters(columns) * kLetter * 0.87 + 14;
  }
  // The last slanted name stands out to the right.
  const double slant = style.labelled ? letters(columns) * kLetter * 0.5 + 8 : 0;
  layout.width = layout.left + C * layout.cell + std::max(slant, 1.0);
  layout.height = layout.top + R * layout.cell + 1;
  return layout;
}

std::string number(double value) {
  return number_text(value, 6);
}

std::string labels(const Axis& rows, const Axis& columns, const Layout& at) {
  std::string drawn;
  for (size_t r = 0; r < rows.labels.size(); ++r)
    drawn += concat(
        "<text text-anchor=\"end\" x=\"",
        number(at.left - 5),
        "\" y=\"",
        number(at.top + (static_cast<double>(r) + 0.5) * at.cell + 4),
        "\">",
        escape(short_label(rows.labels[r])),
        "</text>\n");
  for (size_t c = 0; c < columns.labels.size(); ++c)
    drawn += concat(
        "<text transform=\"translate(",
        number(at.left + (static_cast<double>(c) + 0.6) * at.cell),
        " ",
        number(at.top - 5),
        ") rotate(-60)\">",
        escape(short_label(columns.labels[c])),
        "</text>\n");
  return drawn;
}

/// The element up to its group of cells, in which a cell is 1 wide and high.
std::string begin_map(
    const char* kind,
    const MapStyle& style,
    const Axis& rows,
    const Axis& columns,
    const std::string& data) {
  const Layout at = layout_of(style, rows, columns);
  const size_t R = rows.labels.size(), C = columns.labels.size();
  return concat(
      "<svg class=\"map\" role=\"img\" aria-label=\"",
      escape(style.name),
      "\" data-kind=\"",
      kind,
      "\" data-name=\"",
      escape(style.name),
      "\" data-full=\"",
      number(style.full),
      "\" data-rows=\"",
      escape(rows.id),
      "\" data-columns=\"",
      escape(columns.id),
      "\"",
      data,
      " width=\"",
      number(at.width),
      "\" height=\"",
      number(at.height),
      "\" viewBox=\"0 0 ",
      number(at.width),
      " ",
      number(at.height),
      "\">\n",
      style.labelled ? labels(rows, columns, at) : "",
      "<rect class=\"frame\" x=\"",
      number(at.left),
      "\" y=\"",
      number(at.top),
      "\" width=\"",
      number(static_cast<double>(C) * at.cell),
      "\" height=\"",
      number(static_cast<double>(R) * at.cell),
      "\"/>\n<g class=\"plot\" transform=\"translate(",
      number(at.left),
      " ",
      number(at.top),
      ") scale(",
      number(at.cell),
      ")\" shape-rendering=\"crispEdges\">\n"
      // Gives the group a shape where no cell has colour.
      "<rect width=\"",
      C,
      "\" height=\"",
      R,
      "\" fill=\"none\" pointer-events=\"all\"/>\n");
}

/// Level of a number: 0 for none, negative for the other hue.
int level_of(float value, double full) {
  const double share = static_cast<double>(value) / full;
  return std::isfinite(share)
      ? static_cast<int>(std::lround(std::clamp(share, -1.0, 1.0) * kLevels))
      : 0;
}

/// One path a level; neighbours of one level in a row are one rectangle.
std::string cells(const HeatMap& map) {
  std::array<std::string, 2 * kLevels + 1> paths;
  const size_t columns = map.columns.labels.size();
  for (size_t r = 0; r < map.rows.labels.size(); ++r)
    for (size_t c = 0, end = 0; c < columns; c = end) {
      const int level = level_of(map.values[r * columns + c], map.style.full);
      for (end = c + 1;
           end < columns && level_of(map.values[r * columns + end], map.style.full) == level;)
        ++end;
      if (level != 0)
        paths[static_cast<size_t>(level + kLevels)] +=
            concat("M", c, " ", r, "h", end - c, "v1h-", end - c, "z");
    }
  std::string drawn;
  for (int level = -kLevels; level <= kLevels; ++level)
    if (const auto& path = paths[static_cast<size_t>(level + kLevels)]; !path.empty())
      drawn += concat(
          "<path class=\"",
          level < 0 ? "cold" : "heat",
          "\" fill-opacity=\"",
          number_text(std::abs(level) / static_cast<double>(kLevels), 3),
          "\" d=\"",
          path,
          "\"/>\n");
  return drawn;
}

constexpr const char* kEnd = "</g>\n</svg>\n";

}  // namespace

std::string svg_of(const HeatMap& map) {
  SEQCONV_CHECK(
      map.values.size() == map.rows.labels.size() * map.columns.labels.size(),
      "a map of ",
      map.rows.labels.size(),
      " x ",
      map.columns.labels.size(),
      " cells got ",
      map.values.size(),
      " numbers");
  std::string data = concat(" data-v=\"", packed(map.values, map.style.full), "\"");
  if (map.shift)
    data += concat(" data-shift=\"", *map.shift, "\"");
  return begin_map("map", map.style, map.rows, map.columns, data) + cells(map) + kEnd;
}

std::string svg_of(const WindowMap& map) {
  const size_t steps = map.positions.labels.size();
  SEQCONV_CHECK(
      map.reach.size() == 2 * steps,
      "a map of ",
      steps,
      " windows got ",
      map.reach.size(),
      " numbers");
  std::string bars, own;
  for (size_t t = 0; t < steps; ++t) {
    const double left = map.reach[2 * t], right = map.reach[2 * t + 1];
    if (!std::isfinite(left) || !std::isfinite(right))
      continue;
    bars += concat(
        "M",
        number(static_cast<double>(t) - left),
        " ",
        number(static_cast<double>(t) + 0.15),
        "h",
        number(left + 1 + right),
        "v.7h",
        number(-(left + 1 + right)),
        "z");
    own += concat("M", t, " ", number(static_cast<double>(t) + 0.15), "h1v.7h-1z");
  }
  const std::string data = concat(" data-v=\"", packed(map.reach, map.style.full), "\"");
  return begin_map("windows", map.style, map.positions, map.positions, data) +
      concat("<path class=\"heat\" fill-opacity=\".45\" d=\"",
             bars,
             "\"/>\n<path class=\"heat\" d=\"",
             own,
             "\"/>\n") +
      kEnd;
}

}  // namespace seqconv::internal::report
