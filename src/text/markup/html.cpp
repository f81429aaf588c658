#include "text/markup/html.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <utility>

#include "base/characters.h"
#include "base/error.h"
#include "base/utf8.h"
#include "text/markup/html_events.h"

namespace seqconv::internal {

/// A run of text, or the value of an attribute, and what it takes to write it again.
struct HtmlRun {
  ByteRange source;  // of the document
  std::string text;
  std::vector<InlineElement> elements;
  std::map<std::string, std::string> entities;  // how characters were written
  bool is_attribute = false;
};

namespace {

bool is_blank_byte(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

/// Adds text with single blanks for white space, none at the beginning.
void add_collapsed(std::string_view more, std::string& text) {
  for (const char c : more) {
    if (!is_blank_byte(c))
      text += c;
    else if (!text.empty() && text.back() != ' ')
      text += ' ';
  }
}

/// Notes how the characters of a source's entities are written. `text` is the source decoded.
void note_entities(
    std::string_view source, std::string_view text, std::map<std::string, std::string>& entities) {
  size_t place = 0;
  for (size_t i = 0; i < source.size() && place < text.size();) {
    if (source[i] == '\r') {  // reads as a line feed, alone or in front of one
      place += i + 1 < source.size() && source[i + 1] == '\n' ? 0 : 1;
      ++i;
      continue;
    }
    if (source[i] != '&') {
      if (source[i] != text[place])
        return;
      ++place;
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < source.size() &&
           (std::isalnum(static_cast<unsigned char>(source[end])) != 0 ||
            (source[end] == '#' && end == i + 1)))
      ++end;
    const bool is_entity = end < source.size() && source[end] == ';' && end > i + 1;
    const size_t begin = place;
    next_code_point(text, place);
    if (!is_entity ||
        (text[begin] == '&' && source.substr(i, 4) != "&amp" && source.substr(i, 2) != "&#")) {
      ++i;
      continue;
    }
    entities.emplace(text.substr(begin, place - begin), source.substr(i, end + 1 - i));
    i = end + 1;
  }
}

/// `quote`: what is around it; 0: nothing.
std::string escaped(
    std::string_view text, const std::map<std::string, std::string>& entities, char quote) {
  std::string escaped;
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    next_code_point(text, position);
    const std::string_view c = text.substr(begin, position - begin);
    const auto entity = entities.find(std::string(c));
    if (entity != entities.end())
      escaped += entity->second;
    else if (c == "&")
      escaped += "&amp;";
    else if (c == "<")
      escaped += "&lt;";
    else if (c == ">")
      escaped += "&gt;";
    else if (quote != 0 && c[0] == quote)
      escaped += quote == '"' ? "&quot;" : "&#39;";
    else
      escaped += c;
  }
  return escaped;
}

std::string_view part(std::string_view text, ByteRange range) {
  return text.substr(
      static_cast<size_t>(range.begin), static_cast<size_t>(range.end - range.begin));
}

}  // namespace

/// Puts runs together from the document's events.
class RunBuilder {
 public:
  RunBuilder(std::string_view html, std::vector<HtmlEvent> events)
      : html_(html), events_(std::move(events)) {}

  std::vector<HtmlRun> runs() {
    find_loose_tags();
    int64_t cursor = 0;
    for (const HtmlEvent& event : events_) {
      if (event.source.begin > cursor || !is_inline(event))
        finish();
      if (is_inline(event))
        add(event);
      cursor = event.source.end;
    }
    finish();
    return std::move(runs_);
  }

 private:
  /// Elements that a tag which separates is inside of, or whose tags do not nest, separate too.
  void find_loose_tags() {
    size_t elements = 0;
    for (const HtmlEvent& event : events_)
      elements = std::max(elements, event.element + 1);
    is_loose_.assign(elements, false);
    std::vector<size_t> open;
    const auto separate = [&] {
      for (const size_t element : open)
        is_loose_[element] = true;
      open.clear();
    };
    int64_t cursor = 0;
    for (const HtmlEvent& event : events_) {
      if (event.source.begin > cursor || event.kind == HtmlEvent::Kind::kSeparator)
        separate();
      cursor = event.source.end;
      if (event.kind == HtmlEvent::Kind::kOpen) {
        open.push_back(event.element);
      } else if (event.kind == HtmlEvent::Kind::kClose) {
        if (!open.empty() && open.back() == event.element) {
          open.pop_back();
        } else {
          separate();
          is_loose_[event.element] = true;
        }
      }
    }
    separate();
  }

