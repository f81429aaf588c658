#include "serve/page.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "serve/answers.h"
#include "serve/assets.h"

namespace seqconv::internal {
namespace {

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

/// The type of a file of the page by its name; "" for other files.
std::string_view type_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTypes{
      {{".html", "text/html; charset=utf-8"},
       {".css", "text/css; charset=utf-8"},
       {".js", "text/javascript; charset=utf-8"},
       {".svg", "image/svg+xml"}}};
  for (const auto& [ending, type] : kTypes)
    if (name.ends_with(ending))
      return type;
  return "";
}

}  // namespace

HttpAnswer page_answer(const HttpRequest& request) {
  constexpr std::string_view kFolder = "/assets/";
  const std::string_view path = request.path;
  const std::string_view name = path.starts_with(kFolder) ? path.substr(kFolder.size())
      : path == "/"                                       ? std::string_view("index.html")
                                                          : std::string_view();
  const Asset* const asset = find_asset(name);
  if (asset == nullptr || type_of(name).empty())
    return error_answer(404, "Not found");
  const std::string tag = concat('"', asset->tag, '"');
  HttpAnswer answer{
      200,
      std::string(type_of(name)),
      "",
      {{"ETag", tag},
       {"Cache-Control", "no-cache"},
       {"Content-Security-Policy", kPolicy},
       {"Referrer-Policy", "no-referrer"}}};
  if (request.if_none_match.find(tag) != std::string::npos) {
    answer.status = 304;
    answer.content_type = "";
  } else {
    answer.body = asset->content;
  }
  return answer;
}

}  // namespace seqconv::internal
