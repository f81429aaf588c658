#include "text/corpus/stream_corpus.h"

#include <algorithm>

#include "base/error.h"
#include "base/options.h"
#include "text/corpus/corpus_reader.h"
#include "text/corpus/token_store.h"
#include "text/vocabulary.h"

namespace seqconv::internal {
namespace {

/// Puts lines into the sequences of a token store.
class StreamWriter {
 public:
  StreamWriter(SampleKind kind, int64_t max_length, const std::filesystem::path& path)
      : kind_(kind), max_length_(max_length), store_(path) {}

  /// Adds a line, given by its ids without </s>.
  void add(std::vector<int32_t> ids, bool blank) {
    ++report_.lines;
    report_.blank += blank;
    if (blank && kind_ != SampleKind::kBlocks) {
      end_document();
      return;
    }
    ids.push_back(kEndId);
    if (kind_ == SampleKind::kLines) {
      if (std::ssize(ids) > max_length_) {
        ++report_.too_long;
        return;
      }
      open_ = false;
    }
    if (!open_) {
      store_.append(std::span(&kEndId, 1));
      ++report_.sequences;
      open_ = true;
    }
    store_.extend(ids);
    report_.tokens += std::ssize(ids);
    report_.unknown += std::count(ids.begin(), ids.end(), kUnknownId);
  }

  /// The next line is that of another document.
  void end_document() {
    if (kind_ != SampleKind::kBlocks)
      open_ = false;
  }

  void finish() { store_.finish(); }
  const StreamReport& report() const { return report_; }

 private:
  SampleKind kind_;
  int64_t max_length_;
  TokenStoreWriter store_;
  StreamReport report_;
  bool open_ = false;  // whether the next line goes on with the last sequence
};

/// Error unless a line that is not blank was kept.
void check_kept(
    const StreamReport& report, const std::vector<TextSource>& files, int64_t max_length) {
  if (report.lines > report.blank + report.too_long)
    return;
  std::string reason = concat(
      "no text to learn from in ",
      list_files(files),
      ": of ",
      report.lines,
      " lines ",
      report.blank,
      " are blank");
  if (report.too_long > 0)
    reason += concat(" and ", report.too_long, " have more than ", max_length, " tokens");
  fail(reason);
}

class StreamSamples : public SampleSource {
 public:
  StreamSamples(const std::filesystem::path& path, const StreamOptions& options, int64_t vocabulary)
      : name_(path.string()),
        store_(path),
        kind_(options.samples),
        block_(options.block_tokens),
        vocabulary_(vocabulary) {
    check_store();
    size_ = kind_ == SampleKind::kLines ? store_.size() : blocks(0);
    if (kind_ == SampleKind::kDocumentBlocks)
      index_documents();
  }

  int64_t size() const override { return size_; }
  int64_t source_length(int64_t /*index*/) const override { return 0; }
  int64_t target_length(int64_t index) const override {
    const auto [sequence, block] = locate(index);
    const int64_t tokens = predicted(sequence);
    return kind_ == SampleKind::kLines ? tokens : std::min(block_, tokens - block * block_);
  }
  Batch batch(std::span<const uint32_t> samples) const override;

 private:
  struct Place {
    int64_t sequence;
    int64_t block;
  };

  void check_store() const;
  void index_documents();
  Place locate(int64_t index) const;
  /// The ids of a sample: one more than it predicts.
  std::span<const int32_t> window(int64_t index) const;
  void check_ids(std::span<const int32_t> ids, int64_t sample) const;

  /// Tokens of a sequence but its first, which is input alone.
  int64_t predicted(int64_t sequence) const {
    const int64_t length = store_.length(sequence);
    SEQCONV_CHECK(
        length >= 2,
        name_,
        ": sequence ",
        sequence,
        " of a language model's corpus needs 2 ids at least, but has ",
        length);
    return length - 1;
  }
  int64_t blocks(int64_t sequence) const { return (predicted(sequence) - 1) / block_ + 1; }

