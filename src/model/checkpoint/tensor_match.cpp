#include "model/checkpoint/tensor_match.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"

namespace seqconv::internal {
namespace {

constexpr size_t kMostListed = 60;

std::vector<int64_t> without_ones(std::vector<int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMostListed; ++i)
    text += (i == 0 ? " " : ", ") + names[i];
  if (names.size() > kMostListed)
    text += concat(" and ", names.size() - kMostListed, " more");
  return text;
}

/// The bytes of a tensor as visit() gives them.
std::vector<std::byte> bytes_of(const StridedTensor& tensor) {
  std::vector<std::byte> bytes;
  tensor.visit([&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  return bytes;
}

class Matcher {
 public:
  Matcher(const FairseqLayout& layout, const FairseqCheckpoint& checkpoint)
      : layout_(layout), checkpoint_(checkpoint) {}

  std::vector<MatchedParameter> run() {
    std::vector<MatchedParameter> matched;
    for (const Correspondence& parameter : layout_.parameters)
      if (const auto* parts = find(parameter))
        matched.push_back({parameter.ours, *parts});
    for (const SharedTensor& shared : layout_.shared)
      if (has(shared.copy))
        used_.insert(shared.copy);
    check_lists();
    for (const MatchedParameter& parameter : matched)
      check_shape(parameter);
    check_shared();
    return matched;
  }

 private:
  bool has(const std::string& name) const { return checkpoint_.tensors().contains(name); }

  /// The alternative whose tensors are all there, or null (and noted).
  const std::vector<FairseqRows>* find(const Correspondence& parameter) {
    for (const auto& parts : parameter.alternatives)
      if (std::all_of(
              parts.begin(), parts.end(), [&](const auto& part) { return has(part.name); })) {
        for (const FairseqRows& part : parts)
          used_.insert(part.name);
        return &parts;
      }
    for (const FairseqRows& part : parameter.alternatives.at(0))
      if (!has(part.name))
        missing_.push_back(part.name);
    return nullptr;
  }

  void check_lists() const {
    std::vector<std::string> left_over;
    for (const auto& [name, tensor] : checkpoint_.tensors())
      if (!used_.contains(name))
        left_over.push_back(name);
    if (missing_.empty() && left_over.empty())
      return;
    fail(
        checkpoint_.where(),
        ": the tensors do not make up the model that was found",
        missing_.empty() ? "" : concat("; missing:", list(missing_)),
        left_over.empty() ? "" : concat("; left over:", list(left_over)));
  }

  void check_shape(const MatchedParameter& parameter) const {
    std::vector<int64_t> found;
    for (const FairseqRows& part : parameter.parts) {
      const StridedTensor tensor = rows_of(checkpoint_, part);
      check_type(part, tensor, parameter);
      std::vector<int64_t> shape = tensor.shape;
      if (parameter.parts.size() == 1 && part.count < 0)
        shape = without_ones(shape);
      if (found.empty())
        found = shape;
      else if (!shape.empty() && shape.size() == found.size())
        found[0] += shape[0];
    }
    const std::vector<int64_t>& wanted = parameter.ours.shape;
    SEQCONV_CHECK(
        without_ones(found) == without_ones(wanted),
        checkpoint_.where(),
        ": '",
        parameter.parts[0].name,
        "' must have shape ",
        shape_text(wanted),
        parameter.parts.size() > 1 ? " with what follows it" : "",
        ", but has ",
        shape_text(found));
  }

  void check_type(
      const FairseqRows& part,
      const StridedTensor& tensor,
      const MatchedParameter& parameter) const {
    const bool floating = tensor.type == ElementType::kF16 || tensor.type == ElementType::kBF16 ||
        tensor.type == ElementType::kF32 || tensor.type == ElementType::kF64;
    const ElementType first = checkpoint_.tensors().at(parameter.parts[0].name).type;
    SEQCONV_CHECK(
        floating && tensor.type == first,
        checkpoint_.where(),
        ": '",
        part.name,
        "' must be of a floating-point type, that of its neighbours, but is ",
        element_name(tensor.type));
  }

  void check_shared() const {
    for (const SharedTensor& shared : layout_.shared)
      SEQCONV_CHECK(
          !has(shared.copy) ||
              same_bits(checkpoint_.read(shared.copy), checkpoint_.read(shared.original)),
          checkpoint_.where(),
          ": '",
          shared.copy,
          "' and '",
          shared.original,
          "' must be equal: the model shares them");
  }

  const FairseqLayout& layout_;
  const FairseqCheckpoint& checkpoint_;
  std::set<std::string> used_;
  std::vector<std::string> missing_;
};

}  // namespace

std::vector<MatchedParameter> match_tensors(
    const FairseqLayout& layout, const FairseqCheckpoint& checkpoint) {
  return Matcher(layout, checkpoint).run();
}

StridedTensor rows_of(const FairseqCheckpoint& checkpoint, const FairseqRows& part) {
  const StridedTensor& tensor = checkpoint.tensors().at(part.name);
  if (part.count < 0)
    return tensor;
  SEQCONV_CHECK(
      !tensor.shape.empty() && tensor.shape[0] == part.total,
      checkpoint.where(),
      ": '",
      part.name,
      "' must have ",
      part.total,
      " rows, but has shape ",
      shape_text(tensor.shape));
  return tensor.rows(part.begin, part.count);
}

bool same_bits(const StridedTensor& a, const StridedTensor& b) {
  if (a.type != b.type || a.shape != b.shape)
    return false;
  if (a.storage.data() == b.storage.data() && a.strides == b.strides)
    return true;
  if (!a.contiguous() || !b.contiguous())
    return bytes_of(a) == bytes_of(b);
  const size_t size = static_cast<size_t>(a.count()) * element_size(a.type);
  return size == 0 || std::memcmp(a.storage.data(), b.storage.data(), size) == 0;
}

}  // namespace seqconv::internal
