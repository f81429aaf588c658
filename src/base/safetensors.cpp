#include "seqconv/base/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "json_guard.h"
#include "seqconv/base/atomic_file.h"
#include "seqconv/base/error.h"

namespace seqconv {
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
constexpr size_t kMaxDepth = 4;  // object, tensor, list; deeper is an attack
constexpr const char* kMetadata = "__metadata__";

/// Keys in a tree: a header may hold a million of them.
using Header = nlohmann::json;

const TypeInfo& info(ElementType type) {
  for (const TypeInfo& entry : kTypes)
    if (entry.type == type)
      return entry;
  fail("unknown element type ", static_cast<int>(type));
}

Header
parse_header(const char* begin, const char* end, const std::string& file) {
  const std::string_view text(begin, static_cast<size_t>(end - begin));
  JsonGuard::check(text, kMaxDepth, file + ": header");
  return Header::parse(text);
}

struct Entry {
  std::string name;
  TensorView view;
  size_t begin;
  size_t end;
};

/// A list of whole numbers that fit into int64.
std::vector<int64_t>
parse_sizes(const Header& entry, const char* key, const std::string& where) {
  const Header& list = entry.at(key);
  SEQCONV_CHECK(
      list.is_array(),
      where,
      ": ",
      key,
      " must be a list, but got ",
      list.dump());
  std::vector<int64_t> sizes;
  for (const Header& size : list) {
    SEQCONV_CHECK(
        size.is_number_unsigned() &&
            size.get<uint64_t>() <=
                static_cast<uint64_t>(std::numeric_limits<int64_t>::max()),
        where,
        ": sizes must be whole numbers from 0 to 2^63 - 1, but got ",
        size.dump());
    sizes.push_back(size.get<int64_t>());
  }
  return sizes;
}

/// Bytes of a tensor; Error where the product overflows.
size_t byte_size(
    const std::vector<int64_t>& shape,
    size_t element,
    const std::string& where) {
  uint64_t bytes = element;
  for (const int64_t size : shape) {
    const auto n = static_cast<uint64_t>(size);
    SEQCONV_CHECK(
        n == 0 || bytes <= std::numeric_limits<int64_t>::max() / n,
        where,
        ": the shape ",
        Header(shape).dump(),
        " is too large");
    bytes *= n;
  }
  return bytes;
}

Entry parse_entry(
    const std::string& name,
    const Header& j,
    std::span<const std::byte> data,
    const std::string& where) {
  const auto type_name = j.at("dtype").get<std::string>();
  const auto* type = std::find_if(
      std::begin(kTypes),
      std::end(kTypes),
      [&](const TypeInfo& t) { return t.name == type_name; });
  SEQCONV_CHECK(
      type != std::end(kTypes),
      where,
      ": unknown element type ",
      type_name);
  Entry entry{name, {type->type, parse_sizes(j, "shape", where), {}}, 0, 0};
  const size_t bytes = byte_size(entry.view.shape, type->size, where);
  const auto offsets = parse_sizes(j, "data_offsets", where);
  SEQCONV_CHECK(
      offsets.size() == 2,
      where,
      ": data_offsets must be two numbers, but got ",
      offsets.size());
  entry.begin = static_cast<size_t>(offsets[0]);
  entry.end = static_cast<size_t>(offsets[1]);
  SEQCONV_CHECK(
      entry.begin <= entry.end && entry.end <= data.size() &&
          entry.end - entry.begin == bytes,
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

void check_no_holes(
    std::vector<Entry>& entries,
    size_t size,
    const std::string& file) {
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

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : file_(path) {
  const std::string name = path.string();
  const std::span<const std::byte> bytes = file_.bytes();
  uint64_t header_size = 0;
  SEQCONV_CHECK(
      bytes.size() >= 8,
      name,
      ": not a safetensors file, only ",
      bytes.size(),
      " bytes");
  std::memcpy(&header_size, bytes.data(), 8);
  SEQCONV_CHECK(
      header_size <= kMaxHeader && header_size <= bytes.size() - 8,
      name,
      ": a header of ",
      header_size,
      " bytes is announced, but the file has ",
      bytes.size(),
      " (truncated, or not a safetensors file)");
  const char* begin = reinterpret_cast<const char*>(bytes.data()) + 8;
  SEQCONV_CHECK(
      header_size > 0 && *begin == '{',
      name,
      ": the header does not start with '{' (not a safetensors file)");
  const Header header = parse_header(begin, begin + header_size, name);
  const std::span<const std::byte> data = bytes.subspan(8 + header_size);
  std::vector<Entry> entries;
  try {
    for (const auto& [key, value] : header.items()) {
      if (key == kMetadata)
        metadata_ = value.get<std::map<std::string, std::string>>();
      else
        entries.push_back(parse_entry(
            key,
            value,
            data,
            concat(name, ": tensor '", key, "'")));
    }
  } catch (const Header::exception& error) {
    fail(name, ": the header is malformed: ", error.what());
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
std::vector<const NamedSource*> writing_order(
    const std::map<std::string, TensorSource>& tensors) {
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
    SEQCONV_CHECK(
        name != kMetadata,
        where,
        ": the name is reserved for metadata");
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
  } catch (const Header::exception& error) {
    fail(path.string(), ": names and metadata must be UTF-8: ", error.what());
  }
}

}  // namespace

size_t tensor_bytes(
    ElementType type,
    const std::vector<int64_t>& shape,
    const std::string& where) {
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
    SEQCONV_CHECK(
        written == bytes,
        where,
        " must have ",
        bytes,
        " bytes, but has ",
        written);
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
        view.type,
        view.shape,
        [data = view.data](const ByteSink& sink) { sink(data); }};
  stream_safetensors(path, sources, metadata);
}

}  // namespace seqconv
