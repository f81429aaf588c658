#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/options.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

Json load(const TemporaryFolder& folder, std::string_view text) {
  return load_toml(folder.write("f.toml", text));
}

std::string load_error(const TemporaryFolder& folder, std::string_view text) {
  return error_of<UsageError>([&] { load(folder, text); });
}

TEST(Toml, ReadsEveryKindOfValue) {
  TemporaryFolder folder;
  const Json table = load(folder, R"(
    flag = true
    count = -3
    share = 1e-8
    name = "\u00e4"   # a comment
    list = [1, [2.5, "x"]]
    a.b.c = 1
    [section]
    key = 'raw\n'
    [section.sub]
    inline = {x = 1}
    [[many]]
    n = 1
    [[many]]
    n = 2
  )");
  EXPECT_EQ(table, Json::parse(R"({
    "a": {"b": {"c": 1}}, "count": -3, "flag": true, "list": [1, [2.5, "x"]],
    "many": [{"n": 1}, {"n": 2}], "name": "ä",
    "section": {"key": "raw\\n", "sub": {"inline": {"x": 1}}},
    "share": 1e-8})"));
}

TEST(Toml, TheFilesOwnKeysWinOverIncludedOnes) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "sub");
  folder.write("sub/deep.toml", "deep = 1\n[m]\nx = 0\n");
  folder.write("sub/one.toml", "include = 'deep.toml'\n[m]\nx = 1\ny = 1\n");
  folder.write("two.toml", "[m]\ny = 2\nz = 2\n[m.t]\nk = 2");
  const Json table =
      load(folder, "include = ['sub/one.toml', 'two.toml']\n[m]\nz = 3\n[m.t]\nj = 3\n");
  EXPECT_EQ(table["deep"], 1);
  EXPECT_EQ(table["m"], Json::parse(R"({"x": 1, "y": 2, "t": {"k": 2, "j": 3}, "z": 3})"));
  EXPECT_FALSE(table.contains("include"));
}

TEST(Toml, IncludesByNameWhatLiesInAFolderOfItsOwn) {
  TemporaryFolder folder;
  const std::filesystem::path named = folder.path() / "named";
  std::filesystem::create_directory(named);
  folder.write("named/base.toml", "include = 'deep'\nx = 1\n");
  folder.write("named/deep.toml", "y = 2\n");
  const std::string file = folder.write("f.toml", "include = 'base'\n");
  const auto load_named = [&] { return load_toml(file, named); };
  EXPECT_EQ(load_named(), Json::parse(R"({"y": 2, "x": 1})"));
  EXPECT_THAT(
      error_of([&] { load_toml(file); }),
      HasSubstr("cannot read '" + (folder.path() / "base").string() + "'"));
  // A file beside comes first; what has an extension is a file.
  folder.write("base", "x = 3\n");
  EXPECT_EQ(load_named(), Json::parse(R"({"x": 3})"));
  folder.write("f.toml", "include = 'base.toml'\n");
  EXPECT_THAT(error_of(load_named), HasSubstr((folder.path() / "base.toml").string()));
}

TEST(Toml, NamesFileLineAndColumn) {
  TemporaryFolder folder;
  const std::string file = folder.path() / "f.toml";
  EXPECT_THAT(load_error(folder, "a = 1\nb = = 2\n"), HasSubstr(file + ":2:5: "));
  EXPECT_THAT(load_error(folder, "a = 1\na = 2\n"), HasSubstr(file + ":2:"));
  EXPECT_THAT(load_error(folder, "a = \"\xFF\"\n"), HasSubstr(file + ":1:"));
  EXPECT_THAT(
      load_error(folder, "\n\nday = 1979-05-27\n"),
      AllOf(HasSubstr(file + ":3:"), HasSubstr("dates and times")));
  EXPECT_THAT(load_error(folder, "a = 99999999999999999999\n"), HasSubstr(file + ":1:"));
}

TEST(Toml, RefusesLettersThatAreNotAsciiOutsideStrings) {
  TemporaryFolder folder;
  for (const char* text : {"\xC3\xA9 = 1\n", "a\xD0\x95 = 1\n", "a = \xC2\xA1"})
    EXPECT_THAT(load_error(folder, text), HasSubstr("f.toml:1:")) << text;
  folder.write("f.toml", "a = '\xC3\xA9'  # \xD0\x95\n");
  EXPECT_EQ(load_toml(folder.path() / "f.toml")["a"], "\xC3\xA9");
}

