#include <gmock/gmock.h>

#include <cmath>

#include "cli/report/charts.h"
#include "cli/report/html.h"
#include "cli/report/maps.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

// Pages, curves and maps as text.
namespace seqconv::internal::report {
namespace {

using seqconv::internal::testing::error_of;
using seqconv::internal::testing::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

TEST(ReportHtml, NoTextIsMarkup) {
  EXPECT_EQ(
      escape("<script>a & 'b' \"c\"</script>"),
      "&lt;script&gt;a &amp; &#39;b&#39; &quot;c&quot;&lt;/script&gt;");
  EXPECT_EQ(escape("a\nb\x01"), "a b ");
  EXPECT_EQ(escape("\xFFz"), "\uFFFDz");
}

TEST(ReportHtml, ListsKeepStringsForTheScript) {
  EXPECT_EQ(
      hidden_list("words", {"a", "\"<b>"}),
      "<i hidden id=\"words\" data-list=\"[&quot;a&quot;,&quot;\\&quot;&lt;b&gt;&quot;]\"></i>\n");
}

TEST(ReportHtml, APageLoadsNothing) {
  const std::string text = page("<T>", "<p>body</p>");
  EXPECT_THAT(text, HasSubstr("<title>&lt;T&gt;</title>"));
  EXPECT_THAT(text, HasSubstr("<p>body</p>"));
  EXPECT_THAT(text, HasSubstr("default-src 'none'"));
  for (const char* outside : {"http://", "https://", "src=", "@import", "url("})
    EXPECT_THAT(text, Not(HasSubstr(outside)));
}

constexpr const char* kLog = "{\"kind\":\"start\",\"update\":0,\"config\":{\"a\":[1,{}]}}\n"
                             "{\"kind\":\"train\",\"epoch\":1,\"update\":2,\"nll_base2\":3.5,"
                             "\"learning_rate\":1e-7}\n"
                             "{\"kind\":\"validation\",\"epoch\":1,\"update\":2,\"nll_base2\":3,"
                             "\"bleu\":12.5,\"perplexity\":null,\"best\":true}\n"
                             "{\"kind\":\"train\",\"epoch\":1,\"update\":4,\"nll_base2\":2.5}\n";

TEST(ReportRuns, ReadWhatARunWrote) {
  const TemporaryFolder folder;
  const report::Run run = read_run(folder.write("metrics.jsonl", kLog), "a");
  ASSERT_EQ(run.train.at("nll_base2").size(), 2U);
  EXPECT_EQ(run.train.at("nll_base2")[1].x, 4);
  EXPECT_EQ(run.train.at("nll_base2")[1].y, 2.5);
  EXPECT_EQ(run.train.at("learning_rate")[0].y, 1e-7);
  EXPECT_EQ(run.validation.at("bleu")[0].y, 12.5);
  EXPECT_FALSE(run.validation.contains("perplexity"));
  EXPECT_TRUE(run.notes.empty());
}

TEST(ReportRuns, LeaveDamagedLinesOutAndSaySo) {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "metrics.jsonl",
      std::string(kLog) +
          "{\"kind\":\"train\",\"upd\n[1]\n{\"kind\":\"train\"}"
          "\n{\"kind\":\"train\",\"update\":1e999}\n"
          "{\"kind\":\"train\",\"update\":6,\"a\":1e30}\n");
  const report::Run run = read_run(file, "a");
  EXPECT_EQ(run.train.at("nll_base2").size(), 2U);
  EXPECT_FALSE(run.train.contains("a"));
  ASSERT_EQ(run.notes.size(), 1U);
  EXPECT_THAT(run.notes[0], HasSubstr("4 lines are no records"));
  EXPECT_THAT(run.notes[0], HasSubstr(file + ":5"));
}

TEST(ReportRuns, AFileWithoutRecordsIsAnError) {
  const TemporaryFolder folder;
  const std::string file = folder.write("metrics.jsonl", "nothing\n");
  EXPECT_THAT(
      error_of([&] { read_run(file, "a"); }),
      HasSubstr("holds no record of training or validation; " + file + ":1"));
  const std::string empty = folder.write("empty.jsonl", "");
  EXPECT_EQ(
      error_of([&] { read_run(empty, "a"); }),
      empty + " holds no record of training or validation");
}

TEST(ReportRuns, AreFoundAndNamed) {
  const TemporaryFolder folder;
  EXPECT_FALSE(metrics_file(folder.path()));
  std::filesystem::create_directories(folder.path() / "training");
  const std::string file = folder.write("training/metrics.jsonl", kLog);
  EXPECT_EQ(metrics_file(folder.path()).value().path(), file);
  EXPECT_EQ(metrics_file(file).value().path(), file);
  EXPECT_THAT(
      run_names({"runs/a/", "runs/b", "runs/c/training/metrics.jsonl"}),
      ElementsAre("a", "b", "c"));
  EXPECT_THAT(run_names({"x/a", "y/a", "b"}), ElementsAre("x/a", "y/a", "b"));
}

TEST(ReportCharts, AreThoseOfWhatTheRunsHave) {
  const TemporaryFolder folder;
  const report::Run run = read_run(folder.write("metrics.jsonl", kLog), "<a>");
  const std::vector<Chart> charts = training_charts({run, run});
  std::vector<std::string> ids;
  for (const Chart& chart : charts)
    ids.push_back(chart.id);
  EXPECT_THAT(ids, ElementsAre("nll_base2", "bleu", "learning_rate"));
  const Chart& loss = charts[0];
  ASSERT_EQ(loss.series.size(), 4U);  // training and validation of both
  EXPECT_TRUE(loss.series[0].thin);
  EXPECT_EQ(loss.series[1].name, "<a>, validation");
  EXPECT_EQ(loss.series[3].colour, 1U);
  const std::string svg = svg_of(loss);
  EXPECT_EQ(count(svg, "class=\"curve"), 8U);  // curves and their key
  EXPECT_THAT(svg, HasSubstr("&lt;a&gt;, validation"));
  EXPECT_THAT(svg, Not(HasSubstr("<a>")));
  EXPECT_THAT(svg, HasSubstr("[&quot;&lt;a&gt;, training&quot;,[2.0,4.0],[3.5,2.5]]"));
  EXPECT_THAT(svg_file(loss), HasSubstr("xmlns=\"http://www.w3.org/2000/svg\""));
}

TEST(ReportCharts, LongCurvesAreMeansOfFewPoints) {
  Chart chart{"a", "A", {{"run"}}};
  for (int i = 0; i < 100'000; ++i)
    chart.series[0].points.push_back({static_cast<double>(i), i % 2 * 2.0});
  const std::string svg = svg_of(chart);
  EXPECT_LT(svg.size(), 60'000U);
  EXPECT_THAT(svg, HasSubstr("99999.0"));  // the last one stays
}

TEST(ReportCharts, FlatCurvesAndSinglePointsHaveARange) {
  for (const double y : {0.0, 7.0, -1e-9}) {
    const std::string svg = svg_of({"a", "A", {{"run", 0, false, {{5, y}}}}});
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

const Axis kRows{"rows", {"x", "<y>"}};
const Axis kColumns{"columns", {"-1", "0", "+1"}};

TEST(ReportMaps, MergeCellsOfOneLevel) {
  const HeatMap map{{"m", 0.5, true}, kRows, kColumns, {0.5F, 0.5F, 0, 0, -0.25F, NAN}};
  const std::string svg = svg_of(map);
  EXPECT_THAT(svg, HasSubstr("class=\"heat\" fill-opacity=\"1\" d=\"M0 0h2v1h-2z\""));
  EXPECT_THAT(svg, HasSubstr("class=\"cold\" fill-opacity=\"0.5\" d=\"M1 1h1v1h-1z\""));
  EXPECT_EQ(count(svg, "<path"), 2U);
  EXPECT_THAT(svg, HasSubstr(">&lt;y&gt;</text>"));
  // 1, 1, 0, 0, -0.5 and 0 in steps of 1/2047 of 0.5, two signs each.
  EXPECT_THAT(svg, HasSubstr("data-v=\"____gAgAQAgA\""));
}

TEST(ReportMaps, OfManyHeadsAreSmallAndBare) {
  HeatMap map{{"m", 1, false}, kRows, kColumns, std::vector<float>(6), 1};
  const std::string svg = svg_of(map);
  EXPECT_EQ(count(svg, "<text"), 0U);
  EXPECT_THAT(svg, HasSubstr("data-shift=\"1\""));
  map.values.pop_back();
  EXPECT_EQ(error_of([&] { svg_of(map); }), "a map of 2 x 3 cells got 5 numbers");
}

TEST(ReportMaps, WindowsReachFromTheirPositions) {
  const WindowMap map{{"w", 2, true}, kRows, {0, 1.5F, 0.5F, 0}};
  const std::string svg = svg_of(map);
  EXPECT_THAT(svg, HasSubstr("d=\"M0 0.15h2.5v.7h-2.5zM0.5 1.15h1.5v.7h-1.5z"));
  EXPECT_THAT(svg, HasSubstr("data-kind=\"windows\""));
}

TEST(ReportMaps, LongNamesAreCut) {
  const Axis rows{"rows", {"abcdefghijklmnopqrstuvwxyz"}};
  const HeatMap map{{"m", 1, true}, rows, kColumns, std::vector<float>(3)};
  EXPECT_THAT(svg_of(map), HasSubstr(">abcdefghijklmnop\u2026</text>"));
}

}  // namespace
}  // namespace seqconv::internal::report
