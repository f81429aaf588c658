#include "sentence_reader.h"

#include "seqconv/base/error.h"
#include "seqconv/data/fairseq_data.h"

namespace seqconv {

SentenceReader::SentenceReader(const CorpusSide& side, const std::string& file)
    : side_(side), file_(file) {
  if (is_fairseq_data(file))
    sentences_ = open_fairseq_data(file, side.vocabulary);
  else
    lines_.emplace(file);
}

bool SentenceReader::next() {
  if (lines_)
    return lines_->next(line_);
  if (count_ == sentences_->size())
    return false;
  ++count_;
  return true;
}

std::vector<int32_t> SentenceReader::ids() const {
  if (!lines_) {
    const auto ids = sentences_->tokens(count_ - 1);
    return checked({ids.begin(), ids.end()});
  }
  try {
    return side_.encode(line_);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    fail(lines_->where(), ": ", error.what());
  }
}

std::vector<int32_t> SentenceReader::checked(std::vector<int32_t> ids) const {
  if (!side_.check)
    return ids;
  try {
    side_.check(ids);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    fail(file_, ": sentence ", count_, ": ", error.what());
  }
  return ids;
}

bool SentenceReader::is_blank_line() const {
  return lines_ && is_blank(line_);
}

int64_t SentenceReader::count() const {
  return lines_ ? lines_->line_number() : count_;
}

std::string list_files(const std::vector<std::string>& files) {
  std::string list;
  for (const std::string& file : files)
    list += concat(list.empty() ? "'" : ", '", file, "'");
  return list;
}

}  // namespace seqconv
