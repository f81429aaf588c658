#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Pages that need nothing beside them, as text.
namespace seqconv::internal::report {

/// Any bytes as text of HTML and SVG, inside elements and quoted attributes:
/// one line of valid UTF-8 in which nothing is markup.
std::string escape(std::string_view text);

/// A finite number for people, of `digits` significant digits: "0.25", "1e-07".
std::string number_text(double number, int digits = 4);

/// An element that shows nothing and keeps strings for the page's script, by
/// `id`.
std::string hidden_list(std::string_view id, const std::vector<std::string>& strings);

/// The style of charts and maps: what they need by themselves, in an SVG file.
std::string_view figure_style();

/// A whole page: `title` is text, `body` HTML. It loads nothing, and no script
/// but its own runs in it.
std::string page(std::string_view title, std::string_view body);

}  // namespace seqconv::internal::report
