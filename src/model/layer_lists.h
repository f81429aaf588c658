#pragma once

#include <cstdint>
#include <vector>

/// Options that hold one entry a layer, or a single one that stands for all.
namespace seqconv::internal {

/// The entry of a layer in a list of one entry or of one a layer; `missing`
/// when it is empty.
template <class List>
typename List::value_type layer_entry(
    const List& list, int64_t layer, typename List::value_type missing) {
  if (list.empty())
    return missing;
  return list.size() == 1 ? list[0] : list.at(static_cast<size_t>(layer));
}

/// One flag a layer, or a single one that stands for all.
struct LayerFlags : std::vector<bool> {
  using std::vector<bool>::vector;
  LayerFlags(bool all) : std::vector<bool>(1, all) {}
};

}  // namespace seqconv::internal
