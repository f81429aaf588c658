#include "base/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/files.h"
#include "support/errors.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

template <class T>
TensorView view(ElementType type, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {type, std::move(shape), std::as_bytes(std::span(values))};
}

template <class T>
std::vector<T> values(const TensorView& tensor) {
  std::vector<T> out(tensor.data.size() / sizeof(T));
  std::memcpy(out.data(), tensor.data.data(), tensor.data.size());
  return out;
}

TEST(Safetensors, GiveBackWhatWasWritten) {
  TemporaryFolder folder;
  const auto path = folder.path() / "m.safetensors";
  const std::vector<float> floats = {1.5f, -2.0f, 0.0f, 3e-38f, 4.0f, 5.0f};
  const std::vector<uint8_t> bytes = {7, 8, 9};
  const std::vector<int64_t> longs = {-1};
  write_safetensors(
      path,
      {{"a", view(ElementType::kU8, {3}, bytes)},
       {"b", view(ElementType::kF32, {2, 3}, floats)},
       {"c.ä \"", view(ElementType::kI64, {}, longs)},
       {"empty", view(ElementType::kF32, {4, 0}, std::vector<float>{})}},
      {{"format", "pt"}, {"note", "ü"}});
  const SafetensorsReader reader(path);
  EXPECT_EQ(reader.tensors().size(), 4u);
  EXPECT_EQ(values<uint8_t>(reader.at("a")), bytes);
  EXPECT_EQ(reader.at("b").type, ElementType::kF32);
  EXPECT_THAT(reader.at("b").shape, ElementsAre(2, 3));
  EXPECT_EQ(values<float>(reader.at("b")), floats);
  EXPECT_EQ(values<int64_t>(reader.at("c.ä \"")), longs);
  EXPECT_EQ(reader.at("c.ä \"").count(), 1);
  EXPECT_EQ(reader.at("empty").count(), 0);
  EXPECT_EQ(reader.metadata().at("note"), "ü");
  EXPECT_TRUE(reader.contains("a"));
  EXPECT_FALSE(reader.contains("d"));
}

TEST(Safetensors, HaveTheFormatsLayout) {
  TemporaryFolder folder;
  const auto path = folder.path() / "m";
  const std::vector<uint8_t> bytes = {7};
  const std::vector<float> floats = {1.0f};
  write_safetensors(
      path,
      {{"a", view(ElementType::kU8, {1}, bytes)}, {"b", view(ElementType::kF32, {1}, floats)}},
      {});
  const std::string file = read_file(path);
  uint64_t header = 0;
  std::memcpy(&header, file.data(), 8);
  EXPECT_EQ(header % 8, 0u);
  EXPECT_EQ(file.size(), 8 + header + 5);
  EXPECT_THAT(
      file.substr(8, header),
      AllOf(
          HasSubstr(R"("b":{"data_offsets":[0,4],"dtype":"F32","shape":[1]})"),
          HasSubstr(R"("a":{"data_offsets":[4,5],"dtype":"U8","shape":[1]})")));
}

TEST(Safetensors, AlignEveryTensorToItsElements) {
  TemporaryFolder folder;
  const std::vector<uint8_t> bytes(64);
  std::map<std::string, TensorView> tensors;
  int i = 0;
  for (const auto type :
       {ElementType::kU8,
        ElementType::kF16,
        ElementType::kF64,
        ElementType::kBF16,
        ElementType::kI32,
        ElementType::kI64,
        ElementType::kF32})
    tensors[concat("t", i++)] =
        TensorView{type, {3}, std::as_bytes(std::span(bytes).first(3 * element_size(type)))};
  write_safetensors(folder.path() / "m", tensors, {});
  const SafetensorsReader reader(folder.path() / "m");
  EXPECT_EQ(reader.tensors().size(), 7U);
  for (const auto& [name, tensor] : reader.tensors())
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data.data()) % element_size(tensor.type), 0u)
        << name;
}

TEST(Safetensors, HoldNothingAtAll) {
  TemporaryFolder folder;
  write_safetensors(folder.path() / "m", {}, {});
  EXPECT_TRUE(SafetensorsReader(folder.path() / "m").tensors().empty());
}

TEST(Safetensors, NameTheNearestTensor) {
  TemporaryFolder folder;
  const std::vector<uint8_t> bytes = {7};
  write_safetensors(
      folder.path() / "m", {{"encoder.weight", view(ElementType::kU8, {1}, bytes)}}, {});
  const SafetensorsReader reader(folder.path() / "m");
  EXPECT_THAT(
      error_of([&] { reader.at("encoder.wieght"); }),
      HasSubstr("no tensor 'encoder.wieght'; the nearest is 'encoder.weight'"));
  EXPECT_THAT(error_of([&] { reader.at("x"); }), ::testing::EndsWith("no tensor 'x'"));
}

TEST(Safetensors, RefuseToWriteWhatCouldNotBeRead) {
  TemporaryFolder folder;
  const auto path = folder.path() / "m";
  const std::vector<float> floats(6);
  const auto message = [&](const std::string& name,
                           std::vector<int64_t> shape,
                           std::map<std::string, std::string> metadata = {}) {
    return error_of([&] {
      write_safetensors(path, {{name, view(ElementType::kF32, shape, floats)}}, metadata);
    });
  };
  EXPECT_THAT(message("a", {2, 2}), HasSubstr("tensor 'a' must have 16 bytes, but has 24"));
  EXPECT_THAT(message("a", {-2, -3}), HasSubstr("must be >= 0, but got -2"));
  EXPECT_THAT(message("a", {int64_t{1} << 62, 4, 6}), HasSubstr("is too large"));
  EXPECT_THAT(message("__metadata__", {6}), HasSubstr("reserved"));
  EXPECT_THAT(message("a\xFF", {6}), HasSubstr("must be UTF-8"));
  EXPECT_THAT(message("a", {6}, {{"k", "\xFF"}}), HasSubstr("must be UTF-8"));
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Safetensors, KeepTheOldFileWhenTheDiskIsFull) {
  TemporaryFolder folder;
  const auto path = folder.path() / "m";
  const std::vector<uint8_t> old = {7}, large(100'000);
  write_safetensors(path, {{"a", view(ElementType::kU8, {1}, old)}}, {});
  EXPECT_THAT(
      error_of([&] {
        testing::FileSizeLimit limit(10'000);
        write_safetensors(path, {{"a", view(ElementType::kU8, {100'000}, large)}}, {});
      }),
      HasSubstr("cannot write '" + path.string()));
  EXPECT_EQ(values<uint8_t>(SafetensorsReader(path).at("a")), old);
  EXPECT_EQ(folder.entries(), 1);
}

TEST(ElementTypes, HaveNamesAndSizes) {
  EXPECT_EQ(element_name(ElementType::kBF16), "BF16");
  EXPECT_EQ(element_size(ElementType::kBF16), 2u);
  EXPECT_EQ(element_size(ElementType::kF64), 8u);
  EXPECT_THAT(
      error_of([] { element_size(static_cast<ElementType>(99)); }),
      HasSubstr("unknown element type 99"));
}

}  // namespace
}  // namespace seqconv::internal
