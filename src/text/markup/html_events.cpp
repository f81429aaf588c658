#include "text/markup/html_events.h"

#include <gumbo.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8.h"

namespace seqconv::internal {
namespace {

/// The part that an element's tags and text have.
enum class Role { kSeparator, kInline, kKept, kVoid, kUntouched };

Role role_of(GumboTag tag) {
  switch (tag) {
    case GUMBO_TAG_A:
    case GUMBO_TAG_ABBR:
    case GUMBO_TAG_ACRONYM:
    case GUMBO_TAG_B:
    case GUMBO_TAG_BDI:
    case GUMBO_TAG_BDO:
    case GUMBO_TAG_BIG:
    case GUMBO_TAG_CITE:
    case GUMBO_TAG_DATA:
    case GUMBO_TAG_DEL:
    case GUMBO_TAG_DFN:
    case GUMBO_TAG_EM:
    case GUMBO_TAG_FONT:
    case GUMBO_TAG_I:
    case GUMBO_TAG_INS:
    case GUMBO_TAG_LABEL:
    case GUMBO_TAG_MARK:
    case GUMBO_TAG_Q:
    case GUMBO_TAG_S:
    case GUMBO_TAG_SMALL:
    case GUMBO_TAG_SPAN:
    case GUMBO_TAG_STRIKE:
    case GUMBO_TAG_STRONG:
    case GUMBO_TAG_SUB:
    case GUMBO_TAG_SUP:
    case GUMBO_TAG_TIME:
    case GUMBO_TAG_U:
      return Role::kInline;
    case GUMBO_TAG_CODE:
    case GUMBO_TAG_KBD:
    case GUMBO_TAG_SAMP:
    case GUMBO_TAG_TT:
    case GUMBO_TAG_VAR:
      return Role::kKept;
    case GUMBO_TAG_IMG:
    case GUMBO_TAG_WBR:
      return Role::kVoid;
    case GUMBO_TAG_SCRIPT:
    case GUMBO_TAG_STYLE:
    case GUMBO_TAG_PRE:
    case GUMBO_TAG_TEXTAREA:
    case GUMBO_TAG_SVG:
    case GUMBO_TAG_MATH:
    case GUMBO_TAG_NOSCRIPT:
    case GUMBO_TAG_IFRAME:
    case GUMBO_TAG_NOEMBED:
    case GUMBO_TAG_NOFRAMES:
    case GUMBO_TAG_XMP:
    case GUMBO_TAG_PLAINTEXT:
      return Role::kUntouched;
    default:
      return Role::kSeparator;
  }
}

bool equals(const char* text, std::string_view word) {
  return std::ranges::equal(std::string_view(text), word, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

bool has_class(std::string_view classes, std::string_view name) {
  for (size_t begin = 0; begin < classes.size();) {
    const size_t end = std::min(classes.find_first_of(" \t\n\f\r", begin), classes.size());
    if (classes.substr(begin, end - begin) == name)
      return true;
    begin = end + 1;
  }
  return false;
}

bool stays(const GumboElement& element) {
  for (unsigned i = 0; i < element.attributes.length; ++i) {
    const auto& attribute = *static_cast<const GumboAttribute*>(element.attributes.data[i]);
    if ((equals(attribute.name, "translate") && equals(attribute.value, "no")) ||
        (equals(attribute.name, "class") && has_class(attribute.value, "notranslate")))
      return true;
  }
  return false;
}

/// Levels of tags that must be closed: counted by name, as closing one leaves others open. Tags
/// that another of their kind ends are no levels of their own.
int64_t most_levels(std::string_view html) {
  static const std::set<std::string, std::less<>> kNone = {
      "p",      "li",    "dt",     "dd",       "tr",       "td",   "th",    "tbody",
      "thead",  "tfoot", "option", "optgroup", "br",       "img",  "hr",    "wbr",
      "input",  "meta",  "link",   "area",     "base",     "col",  "embed", "param",
      "source", "track", "rp",     "rt",       "colgroup", "html", "head",  "body"};  // fmt: skip
  std::unordered_map<std::string, int64_t> open;
  int64_t levels = 0, most = 0;
  for (size_t i = html.find('<'); i != html.npos; i = html.find('<', i + 1)) {
    const bool closes = i + 1 < html.size() && html[i + 1] == '/';
    std::string name;
    for (size_t at = i + 1 + (closes ? 1 : 0); at < html.size() && name.size() < 32 &&
         std::isalnum(static_cast<unsigned char>(html[at])) != 0;
         ++at)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(html[at])));
    if (name.empty() || kNone.contains(name))
      continue;
    int64_t& count = open[name];
    if (!closes) {
      ++count;
      most = std::max(most, ++levels);
    } else if (count > 0) {
      --count;
      --levels;
    }
  }
  return most;
}

/// Walks over a parsed document and notes what it meets.
class EventReader {
 public:
  explicit EventReader(std::string_view html) : html_(html) {}

