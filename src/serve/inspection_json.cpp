#include "serve/inspection_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace seqconv::internal {
namespace {

const char* name_of(WeightForm form) {
  switch (form) {
    case WeightForm::kNone:
      return "none";
    case WeightForm::kFixedTaps:
      return "fixedTaps";
    case WeightForm::kTaps:
      return "taps";
    case WeightForm::kReach:
      return "reach";
    case WeightForm::kPositions:
      return "positions";
  }
  return "";
}

Json weights_json(const PositionWeights& weights) {
  Json values = Json::array();
  for (const float value : weights.values)  // a map shows no more digits
    values.push_back(std::round(static_cast<double>(value) * 1e4) / 1e4);
  return {
      {"form", name_of(weights.form)},
      {"rows", weights.rows()},
      {"heads", weights.heads},
      {"width", weights.width},
      {"paddingLeft", weights.padding_left},
      {"values", std::move(values)}};
}

Json stack_json(const std::vector<LayerProbe>& layers) {
  Json list = Json::array();
  for (const LayerProbe& layer : layers)
    list.push_back(
        {{"title", layer_title(layer)},
         {"explanation", explanation_of(layer.mixer.form)},
         {"weights", weights_json(layer.mixer)}});
  return list;
}

}  // namespace

Json inspection_json(const SentenceProbe& found) {
  Json attention = Json::array();
  for (const LayerProbe& layer : found.probe.decoder)
    attention.push_back(weights_json(layer.source));
  return {
      {"translatedText", found.translation},
      {"notes", found.notes},
      {"symbols",
       {{"source", found.symbols.source},
        {"read", found.symbols.read},
        {"written", found.symbols.written}}},
      {"encoder", stack_json(found.probe.encoder)},
      {"decoder", stack_json(found.probe.decoder)},
      {"crossAttention", std::move(attention)}};
}

}  // namespace seqconv::internal