TEST(Toml, NamesTheIncludedFileThatIsWrong) {
  TemporaryFolder folder;
  const auto bad = folder.write("bad.toml", "x\n");
  EXPECT_THAT(load_error(folder, "include = 'bad.toml'"), HasSubstr(bad + ":1:"));
  EXPECT_THAT(
      error_of([&] { load(folder, "include = 'absent.toml'"); }),
      AllOf(HasSubstr("absent.toml"), HasSubstr("No such file")));
  EXPECT_THAT(
      load_error(folder, "include = [3]"), HasSubstr("include must be a file name, but got 3"));
}

TEST(Toml, RefusesIncludesInACircleOrWithoutEnd) {
  TemporaryFolder folder;
  EXPECT_THAT(
      load_error(folder, "include = 'f.toml'"), HasSubstr("f.toml: the file includes itself"));
  folder.write("other.toml", "include = './f.toml'");
  EXPECT_THAT(load_error(folder, "include = 'other.toml'"), HasSubstr("the file includes itself"));
  // Twenty files that each include the next twice would be a million reads.
  for (int i = 0; i < 20; ++i) {
    const std::string next = concat("'n", i + 1, ".toml'");
    folder.write(concat("n", i, ".toml"), concat("include = [", next, ", ", next, "]"));
  }
  folder.write("n20.toml", "x = 1");
  EXPECT_THAT(
      load_error(folder, "include = 'n0.toml'"), HasSubstr("more than 64 files are included"));
}

