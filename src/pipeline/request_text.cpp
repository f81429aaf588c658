#include "pipeline/request_text.h"

#include <algorithm>
#include <span>

#include "base/special_ids.h"
#include "base/utf8.h"

namespace seqconv::internal {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// The bytes at the text's end that may be a part of a character.
size_t incomplete_bytes(std::string_view text) {
  // A subword model shows of one a sign for each of three bytes at most.
  size_t signs = 0;
  for (std::string_view rest = text; signs < 3 && rest.ends_with(kReplacement);
       rest.remove_suffix(kReplacement.size()))
    ++signs;
  if (signs > 0)
    return signs * kReplacement.size();
  const size_t most = std::min<size_t>(text.size(), 3);
  for (size_t back = 1; back <= most; ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80)
      continue;
    const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

std::vector<int32_t> encode_text(
    const TextPipeline& text, std::string_view line, const Slots& slots, const char* what) {
  const size_t at = find_invalid_utf8(line);
  SEQCONV_CHECK(at == std::string_view::npos, what, " must be UTF-8, but is not at byte ", at);
  return text.encode(line, slots);
}

std::vector<int32_t> token_ids(
    const Vocabulary& vocabulary, const std::vector<std::string>& tokens) {
  const bool ends = !tokens.empty() && tokens.back() == kSpecialSymbols[kEndId];
  std::vector<int32_t> ids;
  ids.reserve(tokens.size());
  for (const std::string& token : std::span(tokens).first(tokens.size() - (ends ? 1 : 0)))
    ids.push_back(vocabulary.token_id(token));
  return ids;
}

void drop_incomplete_end(std::string& text) {
  text.erase(text.size() - incomplete_bytes(text));
}

std::string decode_whole(
    const TextPipeline& text, const std::vector<int32_t>& ids, const Slots& slots) {
  std::string whole = text.decode(ids, slots);
  drop_incomplete_end(whole);
  return replace_invalid_utf8(whole);
}

void set_failure(Result& result, Status status, std::string_view error) noexcept {
  try {
    result.error = error;
    result.status = status;
  } catch (const std::bad_alloc&) {
    result.error = "out of memory";  // short enough to need none
    result.status = Status::kOutOfMemory;
  }
}

void refuse_both(std::string_view text, const char* name, bool has_tokens, const char* tokens) {
  SEQCONV_CHECK(
      text.empty() || !has_tokens,
      "one of ",
      name,
      " and ",
      tokens,
      " must be given, not both, but the ",
      name,
      " is '",
      shorten(text),
      "'");
}

std::string unknown_note(const SymbolCount& count, const char* what) {
  if (count.unknown == 0)
    return "";
  return concat(
      count.unknown,
      " of the ",
      count.symbols,
      " symbols of ",
      what,
      " are unknown to the model: <unk> stands for them");
}

}  // namespace seqconv::internal
