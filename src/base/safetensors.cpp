#include "base/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json_guard.h"

namespace seqconv::internal {
namespace {

struct TypeInfo {
  ElementType type;
  std::string_view name;
  size_t size;
};

constexpr TypeInfo kTypes[] = {
    {ElementType::kF64, "F64", 8},
    {ElementType::kF32, "F32", 4},
    {ElementType::kF16, "F16", 2},
    {ElementType::kBF16, "BF16", 2},
    {ElementType::kI64, "I64", 8},
    {ElementType::kI32, "I32", 4},
    {ElementType::kI8, "I8", 1},
    {ElementType::kU8, "U8", 1},
};

constexpr size_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr const char* kMetadata = "__metadata__";
constexpr std::string_view kBlanks = " \t\n\r";  // JSON's

/// Keys in a tree: a header may hold a million of them.
using Header = nlohmann::json;

const TypeInfo& info(ElementType type) {
  for (const TypeInfo& entry : kTypes)
    if (entry.type == type)
      return entry;
  fail("unknown element type ", static_cast<int>(type));
}

Header parse_header(std::string_view text, const std::string& file) {
  JsonGuard::check(text, kMaxJsonDepth, file + ": header");
  return Header::parse(text);
}

struct Entry {
  std::string name;
  TensorView view;
  size_t begin;
  size_t end;
};

std::string shown(const Header& value) {
  return shorten(value.dump(-1, ' ', false, Header::error_handler_t::replace));
}

/// The value of a tensor's key.
const Header& member(const Header& entry, const char* key, const std::string& where) {
  SEQCONV_CHECK(
      entry.is_object(),
      where,
      ": an object with dtype, shape and data_offsets was wanted, but got ",
      shown(entry));
  const auto found = entry.find(key);
  SEQCONV_CHECK(found != entry.end(), where, ": the key '", key, "' is missing");
  return *found;
}

/// A list of whole numbers that fit into int64.
std::vector<int64_t> parse_sizes(const Header& entry, const char* key, const std::string& where) {
  const Header& list = member(entry, key, where);
  SEQCONV_CHECK(list.is_array(), where, ": ", key, " must be a list, but got ", shown(list));
  std::vector<int64_t> sizes;
  for (const Header& size : list) {
    SEQCONV_CHECK(
        size.is_number_unsigned() &&
            size.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()),
        where,
        ": ",
        key,
        " must hold whole numbers from 0 to 2^63 - 1, but got ",
        shown(size));
    sizes.push_back(size.get<int64_t>());
  }
  return sizes;
}

/// The element type that a tensor names.
const TypeInfo& parse_type(const Header& entry, const std::string& where) {
  const Header& name = member(entry, "dtype", where);
  std::string known;
  for (const TypeInfo& type : kTypes) {
    if (name == std::string(type.name))
      return type;
    known += concat(known.empty() ? "" : ", ", type.name);
  }
  fail(where, ": an element type (dtype) of ", known, " was wanted, but got ", shown(name));
}

/// Texts by their names; there may be none.
std::map<std::string, std::string> parse_metadata(const Header& table, const std::string& file) {
  std::map<std::string, std::string> metadata;
  if (table.is_null())
    return metadata;
  const std::string where = concat(file, ": ", kMetadata);
  SEQCONV_CHECK(table.is_object(), where, " must be an object of texts, but got ", shown(table));
  for (const auto& [key, value] : table.items()) {
    SEQCONV_CHECK(
        value.is_string(), where, ": '", shorten(key), "' must be a text, but got ", shown(value));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// Bytes of a tensor; Error where the product overflows.
size_t byte_size(const std::vector<int64_t>& shape, size_t element, const std::string& where) {
  uint64_t bytes = 1;
  const auto multiply = [&](uint64_t n) {
    SEQCONV_CHECK(
        n == 0 || bytes <= std::numeric_limits<int64_t>::max() / n,
        where,
        ": the shape ",
        shape_text(shape),
        " is too large");
    bytes *= n;
  };
  for (const int64_t size : shape)
    multiply(static_cast<uint64_t>(size));
  multiply(element);
  return bytes;
}

Entry parse_entry(
    const std::string& name,
    const Header& j,
    std::span<const std::byte> data,
    const std::string& where) {
  const TypeInfo& type = parse_type(j, where);
  Entry entry{name, {type.type, parse_sizes(j, "shape", where), {}}, 0, 0};
  const size_t bytes = byte_size(entry.view.shape, type.size, where);
  const auto offsets = parse_sizes(j, "data_offsets", where);
  SEQCONV_CHECK(
      offsets.size() == 2, where, ": data_offsets must be two numbers, but got ", offsets.size());
  entry.begin = static_cast<size_t>(offsets[0]);
  entry.end = static_cast<size_t>(offsets[1]);
  SEQCONV_CHECK(
      entry.begin <= entry.end && entry.end <= data.size() && entry.end - entry.begin == bytes,
      where,
      ": wants bytes ",
      entry.begin,
      " to ",
      entry.end,
      " for ",
      bytes,
      " bytes of data, but the file holds ",
      data.size());
  entry.view.data = data.subspan(entry.begin, bytes);
  return entry;
}

void check_no_holes(std::vector<Entry>& entries, size_t size, const std::string& file) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  size_t position = 0;
  for (const Entry& entry : entries) {
    SEQCONV_CHECK(
        entry.begin == position,
        file,
        ": tensor '",
        entry.name,
        "' begins at byte ",
        entry.begin,
        ", but ",
        position,
        " was wanted");
    position = entry.end;
  }
  SEQCONV_CHECK(
      position == size,
      file,
      ": the tensors end at byte ",
      position,
      ", but the file holds ",
      size,
      " bytes of data");
}

}  // namespace

size_t element_size(ElementType type) {
  return info(type).size;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += concat(i ? ", " : "", shape[i]);
  return text + "]";
}

std::string_view element_name(ElementType type) {
  return info(type).name;
}

int64_t TensorView::count() const {
  int64_t n = 1;
  for (int64_t size : shape)
    n *= size;
  return n;
}

SafetensorsReader::SafetensorsReader(const RootedPath& path) : file_(path) {
  const std::string name = path.string();
  const std::span<const std::byte> bytes = file_.bytes();
  uint64_t header_size = 0;
  SEQCONV_CHECK(bytes.size() >= 8, name, ": not a safetensors file, only ", bytes.size(), " bytes");
  std::memcpy(&header_size, bytes.data(), 8);
  SEQCONV_CHECK(
      header_size <= kMaxHeader && header_size <= bytes.size() - 8,
      name,
      ": a header of ",
      header_size,
      " bytes is announced, but the file has ",
      bytes.size(),
      " (truncated, or not a safetensors file)");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, header_size);
  const size_t first = text.find_first_not_of(kBlanks);
  SEQCONV_CHECK(
      first != std::string_view::npos && text[first] == '{',
      name,
      ": the header does not start with '{' (not a safetensors file)");
  const Header header = parse_header(text, name);
  const std::span<const std::byte> data = bytes.subspan(8 + header_size);
  std::vector<Entry> entries;
  for (const auto& [key, value] : header.items()) {
    if (key == kMetadata)
      metadata_ = parse_metadata(value, name);
    else
      entries.push_back(
          parse_entry(key, value, data, concat(name, ": tensor '", shorten(key), "'")));
  }
  check_no_holes(entries, data.size(), name);
  for (Entry& entry : entries)
    tensors_.emplace(entry.name, std::move(entry.view));
}

