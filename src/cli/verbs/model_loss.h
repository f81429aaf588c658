#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/system.h"

namespace seqconv::internal::verbs {

/// Text on which models are compared: a target with its source, or a text alone.
struct LossText {
  std::string source;  ///< "" for a language model's
  std::string target;  ///< lines, or binarised data

  bool is_given() const { return !target.empty(); }
};

/// Measures models of one task and one text by their loss: minus log2 p for each token of a text,
/// </s> counted, as a validation's nll_base2 tells it.
class ModelLoss {
 public:
  /// Reads the text, as `model` turns lines into ids. UsageError for text of another task; Error
  /// for what cannot be read, sides of other lengths, lines beyond learned positions, and a text
  /// without any line.
  ModelLoss(const RootedPath& model, const LossText& text, int64_t workers);
  ModelLoss(const ModelLoss&) = delete;
  ~ModelLoss();

  /// Error where the model gives a line no finite probability, and those of opening it.
  double of(const RootedPath& model, const BackendOpener& opener) const;

 private:
  class Measure;
  class TranslationMeasure;
  class LanguageMeasure;
  std::unique_ptr<const Measure> measure_;
};

}  // namespace seqconv::internal::verbs
