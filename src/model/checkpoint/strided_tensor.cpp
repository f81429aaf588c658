#include <cstring>

#include "base/error.h"
#include "model/checkpoint/pytorch_file.h"

namespace seqconv::internal {
namespace {

constexpr size_t kPiece = size_t{1} << 16;  // bytes, at most

/// Gathers elements into pieces.
class Gatherer {
 public:
  using Take = std::function<void(std::span<const std::byte>)>;

  Gatherer(const StridedTensor& tensor, const Take& take)
      : tensor_(tensor), size_(element_size(tensor.type)), take_(take) {}

  void run() {
    visit(0, 0);
    flush();
  }

 private:
  void visit(size_t dimension, int64_t element) {
    if (dimension == tensor_.shape.size())
      return add(element);
    for (int64_t i = 0; i < tensor_.shape[dimension]; ++i)
      visit(dimension + 1, element + i * tensor_.strides[dimension]);
  }

  void add(int64_t element) {
    std::memcpy(
        piece_ + filled_, tensor_.storage.data() + static_cast<size_t>(element) * size_, size_);
    filled_ += size_;
    if (filled_ + size_ > kPiece)
      flush();
  }

  void flush() {
    if (filled_ > 0)
      take_({piece_, filled_});
    filled_ = 0;
  }

  const StridedTensor& tensor_;
  size_t size_;
  const Take& take_;
  std::byte piece_[kPiece];
  size_t filled_ = 0;
};

}  // namespace

int64_t StridedTensor::count() const {
  int64_t total = 1;
  for (const int64_t size : shape)
    total *= size;
  return total;
}

bool StridedTensor::contiguous() const {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected)
      return false;
    expected *= shape[i];
  }
  return true;
}

void StridedTensor::visit(const std::function<void(std::span<const std::byte>)>& take) const {
  const int64_t elements = count();
  if (elements == 0)
    return;
  if (!contiguous())
    return Gatherer(*this, take).run();
  take(storage.first(static_cast<size_t>(elements) * element_size(type)));
}

StridedTensor StridedTensor::rows(int64_t begin, int64_t count) const {
  SEQCONV_CHECK(
      !shape.empty() && begin >= 0 && count >= 0 && begin + count <= shape[0],
      "rows ",
      begin,
      " to ",
      begin + count,
      " must be among the tensor's ",
      shape.empty() ? 0 : shape[0]);
  StridedTensor part = *this;
  part.shape[0] = count;
  if (count > 0)
    part.storage = storage.subspan(static_cast<size_t>(begin * strides[0]) * element_size(type));
  return part;
}

}  // namespace seqconv::internal