TEST(Toml, RefusesDeepNestingInsteadOfOverflowingTheStack) {
  TemporaryFolder folder;
  std::string dots = "a";
  for (int i = 0; i < 200'000; ++i)
    dots += ".a";
  const std::string limit = ":2: a key may have at most 32 parts";
  EXPECT_THAT(load_error(folder, "x = 1\n" + dots + " = 1"), HasSubstr(limit));
  EXPECT_THAT(load_error(folder, "x = 1\n[" + dots + "]"), HasSubstr(limit));
  EXPECT_THAT(load_error(folder, "x = " + std::string(200'000, '[')), HasSubstr("f.toml:1:"));
  std::string tables = "x = ";
  for (int i = 0; i < 200'000; ++i)
    tables += "{a.b.c.d.e.f.g.h = ";
  EXPECT_THAT(load_error(folder, tables), HasSubstr("f.toml:1:"));
}

TEST(Toml, TakesDotsThatAreNoKeys) {
  TemporaryFolder folder;
  const std::string dots(100, '.');
  std::string numbers;
  for (int i = 0; i < 100; ++i)
    numbers += "0.5, ";
  const Json table = load(folder, "# see " + dots + "\nx = [\n" + numbers + "\n]\ny = 1 #" + dots);
  EXPECT_EQ(table["x"].size(), 100u);
}

TEST(Toml, NothingButUsageErrorsComesFromGarbage) {
  TemporaryFolder folder;
  const std::string seed = "a = 1\n[b.c]\nd = [1, 2.5, \"x\"]\ne = {f = true}\n[[g]]\nh = 'y'\n";
  const std::string alphabet = "ab.=[]{}\"'#\n\\ 01\x80\xFF,:-+eTZ";
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = seed;
    for (int i = 0; i < 1 + round % 4; ++i) {
      const char c = alphabet[random() % alphabet.size()];
      const size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = c;
      else
        text.insert(at, 1, c);
    }
    try {
      const Json table = load(folder, text);
      EXPECT_EQ(load(folder, to_toml(table)).dump(), table.dump()) << text;
    } catch (const UsageError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

TEST(Toml, NothingButUsageErrorsComesFromTruncation) {
  TemporaryFolder folder;
  const std::string whole = "a.\"b\".c = {d = [1, {e = \"\\u00e4\"}], f = '''x'''}\n[g.h]\n[[i]]\n"
                            "j = -1.5e-3 # \u00e4\nk = [\n  true,\n]\n";
  int refused = 0;
  for (size_t size = 0; size <= whole.size(); ++size) {
    try {
      load(folder, whole.substr(0, size));
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()), "");
      ++refused;
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_EQ(load(folder, whole)["i"][0]["k"][0], true);
}

Json overridden(const std::string& assignment) {
  Json table = Json::parse(R"({"model": {"heads": 4}, "seed": 1})");
  apply_override(table, assignment);
  return table;
}

std::string override_error(const std::string& assignment) {
  return error_of<UsageError>([&] { overridden(assignment); });
}

TEST(Override, SetsValuesOfEveryType) {
  EXPECT_EQ(overridden("model.heads=8")["model"]["heads"], 8);
  EXPECT_EQ(overridden("seed=-2.5")["seed"], -2.5);
  EXPECT_EQ(overridden("model.glu=true")["model"]["glu"], true);
  EXPECT_EQ(overridden("k=[3, 7]")["k"], Json::array({3, 7}));
  EXPECT_EQ(overridden("n='8'")["n"], "8");
  EXPECT_EQ(overridden("t={a = 1}")["t"]["a"], 1);
  EXPECT_EQ(overridden("new.table.key=1")["new"]["table"]["key"], 1);
}

TEST(Override, TakesEverythingElseAsText) {
  EXPECT_EQ(overridden("n=talk")["n"], "talk");
  EXPECT_EQ(overridden("n=")["n"], "");
  EXPECT_EQ(overridden("n=a=b")["n"], "a=b");
  EXPECT_EQ(overridden("n=data/x.de")["n"], "data/x.de");
  EXPECT_EQ(overridden("n=2024-01-01")["n"], "2024-01-01");
  EXPECT_EQ(overridden("n=1 2")["n"], "1 2");
  EXPECT_EQ(overridden("n=" + std::string(5000, '['))["n"], std::string(5000, '['));
}

TEST(Override, CannotSmuggleInFurtherKeys) {
  for (const std::string value : {"1\nb = 2", "1\n[model]\nheads = 9"}) {
    const Json table = overridden("a=" + value);
    EXPECT_EQ(table["a"], value);
    EXPECT_FALSE(table.contains("b"));
    EXPECT_EQ(table["model"]["heads"], 4);
  }
  EXPECT_EQ(overridden("a=1\nvalue.b = 2")["a"], "1\nvalue.b = 2");
}

TEST(Override, RefusesWhatIsNoAssignment) {
  for (const std::string text :
       {"", "=", "=1", "heads", "a..b=1", ".a=1", "a.=1", "a b=1", "a\nb=1"})
    EXPECT_THAT(override_error(text), HasSubstr("an override must be key=value, but got \""))
        << text;
  EXPECT_EQ(
      override_error("model.heads.x=1"),
      "override \"model.heads.x=1\": 'model.heads' is a value, not a table");
  EXPECT_THAT(override_error("a=\xFF"), HasSubstr("must be UTF-8"));
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i)
    deep += ".a";
  EXPECT_THAT(override_error(deep + "=1"), HasSubstr("key=value"));
}

TEST(ToToml, IsReadBackAsItWas) {
  TemporaryFolder folder;
  const Json table = Json::parse(R"({
    "a key": 1, "": 2, "dotted.key": 3, "quote\"": 4, "ä": 5,
    "empty": {}, "float": 1.0, "small": 1e-300, "third": 0.1,
    "large": 1e22, "negative": -9223372036854775808,
    "list": [], "mixed": [1, "x", [true]],
    "tables": [{"k": 1, "odd key": {"n": [2]}}, {}],
    "text": "tab\t newline\n quote\" back\\ bell\u0007 delete\u007f ä 😀",
    "outer": {"inner": {"x.y": {"z": 1}}, "after": 2}})");
  const Json read = load(folder, to_toml(table));
  // toml++ sorts its keys, so the comparison must not care.
  EXPECT_EQ(nlohmann::json::parse(read.dump()), nlohmann::json::parse(table.dump()));
}

TEST(ToToml, WritesScalarsBeforeSections) {
  EXPECT_EQ(
      to_toml(Json::parse(R"({"m": {"x": 1, "t": {"y": "z"}}, "s": true})")),
      "s = true\n\n[m]\nx = 1\n\n[m.t]\ny = \"z\"\n");
}

TEST(ToToml, WritesNumbersThatJsonLacksAndRefusesNull) {
  TemporaryFolder folder;
  Json table;
  table["i"] = -INFINITY;
  table["n"] = std::nan("");
  const Json read = load(folder, to_toml(table));
  EXPECT_EQ(read["i"].get<double>(), -INFINITY);
  EXPECT_TRUE(std::isnan(read["n"].get<double>()));
  EXPECT_THAT(error_of([] { to_toml(Json::parse(R"({"a": null})")); }), HasSubstr("null"));
}

}  // namespace
}  // namespace seqconv::internal
