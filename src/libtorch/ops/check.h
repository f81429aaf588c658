#pragma once

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// TORCH_CHECK(condition) with the message "[op] text", in which each {} stands for one of the
/// values after the text; those are looked at when the condition does not hold, not before.
#define SEQCONV_CHECK_OP(op, condition, ...) TORCH_CHECK(condition, said(op, __VA_ARGS__))

namespace seqconv::ops {

/// A text with {} for each of `count` values.
template <size_t count>
struct CheckText {
  template <size_t size>
  consteval CheckText(const char (&characters)[size]) : text(characters) {  // NOLINT: a text is one
    size_t found = 0;
    for (size_t i = 0; i + 1 < text.size(); ++i)
      if (text[i] == '{' && text[i + 1] == '}')
        ++found;
    if (found != count)
      throw "as many {} as values are needed";  // while compiling
  }
  std::string_view text;
};

std::string fill_text(
    std::string_view op, std::string_view text, const std::vector<std::string>& values);

template <class... Values>
std::string said(
    std::string_view op,
    std::type_identity_t<CheckText<sizeof...(Values)>> text,
    const Values&... values) {
  return fill_text(op, text.text, {c10::str(values)...});
}

}  // namespace seqconv::ops
