#include "text/markup/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/error.h"
#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::IsEmpty;

std::vector<std::string> texts(std::string_view html) {
  const HtmlText read(html);
  const auto found = read.texts();
  return {found.begin(), found.end()};
}

/// The words in the opposite order and in capitals, each aligned with its own.
RunTranslation reversed(std::string_view text) {
  std::vector<ByteRange> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(end)});
    begin = end + 1;
  }
  RunTranslation translation;
  for (size_t i = words.size(); i > 0; --i) {
    const ByteRange word = words[i - 1];
    if (!translation.text.empty())
      translation.text += ' ';
    const auto begin = static_cast<int64_t>(translation.text.size());
    for (int64_t at = word.begin; at < word.end; ++at)
      translation.text += static_cast<char>(std::toupper(text[static_cast<size_t>(at)]));
    translation.aligned.push_back({word, {begin, static_cast<int64_t>(translation.text.size())}});
  }
  return translation;
}

std::string translated(std::string_view html) {
  const HtmlText read(html);
  std::vector<RunTranslation> translations;
  for (const std::string_view text : read.texts())
    translations.push_back(reversed(text));
  return read.with(translations);
}

TEST(HtmlText, GivesRunsOfText) {
  EXPECT_THAT(
      texts("<p>The <b>dog</b>  runs.</p><p>It\n barks</p>"),
      ElementsAre("The dog runs.", "It barks"));
  EXPECT_THAT(texts("a<br>b"), ElementsAre("a", "b"));
  EXPECT_THAT(texts("caf&eacute; &amp; bar &lt;x&gt;"), ElementsAre("café & bar <x>"));
  EXPECT_THAT(texts("<p> 12 </p><p>😀</p><p></p> "), IsEmpty());
  EXPECT_THAT(
      texts("<img alt='A dog' src=x><a title=\"To&quot;go\">there</a>"),
      ElementsAre("there", "A dog", "To\"go"));
  EXPECT_THAT(
      texts("<script>var a;</script><pre>b</pre><style>c</style><textarea>d</textarea>"),
      IsEmpty());
  EXPECT_THAT(
      texts("<p translate=no>a</p><p class='x notranslate'>b</p><p>c</p>"), ElementsAre("c"));
  EXPECT_THAT(texts("Use <code>f()</code> here"), ElementsAre("Use f() here"));
  EXPECT_THAT(texts("<table><tr><td>one<td>two</table>"), ElementsAre("one", "two"));
  EXPECT_THAT(
      texts("<title>Name</title><select><option>one<option>two</select>"),
      ElementsAre("Name", "one", "two"));
  EXPECT_THAT(texts(""), IsEmpty());
}

TEST(HtmlText, PutsTagsWhereTheirWordsWent) {
  EXPECT_EQ(translated("<p>The <b>dog</b> runs</p>"), "<p>RUNS <b>DOG</b> THE</p>");
  EXPECT_EQ(translated("a <i>b <b>c</b> d</i> e"), "E <i>D <b>C</b> B</i> A");
  EXPECT_EQ(
      translated("<a href=\"x?a=1&b=2\">all of it</a>"), "<a href=\"x?a=1&b=2\">IT OF ALL</a>");
  EXPECT_EQ(translated("one <img src=x> two"), "TWO ONE<img src=x>");
  EXPECT_EQ(
      translated("use <code class=k>f(<b>x</b>)</code> here"),
      "HERE <code class=k>f(<b>x</b>)</code> USE");
  EXPECT_EQ(translated("<b>a</b><i>b</i> c"), "C <b>AB</b><i></i>") << "one word of two";
  EXPECT_EQ(translated("<b></b>a<!-- x -->"), "<b></b>A<!-- x -->");
}

