#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/files.h"
#include "base/safetensors.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;

/// A file with this header and `bytes` bytes of data.
std::string file_of(const std::string& header, size_t bytes) {
  std::string file(8, '\0');
  const uint64_t size = header.size();
  std::memcpy(file.data(), &size, 8);
  return file + header + std::string(bytes, 'd');
}

/// The fault of such a file; "" where it is read.
std::string read_error(const std::string& header, size_t bytes) {
  TemporaryFolder folder;
  const auto path = folder.write("m", file_of(header, bytes));
  try {
    SafetensorsReader reader(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string header_error(const std::string& header, size_t bytes = 4) {
  const std::string message = read_error(header, bytes);
  EXPECT_THAT(message, HasSubstr("/m: "));
  return message;
}

/// The error of a file with one tensor of 4 bytes whose fields are given.
std::string tensor_error(
    const std::string& type, const std::string& shape, const std::string& offsets) {
  return header_error(concat(
      R"({"t":{"dtype":)", type, R"(,"shape":)", shape, R"(,"data_offsets":)", offsets, "}}"));
}

const char* const kGood = R"({"__metadata__":{"k":"v"},)"
                          R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                          R"("b":{"dtype":"U8","shape":[1,3],"data_offsets":[8,11]}})";

TEST(SafetensorsHostile, AcceptsTheFileThatTheOthersAreMadeFrom) {
  TemporaryFolder folder;
  const SafetensorsReader reader(folder.write("m", file_of(kGood, 11)));
  EXPECT_EQ(reader.tensors().size(), 2u);
  EXPECT_EQ(reader.metadata().at("k"), "v");
}

/// Each is read by the reference, version 0.8.0 of the package safetensors.
TEST(SafetensorsHostile, ReadsWhatTheReferenceReads) {
  const std::string t = R"("t":{"dtype":"F32","shape":)";
  const auto with = [&](const char* shape, const char* offsets) {
    return concat("{", t, shape, R"(,"data_offsets":)", offsets, "}}");
  };
  for (const std::string& header :
       {std::string("{}"),
        std::string(" \t\n\r{}"),
        std::string("{} \n\t\r"),
        std::string(R"({"__metadata__":{}})"),
        std::string(R"({"__metadata__":null})"),
        std::string(R"({"__metadata__":{"only":"this"}})"),
        with("[0]", "[0,0]"),
        with("[3,0,5]", "[0,0]"),
        with("[4611686018427387904,0]", "[0,0]")})
    EXPECT_EQ(read_error(header, 0), "") << header;
  EXPECT_EQ(read_error(with("[]", "[0,4]"), 4), "");
  // Further fields of a tensor are not read, however it is nested.
  EXPECT_EQ(read_error("{" + t + R"([1],"data_offsets":[0,4],"more":{"a":[[{}]]}}})", 4), "");
}

TEST(SafetensorsHostile, RefusesEveryTruncation) {
  TemporaryFolder folder;
  const std::string whole = file_of(kGood, 11);
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto path = folder.write("m", whole.substr(0, size));
    EXPECT_NE(error_of([&] { SafetensorsReader reader(path); }), "") << size;
  }
  const auto longer = folder.write("m", whole + "x");
  EXPECT_THAT(
      error_of([&] { SafetensorsReader reader(longer); }),
      HasSubstr("the tensors end at byte 11, but the file holds 12"));
}

TEST(SafetensorsHostile, RefusesHeadersThatAreNone) {
  EXPECT_THAT(header_error(""), HasSubstr("does not start with '{'"));
  EXPECT_THAT(header_error("[]"), HasSubstr("does not start with '{'"));
  EXPECT_THAT(header_error("  "), HasSubstr("does not start with '{'"));
  EXPECT_THAT(header_error("\xEF\xBB\xBF{}"), HasSubstr("does not start with '{'"));
  EXPECT_THAT(
      header_error(std::string("{}\0\0", 4)), HasSubstr("header: not valid JSON: byte 3 is NUL"));
  EXPECT_THAT(header_error("{"), HasSubstr("header: not valid JSON"));
  EXPECT_THAT(header_error("{}{}"), HasSubstr("header: not valid JSON"));
  EXPECT_THAT(header_error("{\"\xFF\":{}}"), HasSubstr("header: not valid JSON"));
  for (const char* tensor : {"3", "null", "[]"})
    EXPECT_THAT(
        header_error(concat(R"({"t":)", tensor, "}")),
        EndsWith(concat(
            "tensor 't': an object with dtype, shape and data_offsets was wanted, but got ",
            tensor)));
  EXPECT_THAT(header_error(R"({"t":{}})"), EndsWith("tensor 't': the key 'dtype' is missing"));
  EXPECT_THAT(
      header_error(R"({"t":{"dtype":"U8","shape":[]}})"),
      EndsWith("tensor 't': the key 'data_offsets' is missing"));
  EXPECT_THAT(
      header_error(R"({"__metadata__":{"k":1}})"),
      EndsWith("__metadata__: 'k' must be a text, but got 1"));
  EXPECT_THAT(
      header_error(R"({"__metadata__":[]})"),
      EndsWith("__metadata__ must be an object of texts, but got []"));
}

TEST(SafetensorsHostile, RefusesAHeaderLongerThanTheFile) {
  TemporaryFolder folder;
  for (const uint64_t size :
       {uint64_t{11}, uint64_t{100'000'001}, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    std::string file = file_of("{}        ", 0);
    std::memcpy(file.data(), &size, 8);
    const auto path = folder.write("m", file);
    EXPECT_THAT(
        error_of([&] { SafetensorsReader reader(path); }),
        HasSubstr(concat("a header of ", size, " bytes is announced")));
  }
}

TEST(SafetensorsHostile, RefusesDuplicateNames) {
  const std::string t = R"("t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  EXPECT_THAT(header_error("{" + t + "," + t + "}", 2), HasSubstr("header: 't' comes twice"));
  EXPECT_THAT(
      header_error(R"({"t":{"dtype":"U8","dtype":"I8","shape":[],"data_offsets":[0,1]}})", 1),
      HasSubstr("header: 'dtype' comes twice"));
}

TEST(SafetensorsHostile, RefusesTensorsThatDoNotFitTheirData) {
  const std::string u8 = R"("U8")";
  EXPECT_THAT(tensor_error(u8, "[4]", "[0,5]"), HasSubstr("wants bytes 0 to 5"));
  EXPECT_THAT(tensor_error(u8, "[5]", "[0,5]"), HasSubstr("holds 4"));
  EXPECT_THAT(tensor_error(u8, "[4]", "[4,0]"), HasSubstr("wants bytes 4 to 0"));
  EXPECT_THAT(tensor_error(u8, "[3]", "[0,4]"), HasSubstr("for 3 bytes"));
  EXPECT_THAT(tensor_error(R"("F32")", "[4]", "[0,4]"), HasSubstr("16 bytes"));
  EXPECT_THAT(
      tensor_error(u8, "[4]", "[18446744073709551612,18446744073709551615]"),
      HasSubstr("whole numbers from 0 to 2^63 - 1"));
}

TEST(SafetensorsHostile, RefusesFieldsOfTheWrongKind) {
  const std::string u8 = R"("U8")";
  EXPECT_THAT(
      tensor_error(R"("X9")", "[4]", "[0,4]"),
      EndsWith("tensor 't': an element type (dtype) of F64, F32, F16, BF16, I64, I32, I8, U8 was "
               "wanted, but got \"X9\""));
  EXPECT_THAT(tensor_error("3", "[4]", "[0,4]"), EndsWith("but got 3"));
  for (const char* shape : {"4", "\"4\"", "{\"n\":4}", "null"})
    EXPECT_THAT(tensor_error(u8, shape, "[0,4]"), HasSubstr("shape must be a list")) << shape;
  for (const char* size : {"[-4]", "[4.0]", "[\"4\"]", "[true]", "[[4]]"})
    EXPECT_THAT(tensor_error(u8, size, "[0,4]"), HasSubstr("shape must hold whole numbers"))
        << size;
  EXPECT_THAT(tensor_error(u8, "[4]", "[0]"), HasSubstr("but got 1"));
  EXPECT_THAT(tensor_error(u8, "[4]", "[0,4,9]"), HasSubstr("but got 3"));
  for (const char* offsets : {"[0,4.5]", "[0,1e300]", "[-1,3]", "[false,4]"})
    EXPECT_THAT(tensor_error(u8, "[4]", offsets), HasSubstr("data_offsets must hold whole numbers"))
        << offsets;
}

TEST(SafetensorsHostile, RefusesShapesWhoseProductOverflows) {
  const std::string huge = "4611686018427387904";  // 2^62
  EXPECT_THAT(
      tensor_error(R"("F32")", "[" + huge + "," + huge + "]", "[0,4]"), HasSubstr("is too large"));
  EXPECT_THAT(tensor_error(R"("F32")", "[" + huge + ",4]", "[0,0]"), HasSubstr("is too large"));
  EXPECT_THAT(
      tensor_error(R"("U8")", "[0,9223372036854775808]", "[0,0]"),
      HasSubstr("whole numbers from 0 to 2^63 - 1"));
}

TEST(SafetensorsHostile, RefusesOverlapsAndHoles) {
  const auto two = [](const char* a, const char* b) {
    return concat(
        R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)",
        a,
        R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)",
        b,
        "}}");
  };
  EXPECT_THAT(
      header_error(two("[0,2]", "[1,3]"), 3),
      AllOf(HasSubstr("'b' begins at byte 1"), HasSubstr("2 was wanted")));
  EXPECT_THAT(
      header_error(two("[0,2]", "[0,2]"), 2), HasSubstr("begins at byte 0, but 2 was wanted"));
  EXPECT_THAT(
      header_error(two("[0,2]", "[3,5]"), 5), HasSubstr("'b' begins at byte 3, but 2 was wanted"));
  EXPECT_THAT(
      header_error(two("[1,3]", "[3,5]"), 5), HasSubstr("'a' begins at byte 1, but 0 was wanted"));
  EXPECT_THAT(
      header_error(two("[0,2]", "[2,4]"), 5), HasSubstr("end at byte 4, but the file holds 5"));
}

TEST(SafetensorsHostile, RefusesDeepHeadersInsteadOfOverflowingTheStack) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string header = R"({"t":{"shape":)";
    for (int i = 0; i < 200'000; ++i)
      header += open;
    EXPECT_THAT(header_error(header), HasSubstr("header: nested too deep"));
  }
}

