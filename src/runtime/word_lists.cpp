#include "runtime/word_lists.h"

#include <algorithm>

#include "base/error.h"
#include "base/special_ids.h"

namespace seqconv::internal::runtime {
namespace {

void check_list(std::span<const int32_t> list, int64_t vocabulary) {
  for (size_t i = 0; i < list.size(); ++i) {
    SEQCONV_CHECK(
        list[i] >= 0 && list[i] < vocabulary,
        "listed words must be in [0, ",
        vocabulary,
        "), but got ",
        list[i]);
    SEQCONV_CHECK(
        i == 0 || list[i - 1] < list[i],
        "listed words must ascend, but got ",
        list[i],
        " after ",
        list[i - 1]);
  }
  SEQCONV_CHECK(
      std::ranges::binary_search(list, kEndId),
      "</s> must be among the words that are listed for a sentence");
}

}  // namespace

WordLists::WordLists(std::vector<std::vector<int32_t>> lists, int64_t vocabulary)
    : lists_(std::move(lists)), places_(lists_.size()) {
  for (size_t first = 0; first < lists_.size(); first += kTogether) {
    const size_t end = std::min(first + kTogether, lists_.size());
    std::vector<int32_t> all;
    for (size_t i = first; i < end; ++i) {
      check_list(lists_[i], vocabulary);
      all.insert(all.end(), lists_[i].begin(), lists_[i].end());
    }
    std::ranges::sort(all);
    all.erase(std::ranges::unique(all).begin(), all.end());
    for (size_t i = first; i < end; ++i)
      for (const int32_t word : lists_[i])
        places_[i].push_back(
            static_cast<int32_t>(std::ranges::lower_bound(all, word) - all.begin()));
    groups_.push_back(std::move(all));
  }
}

ListedOutput::ListedOutput(const Output& output, const WordLists& lists, Workspace::Frame& kept)
    : lists_(&lists) {
  for (const std::vector<int32_t>& words : lists.groups_)
    groups_.push_back(output.logits().only(words, kept));
}

void ListedOutput::logits(
    std::span<const int32_t> sentence_of_row,
    const float* hidden,
    float* out,
    Workspace& space) const {
  for (size_t first = 0, end = 0; first < sentence_of_row.size(); first = end) {
    const size_t number = WordLists::group_of(sentence_of_row[first]);
    while (end < sentence_of_row.size() && WordLists::group_of(sentence_of_row[end]) == number)
      ++end;
    const WordLogits& group = groups_[number];
    const auto rows = static_cast<int64_t>(end - first);
    Workspace::Frame frame(space);
    float* const logits = frame.take(rows * group.words());
    group.run(rows, hidden, logits, space);
    hidden += rows * group.dim();
    for (size_t row = first; row < end; ++row) {
      const float* const own = logits + static_cast<int64_t>(row - first) * group.words();
      const auto& places = lists_->places_[static_cast<size_t>(sentence_of_row[row])];
      for (size_t i = 0; i < places.size(); ++i)
        out[i] = own[places[i]];
      out += places.size();
    }
  }
}

}  // namespace seqconv::internal::runtime