  std::string name_;
  TokenStore store_;
  SampleKind kind_;
  int64_t block_;
  int64_t vocabulary_;
  int64_t size_ = 0;
  std::vector<int64_t> first_block_;  // of each document
};

void StreamSamples::check_store() const {
  SEQCONV_CHECK(
      store_.size() > 0, name_, ": a language model's corpus was wanted, but it is empty");
  SEQCONV_CHECK(
      kind_ != SampleKind::kBlocks || store_.size() == 1,
      name_,
      ": samples = 'blocks' needs a corpus of one sequence, but it has ",
      store_.size());
  const auto ids = store_.tokens(0);
  SEQCONV_CHECK(
      !ids.empty() && ids.front() == kEndId,
      name_,
      ": a language model's corpus was wanted, which begins with </s> (",
      kEndId,
      "), but it begins with ",
      ids.empty() ? "an empty sequence" : std::to_string(ids.front()));
}

void StreamSamples::index_documents() {
  size_ = 0;
  first_block_.reserve(static_cast<size_t>(store_.size()));
  for (int64_t document = 0; document < store_.size(); ++document) {
    first_block_.push_back(size_);
    size_ += blocks(document);
  }
}

StreamSamples::Place StreamSamples::locate(int64_t index) const {
  SEQCONV_CHECK(
      index >= 0 && index < size_,
      name_,
      ": sample ",
      index,
      " was asked for, but there are ",
      size_);
  switch (kind_) {
    case SampleKind::kBlocks:
      return {0, index};
    case SampleKind::kLines:
      return {index, 0};
    case SampleKind::kDocumentBlocks:
      break;
  }
  const auto next = std::upper_bound(first_block_.begin(), first_block_.end(), index);
  return {next - first_block_.begin() - 1, index - *(next - 1)};
}

std::span<const int32_t> StreamSamples::window(int64_t index) const {
  const auto [sequence, block] = locate(index);
  return store_.tokens(sequence).subspan(
      static_cast<size_t>(block * block_),  // 0 for lines
      static_cast<size_t>(target_length(index)) + 1);
}

void StreamSamples::check_ids(std::span<const int32_t> ids, int64_t sample) const {
  const auto bad =
      std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id < 0 || id >= vocabulary_; });
  if (bad != ids.end())
    fail(
        name_,
        ": wrong corpus for the vocabulary: sample ",
        sample,
        " holds the id ",
        *bad,
        ", but ids must be from 0 to ",
        vocabulary_ - 1);
}

Batch StreamSamples::batch(std::span<const uint32_t> samples) const {
  std::vector<std::span<const int32_t>> windows;
  for (const uint32_t sample : samples) {
    windows.push_back(window(sample));
    check_ids(windows.back(), sample);
  }
  Batch batch = make_stream_batch(windows);
  batch.pairs.assign(samples.begin(), samples.end());
  return batch;
}

}  // namespace

void StreamOptions::validate(const std::string& path) const {
  if (block_tokens < 1)
    fail_usage(detail::join_key(path, "block_tokens"), " must be >= 1, but got ", block_tokens);
}

std::string StreamReport::summary() const {
  return concat(
      tokens,
      " tokens (",
      unknown,
      " unknown) in ",
      sequences,
      sequences == 1 ? " sequence of " : " sequences of ",
      lines,
      " lines (",
      blank,
      " blank, ",
      too_long,
      " too long and left out)");
}

StreamReport write_stream_corpus(
    const CorpusSide& side,
    const StreamOptions& options,
    int64_t max_length,
    const std::filesystem::path& path) {
  SEQCONV_CHECK(
      !side.files.empty(), "a language model's corpus needs one text file at least, but got none");
  SEQCONV_CHECK(
      options.samples != SampleKind::kLines || max_length >= 2,
      "the longest length must be at least 2 (one symbol and </s>), but got ",
      max_length);
  StreamWriter writer(options.samples, max_length, path);
  for (const TextSource& file : side.files) {
    for (CorpusReader reader(side, file); reader.next();) {
      std::vector<int32_t> ids = reader.ids();
      const bool blank = ids.empty() || reader.is_blank_line();
      writer.add(std::move(ids), blank);
    }
    writer.end_document();
  }
  check_kept(writer.report(), side.files, max_length);
  writer.finish();
  return writer.report();
}

std::shared_ptr<const SampleSource> open_stream_corpus(
    const std::filesystem::path& path, const StreamOptions& options, int64_t vocabulary) {
  options.validate("");
  return std::make_shared<StreamSamples>(path, options, vocabulary);
}

}  // namespace seqconv::internal
