#include "seqconv/base/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "atomic_file.h"
#include "seqconv/base/error.h"
#include "seqconv/base/options.h"

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
    {ElementType::kU8, "U8", 1},
};

constexpr size_t kMaxHeader = 100'000'000;  // the format's own limit

const TypeInfo& info(ElementType type) {
  for (const TypeInfo& entry : kTypes)
    if (entry.type == type)
      return entry;
  fail("unknown element type ", static_cast<int>(type));
}

/// Refuses a name that comes twice, which nlohmann would merge silently.
Json parse_header(const char* begin, const char* end, const std::string& file) {
  std::vector<std::vector<std::string>> keys;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == Json::parse_event_t::key) {
      auto& seen = keys.back();
      const auto name = parsed.get<std::string>();
      SEQCONV_CHECK(
          keys.size() > 1 ||
              std::find(seen.begin(), seen.end(), name) == seen.end(),
          file,
          ": the header names '",
          name,
          "' twice");
      if (keys.size() == 1)
        seen.push_back(name);
    }
    return true;
  };
  try {
    return Json::parse(begin, end, watch);
  } catch (const Json::exception& error) {
    fail(file, ": the header is not JSON: ", error.what());
  }
}

struct Entry {
  std::string name;
  TensorView view;
  size_t begin;
  size_t end;
};

Entry parse_entry(
    const std::string& name,
    const Json& j,
    std::span<const std::byte> data,
    const std::string& where) {
  Entry entry{name, {}, 0, 0};
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
  entry.view.type = type->type;
  size_t bytes = type->size;
  for (const Json& size : j.at("shape")) {
    SEQCONV_CHECK(
        size.is_number_unsigned(),
        where,
        ": sizes must be whole numbers >= 0, but got ",
        size.dump());
    const auto n = size.get<uint64_t>();
    SEQCONV_CHECK(
        n == 0 || bytes <= std::numeric_limits<int64_t>::max() / n,
        where,
        ": the shape ",
        j.at("shape").dump(),
        " is too large");
    bytes *= n;
    entry.view.shape.push_back(static_cast<int64_t>(n));
  }
  entry.begin = j.at("data_offsets").at(0).get<uint64_t>();
  entry.end = j.at("data_offsets").at(1).get<uint64_t>();
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
  const Json header = parse_header(begin, begin + header_size, name);
  const std::span<const std::byte> data = bytes.subspan(8 + header_size);
  std::vector<Entry> entries;
  try {
    for (const auto& [key, value] : header.items()) {
      if (key == "__metadata__")
        metadata_ = value.get<std::map<std::string, std::string>>();
      else
        entries.push_back(parse_entry(
            key,
            value,
            data,
            concat(name, ": tensor '", key, "'")));
    }
  } catch (const Json::exception& error) {
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

void write_safetensors(
    const std::filesystem::path& path,
    const std::map<std::string, TensorView>& tensors,
    const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const auto& [name, view] : tensors) {
    const size_t bytes =
        static_cast<size_t>(view.count()) * element_size(view.type);
    SEQCONV_CHECK(
        bytes == view.data.size(),
        "tensor '",
        name,
        "' must have ",
        bytes,
        " bytes, but has ",
        view.data.size());
    header[name] = {
        {"dtype", element_name(view.type)},
        {"shape", view.shape},
        {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string head = header.dump();
  head.append((8 - head.size() % 8) % 8, ' ');
  const uint64_t head_size = head.size();
  AtomicFile file(path);
  file.write(&head_size, sizeof head_size);
  file.write(head.data(), head.size());
  for (const auto& [name, view] : tensors)
    file.write(view.data.data(), view.data.size());
  file.commit();
}

}  // namespace seqconv