const TensorView& SafetensorsReader::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end())
    return found->second;
  std::vector<std::string> names;
  for (const auto& [key, view] : tensors_)
    names.push_back(key);
  const std::string nearest = nearest_word(name, names);
  fail(
      path().string(),
      ": no tensor '",
      name,
      "'",
      nearest.empty() ? "" : "; the nearest is '" + nearest + "'");
}

namespace {

using NamedSource = std::pair<const std::string, TensorSource>;

/// Wide elements first: every tensor then starts at a multiple of its
/// element's size.
std::vector<const NamedSource*> writing_order(const std::map<std::string, TensorSource>& tensors) {
  std::vector<const NamedSource*> order;
  for (const NamedSource& tensor : tensors)
    order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return element_size(a->second.type) > element_size(b->second.type);
  });
  return order;
}

std::string place(const std::filesystem::path& path, const std::string& name) {
  return concat(path.string(), ": tensor '", name, "'");
}

std::string header_text(
    const std::vector<const NamedSource*>& order,
    const std::map<std::string, std::string>& metadata,
    const std::filesystem::path& path) {
  Header header = Header::object();
  size_t offset = 0;
  for (const NamedSource* tensor : order) {
    const auto& [name, source] = *tensor;
    const std::string where = place(path, name);
    SEQCONV_CHECK(name != kMetadata, where, ": the name is reserved for metadata");
    const size_t bytes = tensor_bytes(source.type, source.shape, where);
    header[name] = {
        {"dtype", element_name(source.type)},
        {"shape", source.shape},
        {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  if (!metadata.empty())
    header[kMetadata] = metadata;
  try {
    std::string text = header.dump();
    text.append((8 - text.size() % 8) % 8, ' ');
    return text;
  } catch (const Header::exception&) {
    fail(path.string(), ": names and metadata must be UTF-8");
  }
}

}  // namespace

size_t tensor_bytes(ElementType type, const std::vector<int64_t>& shape, const std::string& where) {
  for (const int64_t size : shape)
    SEQCONV_CHECK(size >= 0, where, ": sizes must be >= 0, but got ", size);
  return byte_size(shape, element_size(type), where);
}

void stream_safetensors(
    const std::filesystem::path& path,
    const std::map<std::string, TensorSource>& tensors,
    const std::map<std::string, std::string>& metadata) {
  const auto order = writing_order(tensors);
  const std::string head = header_text(order, metadata, path);
  const uint64_t head_size = head.size();
  AtomicFile file(path);
  file.write(&head_size, sizeof head_size);
  file.write(head.data(), head.size());
  for (const NamedSource* tensor : order) {
    const auto& [name, source] = *tensor;
    const std::string where = place(path, name);
    size_t written = 0;
    source.produce([&](std::span<const std::byte> piece) {
      file.write(piece.data(), piece.size());
      written += piece.size();
    });
    const size_t bytes = tensor_bytes(source.type, source.shape, where);
    SEQCONV_CHECK(written == bytes, where, " must have ", bytes, " bytes, but has ", written);
  }
  file.commit();
}

void write_safetensors(
    const std::filesystem::path& path,
    const std::map<std::string, TensorView>& tensors,
    const std::map<std::string, std::string>& metadata) {
  std::map<std::string, TensorSource> sources;
  for (const auto& [name, view] : tensors)
    sources[name] = {
        view.type, view.shape, [data = view.data](const ByteSink& sink) { sink(data); }};
  stream_safetensors(path, sources, metadata);
}

}  // namespace seqconv::internal