TEST(SafetensorsHostile, IsQuickOnManyNames) {
  std::string header = "{";
  for (int i = 0; i < 50'000; ++i)
    header +=
        concat(i == 0 ? "" : ",", "\"t", i, R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  TemporaryFolder folder;
  const auto path = folder.write("m", file_of(header + "}", 0));
  // Quadratic time, which this was once, takes minutes.
  EXPECT_EQ(SafetensorsReader(path).tensors().size(), 50'000u);
}

TEST(SafetensorsHostile, NothingButErrorsComesFromMutations) {
  TemporaryFolder folder;
  const std::string whole = file_of(kGood, 11);
  const std::string alphabet = "0123456789[]{}\",:.-eE \xFF";
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string file = whole;
    for (int i = 0; i < 1 + round % 4; ++i) {
      const size_t at = random() % file.size();
      file[at] =
          round % 2 == 0 ? static_cast<char>(random()) : alphabet[random() % alphabet.size()];
    }
    const auto path = folder.write("m", file);
    try {
      const SafetensorsReader reader(path);
      for (const auto& [name, tensor] : reader.tensors()) {
        EXPECT_EQ(
            static_cast<size_t>(tensor.count()) * element_size(tensor.type), tensor.data.size());
        EXPECT_LE(tensor.data.size(), 11u);
      }
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), Not(HasSubstr("json.exception")));
      ++refused;
    }
  }
  EXPECT_GT(refused, 2500);
}

}  // namespace
}  // namespace seqconv::internal
