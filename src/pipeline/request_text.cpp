#include "pipeline/request_text.h"

#include "base/utf8.h"

namespace seqconv::internal {

std::vector<int32_t> encode_text(
    const TextPipeline& text, std::string_view line, const char* what) {
  const size_t at = find_invalid_utf8(line);
  SEQCONV_CHECK(at == std::string_view::npos, what, " must be UTF-8, but is not at byte ", at);
  return text.encode(line);
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
