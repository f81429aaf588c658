#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/safetensors.h"
#include "model/checkpoint/pickle.h"

namespace seqconv::internal {

/// A tensor inside a file's storage, any strides.
struct StridedTensor {
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;        ///< in elements, a size each, >= 0
  std::span<const std::byte> storage;  ///< from the first element on

  int64_t count() const;
  /// True when the elements lie one after the other in row-major order.
  bool contiguous() const;
  /// Gives the elements' bytes, little-endian and in row-major order, to `take`
  /// in pieces of some thousand elements at most (or one, when contiguous).
  void visit(const std::function<void(std::span<const std::byte>)>& take) const;
  /// Rows [begin, begin + count) of the first dimension.
  StridedTensor rows(int64_t begin, int64_t count) const;
};

/// A file that torch.save has written, memory-mapped: the zip container of
/// PyTorch 1.6 and later, or the older one. Reading executes nothing (see
/// Pickle), and every tensor is checked against its storage's bytes.
class PyTorchFile {
 public:
  /// Error, naming the file, when it is neither, is cut off or damaged.
  explicit PyTorchFile(const std::filesystem::path& path);
  /// The same for bytes in memory, which must outlive the object.
  PyTorchFile(std::span<const std::byte> bytes, std::string where);
  PyTorchFile(PyTorchFile&&) noexcept = default;

  /// The object that was saved.
  PickleValue root() const { return pickle_->root(); }
  const Pickle& pickle() const { return *pickle_; }
  /// True for what torch.save makes of a tensor or parameter.
  static bool is_tensor(const PickleValue& value);
  /// The tensor of `value`. Error, beginning with the file and `name`, when the
  /// object is another one, has a type that models do not use, or reaches
  /// outside its storage.
  StridedTensor tensor(const PickleValue& value, const std::string& name) const;
  /// Error when the tensor's storage does not have the sum that the archive
  /// says. (The older container has no sums.)
  void check_storage(const PickleValue& tensor) const;
  /// Lets the system take back the memory of what has been read so far.
  void release() const { file_.release(); }

  const std::string& where() const { return where_; }

 private:
  struct Storages;

  void open(std::span<const std::byte> bytes);
  void open_archive(std::span<const std::byte> bytes);
  void open_legacy(std::span<const std::byte> bytes);
  void read_legacy_storages(std::span<const std::byte> bytes, const PickleValue& keys);

  MappedFile file_;
  std::string where_;
  std::unique_ptr<Pickle> pickle_;
  std::shared_ptr<Storages> storages_;
};

}  // namespace seqconv::internal
