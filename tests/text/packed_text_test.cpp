#include "text/packed_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/utf8.h"
#include "support/errors.h"
#include "support/packed_files.h"
#include "support/temporary_folder.h"
#include "text/documents.h"
#include "text/line_reader.h"
#include "text/vocabulary.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::kPackers;
using testing::packed_by_gzip;
using testing::packed_by_xz;
using testing::packed_by_zstandard;
using testing::Packer;
using ::testing::StartsWith;
using testing::TemporaryFolder;

/// A streambuf that has one byte at a time, as a slow pipe.
class SlowBytes : public std::streambuf {
 public:
  explicit SlowBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  size_t taken() const { return next_; }

 protected:
  int_type underflow() override {
    if (next_ == bytes_.size())
      return traits_type::eof();
    setg(&bytes_[next_], &bytes_[next_], &bytes_[next_] + 1);
    return traits_type::to_int_type(bytes_[next_++]);
  }

 private:
  std::string bytes_;
  size_t next_ = 0;
};

/// All lines, "\n" behind each.
std::string lines_of(std::istream& stream, BadBytes bad_bytes = BadBytes::kReject) {
  PackedText text(stream, "text");
  LineReader reader(text, "text", bad_bytes);
  std::string lines;
  for (std::string line; reader.next(line);)
    lines += line + "\n";
  return lines;
}

std::string lines_of(const std::string& bytes, BadBytes bad_bytes = BadBytes::kReject) {
  std::istringstream stream(bytes);
  return lines_of(stream, bad_bytes);
}

/// Words that pack to about a quarter.
std::string made_up_text(size_t size, unsigned seed = 3) {
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < size)
    text += std::to_string(random() % 5000) + (random() % 8 == 0 ? "\n" : " ü ");
  return text + "\n";
}

