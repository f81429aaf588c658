#include "model/checkpoint/pytorch_writer.h"

#include <map>

#include "base/error.h"
#include "model/checkpoint/pickle_writer.h"
#include "model/checkpoint/storage_classes.h"
#include "model/checkpoint/zip_writer.h"

namespace seqconv::internal {
namespace {

std::string_view storage_class(ElementType type) {
  for (const StorageClass& kind : kStorageClasses)
    if (kind.type == type)
      return kind.name;
  fail("unknown element type ", static_cast<int>(type));
}

/// Storages in the order of their first use.
class Storages {
 public:
  std::string key(const TensorView& view) {
    const auto [entry, added] = numbers_.emplace(view.data.data(), storages_.size());
    if (added)
      storages_.push_back(view.data);
    return std::to_string(entry->second);
  }
  const std::vector<std::span<const std::byte>>& list() const { return storages_; }

 private:
  std::map<const std::byte*, size_t> numbers_;
  std::vector<std::span<const std::byte>> storages_;
};

void write_sizes(PickleWriter& pickle, const std::vector<int64_t>& sizes) {
  pickle.begin_tuple();
  for (const int64_t size : sizes)
    pickle.integer(size);
  pickle.end_tuple();
}

std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// torch._utils._rebuild_tensor_v2(storage, offset, size, stride,
/// requires_grad, hooks).
void write_tensor(PickleWriter& pickle, const TensorView& view, const std::string& key) {
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  pickle.begin_tuple();
  pickle.begin_tuple();
  pickle.text("storage");
  pickle.global("torch", storage_class(view.type));
  pickle.text(key);
  pickle.text("cpu");
  pickle.integer(static_cast<int64_t>(view.data.size() / element_size(view.type)));
  pickle.end_tuple();
  pickle.persistent();
  pickle.integer(0);
  write_sizes(pickle, view.shape);
  write_sizes(pickle, row_major(view.shape));
  pickle.boolean(false);
  pickle.begin_ordered_dictionary();
  pickle.end_dictionary();
  pickle.end_tuple();
  pickle.call();
}

void write_tensors(
    PickleWriter& pickle, const std::vector<NamedTensor>& tensors, Storages& storages) {
  pickle.begin_ordered_dictionary();
  for (const NamedTensor& tensor : tensors) {
    pickle.text(tensor.name);
    write_tensor(pickle, tensor.view, storages.key(tensor.view));
  }
  pickle.end_dictionary();
}

std::string write_pickle(const PyTorchContent& content, Storages& storages) {
  PickleWriter pickle;
  if (content.key.empty()) {
    write_tensors(pickle, content.tensors, storages);
  } else {
    pickle.begin_dictionary();
    for (const auto& [key, value] : content.settings.items()) {
      pickle.text(key);
      pickle.json(value);
    }
    pickle.text(content.key);
    write_tensors(pickle, content.tensors, storages);
    pickle.end_dictionary();
  }
  return pickle.finish();
}

}  // namespace

void write_pytorch(const std::filesystem::path& path, const PyTorchContent& content) {
  Storages storages;
  const std::string pickle = write_pickle(content, storages);
  const auto bytes = [](std::string_view text) {
    return std::as_bytes(std::span<const char>(text.data(), text.size()));
  };
  ZipWriter zip(path);
  zip.add("archive/data.pkl", bytes(pickle));
  zip.add("archive/byteorder", bytes("little"));
  size_t number = 0;
  for (const auto& storage : storages.list())
    zip.add(concat("archive/data/", number++), storage);
  zip.add("archive/version", bytes("3\n"));
  zip.commit();
}

}  // namespace seqconv::internal
