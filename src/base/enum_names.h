#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace seqconv::internal {

/// Names of an enum's values, for configuration files and Python. Specialise:
///   template <> struct EnumNames<Norm> {
///     static constexpr auto kNames = std::to_array<
///         std::pair<std::string_view, Norm>>({{"post", Norm::kPost}, ...});
///   };
template <class E>
struct EnumNames;

template <class E>
std::string_view enum_name(E value) {
  for (const auto& [name, candidate] : EnumNames<E>::kNames)
    if (candidate == value)
      return name;
  fail("enum value ", static_cast<int>(value), " has no name");
}

/// "'a', 'b' or 'c'": the names of an enum, for messages.
template <class E>
std::string enum_list() {
  std::string list;
  const auto& names = EnumNames<E>::kNames;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0)
      list += i + 1 == names.size() ? " or " : ", ";
    list += concat("'", names[i].first, "'");
  }
  return list;
}

/// The value called `name`, or UsageError naming `where` and the valid names.
template <class E>
E parse_enum(std::string_view name, std::string_view where) {
  for (const auto& [candidate, value] : EnumNames<E>::kNames)
    if (candidate == name)
      return value;
  fail_usage(where, " must be ", enum_list<E>(), ", but got '", name, "'");
}

}  // namespace seqconv::internal
