#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "model/options.h"

/// Checks that every part of a model's options needs.
namespace seqconv::internal {

inline void check_rate(double value, const std::string& key) {
  if (!(value >= 0 && value < 1))
    fail_usage(key, " must be in [0, 1), but got ", value);
}

inline void check_at_least(int64_t value, int64_t least, const std::string& key) {
  constexpr int64_t kMaxSize = 1 << 20;  // more is a slip of the pen
  if (value < least || value > kMaxSize) {
    fail_usage(key, " must be between ", least, " and ", kMaxSize, ", but got ", value);
  }
}

/// UsageError when a list has neither one entry nor one a layer.
template <class List>
void check_list(const List& list, int64_t layers, const std::string& key, bool may_be_empty) {
  const auto size = static_cast<int64_t>(list.size());
  if ((size == 0 && may_be_empty) || size == 1 || size == layers)
    return;
  fail_usage(
      key,
      " must have 1 ",
      layers == 1 ? std::string("entry") : concat("or ", layers, " entries (one a layer)"),
      ", but ",
      size == 0 ? "the list is empty ([])" : concat("got ", size));
}

/// A number and the key that says it.
struct Keyed {
  int64_t value;
  std::string path;
  const char* key;

  std::string name() const { return concat(path, ".", key); }
};

inline void check_heads(const Keyed& heads, const Keyed& width) {
  check_at_least(heads.value, 1, heads.name());
  if (width.value % heads.value != 0)
    fail_usage(
        heads.name(),
        " must divide ",
        width.name(),
        ", but got ",
        heads.value,
        " heads for ",
        width.key,
        " = ",
        width.value);
}

/// One side of a model: its layers and the key that they stand under.
struct CheckedSide {
  const StackOptions& stack;
  const char* key;
  bool attends;  ///< its layers look at a source
};

/// UsageError when the layers of a side make no sense; `path` is the model's.
void check_stack(const CheckedSide& side, const ModelOptions& model, const std::string& path);

}  // namespace seqconv::internal
