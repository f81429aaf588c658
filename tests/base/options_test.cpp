#include "base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/errors.h"

namespace seqconv::internal {
namespace {

enum class Colour { kRed, kGreen, kBlue };

struct Inner {
  std::vector<int64_t> kernels = {3, 7};
  std::vector<Colour> colours;

  template <class Visitor>
  void visit(Visitor& v) {
    v("kernels", kernels, "Kernel sizes");
    v("colours", colours, "Colours");
  }
};

struct Outer {
  bool glu = true;
  int64_t heads = 4;
  double dropout = 0.1;
  std::string name = "base";
  Colour colour = Colour::kGreen;
  Inner encoder;
  std::vector<Inner> layers;

  template <class Visitor>
  void visit(Visitor& v) {
    v("glu", glu, "Gated");
    v("heads", heads, "Number of heads");
    v("dropout", dropout, "Share dropped");
    v("name", name, "A name");
    v("colour", colour, "A colour");
    v("encoder", encoder, "Inner options");
    v("layers", layers, "A list of tables");
  }
};

struct Files {
  std::vector<std::string> names;

  template <class Visitor>
  void visit(Visitor& v) {
    v("names", names, "Names of files");
  }
};

}  // namespace

template <>
struct EnumNames<Colour> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, Colour>>(
      {{"red", Colour::kRed}, {"green", Colour::kGreen}, {"blue", Colour::kBlue}});
};

namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Outer read(const char* json) {
  Outer options;
  read_options(Json::parse(json), "model", options);
  return options;
}

std::string usage_error(const char* json) {
  return error_of<UsageError>([&] { read(json); });
}

TEST(Options, KeepTheirValueWhereNothingIsSaid) {
  const Outer options = read("{}");
  EXPECT_EQ(write_options(options), write_options(Outer()));
  EXPECT_TRUE(options.glu);
  EXPECT_THAT(options.encoder.kernels, ElementsAre(3, 7));
}

TEST(Options, AreReadWhateverTheirType) {
  const Outer options = read(R"({
    "glu": false, "heads": 8, "dropout": 1, "name": "x", "colour": "blue",
    "encoder": {"kernels": [31], "colours": ["red", "red"]},
    "layers": [{"kernels": []}, {}]})");
  EXPECT_FALSE(options.glu);
  EXPECT_EQ(options.heads, 8);
  EXPECT_EQ(options.dropout, 1.0);
  EXPECT_EQ(options.name, "x");
  EXPECT_EQ(options.colour, Colour::kBlue);
  EXPECT_THAT(options.encoder.kernels, ElementsAre(31));
  EXPECT_THAT(options.encoder.colours, ElementsAre(Colour::kRed, Colour::kRed));
  ASSERT_EQ(options.layers.size(), 2u);
  EXPECT_THAT(options.layers[0].kernels, ElementsAre(3, 7));
  EXPECT_THAT(options.layers[1].kernels, ElementsAre(3, 7));
}

TEST(Options, SurviveWritingAndReading) {
  Outer options;
  options.heads = std::numeric_limits<int64_t>::min();
  options.dropout = 0.1 + 0.2;
  options.name = "quote \" and \\ and \u00e4 \n";
  options.colour = Colour::kRed;
  options.encoder.colours = {Colour::kBlue};
  options.layers.resize(1);
  const Json written = write_options(options);
  Outer again;
  read_options(Json::parse(written.dump()), "", again);
  EXPECT_EQ(write_options(again), written);
  EXPECT_EQ(again.dropout, options.dropout);
  EXPECT_EQ(again.heads, options.heads);
}

TEST(Options, TakeASingleValueForAListOfOne) {
  EXPECT_THAT(read(R"({"encoder": {"kernels": 31}})").encoder.kernels, ElementsAre(31));
  EXPECT_THAT(
      read(R"({"encoder": {"colours": "red"}})").encoder.colours, ElementsAre(Colour::kRed));
}

