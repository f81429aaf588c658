#include <gmock/gmock.h>

#include <cstring>

#include "base/checksum.h"
#include "base/files.h"
#include "base/safetensors.h"
#include "shortlist_fixture.h"
#include "support/errors.h"

// Files of shortlists: what was written is read, and nothing else.
namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using ::testing::HasSubstr;

class ShortlistFile : public testing::ShortlistTest {
 protected:
  fs::path file() const { return folder_.path() / "shortlist"; }
};

/// The same lists for every word and for none.
void expect_same_lists(const Shortlist& a, const Shortlist& b, const TranslationText& text) {
  EXPECT_EQ(a.words({}), b.words({}));
  for (int32_t id = 0; id < text.source->vocabulary().size(); ++id)
    EXPECT_EQ(a.words(std::vector{id}), b.words(std::vector{id})) << id;
}

TEST_F(ShortlistFile, IsReadAsItWasWritten) {
  for (const ShortlistOptions& options :
       {ShortlistOptions{}, ShortlistOptions{.per_word = 2, .common = 0}}) {
    const Shortlist learned = learn(options);
    learned.write(file());
    expect_same_lists(Shortlist::load(file(), text_), learned, text_);
  }
}

TEST_F(ShortlistFile, IsRefusedForOtherVocabularies) {
  learn({}).write(file());
  const auto error = [&](const TranslationText& text) {
    return error_of([&] { Shortlist::load(file(), text); });
  };
  const TranslationText other = make_text(false, "mehr\n");
  EXPECT_THAT(
      error(other),
      HasSubstr("/shortlist: the shortlist is of another source vocabulary than the model: 1"));
  // As many symbols, one of them another.
  TranslationText swapped = text_;
  std::swap(swapped.source, swapped.target);
  EXPECT_THAT(error(swapped), HasSubstr("another source vocabulary"));
  swapped.source = text_.source;
  EXPECT_THAT(error(swapped), HasSubstr("another target vocabulary"));
}

TEST_F(ShortlistFile, DamageNeverPassesUnseen) {
  const Shortlist learned = learn({.per_word = 3, .common = 2});
  learned.write(file());
  const std::string good = read_file(file());
  const auto expect_error_or_same = [&](const std::string& content) {
    const fs::path damaged = folder_.write("damaged", content);
    try {
      expect_same_lists(Shortlist::load(damaged, text_), learned, text_);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("damaged: "));
    }
  };
  for (size_t size = 0; size < good.size(); ++size) {
    const fs::path cut = folder_.write("cut", good.substr(0, size));
    EXPECT_THAT(error_of([&] { Shortlist::load(cut, text_); }), HasSubstr("cut: "));
  }
  for (size_t place = 0; place < good.size(); ++place)
    for (const int change : {1, 16, 128}) {
      std::string bad = good;
      bad[place] = static_cast<char>(bad[place] ^ change);
      expect_error_or_same(bad);
    }
}

/// Files whose checksum fits, made to do harm.
class HostileShortlist : public ShortlistFile {
 protected:
  HostileShortlist() {
    learn({.common = 2}).write(file());
    const SafetensorsReader reader(file());
    metadata_ = reader.metadata();
    common_ = copy<int32_t>(reader, "common");
    listed_ = copy<int32_t>(reader, "listed");
    ends_ = copy<int64_t>(reader, "ends");
  }

  template <class T>
  static std::vector<T> copy(const SafetensorsReader& reader, const char* name) {
    std::vector<T> values(static_cast<size_t>(reader.at(name).count()));
    std::memcpy(values.data(), reader.at(name).data.data(), reader.at(name).data.size());
    return values;
  }

  /// What is said of the present content.
  std::string error() const {
    const auto view = [](ElementType type, const auto& values) {
      return TensorView{type, {std::ssize(values)}, std::as_bytes(std::span(values))};
    };
    const std::map<std::string, TensorView> tensors = {
        {"common", view(ElementType::kI32, common_)},
        {"ends", view(ElementType::kI64, ends_)},
        {"listed", view(ElementType::kI32, listed_)}};
    auto metadata = metadata_;
    uint64_t sum = 0;
    metadata.erase("checksum");
    for (const auto& [key, value] : metadata)
      sum = checksum(std::as_bytes(std::span(value)), sum);
    for (const auto& [name, tensor] : tensors)
      sum = checksum(tensor.data, sum);
    metadata["checksum"] = checksum_text(sum);
    const fs::path bad = folder_.path() / "bad";
    write_safetensors(bad, tensors, metadata);
    return error_of([&] { Shortlist::load(bad, text_); });
  }

  std::map<std::string, std::string> metadata_;
  std::vector<int32_t> common_;
  std::vector<int32_t> listed_;
  std::vector<int64_t> ends_;
};

TEST_F(HostileShortlist, WordsOutOfPlace) {
  common_ = {5, 4};
  EXPECT_THAT(error(), HasSubstr("bad: no shortlist, it lists word 4"));
  common_ = {4, 4};
  EXPECT_THAT(error(), HasSubstr("it lists word 4 where one from 5"));
  common_ = {2};
  EXPECT_THAT(error(), HasSubstr("it lists word 2 where one from 4"));
  common_ = {1 << 30};
  EXPECT_THAT(error(), HasSubstr("it lists word 1073741824"));
  common_ = {};
  listed_.front() = -1;
  EXPECT_THAT(error(), HasSubstr("it lists word -1"));
}

TEST_F(HostileShortlist, ListsThatDoNotEnd) {
  const auto good = ends_;
  for (const int64_t end : {int64_t{-1}, int64_t{1} << 62, INT64_MIN}) {
    ends_ = good;
    ends_[4] = end;
    EXPECT_THAT(error(), HasSubstr("do not end where they should")) << end;
  }
  ends_ = good;
  ++ends_.back();
  EXPECT_THAT(error(), HasSubstr("do not end"));
  ends_ = good;
  ends_.pop_back();
  EXPECT_THAT(error(), HasSubstr("do not end"));
  ends_.clear();
  EXPECT_THAT(error(), HasSubstr("do not end"));
}

TEST_F(HostileShortlist, OtherFiles) {
  metadata_["format"] = "seqconv-shortlist-2";
  EXPECT_THAT(error(), HasSubstr("of version 1, but got 'seqconv-shortlist-2'"));
  metadata_["format"] = "seqconv-training-state-1";
  EXPECT_THAT(error(), HasSubstr("bad: no shortlist, its format is"));
  metadata_.erase("format");
  EXPECT_THAT(error(), HasSubstr("bad: no shortlist, its metadata lack"));
}

}  // namespace
}  // namespace seqconv::internal
