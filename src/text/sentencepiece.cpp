#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <unordered_map>

#include "seqconv/base/error.h"
#include "seqconv/base/log.h"
#include "seqconv/text/segmenter.h"
#include "seqconv/text/unicode.h"

namespace seqconv {
namespace {

constexpr std::string_view kUnknownPiece = "<unk>";
constexpr std::string_view kBlankMark = "\xE2\x96\x81";  // U+2581

class SentencePieceSegmenter : public Segmenter {
 public:
  SentencePieceSegmenter(const std::string& model, const std::string& name)
      : model_(model) {
    const auto status = processor_.LoadFromSerializedProto(model);
    SEQCONV_CHECK(
        status.ok(),
        name,
        ": a SentencePiece model was wanted, but: ",
        status.error_message());
  }

  std::vector<std::string> split(std::string_view line) const override {
    std::vector<std::string> pieces;
    const auto status = processor_.Encode({line.data(), line.size()}, &pieces);
    SEQCONV_CHECK(
        status.ok(),
        "SentencePiece cannot split a line: ",
        status.error_message());
    return pieces;
  }

  std::string join(const std::vector<std::string>& symbols) const override {
    // The library would print its own sign for the unknown piece; any other
    // text that is no piece it takes as it is.
    std::vector<std::string> pieces = symbols;
    for (std::string& piece : pieces)
      if (piece == kUnknownPiece)
        piece = concat(kBlankMark, kUnknownPiece);
    std::string text;
    const auto status = processor_.Decode(pieces, &text);
    SEQCONV_CHECK(
        status.ok(),
        "SentencePiece cannot join pieces: ",
        status.error_message());
    return text;
  }

  Subword kind() const override { return Subword::kSentencePiece; }
  std::string model() const override { return model_; }

 private:
  std::string model_;
  sentencepiece::SentencePieceProcessor processor_;
};

/// Feeds the lines of the training files to SentencePiece. An exception must
/// not cross the library: it is kept until training has returned.
class FileLines : public sentencepiece::SentenceIterator {
 public:
  FileLines(const std::vector<std::string>& files, bool lowercase)
      : files_(files), lowercase_(lowercase) {
    Next();
  }

  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override {
    using sentencepiece::util::Status;
    return failure_ ? Status(
                          sentencepiece::util::StatusCode::kAborted,
                          "the training text cannot be read")
                    : Status();
  }

  void Next() override {
    try {
      do
        done_ = !read();
      while (!done_ && split_words(line_).empty());
    } catch (...) {
      failure_ = std::current_exception();
      done_ = true;
    }
  }

  void rethrow() const {
    if (failure_)
      std::rethrow_exception(failure_);
  }

 private:
  bool read() {
    std::string line;
    while (!reader_ || !reader_->next(line)) {
      if (next_file_ == files_.size())
        return false;
      reader_ = std::make_unique<LineReader>(files_[next_file_++]);
    }
    line_ = clean_line(line);
    if (lowercase_)
      line_ = to_lower(line_);
    return true;
  }

  const std::vector<std::string>& files_;
  bool lowercase_;
  size_t next_file_ = 0;
  std::unique_ptr<LineReader> reader_;
  std::string line_;
  bool done_ = false;
  std::exception_ptr failure_;
};

std::string join_names(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names)
    list += (list.empty() ? "'" : ", '") + name + "'";
  return list;
}

}  // namespace

std::shared_ptr<const Segmenter> make_sentencepiece_segmenter(
    const std::string& model,
    const std::string& name) {
  return std::make_shared<SentencePieceSegmenter>(model, name);
}

std::string train_sentencepiece(
    const std::vector<std::string>& files,
    const SentencePieceTraining& training) {
  FileLines lines(files, training.lowercase);
  lines.rethrow();
  SEQCONV_CHECK(
      !lines.done(),
      "SentencePiece needs text to train on, but ",
      join_names(files),
      " hold no line that is not blank");
  const std::unordered_map<std::string, std::string> arguments = {
      {"model_type", std::string(enum_name(training.kind))},
      {"vocab_size", concat(training.size)},
      {"character_coverage", concat(training.character_coverage)},
      {"hard_vocab_limit", "false"},
      {"unk_id", "0"},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"pad_id", "-1"},
      // Sums depend on the number of threads, so it is the same everywhere.
      {"num_threads", "4"},
      {"minloglevel", "3"},
  };
  std::string model;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(arguments, &lines, &model);
  lines.rethrow();
  SEQCONV_CHECK(
      status.ok(),
      "SentencePiece cannot train ",
      training.size,
      " pieces (text.subword_size) with text.character_coverage = ",
      training.character_coverage,
      " on ",
      join_names(files),
      ": ",
      status.error_message());
  sentencepiece::SentencePieceProcessor trained;
  SEQCONV_CHECK(
      trained.LoadFromSerializedProto(model).ok(),
      "SentencePiece trained a model that it cannot load");
  if (trained.GetPieceSize() < training.size)
    log_warning(
        "the training text gives only ",
        trained.GetPieceSize(),
        " SentencePiece pieces, not text.subword_size = ",
        training.size);
  return model;
}

}  // namespace seqconv
