#include "corpus_text.h"

#include "seqconv/base/error.h"

namespace seqconv {

std::vector<int32_t> encode_line(
    const LineEncoder& encode,
    const std::string& line,
    const LineReader& reader) {
  try {
    return encode(line);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    fail(reader.where(), ": ", error.what());
  }
}

std::string list_files(const std::vector<std::string>& files) {
  std::string list;
  for (const std::string& file : files)
    list += concat(list.empty() ? "'" : ", '", file, "'");
  return list;
}

}  // namespace seqconv
