#include "pipeline/generator.h"

#include <algorithm>
#include <numbers>

#include "base/special_ids.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "pipeline/piece_check.h"
#include "pipeline/request_text.h"
#include "pipeline/stop_scope.h"
#include "pipeline/workers.h"
#include "text/vocabulary.h"

namespace seqconv::internal {
namespace {

constexpr size_t kMostIds = 32;
constexpr size_t kKeptIds = 16;

/// A prompt as the model reads it.
struct Prompt {
  std::vector<int32_t> ids;  ///< </s>, then the lines with </s> between them
  std::vector<Slots> slots;  ///< of each line of a text

  std::span<const int32_t> last_line() const {
    const auto end = std::find(ids.rbegin(), ids.rend(), kEndId);
    return std::span(ids).last(static_cast<size_t>(end - ids.rbegin()));
  }
};

Prompt read_prompt(
    const LanguageText& text, std::string_view prompt, const GenerationOptions& options) {
  Prompt read{.ids = {kEndId}};
  std::vector<int32_t>& ids = read.ids;
  if (options.prompt) {
    ids.insert(ids.end(), options.prompt->begin(), options.prompt->end());
    return read;
  }
  for (;;) {
    const size_t end = prompt.find('\n');
    const std::string_view line = prompt.substr(0, end);
    read.slots.push_back(text.text->slots_of(line));
    const std::vector<int32_t> encoded = text.text->encode(line, read.slots.back());
    check_known(text, line, encoded, "the prompt");
    ids.insert(ids.end(), encoded.begin(), encoded.end());
    if (end == std::string_view::npos)
      return read;
    ids.push_back(kEndId);
    prompt.remove_prefix(end + 1);
  }
}

/// Tokens that are not drawn in a line that has begun so, ascending: rows of no symbol, and slots
/// that it lacks.
std::vector<int32_t> not_drawn(const TextPipeline& text, std::span<const int32_t> line) {
  std::vector<int32_t> tokens = text.vocabulary().padding();
  const std::vector<int32_t> usable = usable_slots(text, line, text, {});
  for (const int32_t slot : text.vocabulary().slots())
    if (!std::ranges::binary_search(usable, slot))
      tokens.push_back(slot);
  std::ranges::sort(tokens);
  return tokens;
}

void check_length(const LanguageSystem& model, int64_t prompt, const GenerationOptions& options) {
  const int64_t most = model.backend->max_tokens();
  const int64_t length = options.length;
  if (length < 1)
    fail_usage(options.names("length"), " must be at least 1 token, but got ", length);
  if (length - 1 > most - prompt)  // their sum may be no integer
    fail_usage(
        "the model's learned positions reach ",
        most,
        " tokens, but the prompt has ",
        prompt,
        " (its begin counted) and ",
        length,
        " (",
        options.names("length"),
        ") were to follow");
}

}  // namespace

std::string TextStream::add(int32_t id) {
  if (id == kEndId) {
    std::string rest = finish();
    slots_ = {};
    return rest + "\n";
  }
  ids_.push_back(id);
  // Signs go to the word before or behind by all that stands in the line.
  if (text_->preparation().is_undone())
    return "";
  const bool many = ids_.size() > kMostIds;
  const std::string text = complete_text();
  // A text that was another one before its last piece came is heard when there
  // is no more to wait for.
  if (!many && !text.starts_with(shown_))
    return "";
  std::string fresh = text.substr(std::min(shown_.size(), text.size()));
  shown_ = text;
  if (many) {
    ids_.erase(ids_.begin(), ids_.end() - kKeptIds);
    shown_ = complete_text();
  }
  return replace_invalid_utf8(fresh);
}

/// That of the ids, but for an incomplete character at its end.
std::string TextStream::complete_text() const {
  std::string text = text_->decode(ids_, slots_);
  drop_incomplete_end(text);
  return text;
}

std::string TextStream::finish() {
  const std::string text = text_->decode(ids_, slots_);
  std::string rest = text.size() > shown_.size() ? text.substr(shown_.size()) : "";
  ids_.clear();
  shown_.clear();
  return replace_invalid_utf8(rest);
}

namespace {

/// Gives the prompt to the stream, and shows it where that is wanted.
void pass_prompt(
    const Prompt& prompt, bool shows, TextStream& text, const std::function<void(int32_t)>& show) {
  auto slots = prompt.slots.begin();
  const auto begin_line = [&] {
    if (slots != prompt.slots.end())
      text.take_slots(*slots++);
  };
  begin_line();
  for (const int32_t id : std::span(prompt.ids).subspan(1)) {
    if (shows)
      show(id);
    else
      text.add(id);
    if (id == kEndId)
      begin_line();
  }
  if (!shows)
    text.pass_over();
}

GenerationReport generate_alone(
    const LanguageSystem& model,
    std::string_view prompt,
    const GenerationOptions& options,
    const std::function<void(const std::string&)>& write) {
  const Prompt read = read_prompt(model.text, prompt, options);
  const std::vector<int32_t>& ids = read.ids;
  check_length(model, std::ssize(ids), options);
  TextStream text(model.text.text);
  const auto show = [&](int32_t id) {
    if (const std::string fresh = text.add(id); !fresh.empty())
      write(fresh);
  };
  pass_prompt(read, options.show_prompt, text, show);
  GenerationReport report;
  const auto stops = [&] { return report.stopped = wants_to_stop(options.stop); };
  report.prompt_tokens = std::ssize(ids) - 1;
  report.unknown_prompt_tokens = std::ranges::count(ids, kUnknownId);
  if (stops())
    return report;
  Stopwatch watch;
  const auto reader = model.backend->start();
  NextTokens* next = nullptr;
  try {
    const StopScope scope(options.stop);
    next = &reader->read(ids);
  } catch (const Stopped&) {
    report.stopped = true;
    return report;
  }
  report.prompt_seconds = watch.lap();
  Sampler sampler(options.sampling);
  const bool one_line = model.stream.samples == SampleKind::kLines;
  std::vector<int32_t> excluded = not_drawn(*model.text.text, read.last_line());
  for (;;) {
    const SampledToken drawn = sampler.draw(
        *next,
        excluded,
        uniform_number(options.sampling.seed.value_or(1), static_cast<uint64_t>(report.tokens)));
    ++report.tokens;
    report.log2_probability += drawn.log_probability / std::numbers::ln2;
    if (options.token)
      options.token(drawn.token, drawn.log_probability);
    const bool line_over = one_line && drawn.token == kEndId;
    if (!line_over)
      show(drawn.token);
    if (drawn.token == kEndId)
      excluded = not_drawn(*model.text.text, {});
    if (line_over || report.tokens == options.length || stops())
      break;
    next = &reader->read({&drawn.token, 1});
  }
  report.seconds = watch.lap();
  if (const std::string rest = text.finish(); !rest.empty())
    write(rest);
  return report;
}

}  // namespace

GenerationReport generate_text(
    const LanguageSystem& model,
    std::string_view prompt,
    const GenerationOptions& options,
    const std::function<void(const std::string&)>& write) {
  GenerationReport report;
  work_with_help(options.workers, [&] { report = generate_alone(model, prompt, options, write); });
  return report;
}

}  // namespace seqconv::internal