  HtmlEvents read(const GumboNode& root) {
    std::vector<const GumboNode*> waiting = {&root};
    while (!waiting.empty()) {
      const GumboNode& node = *waiting.back();
      waiting.pop_back();
      const GumboVector* children = nullptr;
      if (node.type == GUMBO_NODE_DOCUMENT)
        children = &node.v.document.children;
      else if (node.type == GUMBO_NODE_ELEMENT && add_element(node))
        children = &node.v.element.children;
      else if (node.type == GUMBO_NODE_TEXT || node.type == GUMBO_NODE_WHITESPACE)
        add_text(node.v.text);
      else if (node.type == GUMBO_NODE_COMMENT)
        add(HtmlEvent::Kind::kKept, range_of(node.v.text.original_text));
      for (unsigned i = children == nullptr ? 0 : children->length; i > 0; --i)
        waiting.push_back(static_cast<const GumboNode*>(children->data[i - 1]));
    }
    sort(found_.events);
    sort(found_.attributes);
    return std::move(found_);
  }

 private:
  using Kind = HtmlEvent::Kind;

  /// Without those that overlap one before, which a parser that moves things may give.
  static void sort(std::vector<HtmlEvent>& events) {
    std::ranges::stable_sort(events, {}, [](const HtmlEvent& event) { return event.source.begin; });
    int64_t end = 0;
    std::erase_if(events, [&](const HtmlEvent& event) {
      const bool overlaps = event.source.begin < end;
      end = std::max(end, event.source.end);
      return overlaps;
    });
  }

  /// The place of a piece in the document; empty for what the parser made up.
  ByteRange range_of(const GumboStringPiece& piece) const {
    const std::less<> before;
    if (piece.length == 0 || before(piece.data, html_.data()) ||
        before(html_.data() + html_.size(), piece.data + piece.length))
      return {};
    const int64_t begin = piece.data - html_.data();
    return {begin, begin + static_cast<int64_t>(piece.length)};
  }

  std::string_view source(ByteRange range) const {
    return html_.substr(
        static_cast<size_t>(range.begin), static_cast<size_t>(range.end - range.begin));
  }

  void add(Kind kind, ByteRange range, size_t element = 0, std::string text = {}) {
    if (range.begin < range.end)
      found_.events.push_back({kind, range, element, std::move(text)});
  }

  void add_text(const GumboText& text) {
    const ByteRange range = range_of(text.original_text);
    // Text that the parser has put together from around tags is none that can be replaced.
    if (source(range).find('<') == std::string_view::npos ||
        source(range).find('<') == source(range).size() - 1 ||
        std::string_view(text.text).find('<') != std::string_view::npos)
      add(Kind::kText, range, 0, text.text);
  }

