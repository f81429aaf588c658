#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/model_description.h"
#include "runtime/probe.h"
#include "seqconv/requests.h"

/// Probes models with sentences as text, and says in words what the numbers are.
namespace seqconv::internal {

/// The symbols of the sentence that a model was probed with.
struct ProbedSymbols {
  bool given = false;                  ///< true where there is a sentence
  std::vector<std::string> source{};   ///< as the encoder reads them
  std::vector<std::string> read{};     ///< as the decoder reads them
  std::vector<std::string> written{};  ///< what it predicts at each of them
};

struct SentenceProbe {
  ModelProbe probe{};
  ProbedSymbols symbols{};
  std::string translation{};
  std::vector<std::string> notes{};  ///< of the translation, and what was cut
};

struct SentenceToProbe {
  std::string text;
  std::string name = "text";  ///< in messages
  size_t most_symbols = 200;  ///< of a source or a text; translations are cut there
  bool is_cut = false;        ///< a source with more is cut; one without any is no error
};

/// The model's own translation of a request's text.
using TranslateSentence = std::function<TranslationResult(const TranslationRequest&)>;

/// A sentence and its translation as ids, and what is known of them without a probe.
struct TranslatedSentence {
  std::vector<int32_t> source;
  std::vector<int32_t> target;
  SentenceProbe found{};
};

/// A translation model that is open for any number of sentences. Threads may share it.
class SentenceProber {
 public:
  /// Error where it cannot be opened.
  explicit SentenceProber(const ModelFiles& files);

  /// The sentence as the model reads it; errors as of probe_translated.
  static TranslatedSentence translated(
      const TranslationText& text, SentenceToProbe sentence, const TranslateSentence& translate);

  SentenceProbe probe(TranslatedSentence sentence) const;

  /// Stays when the model is closed.
  const std::shared_ptr<const TranslationDescription>& description() const { return described_; }
  int64_t weight_bytes() const { return prober_.weight_bytes(); }

 private:
  std::shared_ptr<const TranslationDescription> described_;
  TranslationProber prober_;
};

/// A sentence and its translation in a translation model. UsageError for a text without symbols
/// or with too many, unless it is cut; Error where it cannot be translated, or the model not be
/// opened.
SentenceProbe probe_translated(
    const ModelFiles& files, SentenceToProbe sentence, const TranslateSentence& translate);

/// A text in a language model. Errors likewise, and for symbols that it does not know.
SentenceProbe probe_read(const ModelFiles& files, const SentenceToProbe& text);

/// A model without a sentence. Error where it cannot be opened.
SentenceProbe probe_alone(const ModelFiles& files);

/// "lightconv, 4 heads, 7 positions wide".
std::string layer_title(const LayerProbe& layer);

/// A sentence on what numbers of this form show.
const char* explanation_of(WeightForm form);

}  // namespace seqconv::internal
