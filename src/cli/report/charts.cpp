#include "cli/report/charts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/one_line.h"
#include "base/options.h"
#include "cli/report/html.h"

namespace seqconv::internal::report {
namespace {

/// Stands in every file of ours, and in no drawing of another program.
constexpr std::string_view kPaper = "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";

// The drawing, in its own units; names of curves follow below.
constexpr double kWidth = 400, kLeft = 46, kRight = 12, kTop = 28, kPlot = 190, kBottom = 36,
                 kRow = 16;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr size_t kMostPoints = 500;
constexpr size_t kLongestName = 48;

/// A range with round marks.
struct Scale {
  double low = 0;
  double high = 1;
  std::vector<double> marks{};

  double at(double value, double length) const { return (value - low) / (high - low) * length; }
};

/// 1, 2 or 5 times a power of ten, a quarter of the range or more.
double round_step(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / 4)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= range / 4)
      return factor * power;
  return 10 * power;
}

Scale scale_of(double low, double high) {
  if (!(high - low > 1e-9 * std::max(std::abs(low), std::abs(high)))) {
    const double margin = high == 0 ? 1 : std::abs(high) * 0.1;
    low -= margin;
    high += margin;
  }
  Scale scale{low, high};
  const double step = round_step(high - low);
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i)
    scale.marks.push_back(i * step);
  return scale;
}

/// Both ends and every so many in between, and of those the mean.
std::vector<Point> thinned(const std::vector<Point>& points) {
  const size_t step = points.size() / kMostPoints + 1;
  if (step == 1)
    return points;
  std::vector<Point> few = {points.front()};
  for (size_t i = 1; i + 1 < points.size(); i += step) {
    const size_t end = std::min(i + step, points.size() - 1);
    Point mean;
    for (size_t j = i; j < end; ++j) {
      mean.x += points[j].x;
      mean.y += points[j].y;
    }
    const auto count = static_cast<double>(end - i);
    few.push_back({std::round(mean.x / count), mean.y / count});
  }
  few.push_back(points.back());
  return few;
}

/// "20k", "0.0005".
std::string mark_text(double value) {
  if (std::abs(value) >= 1e4 && std::abs(value) < 1e7)
    return number_text(value / 1000, 4) + "k";
  return number_text(std::abs(value) < 1e-12 ? 0 : value, 5);
}

std::string attribute(const char* name, double value) {
  return concat(" ", name, "=\"", number_text(value, 6), "\"");
}

std::string text_at(double x, double y, const char* anchor, std::string_view text) {
  return concat(
      "<text",
      attribute("x", x),
      attribute("y", y),
      " text-anchor=\"",
      anchor,
      "\">",
      escape(text),
      "</text>\n");
}

std::string axes(const Scale& x, const Scale& y) {
  std::string drawn;
  for (const double mark : y.marks) {
    const double at = kPlot - y.at(mark, kPlot);
    drawn += concat("<path class=\"grid\" d=\"M0 ", number_text(at, 5), "h", kPlotWidth, "\"/>");
    drawn += text_at(-6, at + 4, "end", mark_text(mark));
  }
  for (const double mark : x.marks)
    drawn += text_at(x.at(mark, kPlotWidth), kPlot + 15, "middle", mark_text(mark));
  return drawn + text_at(kPlotWidth, kPlot + 30, "end", "updates") +
      concat("<rect class=\"frame\" width=\"", kPlotWidth, "\" height=\"", kPlot, "\"/>\n");
}

std::string css(const Series& series) {
  return concat("curve c", series.colour, series.thin ? " thin" : "");
}

std::string curve(const Series& series, const Scale& x, const Scale& y) {
  std::string path;
  for (const Point& point : series.points)
    path += concat(
        path.empty() ? "M" : "L",
        number_text(x.at(point.x, kPlotWidth), 5),
        " ",
        number_text(kPlot - y.at(point.y, kPlot), 5));
  // A single point is a dot.
  return concat(
      "<path class=\"",
      css(series),
      "\" stroke-linecap=\"round\" d=\"",
      path,
      series.points.size() == 1 ? "h0.01" : "",
      "\"/>\n");
}

std::string key(const Series& series, double y) {
  std::string name = series.name;
  if (name.size() > kLongestName)
    name = "..." + name.substr(name.size() - kLongestName);
  return concat("<path class=\"", css(series), "\" d=\"M0 ", y - 4, "h18\"/>") +
      text_at(24, y, "start", name);
}

/// A chart's curves with few points, and where they lie.
struct Plot {
  std::vector<Series> series;
  Scale x;
  Scale y;

  double height() const {
    return kTop + kPlot + kBottom + kRow * static_cast<double>(series.size()) + 4;
  }
};

