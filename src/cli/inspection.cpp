#include "cli/inspection.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/report/charts.h"
#include "cli/report/html.h"
#include "cli/report/maps.h"

namespace seqconv::internal::cli {
namespace {

using report::Axis;
using report::escape;

std::string element(const char* tag, const std::string& content) {
  return concat("<", tag, ">", content, "</", tag, ">\n");
}

std::string soft(const std::string& text) {
  return concat("<p class=\"soft\">", escape(text), "</p>\n");
}

/// Offsets of K taps: "-1", "0", "+1".
Axis tap_axis(int64_t taps, int64_t padding_left) {
  Axis axis{concat("taps-", taps, "-", padding_left), {}};
  for (int64_t j = 0; j < taps; ++j)
    axis.labels.push_back(concat(j > padding_left ? "+" : "", j - padding_left));
  return axis;
}

Axis head_axis(int64_t heads) {
  Axis axis{concat("heads-", heads), {}};
  for (int64_t h = 0; h < heads; ++h)
    axis.labels.push_back(concat("head ", h + 1));
  return axis;
}

double largest(const std::vector<float>& values) {
  double most = 0;
  for (const float value : values)
    if (std::isfinite(value))
      most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

/// [T, W] of one head, or the mean of all where `head` is -1.
std::vector<float> of_head(const PositionWeights& weights, int64_t head) {
  std::vector<float> values;
  const int64_t first = std::max<int64_t>(head, 0);
  const int64_t end = head < 0 ? weights.heads : head + 1;
  for (int64_t row = 0; row < weights.rows(); ++row)
    for (int64_t i = 0; i < weights.width; ++i) {
      double sum = 0;
      for (int64_t h = first; h < end; ++h)
        sum += static_cast<double>(weights.at(row, h, i));
      values.push_back(static_cast<float>(sum / static_cast<double>(end - first)));
    }
  return values;
}

/// Writes layers' maps and keeps the names along them, each list once.
class MapWriter {
 public:
  /// All heads of weights whose rows are `rows` and whose columns, where they
  /// are positions, are `columns`.
  std::string maps(
      const std::string& where,
      const PositionWeights& weights,
      const Axis& rows,
      const Axis& columns) {
    std::string drawn;
    if (weights.form == WeightForm::kFixedTaps) {
      drawn = figure(
          where,
          {where, full(weights), /*labelled=*/true},
          {.form = weights.form, .values = weights.values},
          head_axis(weights.heads),
          tap_axis(weights.width, weights.padding_left));
    } else {
      for (int64_t head = weights.heads == 1 ? 0 : -1; head < weights.heads; ++head)
        drawn += head_map(where, weights, head, rows, columns);
    }
    return concat("<div class=\"maps\">\n", drawn, "</div>\n", legend(weights));
  }

  /// The lists of all maps so far.
  std::string lists() const {
    std::string all;
    for (const auto& [id, labels] : lists_)
      all += report::hidden_list(id, labels);
    return all;
  }

 private:
  static double full(const PositionWeights& weights) {
    return std::max(largest(weights.values), 1e-6);
  }

  std::string legend(const PositionWeights& weights) const {
    return weights.form == WeightForm::kReach
        ? soft(concat("Furthest reach: ", report::number_text(full(weights), 3), " positions."))
        : soft(concat("Full colour: ", report::number_text(full(weights), 3), "."));
  }

  std::string head_map(
      const std::string& where,
      const PositionWeights& weights,
      int64_t head,
      const Axis& rows,
      const Axis& columns) {
    const std::string name = head < 0 ? "mean of the heads" : concat("head ", head + 1);
    const bool labelled = head < 0 || weights.heads == 1;
    const bool taps = weights.form == WeightForm::kTaps;
    return figure(
        name,
        {concat(where, ", ", name), full(weights), labelled},
        {.form = weights.form,
         .padding_left = weights.padding_left,
         .values = of_head(weights, head)},
        rows,
        taps ? tap_axis(weights.width, weights.padding_left) : columns);
  }

  /// `weights`: the form, and numbers [rows, columns].
  std::string figure(
      const std::string& caption,
      const report::MapStyle& style,
      PositionWeights weights,
      const Axis& rows,
      const Axis& columns) {
    lists_[rows.id] = rows.labels;
    lists_[columns.id] = columns.labels;
    std::string svg;
    if (weights.form == WeightForm::kReach) {
      svg = report::svg_of(report::WindowMap{style, rows, std::move(weights.values)});
    } else {
      report::HeatMap map{style, rows, columns, std::move(weights.values)};
      if (weights.form == WeightForm::kTaps)
        map.shift = weights.padding_left;
      svg = report::svg_of(map);
    }
    return concat("<figure>\n<figcaption>", escape(caption), "</figcaption>\n", svg, "</figure>\n");
  }

  std::map<std::string, std::vector<std::string>> lists_;
};

std::string layer(
    const std::string& side,
    size_t number,
    const LayerProbe& probe,
    const Axis* symbols,
    MapWriter& writer) {
  const WeightForm form = probe.mixer.form;
  std::string text = element("h3", escape(concat("Layer ", number + 1, ": ", layer_title(probe))));
  text += soft(explanation_of(form));
  if (form == WeightForm::kNone)
    return text;
  if (form != WeightForm::kFixedTaps && symbols == nullptr)
    return text + soft("They depend on the sentence: give one by --text.");
  const Axis none;
  const Axis& axis = symbols == nullptr ? none : *symbols;
  return text + writer.maps(concat(side, " layer ", number + 1), probe.mixer, axis, axis);
}

std::string stack(
    const std::string& side,
    const std::vector<LayerProbe>& layers,
    const Axis* symbols,
    MapWriter& writer) {
  if (layers.empty())
    return "";
  std::string text = concat(
      "<section id=\"", side, "\">\n<h2>", side == "encoder" ? "Encoder" : "Decoder", "</h2>\n");
  for (size_t i = 0; i < layers.size(); ++i)
    text += element("article", layer(side, i, layers[i], symbols, writer));
  return text + "</section>\n";
}

std::string cross_attention(
    const std::vector<LayerProbe>& layers, const ProbedSymbols& symbols, MapWriter& writer) {
  if (layers.empty() || layers[0].source.form == WeightForm::kNone)
    return "";
  std::string text = "<section id=\"cross-attention\">\n<h2>Cross-attention</h2>\n";
  if (!symbols.given)
    return text + soft("It depends on the sentence: give one by --text.") + "</section>\n";
  text += soft(
      "How much of each source symbol (column) the decoder takes when it writes a symbol (row).");
  const Axis rows{"written", symbols.written}, columns{"source", symbols.source};
  for (size_t i = 0; i < layers.size(); ++i)
    text += element(
        "article",
        element("h3", concat("Layer ", i + 1)) +
            writer.maps(concat("cross-attention, layer ", i + 1), layers[i].source, rows, columns));
  return text + "</section>\n";
}

std::string curves(const std::vector<report::Run>& runs) {
  std::string text = "<section id=\"training\">\n<h2>Training</h2>\n";
  if (runs.empty())
    return text +
        soft("There are no curves: the folder has no training/metrics.jsonl with records (an "
             "imported or averaged model has none).") +
        "</section>\n";
  text += "<div class=\"charts\">\n";
  for (const report::Chart& chart : report::training_charts(runs))
    text += report::svg_of(chart);
  return text + "</div>\n</section>\n";
}

std::string facts(const Inspected& model) {
  std::string rows;
  for (const auto& [name, value] : model.facts)
    rows +=
        concat("<tr><th scope=\"row\">", escape(name), "</th><td>", escape(value), "</td></tr>\n");
  std::string text = element("table", rows);
  for (const std::string& note : model.notes)
    text += concat("<p class=\"note\">", escape(note), "</p>\n");
  return text;
}

}  // namespace

std::string inspection_body(const std::string& title, const Inspected& model) {
  MapWriter writer;
  const auto& [probe, symbols, translation, notes] = model.sentence;
  const Axis source{"source", symbols.source}, read{"read", symbols.read};
  std::string text = element("h1", escape(title)) + facts(model) + curves(model.runs) +
      cross_attention(probe.decoder, symbols, writer) +
      stack("encoder", probe.encoder, symbols.given ? &source : nullptr, writer) +
      stack("decoder", probe.decoder, symbols.given ? &read : nullptr, writer);
  return text + writer.lists();
}

}  // namespace seqconv::internal::cli