  bool is_inline(const HtmlEvent& event) const {
    using Kind = HtmlEvent::Kind;
    if (event.kind == Kind::kOpen || event.kind == Kind::kClose)
      return !is_loose_[event.element];
    return event.kind != Kind::kSeparator;
  }

  int64_t size() const { return static_cast<int64_t>(run_.text.size()); }

  void add(const HtmlEvent& event) {
    using Kind = HtmlEvent::Kind;
    if (!is_begun_) {
      run_.source = {event.source.begin, event.source.begin};
      is_begun_ = true;
    }
    switch (event.kind) {
      case Kind::kText:
        return add_text(event);
      case Kind::kOpen:
        open_.push_back(run_.elements.size());
        run_.elements.push_back({{size(), size()}, parent(1), false, event.source, {}});
        break;
      case Kind::kClose:
        run_.elements[open_.back()].text.end = size();
        run_.elements[open_.back()].close = event.source;
        open_.pop_back();
        break;
      case Kind::kKept: {
        const int64_t begin = size();
        add_collapsed(event.text, run_.text);
        run_.elements.push_back({{begin, size()}, parent(0), true, event.source, {}});
        break;
      }
      case Kind::kSeparator:
        break;
    }
    run_.source.end = event.source.end;
  }

  // The element around the next one, of which the last `own` that are open are not.
  int64_t parent(size_t own) const {
    return open_.size() > own ? static_cast<int64_t>(open_[open_.size() - 1 - own]) : -1;
  }

  /// Blanks at the ends of a run are outside of it.
  void add_text(const HtmlEvent& event) {
    const std::string_view source = part(html_, event.source);
    const auto is_text = [](char c) { return !is_blank_byte(c); };
    const auto first = std::ranges::find_if(source, is_text);
    if (first == source.end() && run_.source.begin == run_.source.end)
      run_.source = {event.source.end, event.source.end};
    else if (run_.source.begin == run_.source.end)
      run_.source.begin = event.source.begin + (first - source.begin());
    note_entities(source, event.text, run_.entities);
    add_collapsed(event.text, run_.text);
    if (first == source.end())
      return;
    const auto last = std::find_if(source.rbegin(), source.rend(), is_text);
    run_.source.end = event.source.end - (last - source.rbegin());
  }

  void finish() {
    if (run_.text.ends_with(' '))
      run_.text.pop_back();
    for (InlineElement& element : run_.elements)
      element.text = {std::min(element.text.begin, size()), std::min(element.text.end, size())};
    if (has_letter(run_.text))
      runs_.push_back(std::move(run_));
    run_ = {};
    open_.clear();
    is_begun_ = false;
  }

  std::string_view html_;
  std::vector<HtmlEvent> events_;
  std::vector<bool> is_loose_;
  std::vector<HtmlRun> runs_;
  HtmlRun run_;
  bool is_begun_ = false;
  std::vector<size_t> open_;  // numbers of the run's elements
};

namespace {

/// Writes runs with the elements of their text around the translation's parts.
class RunWriter {
 public:
  RunWriter(
      const std::vector<InlineElement>& elements,
      const RunTranslation& translation,
      std::vector<ByteRange> places,
      std::function<std::string(ByteRange)> text,
      std::function<std::string(ByteRange)> source)
      : elements_(elements),
        places_(std::move(places)),
        size_(static_cast<int64_t>(translation.text.size())),
        text_(std::move(text)),
        source_(std::move(source)),
        children_(elements.size() + 1) {
    for (size_t i = 0; i < elements.size(); ++i)
      children_[static_cast<size_t>(elements[i].parent + 1)].push_back(i);
    for (auto& children : children_)
      std::ranges::stable_sort(children, [&](size_t a, size_t b) {
        return std::pair(places_[a].begin, places_[a].end) <
            std::pair(places_[b].begin, places_[b].end);
      });
  }

