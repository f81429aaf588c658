#include "model/checkpoint/pytorch_file.h"

#include <cstring>
#include <limits>
#include <set>

#include "base/error.h"
#include "model/checkpoint/storage_classes.h"
#include "model/checkpoint/zip_archive.h"

namespace seqconv::internal {
namespace {

constexpr size_t kMostDimensions = 8;

/// What stands in the tuple of a persistent id.
struct StorageId {
  const StorageClass* kind = nullptr;
  std::string_view name;  ///< of the class, for messages
  std::string key;
  int64_t count = 0;  ///< elements
};

/// ("storage", class, key, device, count[, view]), or empty.
std::optional<StorageId> storage_id(const PickleValue& value) {
  if (!value.is(PickleKind::kPersistent))
    return {};
  const auto parts = value.arguments().elements();
  if (parts.size() < 5 || !parts[0].is(PickleKind::kString) || parts[0].node().text != "storage" ||
      !parts[1].is(PickleKind::kGlobal) || !parts[2].is(PickleKind::kString) ||
      !parts[4].is(PickleKind::kInt))
    return {};
  if (parts.size() > 5 && !parts[5].is_none())  // a view, before PyTorch 0.4
    return {};
  StorageId id{
      .name = parts[1].node().text,
      .key = std::string(parts[2].node().text),
      .count = parts[4].node().integer};
  const std::string_view name = id.name.substr(id.name.find_last_of('.') + 1);
  for (const StorageClass& kind : kStorageClasses)
    if (kind.name == name)
      id.kind = &kind;
  return id;
}

/// A tuple of sizes or strides.
std::optional<std::vector<int64_t>> whole_numbers(const PickleValue& value) {
  std::vector<int64_t> numbers;
  if (!value.is(PickleKind::kTuple) && !value.is(PickleKind::kList))
    return {};
  for (const PickleValue& element : value.elements()) {
    if (!element.is(PickleKind::kInt) || element.node().integer < 0)
      return {};
    numbers.push_back(element.node().integer);
  }
  return numbers;
}

bool multiply(int64_t a, int64_t b, int64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

/// Elements from a tensor's first to behind its last one, or -1 on overflow.
int64_t extent(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0)
      return 0;
    int64_t reach = 0;
    if (!multiply(shape[i] - 1, strides[i], reach) || __builtin_add_overflow(last, reach, &last))
      return -1;
  }
  return last == std::numeric_limits<int64_t>::max() ? -1 : last + 1;
}

/// The arguments that matter of torch._utils._rebuild_tensor and _v2 (storage,
/// offset, size, stride, ...), through _rebuild_parameter.
std::optional<std::vector<PickleValue>> tensor_arguments(PickleValue value) {
  if (value.is_object("torch._utils._rebuild_parameter")) {
    const auto outer = value.arguments().elements();
    if (outer.empty())
      return {};
    value = outer[0];
  }
  if (!value.is_object("torch._utils._rebuild_tensor_v2") &&
      !value.is_object("torch._utils._rebuild_tensor"))
    return {};
  auto arguments = value.arguments().elements();
  if (arguments.size() < 4)
    return {};
  return arguments;
}

}  // namespace

struct PyTorchFile::Storages {
  std::map<std::string, std::span<const std::byte>> bytes;
  std::optional<ZipArchive> archive;
  std::string folder;  ///< of the archive's storages
  std::set<std::string> checked;
};

PyTorchFile::PyTorchFile(const std::filesystem::path& path) : file_(path), where_(path.string()) {
  open(file_.bytes());
}

PyTorchFile::PyTorchFile(std::span<const std::byte> bytes, std::string where)
    : where_(std::move(where)) {
  open(bytes);
}

void PyTorchFile::open(std::span<const std::byte> bytes) {
  storages_ = std::make_shared<Storages>();
  if (ZipArchive::begins(bytes))
    open_archive(bytes);
  else
    open_legacy(bytes);
}

void PyTorchFile::open_archive(std::span<const std::byte> bytes) {
  const ZipArchive& archive = storages_->archive.emplace(bytes, where_);
  std::string top;
  static constexpr std::string_view kPickle = "/data.pkl";
  for (const auto& [name, content] : archive.files())
    if (name.ends_with(kPickle) && name.find('/') + kPickle.size() == name.size())
      top = name.substr(0, name.size() - kPickle.size() + 1);
  SEQCONV_CHECK(!top.empty(), where_, ": not a PyTorch file: the archive holds no data.pkl");
  const auto order = archive.files().find(top + "byteorder");
  if (order != archive.files().end()) {
    const std::string_view text(
        reinterpret_cast<const char*>(order->second.data()), order->second.size());
    SEQCONV_CHECK(text == "little", where_, ": the byte order must be little, but is '", text, "'");
  }
  archive.check(top + "data.pkl");
  size_t consumed = 0;
  pickle_ = std::make_unique<Pickle>(archive.files().at(top + "data.pkl"), where_, consumed);
  storages_->folder = top + "data/";
  for (const auto& [name, content] : archive.files())
    if (name.starts_with(storages_->folder))
      storages_->bytes[name.substr(storages_->folder.size())] = content;
}