TEST(HtmlText, LeavesTheRestByteForByte) {
  const std::string html =
      "<!DOCTYPE html>\r\n<HTML lang='de' >\n <Body\tonload=\"x('<p>')\">\n  <UL><LI>12<li>&nbsp;"
      "</UL><!-- a --><script>if (a < b && c > d) {}</script></x></body>\n";
  EXPECT_EQ(translated(html), html);
  EXPECT_EQ(translated(" <p>\n one\t</p> "), " <p>\n ONE\t</p> ");
  EXPECT_EQ(translated("<img ALT = 'a \"dog\"' title=x>"), "<img ALT = '\"DOG\" A' title=\"X\">");
  EXPECT_EQ(translated("<b>one <p>two</b> three</p>"), "<b>ONE <p>TWO</b> THREE</p>");
}

TEST(HtmlText, EscapesTranslations) {
  EXPECT_EQ(
      translated("a &lt;b&gt; &quot;c&quot; d&nbsp;e &eacute; é \"f\""),
      "&quot;F&quot; &eacute; &eacute; D&nbsp;E &quot;C&quot; &lt;B&gt; A");
  EXPECT_EQ(translated("a & b < c > d"), "D &gt; C &lt; B &amp; A");
  const HtmlText read("<p title='x'>a</p>");
  EXPECT_EQ(
      read.with({{"it's \"<x>\"", {}}, {"<img onerror=alert(1)>", {}}}),
      "<p title='it&#39;s \"&lt;x&gt;\"'>&lt;img onerror=alert(1)&gt;</p>");
  EXPECT_EQ(error_of([&] { read.with({}); }), "[html] there must be 2 translations, but got 0");
}