Plot plot_of(const Chart& chart) {
  Plot plot{chart.series};
  Point low{INFINITY, INFINITY}, high{-INFINITY, -INFINITY};
  for (Series& one : plot.series) {
    one.points = thinned(one.points);
    for (const Point& point : one.points) {
      low = {std::min(low.x, point.x), std::min(low.y, point.y)};
      high = {std::max(high.x, point.x), std::max(high.y, point.y)};
    }
  }
  plot.x = scale_of(low.x, high.x);
  plot.y = scale_of(low.y, high.y);
  return plot;
}

/// What the page's script reads.
std::string data_of(const Plot& plot) {
  Json series = Json::array();
  for (const Series& one : plot.series) {
    Json xs = Json::array(), ys = Json::array();
    for (const Point& point : one.points) {
      xs.push_back(point.x);
      ys.push_back(Json::parse(number_text(point.y, 6)));
    }
    series.push_back(Json::array({one_line(one.name), xs, ys}));
  }
  const Json ends = Json::array({plot.x.low, plot.x.high, kPlotWidth});
  return concat(
      " data-kind=\"line\" data-x=\"",
      ends.dump(),
      "\" data-series=\"",
      escape(series.dump()),
      "\"");
}

std::string inside(const Plot& plot) {
  std::string drawn = concat(
      "<g class=\"plot\" transform=\"translate(",
      kLeft,
      " ",
      kTop,
      ")\">\n<rect class=\"paper\" width=\"",
      kPlotWidth,
      "\" height=\"",
      kPlot,
      "\"/>\n",
      axes(plot.x, plot.y));
  for (const Series& one : plot.series)
    drawn += curve(one, plot.x, plot.y);
  double row = kPlot + kBottom + kRow - 4;
  for (const Series& one : plot.series) {
    drawn += key(one, row);
    row += kRow;
  }
  return drawn +
      concat("<line class=\"cursor\" visibility=\"hidden\" y2=\"", kPlot, "\"/>\n</g>\n");
}

std::string drawing(const Chart& chart, const char* attributes, std::string_view style) {
  const Plot plot = plot_of(chart);
  return concat(
      "<svg class=\"chart\" role=\"img\" aria-label=\"",
      escape(chart.title),
      "\" data-id=\"",
      escape(chart.id),
      "\"",
      attributes,
      data_of(plot),
      " viewBox=\"0 0 ",
      kWidth,
      " ",
      plot.height(),
      "\">\n",
      style,
      "<text class=\"title\" x=\"",
      kLeft,
      "\" y=\"16\">",
      escape(chart.title),
      "</text>\n",
      inside(plot),
      "</svg>\n");
}

/// Adds a chart of `key` in both kinds of records, where there is one.
struct ChartMaker {
  const std::vector<Run>& runs;
  std::vector<Chart> charts{};

  void add(const std::string& key, const std::string& title, bool both) {
    Chart chart{key, title};
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto one = [&](const Curves& curves, const char* kind, bool thin) {
        if (const auto found = curves.find(key); found != curves.end())
          chart.series.push_back({runs[i].name + kind, i % kMostRuns, thin, found->second});
      };
      one(runs[i].train, both ? ", training" : "", both);
      one(runs[i].validation, both ? ", validation" : "", false);
    }
    if (!chart.series.empty())
      charts.push_back(std::move(chart));
  }
};

/// Measurements of validation that are the loss in other words, or sizes.
bool is_score(const std::string& key) {
  return key != "loss_base2" && key != "nll_base2" && key != "perplexity" && key != "target_tokens";
}

}  // namespace

std::vector<Chart> training_charts(const std::vector<Run>& runs) {
  ChartMaker maker{runs};
  maker.add("nll_base2", "Loss, bits a target token", /*both=*/true);
  std::set<std::string> scores;
  for (const Run& run : runs)
    for (const auto& [key, points] : run.validation)
      if (is_score(key))
        scores.insert(key);
  for (const std::string& key : scores)
    maker.add(key, "Validation: " + key, /*both=*/false);
  maker.add("learning_rate", "Learning rate", /*both=*/false);
  maker.add("gradient_norm", "Norm of the gradient", /*both=*/false);
  maker.add(
      "target_tokens_per_second",
      "Target tokens a second",
      /*both=*/false);
  return std::move(maker.charts);
}

std::string svg_of(const Chart& chart) {
  return drawing(chart, "", "");
}

std::string svg_file(const Chart& chart) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" +
      drawing(
             chart,
             " xmlns=\"http://www.w3.org/2000/svg\" width=\"600\"",
             concat("<style>", figure_style(), "</style>\n", kPaper));
}

bool is_svg_file(std::string_view content) {
  return content.find(kPaper) != std::string_view::npos;
}

}  // namespace seqconv::internal::report