void PyTorchFile::open_legacy(std::span<const std::byte> bytes) {
  size_t at = 0;
  const auto next = [&] {
    size_t consumed = 0;
    auto pickle = std::make_unique<Pickle>(bytes.subspan(at), where_, consumed);
    at += consumed;
    return pickle;
  };
  // The pickle of the number 0x1950a86a20f9469cfc6c, which no int64 holds.
  static constexpr uint8_t kMagic[] = {
      0x80, 2, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};
  SEQCONV_CHECK(
      bytes.size() > sizeof kMagic && std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0,
      where_,
      ": not a PyTorch file: it begins neither as a zip archive nor as the files before PyTorch "
      "1.6");
  at = sizeof kMagic;
  const auto version = next();
  SEQCONV_CHECK(
      version->root().is(PickleKind::kInt) && version->root().node().integer == 1001,
      where_,
      ": the version of the container must be 1001, but is ",
      version->root().is(PickleKind::kInt) ? std::to_string(version->root().node().integer)
                                           : version->root().description());
  const auto system = next();
  const PickleValue little = system->root().find("little_endian");
  SEQCONV_CHECK(
      !little.is(PickleKind::kBool) || little.node().integer != 0,
      where_,
      ": the byte order must be little-endian, but the file says it is not");
  pickle_ = next();
  const auto keys = next();
  read_legacy_storages(bytes.subspan(at), keys->root());
}

/// Behind the pickles: of each storage its number of elements, then these.
void PyTorchFile::read_legacy_storages(std::span<const std::byte> bytes, const PickleValue& keys) {
  std::map<std::string, int64_t> element_sizes;
  for (PickleId id = 0; id < pickle_->nodes().size(); ++id)
    if (const auto storage = storage_id({*pickle_, id}); storage && storage->kind)
      element_sizes[storage->key] = storage->kind->element_size;
  size_t at = 0;
  for (const PickleValue& key : keys.elements()) {
    const std::string name(key.node().text);
    const auto size = element_sizes.find(name);
    SEQCONV_CHECK(
        key.is(PickleKind::kString) && size != element_sizes.end(),
        where_,
        ": the storage '",
        name,
        "' must be one that the file's objects use, of a type known to PyTorch 2");
    int64_t count = 0;
    SEQCONV_CHECK(
        bytes.size() - at >= sizeof count,
        where_,
        ": the file is cut off before storage '",
        name,
        "'");
    std::memcpy(&count, bytes.data() + at, sizeof count);
    at += sizeof count;
    int64_t length = 0;
    SEQCONV_CHECK(
        count >= 0 && multiply(count, size->second, length) &&
            static_cast<uint64_t>(length) <= bytes.size() - at,
        where_,
        ": the file is cut off: storage '",
        name,
        "' must have ",
        count,
        " elements, but only ",
        bytes.size() - at,
        " bytes follow");
    storages_->bytes[name] = bytes.subspan(at, static_cast<size_t>(length));
    at += static_cast<size_t>(length);
  }
}

bool PyTorchFile::is_tensor(const PickleValue& value) {
  return tensor_arguments(value).has_value();
}

StridedTensor PyTorchFile::tensor(const PickleValue& value, const std::string& name) const {
  const std::string what = concat(where_, ": '", name, "'");
  const auto arguments = tensor_arguments(value);
  SEQCONV_CHECK(arguments, what, " must be a tensor, but is ", value.description());
  const auto id = storage_id((*arguments)[0]);
  SEQCONV_CHECK(id, what, ": its storage is not described as PyTorch does it");
  SEQCONV_CHECK(
      id->kind && id->kind->type,
      what,
      " must hold float16, bfloat16, float32, float64, int32, int64 or uint8 numbers, but has a ",
      id->name);
  const auto found = storages_->bytes.find(id->key);
  SEQCONV_CHECK(
      found != storages_->bytes.end(), what, ": its storage '", id->key, "' is not in the file");
  const PickleValue& offset = (*arguments)[1];
  const auto shape = whole_numbers((*arguments)[2]);
  const auto strides = whole_numbers((*arguments)[3]);
  SEQCONV_CHECK(
      offset.is(PickleKind::kInt) && offset.node().integer >= 0 && shape && strides &&
          shape->size() == strides->size() && shape->size() <= kMostDimensions,
      what,
      ": offset, sizes and strides must be whole numbers that are not negative, as many strides as "
      "sizes, and at most ",
      kMostDimensions);
  const int64_t size = id->kind->element_size;
  const auto stored = static_cast<int64_t>(found->second.size()) / size;
  const int64_t begin = offset.node().integer;
  const int64_t reach = extent(*shape, *strides);
  SEQCONV_CHECK(
      reach >= 0 && begin <= stored && reach <= stored - begin,
      what,
      " reaches outside its storage of ",
      stored,
      " elements");
  StridedTensor tensor{
      *id->kind->type, *shape, *strides, found->second.subspan(static_cast<size_t>(begin * size))};
  // Expanded tensors (stride 0) would unfold into any number of elements.
  int64_t count = 1;
  for (const int64_t side : *shape)
    SEQCONV_CHECK(
        multiply(count, side, count) && (reach == 0 || count <= stored),
        what,
        " repeats its elements: it has more than its storage's ",
        stored);
  return tensor;
}

void PyTorchFile::check_storage(const PickleValue& tensor) const {
  if (!storages_->archive)
    return;
  const auto arguments = tensor_arguments(tensor);
  const auto id = arguments ? storage_id((*arguments)[0]) : std::nullopt;
  if (id && storages_->checked.insert(id->key).second)
    storages_->archive->check(storages_->folder + id->key);
}

}  // namespace seqconv::internal