TEST(PackedText, IsReadAsItWasPacked) {
  for (const size_t size : {0, 1, 200, 65'535, 65'536, 400'000}) {
    const std::string text = made_up_text(size);
    for (const Packer& packer : kPackers) {
      SCOPED_TRACE(concat(packer.name, ", ", size, " bytes"));
      EXPECT_TRUE(lines_of(packer.pack(text)) == text);
      EXPECT_EQ(lines_of(packer.pack("")), "");
      EXPECT_EQ(lines_of(packer.pack("ab\r\nc")), "ab\nc\n");
      EXPECT_EQ(
          lines_of(packer.pack("\xEF\xBB\xBF"
                               "a\n")),
          "a\n");
    }
    EXPECT_TRUE(lines_of(text) == text);
  }
}

TEST(PackedText, GoesOnInTheNextMember) {
  for (const Packer& packer : kPackers) {
    SCOPED_TRACE(packer.name);
    std::string packed, text;
    for (unsigned i = 0; i < 40; ++i) {
      const std::string part = i % 5 == 1 ? "" : made_up_text(i * 100, i) + "half a line ";
      packed += packer.pack(part);
      text += part;
    }
    EXPECT_TRUE(lines_of(packed) == text + "\n");
    SlowBytes slow(packed);
    std::istream stream(&slow);
    EXPECT_TRUE(lines_of(stream) == text + "\n");
  }
}

TEST(PackedText, FillsUpAsItsProgramsAllow) {
  EXPECT_EQ(lines_of(packed_by_gzip("a\n") + std::string(70'000, '\0')), "a\n");
  EXPECT_EQ(lines_of(packed_by_xz("a\n") + std::string(8, '\0') + packed_by_xz("b\n")), "a\nb\n");
  const std::string skipped("\x50\x2A\x4D\x18\x03\0\0\0xyz", 11);
  EXPECT_EQ(lines_of(packed_by_zstandard("a\n") + skipped), "a\n");
  // pzstd writes the size of a frame in front of it.
  const std::string sized = packed_by_zstandard("a\n");
  const std::string size{static_cast<char>(sized.size()), '\0', '\0', '\0'};
  const std::string frame = std::string("\x50\x2A\x4D\x18\x04\0\0\0", 8) + size + sized;
  EXPECT_EQ(lines_of(frame + frame), "a\na\n");
}

TEST(PackedText, CutShortIsAnErrorThatNamesTheFile) {
  const TemporaryFolder folder;
  const std::string text = made_up_text(800);
  for (const Packer& packer : kPackers) {
    SCOPED_TRACE(packer.name);
    const std::string packed = packer.pack(text);
    for (size_t size = 2; size < packed.size(); ++size) {
      const std::string cut = packed.substr(0, size);
      for (const BadBytes bad_bytes : {BadBytes::kReject, BadBytes::kReplace})
        EXPECT_EQ(
            error_of([&] { lines_of(cut, bad_bytes); }),
            concat(
                "cannot unpack 'text': its ",
                packer.name,
                " data are cut short: they end behind byte ",
                size));
      // One member is whole.
      EXPECT_THAT(
          error_of([&] { lines_of(packed + cut); }), HasSubstr("cannot unpack 'text': its "));
    }
    const std::string file = folder.write("train.de", packed.substr(0, 100));
    EXPECT_THAT(
        error_of([&] {
          LineReader reader(file);
          for (std::string line; reader.next(line);) {}
        }),
        StartsWith(concat("cannot unpack '", file, "': its ", packer.name)));
  }
}

TEST(PackedText, WithAnyBitFlippedIsNeverAnotherText) {
  const std::string text = made_up_text(300);
  for (const Packer& packer : kPackers) {
    const std::string packed = packer.pack(text);
    int64_t errors = 0;
    for (size_t bit = 0; bit < 8 * packed.size(); ++bit) {
      std::string flipped = packed;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      try {
        EXPECT_EQ(lines_of(flipped), text) << packer.name << ", bit " << bit;
      } catch (const Error&) {
        ++errors;
      }
    }
    // Some of gzip's header means nothing: times and the system.
    EXPECT_GT(errors, static_cast<int64_t>(8 * packed.size()) - 100) << packer.name;
  }
}

TEST(PackedText, SaysWhereItIsDamaged) {
  for (const Packer& packer : kPackers) {
    std::string packed = packer.pack(made_up_text(300'000));
    packed[packed.size() - 3] ^= 1;
    EXPECT_THAT(
        error_of([&] { lines_of(packed); }),
        AllOf(
            StartsWith(
                concat("cannot unpack 'text': its ", packer.name, " data are damaged near byte ")),
            HasSubstr(": ")));
    EXPECT_THAT(
        error_of([&] { lines_of(packer.pack("a\n") + "plain text behind it\n"); }),
        HasSubstr("damaged near byte "));
  }
  EXPECT_THAT(
      error_of([] { lines_of(packed_by_gzip("a\n") + std::string("\0\0x", 3)); }),
      HasSubstr("other bytes follow the end"));
}

TEST(PackedText, NeedsNoMoreMemoryThanItMay) {
  // Longer windows than the library takes unless it is told to.
  EXPECT_THAT(
      error_of([] { lines_of(packed_by_zstandard("a\n", 28)); }),
      HasSubstr("its window is longer than 128 MiB"));
  EXPECT_EQ(lines_of(packed_by_zstandard("a\n", 27)), "a\n");
  // A dictionary of 1 GiB, by the stream's own header.
  lzma_options_lzma options;
  ASSERT_EQ(lzma_lzma_preset(&options, 0), 0);
  options.dict_size = 1U << 30;
  const std::array<lzma_filter, 2> filters{
      {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}}};
  std::string packed(200, '\0');
  lzma_block block{};
  block.check = LZMA_CHECK_CRC32;
  std::array<lzma_filter, LZMA_FILTERS_MAX + 1> own{};
  std::copy(filters.begin(), filters.end(), own.begin());
  block.filters = own.data();
  block.compressed_size = block.uncompressed_size = LZMA_VLI_UNKNOWN;
  ASSERT_EQ(lzma_block_header_size(&block), LZMA_OK);
  lzma_stream_flags flags{};
  flags.check = LZMA_CHECK_CRC32;
  auto* const out = reinterpret_cast<uint8_t*>(packed.data());
  ASSERT_EQ(lzma_stream_header_encode(&flags, out), LZMA_OK);
  ASSERT_EQ(lzma_block_header_encode(&block, out + LZMA_STREAM_HEADER_SIZE), LZMA_OK);
  EXPECT_THAT(
      error_of([&] { lines_of(packed); }),
      AllOf(HasSubstr("unpacking needs 1024 MiB of memory"), HasSubstr("256 MiB")));
}

TEST(PackedText, OfAnotherFormatIsNamed) {
  using std::string;
  const std::pair<string, string> others[] = {
      {"bzip2", string("BZh91AY&SY\x7f\0\0", 13)},
      {"bzip2", string("BZh9\x17\x72\x45\x38\x50\x90\0\0\0\0", 14)},
      {"zip", string("PK\x03\x04\x14\0\0\0", 8)},
      {"lz4", string("\x04\x22\x4D\x18\x64\x40", 6)}};
  for (const auto& [name, bytes] : others)
    for (const BadBytes bad_bytes : {BadBytes::kReject, BadBytes::kReplace})
      EXPECT_EQ(
          error_of([&] { lines_of(bytes, bad_bytes); }),
          concat(
              "cannot read 'text': text, or text that gzip, xz or Zstandard has packed, was "
              "wanted, but it is packed by ",
              name,
              ": unpack it first"));
}

TEST(PackedText, PlainTextThatBeginsAlikeIsPlain) {
  for (const char* text :
       {"(",
        "(a) b\n",
        "P*M\n",
        "BZh9\n",
        "BZh91AY&S\n",
        "PK\n",
        "PK\x03\x04",
        "B",
        "\x1F",
        "\x1F a\n",
        "\x04\"M\n"}) {
    const std::string plain = text;
    EXPECT_EQ(lines_of(plain), plain.ends_with('\n') ? plain : plain + "\n");
  }
  // Two bytes of each format are no UTF-8 any more.
  for (const Packer& packer : kPackers)
    EXPECT_LT(find_invalid_utf8(packer.pack("a").substr(0, 2)), 2u) << packer.name;
}

TEST(PackedText, PlainTextIsNeverWaitedFor) {
  SlowBytes slow("(1\n(2\n");
  std::istream stream(&slow);
  PackedText text(stream, "text");
  LineReader reader(text, "text", BadBytes::kReject);
  std::string line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "(1");
  EXPECT_EQ(slow.taken(), 3u);
}

TEST(PackedText, ComesFromAPipe) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  const std::string text = made_up_text(300'000);
  for (const Packer& packer : kPackers) {
    const std::string packed = packer.pack(text);
    std::thread writer([&] {
      std::ofstream out(file, std::ios::binary);
      out << packed.substr(0, 1) << std::flush << packed.substr(1);
    });
    EXPECT_TRUE(read_text_file(file) == text) << packer.name;
    writer.join();
  }
}

TEST(PackedText, IsReadWhereverTextIs) {
  const TemporaryFolder folder;
  for (const Packer& packer : kPackers) {
    const std::string dictionary = folder.write("dict.txt", packer.pack("ein 5\nzwei 4\n"));
    EXPECT_EQ(Vocabulary::load(dictionary).id("zwei"), kSpecialIds + 1);
    const std::string story = folder.write("a.story", packer.pack("ein\n\n@highlight\n\nzwei\n"));
    const Story read = read_story(RootedPath(folder.path()) / "a.story");
    EXPECT_EQ(read.article, "ein");
    EXPECT_THAT(read.highlights, ::testing::ElementsAre("zwei"));
    EXPECT_EQ(read_text_file(story), "ein\n\n@highlight\n\nzwei\n");
    EXPECT_EQ(PackedText(RootedPath(story)).packing(), packer.name);
    EXPECT_EQ(count_text_bytes(story, 1000), 22u);
    EXPECT_EQ(count_text_bytes(story, 5), 5u);
  }
  const std::string plain = folder.write("plain", "ein\n");
  EXPECT_EQ(PackedText(RootedPath(plain)).packing(), "");
  EXPECT_EQ(count_text_bytes(plain, 1000), 4u);
  EXPECT_THAT(
      error_of([&] { read_text_file(folder.path() / "none"); }), StartsWith("cannot read '"));
  EXPECT_THAT(
      error_of([] { read_text_file(std::string("/proc/self/mem")); }),
      "cannot read '/proc/self/mem': Input/output error");
}

}  // namespace
}  // namespace seqconv::internal
