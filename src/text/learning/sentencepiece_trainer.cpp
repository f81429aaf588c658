#include "text/learning/sentencepiece_trainer.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <memory>
#include <unordered_map>

#include "base/characters.h"
#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "text/line_reader.h"

namespace seqconv::internal {
namespace {

constexpr std::string_view kReserved = "\xE2\x96\x85";  // U+2585
constexpr int64_t kMostLines = 2'000'000;
constexpr size_t kLongestLine = 4000;  // bytes; the library drops 4193 and more

/// True for text that the library's normalisation surely leaves something of;
/// without any it would end the program.
bool is_surely_text(std::string_view line) {
  for (size_t position = 0; position < line.size();) {
    const char32_t c = next_code_point(line, position);
    if (c > ' ' && c < 0x7F)
      return true;
    if ((is_letter(c) || is_decimal_digit(c)) && !is_default_ignorable(c))
      return true;
  }
  return false;
}

/// A line in parts of at most kLongestLine bytes, cut behind a blank or, where
/// there is none, between characters.
std::vector<std::string> cut(std::string_view line) {
  std::vector<std::string> parts;
  while (line.size() > kLongestLine) {
    size_t end = line.rfind(' ', kLongestLine - 1) + 1;
    if (end == 0) {
      end = kLongestLine;
      while ((static_cast<unsigned char>(line[end]) & 0xC0) == 0x80)
        --end;
    }
    parts.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  parts.emplace_back(line);
  return parts;
}

int64_t count_lines(const std::vector<TextFile>& files) {
  int64_t lines = 0;
  std::string line;
  for (const TextFile& file : files)
    for (LineReader reader(file.source.file); reader.next(line);)
      ++lines;
  return lines;
}

/// Feeds lines of the training files to SentencePiece: all, or of very many
/// every n-th. An exception must not cross the library: it is kept until
/// training has returned.
class FileLines : public sentencepiece::SentenceIterator {
 public:
  explicit FileLines(const std::vector<TextFile>& files)
      : files_(files), stride_((count_lines(files) + kMostLines - 1) / kMostLines) {
    Next();
  }

  bool done() const override { return done_; }
  const std::string& value() const override { return parts_.back(); }
  sentencepiece::util::Status status() const override {
    using sentencepiece::util::Status;
    using sentencepiece::util::StatusCode;
    if (done_ && (failure_ || !found_text_))
      return Status(StatusCode::kAborted, "no text");
    return Status();
  }

  void Next() override {
    if (!parts_.empty())
      parts_.pop_back();
    try {
      while (parts_.empty() && !done_)
        done_ = !read();
    } catch (...) {
      failure_ = std::current_exception();
      done_ = true;
    }
    if (!done_)
      found_text_ = found_text_ || is_surely_text(parts_.back());
  }

  bool found_text() const { return found_text_; }
  void rethrow() const {
    if (failure_)
      std::rethrow_exception(failure_);
  }

 private:
  /// Reads on by one line; false at the end of the last file.
  bool read() {
    std::string line;
    while (!reader_ || !reader_->next(line)) {
      if (next_file_ == files_.size())
        return false;
      reader_ = std::make_unique<TextSourceReader>(files_[next_file_++].source);
    }
    if (line_number_++ % stride_ != 0)
      return true;
    line = files_[next_file_ - 1].preparation.apply(line);
    // The library skips lines that hold the sign it uses for the unknown.
    for (size_t at = 0; (at = line.find(kReserved, at)) != std::string::npos;)
      line.replace(at, kReserved.size(), 1, ' ');
    if (!is_blank(line))
      parts_ = cut(line);
    return true;
  }

  const std::vector<TextFile>& files_;
  int64_t stride_;
  int64_t line_number_ = 0;
  size_t next_file_ = 0;
  std::unique_ptr<TextSourceReader> reader_;
  std::vector<std::string> parts_;  ///< of the present line, the last one first
  bool done_ = false;
  bool found_text_ = false;
  std::exception_ptr failure_;
};

/// The library's message without the place in its source that comes first.
std::string reason(const sentencepiece::util::Status& status) {
  const std::string message = status.error_message();
  const size_t end = message.find("] ");
  return end == std::string::npos ? message : message.substr(end + 2);
}

/// A list as the library reads it, each entry in quotes.
std::string comma_list(const std::vector<std::string>& entries) {
  std::string list;
  for (const std::string& entry : entries) {
    list += list.empty() ? "\"" : ",\"";
    for (const char c : entry)
      list.append(c == '"' ? 2 : 1, c);
    list += '"';
  }
  return list;
}

std::unordered_map<std::string, std::string> trainer_arguments(
    const SentencePieceTraining& training) {
  return {
      {"model_type", std::string(enum_name(training.kind))},
      {"vocab_size", concat(training.size)},
      {"character_coverage", concat(training.character_coverage)},
      {"hard_vocab_limit", "false"},
      {"byte_fallback", training.byte_fallback ? "true" : "false"},
      {"user_defined_symbols", comma_list(training.user_symbols)},
      {"unk_id", "0"},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"pad_id", "-1"},
      // Sums depend on the number of threads, so it is the same everywhere.
      {"num_threads", "4"},
      {"minloglevel", "3"},
  };
}

std::string join_names(const std::vector<TextFile>& files) {
  std::string list;
  for (const TextFile& file : files)
    list += concat(list.empty() ? "'" : ", '", file.source.file, "'");
  return list;
}

}  // namespace

std::string train_sentencepiece(
    const std::vector<TextFile>& files, const SentencePieceTraining& training) {
  FileLines lines(files);
  std::string model;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(trainer_arguments(training), &lines, &model);
  lines.rethrow();
  SEQCONV_CHECK(
      lines.found_text(),
      "SentencePiece needs text to train on, but found no letter, digit or sign in ",
      join_names(files));
  SEQCONV_CHECK(
      status.ok(),
      "SentencePiece cannot train ",
      training.size,
      " pieces (text.subword_size) with text.character_coverage = ",
      training.character_coverage,
      " on ",
      join_names(files),
      ": ",
      reason(status));
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

}  // namespace seqconv::internal
