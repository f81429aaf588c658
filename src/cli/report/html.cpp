#include "cli/report/html.h"

#include <cstdio>

#include "base/one_line.h"
#include "base/options.h"
#include "cli/report/page_parts.h"

namespace seqconv::internal::report {

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : one_line(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string number_text(double number, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, number);
  return text;
}

std::string hidden_list(std::string_view id, const std::vector<std::string>& strings) {
  Json list = Json::array();
  for (const std::string& string : strings)
    list.push_back(one_line(string));
  return concat("<i hidden id=\"", escape(id), "\" data-list=\"", escape(list.dump()), "\"></i>\n");
}

std::string_view figure_style() {
  return kFigureStyle;
}

std::string page(std::string_view title, std::string_view body) {
  // The nonce is no secret: it tells the page's own script from markup that a
  // text might have smuggled in, which escaping forbids already.
  return concat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
      "<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
      "'none'; img-src data:; style-src 'unsafe-inline'; script-src "
      "'nonce-seqconv'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>",
      escape(title),
      "</title>\n<style>",
      kFigureStyle,
      kPageStyle,
      "</style>\n</head>\n<body>\n<main>\n",
      body,
      "</main>\n<div id=\"tip\" role=\"status\" hidden></div>\n"
      "<script nonce=\"seqconv\">",
      kScript,
      "</script>\n</body>\n</html>\n");
}

}  // namespace seqconv::internal::report
