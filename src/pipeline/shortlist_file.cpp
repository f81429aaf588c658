#include <algorithm>
#include <cstring>

#include "base/checksum.h"
#include "base/safetensors.h"
#include "base/special_ids.h"
#include "pipeline/shortlist.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kFormat = "seqconv-shortlist-";  // + version
constexpr std::string_view kVersion = "1";
constexpr const char* kCommon = "common";
constexpr const char* kListed = "listed";
constexpr const char* kEnds = "ends";
constexpr const char* kSource = "source_vocabulary";
constexpr const char* kTarget = "target_vocabulary";
constexpr const char* kSum = "checksum";

using Tensors = std::map<std::string, TensorView>;
using Texts = std::map<std::string, std::string>;

/// Over the tensors and all metadata but the checksum itself.
std::string sum_of(const Tensors& tensors, const Texts& metadata) {
  uint64_t sum = 0;
  for (const auto& [key, value] : metadata)
    if (key != kSum)
      sum = checksum(std::as_bytes(std::span(value)), sum);
  for (const auto& [name, view] : tensors)
    sum = checksum(view.data, sum);
  return checksum_text(sum);
}

template <class T>
TensorView view_of(ElementType type, const std::vector<T>& values) {
  return {type, {std::ssize(values)}, std::as_bytes(std::span(values))};
}

/// A shortlist's file while it is read.
class ShortlistReader {
 public:
  explicit ShortlistReader(const fs::path& file) : reader_(file) {
    const std::string& format = text("format");
    require(format.starts_with(kFormat), "its format is '", shorten(format), "'");
    SEQCONV_CHECK(
        format.substr(kFormat.size()) == kVersion,
        where(),
        ": this program reads shortlists of version ",
        kVersion,
        ", but got '",
        shorten(format),
        "': learn it again with seqconv shortlist");
    SEQCONV_CHECK(
        text(kSum) == sum_of(reader_.tensors(), reader_.metadata()),
        where(),
        ": the shortlist is damaged, its checksum does not fit: learn it again with seqconv "
        "shortlist");
  }

  std::string where() const { return reader_.path().string(); }

  const std::string& text(const char* key) const {
    const auto found = reader_.metadata().find(key);
    require(found != reader_.metadata().end(), "its metadata lack '", key, "'");
    return found->second;
  }

  template <class T>
  std::vector<T> numbers(const char* name, ElementType type) const {
    const TensorView& view = reader_.at(name);
    require(
        view.type == type && view.shape.size() == 1,
        "'",
        name,
        "' is ",
        element_name(view.type),
        " of shape ",
        shape_text(view.shape));
    std::vector<T> values(static_cast<size_t>(view.count()));
    if (!values.empty())
      std::memcpy(values.data(), view.data.data(), view.data.size());
    return values;
  }

  template <class... Parts>
  void require(bool fulfilled, const Parts&... parts) const {
    SEQCONV_CHECK(fulfilled, where(), ": no shortlist, ", parts...);
  }

 private:
  SafetensorsReader reader_;
};

/// Error unless words ascend and are text of the target vocabulary.
void check_words(const ShortlistReader& reader, std::span<const int32_t> words, int64_t symbols) {
  int64_t least = kSpecialIds;
  for (const int32_t word : words) {
    reader.require(
        word >= least && word < symbols,
        "it lists word ",
        word,
        " where one from ",
        least,
        " to ",
        symbols - 1,
        " must stand");
    least = int64_t{word} + 1;
  }
}

}  // namespace

Shortlist::Side::Side(const Vocabulary& vocabulary) : symbols(vocabulary.size()) {
  uint64_t words = 0;
  for (const std::string& symbol : vocabulary.symbols())
    words = checksum(std::as_bytes(std::span(symbol)), words);
  sum = checksum_text(words);
}

std::string Shortlist::Side::description() const {
  return concat(symbols, " symbols, checksum ", sum);
}

void Shortlist::write(const fs::path& file) const {
  const Tensors tensors = {
      {kCommon, view_of(ElementType::kI32, common_)},
      {kListed, view_of(ElementType::kI32, listed_)},
      {kEnds, view_of(ElementType::kI64, ends_)}};
  Texts metadata = {
      {"format", concat(kFormat, kVersion)},
      {kSource, source_.description()},
      {kTarget, target_.description()}};
  metadata[kSum] = sum_of(tensors, metadata);
  write_safetensors(file, tensors, metadata);
}

Shortlist Shortlist::load(const fs::path& file, const TranslationText& text) {
  const ShortlistReader reader(file);
  Shortlist read(text);
  for (const auto& [key, name, side] :
       {std::tuple{kSource, "source", &read.source_}, {kTarget, "target", &read.target_}})
    SEQCONV_CHECK(
        reader.text(key) == side->description(),
        file.string(),
        ": the shortlist is of another ",
        name,
        " vocabulary than the model: ",
        shorten(reader.text(key)),
        ", not ",
        side->description());
  read.common_ = reader.numbers<int32_t>(kCommon, ElementType::kI32);
  read.listed_ = reader.numbers<int32_t>(kListed, ElementType::kI32);
  read.ends_ = reader.numbers<int64_t>(kEnds, ElementType::kI64);
  reader.require(
      std::ssize(read.ends_) == read.source_.symbols &&
          read.ends_.back() == std::ssize(read.listed_) && read.ends_.front() >= 0 &&
          std::ranges::is_sorted(read.ends_),
      "its lists do not end where they should");
  check_words(reader, read.common_, read.target_.symbols);
  for (int32_t word = 0; word < read.source_.symbols; ++word)
    check_words(reader, read.listed(word), read.target_.symbols);
  return read;
}

}  // namespace seqconv::internal
