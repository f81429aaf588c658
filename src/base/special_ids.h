#pragma once

#include <array>
#include <cstdint>
#include <string_view>

/// The ids that mean the same in every vocabulary (semantics.md 2.1).
namespace seqconv::internal {

inline constexpr int32_t kBeginId = 0;    ///< <s>: never produced
inline constexpr int32_t kPadId = 1;      ///< <pad>: only fills batches up
inline constexpr int32_t kEndId = 2;      ///< </s>: begins and ends a target
inline constexpr int32_t kUnknownId = 3;  ///< <unk>: what is in no dictionary

/// Their symbols, by id.
inline constexpr std::array<std::string_view, 4> kSpecialSymbols = {
    "<s>", "<pad>", "</s>", "<unk>"};
inline constexpr std::string_view kUnknownSymbol = kSpecialSymbols[kUnknownId];
inline constexpr int64_t kSpecialIds = kSpecialSymbols.size();

/// Number of a text's first position: positions count on from <pad>'s id.
inline constexpr int64_t kFirstPosition = kPadId + 1;

/// Tells whether the id is a symbol of text: neither <s>, <pad> nor </s>.
constexpr bool is_text(int64_t id) {
  return id >= kUnknownId;
}

/// Tells whether a model may produce the id: all but <s> and <pad>.
constexpr bool is_producible(int64_t id) {
  return id >= kEndId;
}

}  // namespace seqconv::internal
