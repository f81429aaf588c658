#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/request.h"
#include "pipeline/system.h"
#include "search/sample.h"

namespace seqconv::internal {

/// Turns ids into text as they come. Its memory does not grow: what is shown
/// depends on a few ids only. Moses tokens are the exception: they come by
/// whole lines, as where a sign belongs depends on the line.
class TextStream {
 public:
  explicit TextStream(std::shared_ptr<const TextPipeline> text) : text_(std::move(text)) {}

  /// The text that `id` adds: nothing while a character is incomplete, a line
  /// break for </s>. Always UTF-8: bytes that make no character, which a model
  /// of bytes may draw, become U+FFFD.
  std::string add(int32_t id);
  /// Spells the slots of the present line. The next line has none again.
  void take_slots(Slots slots) { slots_ = std::move(slots); }
  /// Returns what is still held back.
  std::string finish();
  /// Takes all that was added as given out.
  void pass_over() { shown_ = text_->decode(ids_, slots_); }

 private:
  std::string complete_text() const;

  std::shared_ptr<const TextPipeline> text_;
  std::vector<int32_t> ids_;  // the last ones of the line
  std::string shown_;         // their text, as far as it was given out
  Slots slots_;               // of the line
};

struct GenerationOptions {
  int64_t length = 200;  ///< tokens to generate, at least one
  SamplingOptions sampling;
  bool show_prompt = true;  ///< it is written first
  StopQuestion stop{};      ///< once it is true no token follows
  int64_t workers = 1;      ///< threads that share the work at a token
  OptionNames names{""};    ///< of the length, in messages
  /// The prompt as ids without the </s> that begins a text, where given.
  std::optional<std::vector<int32_t>> prompt{};
  /// Hears each token that is generated, with its natural log-probability.
  std::function<void(int32_t id, double log_probability)> token{};
};

struct GenerationReport {
  int64_t prompt_tokens = 0;
  int64_t unknown_prompt_tokens = 0;  ///< of them <unk>
  int64_t tokens = 0;                 ///< generated
  double prompt_seconds = 0;
  double seconds = 0;  ///< of generation
  double log2_probability = 0;
  bool stopped = false;  ///< before its end
};

/// Goes on with a prompt, token by token. The state has a fixed size for models
/// without attention: speed and memory do not depend on how long the text is.
/// The same seed, prompt and options give the same text. A model of lines stops
/// at the end of its line; one of blocks goes on in the next line.
///
/// `write` is called with text as soon as it is there, the prompt's first.
/// Error for a prompt with symbols that the model cannot know, UsageError when
/// prompt and length do not fit into learned positions, NoProbability where the
/// model gives none.
GenerationReport generate_text(
    const LanguageSystem& model,
    std::string_view prompt,
    const GenerationOptions& options,
    const std::function<void(const std::string&)>& write);

}  // namespace seqconv::internal