TEST(Options, NameTheNearestValidKey) {
  EXPECT_EQ(
      usage_error(R"({"droput": 0.1})"),
      "unknown key 'model.droput'; did you mean 'model.dropout'?");
  EXPECT_EQ(
      usage_error(R"({"encoder": {"kernel": 3}})"),
      "unknown key 'model.encoder.kernel'; did you mean 'model.encoder.kernels'?");
  EXPECT_EQ(
      usage_error(R"({"encoder": {"zzzzzzzz": 3}})"),
      "unknown key 'model.encoder.zzzzzzzz'; valid keys: kernels colours");
  EXPECT_EQ(
      usage_error(R"({"layers": [{}, {"kernles": 3}]})"),
      "unknown key 'model.layers[1].kernles'; did you mean 'model.layers[1].kernels'?");
}

TEST(Options, RefuseWrongTypes) {
  EXPECT_EQ(usage_error(R"({"glu": 1})"), "model.glu must be true or false, but got 1");
  EXPECT_EQ(usage_error(R"({"heads": 4.0})"), "model.heads must be a whole number, but got 4.0");
  EXPECT_EQ(usage_error(R"({"heads": true})"), "model.heads must be a whole number, but got true");
  EXPECT_EQ(
      usage_error(R"({"dropout": "0.1"})"), "model.dropout must be a number, but got \"0.1\"");
  EXPECT_EQ(usage_error(R"({"name": 3})"), "model.name must be a string, but got 3");
  EXPECT_EQ(usage_error(R"({"name": null})"), "model.name must be a string, but got null");
  EXPECT_EQ(usage_error(R"({"encoder": 3})"), "model.encoder must be a table, but got 3");
  EXPECT_EQ(
      usage_error(R"({"encoder": {"kernels": [3, "7"]}})"),
      "model.encoder.kernels[1] must be a whole number, but got \"7\"");
  EXPECT_EQ(usage_error("[]"), "model must be a table, but got []");
}

