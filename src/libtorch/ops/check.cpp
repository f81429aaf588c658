#include "libtorch/ops/check.h"

namespace seqconv::ops {

std::string fill_text(
    std::string_view op, std::string_view text, const std::vector<std::string>& values) {
  std::string message = c10::str("[", op, "] ");
  for (const std::string& value : values) {
    const size_t hole = text.find("{}");
    message.append(text.substr(0, hole)).append(value);
    text.remove_prefix(hole + 2);
  }
  return message.append(text);
}

}  // namespace seqconv::ops