  static std::string text_within(const GumboNode& node) {
    std::string text;
    std::vector<const GumboNode*> waiting = {&node};
    while (!waiting.empty()) {
      const GumboNode& next = *waiting.back();
      waiting.pop_back();
      if (next.type == GUMBO_NODE_TEXT || next.type == GUMBO_NODE_WHITESPACE)
        text += next.v.text.text;
      if (next.type == GUMBO_NODE_ELEMENT)
        for (unsigned i = next.v.element.children.length; i > 0; --i)
          waiting.push_back(static_cast<const GumboNode*>(next.v.element.children.data[i - 1]));
    }
    return text;
  }

  /// False where what is within it is of no concern.
  bool add_element(const GumboNode& node) {
    const GumboElement& element = node.v.element;
    const ByteRange open = range_of(element.original_tag);
    ByteRange close = range_of(element.original_end_tag);
    if (!source(close).starts_with("</") || close.begin < open.end)
      close = {};
    constexpr int kMoved = GUMBO_INSERTION_BY_PARSER | GUMBO_INSERTION_IMPLICIT_END_TAG |
        GUMBO_INSERTION_RECONSTRUCTED_FORMATTING_ELEMENT | GUMBO_INSERTION_ADOPTION_AGENCY_CLONED |
        GUMBO_INSERTION_ADOPTION_AGENCY_MOVED | GUMBO_INSERTION_FOSTER_PARENTED;
    const bool is_whole =
        open.begin < open.end && close.begin < close.end && (node.parse_flags & kMoved) == 0;
    Role role = role_of(element.tag);
    if (stays(element))
      role = role == Role::kInline || role == Role::kKept ? Role::kKept : Role::kUntouched;
    if (element.tag_namespace != GUMBO_NAMESPACE_HTML)
      role = Role::kUntouched;
    if (role == Role::kUntouched || (role == Role::kKept && !is_whole)) {
      add(Kind::kSeparator, open);
      add(Kind::kSeparator, close);
      return false;
    }
    if (role == Role::kKept) {
      add(Kind::kKept, {open.begin, close.end}, 0, text_within(node));
      return false;
    }
    add_attributes(element);
    ++elements_;
    if (role == Role::kVoid) {
      add(Kind::kKept, open);
    } else {
      const bool is_inline = role == Role::kInline && is_whole;
      add(is_inline ? Kind::kOpen : Kind::kSeparator, open, elements_);
      add(is_inline ? Kind::kClose : Kind::kSeparator, close, elements_);
    }
    return true;
  }

  void add_attributes(const GumboElement& element) {
    const ByteRange tag = range_of(element.original_tag);
    for (unsigned i = 0; i < element.attributes.length; ++i) {
      const auto& attribute = *static_cast<const GumboAttribute*>(element.attributes.data[i]);
      const ByteRange value = range_of(attribute.original_value);
      if ((equals(attribute.name, "alt") || equals(attribute.name, "title")) &&
          value.begin < value.end && tag.begin < value.begin && value.end < tag.end)
        found_.attributes.push_back({Kind::kText, value, 0, attribute.value});
    }
  }

  std::string_view html_;
  HtmlEvents found_;
  size_t elements_ = 0;
};

}  // namespace

HtmlEvents read_html(std::string_view html, int64_t deepest) {
  if (const size_t place = find_invalid_utf8(html); place != html.npos)
    fail("[html] text must be UTF-8, but got ill-formed bytes at ", place);
  if (const int64_t levels = most_levels(html); levels > deepest)
    fail("[html] tags must be nested at most ", deepest, " deep, but got ", levels);
  GumboOptions options = kGumboDefaultOptions;
  options.max_errors = 0;
  const auto free = [&](GumboOutput* output) { gumbo_destroy_output(&options, output); };
  const std::unique_ptr<GumboOutput, decltype(free)> output(
      gumbo_parse_with_options(&options, html.data(), html.size()), free);
  return EventReader(html).read(*output->document);
}

}  // namespace seqconv::internal