TEST(Options, RefuseNumbersOutOfRange) {
  EXPECT_EQ(
      usage_error(R"({"heads": 9223372036854775808})"),
      "model.heads must be a whole number below 2^63, but got 9223372036854775808");
  EXPECT_EQ(read(R"({"heads": 9223372036854775807})").heads, std::numeric_limits<int64_t>::max());
  Outer options;
  Json table;
  table["dropout"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(
      error_of<UsageError>([&] { read_options(table, "", options); }),
      "dropout must be a finite number, but got nan");
}

TEST(Options, ListTheNamesOfAnEnum) {
  EXPECT_EQ(
      usage_error(R"({"colour": "gren"})"),
      "model.colour must be 'red', 'green' or 'blue', but got 'gren'");
  EXPECT_EQ(enum_name(Colour::kBlue), "blue");
  EXPECT_THAT(
      error_of([] { enum_name(static_cast<Colour>(9)); }), HasSubstr("enum value 9 has no name"));
}

TEST(Options, DescribeThemselves) {
  const auto rows = describe_options<Outer>("model");
  ASSERT_EQ(rows.size(), 8u);
  const auto cells = [&](size_t i) {
    const OptionRow& row = rows.at(i);
    return std::vector{row.key, row.type, row.standard, row.help};
  };
  EXPECT_THAT(cells(1), ElementsAre("model.heads", "whole number", "4", "Number of heads"));
  EXPECT_THAT(
      cells(4), ElementsAre("model.colour", "'red', 'green' or 'blue'", "\"green\"", "A colour"));
  EXPECT_THAT(
      cells(5),
      ElementsAre("model.encoder.kernels", "list of whole number", "[3,7]", "Kernel sizes"));
}

TEST(Options, SurviveHostileValuesInMessages) {
  Outer options;
  Json table;
  table["heads"] = "\xFF\xFE";
  EXPECT_THAT(
      error_of<UsageError>([&] { read_options(table, "", options); }),
      HasSubstr("heads must be a whole number, but got"));
  table["heads"] = std::string(1'000'000, 'x');
  EXPECT_LT(error_of<UsageError>([&] { read_options(table, "", options); }).size(), 400u);
  Json deep = 1;
  for (int i = 0; i < 100'000; ++i) {
    Json list = Json::array();
    list.push_back(std::move(deep));
    deep = std::move(list);
  }
  table["heads"] = std::move(deep);
  EXPECT_EQ(
      error_of<UsageError>([&] { read_options(table, "", options); }),
      "heads must be a whole number, but got a deeply nested value");
}

TEST(ParseJson, NamesThePlaceOfWhatIsMalformedOrTooDeep) {
  EXPECT_EQ(parse_json(R"({"a": [1]})", "f.json")["a"][0], 1);
  for (const char* text : {"", "{", "{\"a\":}", "nan", "\"\xFF\"", "{} x"})
    EXPECT_THAT(error_of([&] { parse_json(text, "f.json"); }), HasSubstr("f.json: not valid JSON"))
        << text;
  EXPECT_EQ(
      error_of([&] { parse_json(R"({"a": {"b": 1, "b": 2}})", "f.json"); }),
      "f.json: 'b' comes twice");
  for (const char* open : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 200'000; ++i)
      deep += open;
    EXPECT_EQ(error_of([&] { parse_json(deep, "f.json"); }), "f.json: nested too deep");
  }
}

struct FlagOptions {
  std::vector<bool> flags = {true};

  template <class Visitor>
  void visit(Visitor& v) {
    v("flags", flags, "One, or one a layer");
  }
};

TEST(OptionsLists, OfTruthValuesAreReadAndWritten) {
  FlagOptions options;
  read_options(Json{{"flags", false}}, "model", options);
  EXPECT_EQ(options.flags, (std::vector<bool>{false}));
  const Json table{{"flags", Json::array({true, false, true})}};
  read_options(table, "model", options);
  EXPECT_EQ(options.flags, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(write_options(options), table);
  EXPECT_EQ(describe_options<FlagOptions>("model")[0].standard, "[true]");
  try {
    read_options(Json{{"flags", Json::array({true, 1})}}, "model", options);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "model.flags[1] must be true or false, but got 1");
  }
}

TEST(OptionsLists, AreTheirDefaultWhereTheyAreUnset) {
  for (const char* nothing : {"[]", "\"\""}) {
    FlagOptions flags;
    flags.flags = {false, false};
    const Json unset = Json::parse(nothing);
    read_options(Json{{"flags", unset}}, "model", flags);
    EXPECT_EQ(flags.flags, (std::vector<bool>{true}));
    Outer options;
    options.encoder.kernels = {31};
    options.encoder.colours = {Colour::kRed};
    options.layers.resize(2);
    const Json encoder{{"kernels", unset}, {"colours", unset}};
    read_options(Json{{"encoder", encoder}, {"layers", unset}}, "model", options);
    EXPECT_EQ(write_options(options), write_options(Outer()));
  }
  EXPECT_THAT(
      usage_error(R"({"encoder": {"kernels": [""]}})"),
      HasSubstr("model.encoder.kernels[0] must be a whole number"));
  EXPECT_THAT(
      usage_error(R"({"encoder": {"kernels": " "}})"),
      HasSubstr("model.encoder.kernels must be a whole number"));
  EXPECT_THAT(usage_error(R"({"heads": ""})"), HasSubstr("model.heads must be a whole number"));
}

TEST(OptionsLists, OfNamesAreUnsetByAnEmptyString) {
  Files files{{"of an included file"}};
  read_options(Json{{"names", ""}}, "", files);
  EXPECT_EQ(files.names.size(), 0u);
  read_options(Json{{"names", "a"}}, "", files);
  EXPECT_THAT(files.names, ElementsAre("a"));
  read_options(Json{{"names", Json::array()}}, "", files);
  EXPECT_EQ(files.names.size(), 0u);
}

}  // namespace
}  // namespace seqconv::internal
