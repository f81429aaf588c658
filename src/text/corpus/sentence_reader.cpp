#include "text/corpus/sentence_reader.h"

#include "base/error.h"
#include "text/corpus/fairseq_data.h"

namespace seqconv::internal {

SentenceReader::SentenceReader(const TextSource& file, int64_t vocabulary, BadBytes bad_bytes)
    : name_(file.file) {
  if (holds_ids(file))
    sentences_ = open_fairseq_data(file.file, vocabulary);
  else
    lines_.emplace(file, bad_bytes);
}

SentenceReader::SentenceReader(
    std::istream& stream, std::string name, BadBytes bad_bytes, int64_t lines_before)
    : name_(std::move(name)) {
  lines_.emplace(stream, name_, bad_bytes, lines_before);
}

bool SentenceReader::next() {
  if (lines_)
    return lines_->next(line_);
  if (taken_ == sentences_->size())
    return false;
  ++taken_;
  return true;
}

std::vector<int32_t> SentenceReader::ids() const {
  const auto ids = sentences_->tokens(taken_ - 1);
  return {ids.begin(), ids.end()};
}

int64_t SentenceReader::count() const {
  return lines_ ? lines_->line_number() : taken_;
}

std::string SentenceReader::where() const {
  return lines_ ? lines_->where() : concat(name_, ": sentence ", taken_);
}

int64_t SentenceReader::blank_lines() const {
  return lines_ ? lines_->blank_lines() : 0;
}

int64_t SentenceReader::replaced_lines() const {
  return lines_ ? lines_->replaced_lines() : 0;
}

std::vector<int32_t> encode_sentence(const SentenceReader& sentences, const TextPipeline& text) {
  if (!sentences.is_text())
    return sentences.ids();
  return located([&] { return sentences.where(); }, [&] { return text.encode(sentences.line()); });
}

}  // namespace seqconv::internal
