#include "runtime/api/results.h"

#include <optional>

#include "base/error.h"

namespace seqconv::internal {
namespace {

seqconv_text view(const std::string& text) {
  return {text.c_str(), std::ssize(text)};
}

/// Texts one after the other in a block, each with its NUL: the Python package reads the block at
/// once (python/seqconv/results.py), as it does a result's struct.
class Texts {
 public:
  explicit Texts(const std::vector<std::string>& texts) {
    size_t size = 0;
    for (const std::string& text : texts)
      size += text.size() + 1;
    block_.reserve(size);  // it stays where it is
    views_.reserve(texts.size());
    for (const std::string& text : texts) {
      views_.push_back({block_.data() + block_.size(), std::ssize(text)});
      block_.append(text).push_back('\0');
    }
  }
  Texts(const Texts&) = delete;
  Texts& operator=(const Texts&) = delete;

  int64_t count() const { return std::ssize(views_); }
  /// NULL if there are none.
  const seqconv_text* data() const { return views_.empty() ? nullptr : views_.data(); }

 private:
  std::string block_;
  std::vector<seqconv_text> views_;
};

std::vector<seqconv_byte_range> ranges_of(const std::vector<ByteRange>& ranges) {
  std::vector<seqconv_byte_range> all;
  all.reserve(ranges.size());
  for (const ByteRange& range : ranges)
    all.push_back({range.begin, range.end});
  return all;
}

/// An empty list is NULL.
template <class T>
const T* data_of(const std::vector<T>& list) {
  return list.empty() ? nullptr : list.data();
}

/// An output with what it points to.
class Output {
 public:
  explicit Output(Translation from) : from_(std::move(from)), tokens_(from_.tokens) {
    from_.tokens = {};  // that are in the block now
    token_ranges_ = ranges_of(from_.token_ranges);
    for (const AlignedTokens& pair : from_.alignment)
      pairs_.push_back({pair.source, pair.target});
    seen_.size = sizeof(seen_);
    seen_.text = view(from_.text);
    seen_.token_count = tokens_.count();
    seen_.tokens = tokens_.data();
    seen_.token_scores = data_of(from_.token_scores);
    seen_.score = from_.score;
    seen_.log_probability = from_.log_probability;
    seen_.token_ranges = data_of(token_ranges_);
    seen_.pair_count = std::ssize(pairs_);
    seen_.pairs = data_of(pairs_);
    seen_.source_shares = data_of(from_.source_shares);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  const seqconv_output* seen() const { return &seen_; }

 private:
  seqconv_output seen_{};
  Translation from_;
  Texts tokens_;
  std::vector<seqconv_byte_range> token_ranges_;
  std::vector<seqconv_aligned_tokens> pairs_;
};

/// A result with what it points to. C sees its base.
class OwnedResult : public seqconv_result {
 public:
  OwnedResult(Result from, std::vector<Translation> outputs)
      : seqconv_result{}, from_(std::move(from)), notes_(from_.notes) {
    seqconv_result::size = sizeof(seqconv_result);
    seqconv_result::status = to_status(from_.status);
    seqconv_result::error = view(from_.error);
    seqconv_result::note_count = notes_.count();
    seqconv_result::notes = notes_.data();
    for (Translation& output : outputs) {
      outputs_.push_back(std::make_unique<Output>(std::move(output)));
      seen_.push_back(outputs_.back()->seen());
    }
    seqconv_result::output_count = std::ssize(seen_);
    seqconv_result::outputs = data_of(seen_);
  }

  void set_source(const std::vector<std::string>& tokens, const std::vector<ByteRange>& ranges) {
    source_tokens_.emplace(tokens);
    ranges_ = ranges_of(ranges);
    seqconv_result::source_token_count = source_tokens_->count();
    seqconv_result::source_tokens = source_tokens_->data();
    seqconv_result::source_ranges = data_of(ranges_);
  }

 private:
  Result from_;
  Texts notes_;
  std::vector<std::unique_ptr<Output>> outputs_;
  std::vector<const seqconv_output*> seen_;
  std::optional<Texts> source_tokens_;
  std::vector<seqconv_byte_range> ranges_;
};

constexpr std::string_view kShort = "out of memory";
constinit seqconv_result no_memory = {
    .size = sizeof(seqconv_result),
    .status = SEQCONV_OUT_OF_MEMORY,
    .reserved = 0,
    .error = {kShort.data(), std::ssize(kShort)},
    .note_count = 0,
    .notes = nullptr,
    .output_count = 0,
    .outputs = nullptr,
    .source_token_count = 0,
    .source_tokens = nullptr,
    .source_ranges = nullptr,
    .kept_bytes = 0};

template <class Make>
OwnResult made(const Make& make) noexcept {
  try {
    return OwnResult(make());
  } catch (const std::bad_alloc&) {
    return OwnResult(no_memory_result());
  }
}

std::unique_ptr<OwnedResult> owned(const Result& from, std::vector<Translation> outputs) {
  return std::make_unique<OwnedResult>(from, std::move(outputs));
}

}  // namespace

seqconv_result* no_memory_result() noexcept {
  return &no_memory;
}

seqconv_status to_status(Status status) noexcept {
  switch (status) {
    case Status::kOk:
      return SEQCONV_OK;
    case Status::kInvalid:
      return SEQCONV_INVALID;
    case Status::kFailed:
      return SEQCONV_FAILED;
    case Status::kOutOfMemory:
      return SEQCONV_OUT_OF_MEMORY;
    case Status::kCancelled:
      return SEQCONV_CANCELLED;
    case Status::kTimedOut:
      return SEQCONV_TIMED_OUT;
  }
  return SEQCONV_ERROR;
}

OwnResult make_result(TranslationResult result) noexcept {
  return made([&] {
    auto made = owned(result, std::move(result.translations));
    made->set_source(result.source_tokens, result.source_ranges);
    return made.release();
  });
}

OwnResult make_result(ScoreResult result) noexcept {
  return made([&] {
    std::vector<Translation> outputs;
    if (result.ok())
      outputs.push_back(
          {.text = {},
           .tokens = {},
           .log_probability = result.log_probability,
           .token_scores = {}});
    return owned(result, std::move(outputs)).release();
  });
}

OwnResult make_result(GenerationResult result) noexcept {
  return made([&] {
    std::vector<Translation> outputs;
    outputs.push_back(
        {.text = std::move(result.text),
         .tokens = std::move(result.tokens),
         .score = result.log_probability,
         .log_probability = result.log_probability,
         .token_scores = std::move(result.token_scores)});
    return owned(result, std::move(outputs)).release();
  });
}

OwnResult make_failure(Status status, const char* error) noexcept {
  return made([&] {
    Result failure;
    failure.status = status;
    failure.error = error;
    return owned(failure, {}).release();
  });
}

OwnResult make_part(size_t kept, std::string text) noexcept {
  OwnResult part = made([&] {
    std::vector<Translation> outputs(1);
    outputs[0].text = std::move(text);
    auto made = owned(Result(), std::move(outputs));
    made->status = SEQCONV_PART;
    made->kept_bytes = static_cast<int64_t>(kept);
    return made.release();
  });
  return part.get() == no_memory_result() ? nullptr : std::move(part);
}

}  // namespace seqconv::internal

extern "C" {

void seqconv_result_free(seqconv_result* result) {
  if (result != seqconv::internal::no_memory_result())
    delete static_cast<seqconv::internal::OwnedResult*>(result);
}

void seqconv_free(char* text) {
  delete[] text;
}

}  // extern "C"