  std::string written() const { return inside(0, {0, size_}); }

 private:
  std::string inside(size_t number, ByteRange range) const {
    std::string written;
    int64_t cursor = range.begin;
    for (const size_t child : children_[number]) {
      const ByteRange place = places_[child];
      written += text_({cursor, place.begin});
      written += source_(elements_[child].open);
      if (!elements_[child].is_kept)
        written += inside(child + 1, place);
      written += source_(elements_[child].close);
      cursor = place.end;
    }
    return written + text_({cursor, range.end});
  }

  const std::vector<InlineElement>& elements_;
  std::vector<ByteRange> places_;
  int64_t size_;
  std::function<std::string(ByteRange)> text_;
  std::function<std::string(ByteRange)> source_;
  std::vector<std::vector<size_t>> children_;  // of -1, 0, 1 ...
};

}  // namespace

HtmlText::HtmlText(std::string_view html) : html_(html) {
  HtmlEvents found = read_html(html, kDeepest);
  runs_ = RunBuilder(html, std::move(found.events)).runs();
  for (const HtmlEvent& attribute : found.attributes) {
    HtmlRun run;
    run.source = attribute.source;
    run.is_attribute = true;
    add_collapsed(attribute.text, run.text);
    if (run.text.ends_with(' '))
      run.text.pop_back();
    note_entities(part(html, attribute.source), attribute.text, run.entities);
    if (has_letter(run.text))
      runs_.push_back(std::move(run));
  }
  std::ranges::sort(runs_, {}, [](const HtmlRun& run) { return run.source.begin; });
}

HtmlText::~HtmlText() = default;

std::vector<std::string_view> HtmlText::texts() const {
  std::vector<std::string_view> texts;
  for (const HtmlRun& run : runs_)
    texts.emplace_back(run.text);
  return texts;
}

bool HtmlText::has_elements() const {
  return std::ranges::any_of(runs_, [](const HtmlRun& run) { return !run.elements.empty(); });
}

std::string HtmlText::with(const std::vector<RunTranslation>& translations) const {
  if (translations.size() != runs_.size())
    fail("[html] there must be ", runs_.size(), " translations, but got ", translations.size());
  const auto attribute = [&](size_t i) {
    const char first = html_[static_cast<size_t>(runs_[i].source.begin)];
    const char quote = first == '\'' ? '\'' : '"';
    return quote + escaped(translations[i].text, runs_[i].entities, quote) + quote;
  };
  // The document's own bytes, but for attributes.
  const auto source = [&](ByteRange range) {
    std::string text;
    int64_t cursor = range.begin;
    auto run = std::ranges::lower_bound(
        runs_, range.begin, {}, [](const HtmlRun& other) { return other.source.begin; });
    for (; run != runs_.end() && run->source.begin < range.end; ++run) {
      if (!run->is_attribute)
        continue;
      text += part(html_, {cursor, run->source.begin});
      text += attribute(static_cast<size_t>(run - runs_.begin()));
      cursor = run->source.end;
    }
    return text.append(part(html_, {cursor, range.end}));
  };
  std::string written;
  int64_t cursor = 0;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const HtmlRun& run = runs_[i];
    if (run.is_attribute)
      continue;
    const RunTranslation& translation = translations[i];
    const auto text = [&](ByteRange range) {
      return escaped(part(translation.text, range), run.entities, 0);
    };
    written += source({cursor, run.source.begin});
    written += RunWriter(
                   run.elements,
                   translation,
                   place_elements(run.text, run.elements, translation),
                   text,
                   source)
                   .written();
    cursor = run.source.end;
  }
  return written.append(source({cursor, static_cast<int64_t>(html_.size())}));
}

}  // namespace seqconv::internal
