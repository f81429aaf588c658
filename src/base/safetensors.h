#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

namespace seqconv::internal {

enum class ElementType { kF64, kF32, kF16, kBF16, kI64, kI32, kI8, kU8 };

/// Bytes of one element.
size_t element_size(ElementType type);
/// The name that safetensors files use: "F32", "BF16", ...
std::string_view element_name(ElementType type);

/// "[2, 3]", for messages.
std::string shape_text(const std::vector<int64_t>& shape);

/// A tensor in somebody else's memory: row-major, little-endian. Files that
/// others wrote may place it at any byte: copy with memcpy. Those of
/// write_safetensors are aligned to the element.
struct TensorView {
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;

  int64_t count() const;
};

/// A safetensors file, memory-mapped. Everything in the header is checked
/// before use: sizes, offsets, overlaps, holes, duplicate names, types. Errors
/// name the file and the tensor.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const RootedPath& path);

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// The tensor called `name`, or an Error that names the nearest one.
  const TensorView& at(const std::string& name) const;
  bool contains(const std::string& name) const { return tensors_.contains(name); }
  const std::filesystem::path& path() const { return file_.path(); }
  /// Lets the system take back the memory of what was read.
  void release() const { file_.release(); }

 private:
  MappedFile file_;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Takes the next bytes of something that is written piece by piece.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// A tensor that is made as it is written, so that it need not be in memory as
/// a whole: `produce` gives its bytes, row-major and little-endian, in pieces.
struct TensorSource {
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  std::function<void(const ByteSink&)> produce;
};

/// Bytes of such a tensor; Error, beginning with `where`, for a negative size
/// or a product that overflows.
size_t tensor_bytes(ElementType type, const std::vector<int64_t>& shape, const std::string& where);

/// Writes a safetensors file atomically (see write_file_atomically), tensor by
/// tensor: nothing is copied into one buffer.
void write_safetensors(
    const std::filesystem::path& path,
    const std::map<std::string, TensorView>& tensors,
    const std::map<std::string, std::string>& metadata);
/// The same for tensors that are made as they are written. Error when a source
/// gives more or fewer bytes than its shape needs.
void stream_safetensors(
    const std::filesystem::path& path,
    const std::map<std::string, TensorSource>& tensors,
    const std::map<std::string, std::string>& metadata);

}  // namespace seqconv::internal