TEST(HtmlText, RefusesWhatNestsTooDeep) {
  const auto nested = [](int levels, const char* tag) {
    std::string html;
    for (int i = 0; i < levels; ++i)
      html += tag;
    return html + "x";
  };
  EXPECT_THAT(texts(nested(512, "<div>")), ElementsAre("x"));
  EXPECT_EQ(
      error_of([&] { HtmlText(nested(513, "<div>")); }),
      "[html] tags must be nested at most 512 deep, but got 513");
  EXPECT_EQ(
      error_of([&] { HtmlText(nested(100'000, "<div></b>")); }),
      "[html] tags must be nested at most 512 deep, but got 100000");
  EXPECT_EQ(texts(nested(1'000, "<li>x")).size(), 1'000u);
  EXPECT_EQ(
      error_of([] { HtmlText("a\xFF"); }),
      "[html] text must be UTF-8, but got ill-formed bytes at 1");
}

/// Words in another order, some of them twice or not at all, with the true alignment.
TEST(HtmlText, PutsTagsOnTheRightWordsWhenAlignmentsAreTrue) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return random() % n; };
  int count = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    const size_t words = 1 + below(8);
    std::vector<size_t> order;
    for (size_t i = 0; i < words; ++i)
      for (size_t copies = below(6) == 0 ? below(3) : 1; copies > 0; --copies)
        order.push_back(i);
    std::shuffle(order.begin(), order.end(), random);
    const size_t begin = below(words), end = begin + 1 + below(words - begin);
    std::string html, text;
    std::vector<ByteRange> places;
    for (size_t i = 0; i < words; ++i) {
      html += concat(i > 0 ? " " : "", i == begin ? "<b>" : "", "w", i, i + 1 == end ? "</b>" : "");
      text += i > 0 ? " " : "";
      places.push_back({static_cast<int64_t>(text.size()), static_cast<int64_t>(text.size() + 2)});
      text += concat("w", i);
    }
    RunTranslation translation;
    std::string wanted;
    const auto is_inside = [&](size_t i) { return order[i] >= begin && order[i] < end; };
    int stretches = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const bool opens = is_inside(i) && (i == 0 || !is_inside(i - 1));
      const bool closes = is_inside(i) && (i + 1 == order.size() || !is_inside(i + 1));
      stretches += opens ? 1 : 0;
      translation.text += i > 0 ? " " : "";
      const auto at = static_cast<int64_t>(translation.text.size());
      translation.aligned.push_back({places[order[i]], {at, at + 2}});
      translation.text += concat("t", order[i]);
      wanted += concat(i > 0 ? " " : "", opens ? "<b>" : "", "t", order[i], closes ? "</b>" : "");
    }
    if (stretches != 1)  // one tag cannot be in two places
      continue;
    ++count;
    ASSERT_EQ(HtmlText(html).with({translation}), wanted) << html;
  }
  EXPECT_GT(count, 5'000);
}

/// The tags of a document, each with those around it, in no order.
std::map<std::string, int> nesting(std::string_view html) {
  std::map<std::string, int> found;
  std::vector<std::string> open;
  for (size_t i = html.find('<'); i != html.npos; i = html.find('<', i + 1)) {
    const size_t end = html.find('>', i);
    const std::string tag(html.substr(i, end - i));
    if (tag.starts_with("</")) {
      EXPECT_EQ("<" + tag.substr(2), open.back().substr(0, tag.size() - 1)) << html;
      open.pop_back();
      continue;
    }
    std::string path;
    for (const std::string& around : open)
      path += around;
    ++found[path + tag];
    if (!tag.starts_with("<img"))
      open.push_back(tag);
  }
  EXPECT_THAT(open, IsEmpty()) << html;
  return found;
}

class Fragments {
 public:
  explicit Fragments(unsigned seed) : random_(seed) {}

  std::string block(int depth) {
    std::string html;
    for (int i = number(3); i >= 0; --i)
      html += depth > 0 && number(3) == 0 ? tagged("div", block(depth - 1)) : tagged("p", run(3));
    return html;
  }

 private:
  int number(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  std::string tagged(const std::string& name, const std::string& inner) {
    return "<" + name + " id=" + std::to_string(++tags_) + ">" + inner + "</" + name + ">";
  }

  std::string run(int depth) {
    std::string html;
    for (int i = number(5); i >= 0; --i) {
      const std::vector<std::string> names = {"b", "i", "a", "span", "code"};
      if (depth > 0 && number(3) == 0)
        html += tagged(names[static_cast<size_t>(number(5))], run(depth - 1));
      else if (number(8) == 0)
        html += "<img id=" + std::to_string(++tags_) + ">";
      else
        html += "w" + std::to_string(++words_);
      html += number(4) == 0 ? "" : " ";
    }
    return html;
  }

  std::mt19937 random_;
  int tags_ = 0;
  int words_ = 0;
};

TEST(HtmlText, KeepsTagsAndNestingOfMadeUpFragments) {
  for (unsigned seed = 0; seed < 10'000; ++seed) {
    const std::string html = Fragments(seed).block(2);
    EXPECT_EQ(nesting(translated(html)), nesting(html)) << html << "\n" << translated(html);
    if (HasFailure())
      break;
  }
}

TEST(HtmlText, ReadsAnything) {
  std::mt19937 random(3);
  const std::vector<std::string> parts = {"<b>",     "</b>",      "<p>",       "</p>",
                                          "<table>", "<td>",      "</table>",  "<a title='x y'>",
                                          "</a>",    "a ",        "b",         "&amp;",
                                          "&",       "<",         ">",         "<!--",
                                          "-->",     "<script>",  "</script>", "<svg>",
                                          "</svg>",  "\r\n",      "<br/>",     "<i",
                                          "=\"",     "<select>",  "<option>",  "&#x41;",
                                          "&nbsp",   "<![CDATA[", "]]>",       "<image>"};
  for (int round = 0; round < 20'000; ++round) {
    std::string html;
    for (size_t i = random() % 25; i > 0; --i)
      html += parts[random() % parts.size()];
    const HtmlText read(html);
    std::vector<RunTranslation> same;
    for (const std::string_view text : read.texts())
      same.push_back(
          {std::string(text),
           {{{0, static_cast<int64_t>(text.size())}, {0, static_cast<int64_t>(text.size())}}}});
    const std::string written = read.with(same);
    EXPECT_EQ(std::ranges::count(written, '<') - std::ranges::count(html, '<') <= 0, true) << html;
  }
}

}  // namespace
}  // namespace seqconv::internal
