#include "serve/alignments_json.h"

#include <cstdint>
#include <nlohmann/json.hpp>

namespace seqconv::internal {
namespace {

/// For each byte of a text, and its end, the number of code points in front of it.
std::vector<int32_t> code_points_before(std::string_view text) {
  std::vector<int32_t> counts;
  counts.reserve(text.size() + 1);
  int32_t count = -1;
  for (const char c : text)
    counts.push_back(count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0);
  counts.push_back(count + 1);
  return counts;
}

Json range(ByteRange bytes, const std::vector<int32_t>& counts) {
  return Json::array(
      {counts.at(static_cast<size_t>(bytes.begin)), counts.at(static_cast<size_t>(bytes.end))});
}

}  // namespace

Json alignments_json(
    const std::vector<AlignedRanges>& words, std::string_view source, std::string_view target) {
  const std::vector<int32_t> sources = code_points_before(source);
  const std::vector<int32_t> targets = code_points_before(target);
  Json list = Json::array();
  for (const AlignedRanges& pair : words)
    list.push_back(
        {{"source", range(pair.source, sources)}, {"target", range(pair.target, targets)}});
  return list;
}

}  // namespace seqconv::internal
