#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/error.h"

namespace seqconv::internal {

/// Text for a cell of a Markdown table: what would be markup is escaped.
inline std::string markdown_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += ' ';
      continue;
    }
    if (std::string_view("|<&[]*\\").find(c) != std::string_view::npos)
      escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// Text as it is, in a cell: `--beam`. Empty stays empty.
inline std::string markdown_code(std::string_view text) {
  return text.empty() ? std::string() : concat("`", text, "`");
}

/// "| a | b |": one line of a table.
inline std::string markdown_row(std::initializer_list<std::string_view> cells) {
  std::string row = "|";
  for (const std::string_view cell : cells)
    row.append(" ").append(cell).append(cell.empty() ? "|" : " |");
  row += '\n';
  return row;
}

}  // namespace seqconv::internal
