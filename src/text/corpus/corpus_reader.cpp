#include "text/corpus/corpus_reader.h"

#include "base/error.h"

namespace seqconv::internal {

std::vector<int32_t> CorpusReader::ids() const {
  const auto place = [&] { return where(); };
  if (is_text())
    return located(place, [&] { return side_.encode(line()); });
  std::vector<int32_t> ids = SentenceReader::ids();
  if (side_.check)
    located(place, [&] { side_.check(ids); });
  return ids;
}

std::vector<int32_t> CorpusReader::ids(const LineInSlots& line) const {
  if (!is_text())
    return ids();
  return located([&] { return where(); }, [&] { return side_.encode_pieces(line); });
}

std::string list_files(const std::vector<TextSource>& files) {
  std::string list;
  for (const TextSource& file : files)
    list += concat(list.empty() ? "'" : ", '", file.file, "'");
  return list;
}

}  // namespace seqconv::internal
