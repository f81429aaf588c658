#pragma once

#include <ATen/ATen.h>

#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/safetensors.h"
#include "support/golden_case.h"

/// Golden cases as tensors.
namespace seqconv::internal::testing {

/// One file: its tensors in float64 (or int64) and its metadata.
struct TensorCase {
  std::string name;
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::string> metadata;

  bool has(const std::string& tensor) const { return tensors.find(tensor) != tensors.end(); }
  const at::Tensor& at(const std::string& tensor) const {
    const auto found = tensors.find(tensor);
    SEQCONV_CHECK(found != tensors.end(), "golden case ", name, " must hold ", tensor);
    return found->second;
  }
  std::string text(const std::string& key, const std::string& missing) const {
    const auto found = metadata.find(key);
    return found == metadata.end() ? missing : found->second;
  }
  int64_t number(const std::string& key) const { return std::stoll(metadata.at(key)); }
  double real(const std::string& key, double missing) const {
    const auto found = metadata.find(key);
    return found == metadata.end() ? missing : std::stod(found->second);
  }
  bool flag(const std::string& key) const { return text(key, "") == "true"; }
  /// A comma-separated list of numbers.
  std::vector<int64_t> numbers(const std::string& key) const {
    std::vector<int64_t> list;
    std::istringstream stream(metadata.at(key));
    for (std::string item; std::getline(stream, item, ',');)
      list.push_back(std::stoll(item));
    return list;
  }
};

inline at::Tensor to_tensor(const TensorView& view) {
  SEQCONV_CHECK(
      view.type == ElementType::kF64 || view.type == ElementType::kI64,
      "golden tensors must be F64 or I64, but got ",
      element_name(view.type));
  const auto type = view.type == ElementType::kF64 ? at::kDouble : at::kLong;
  const at::Tensor tensor = at::empty(view.shape, type);
  if (!view.data.empty())
    std::memcpy(tensor.mutable_data_ptr(), view.data.data(), view.data.size());
  return tensor;
}

inline TensorCase load_golden(const std::filesystem::path& path) {
  const SafetensorsReader reader(path);
  TensorCase result;
  result.name = path.stem().string();
  result.metadata = reader.metadata();
  for (const auto& [name, view] : reader.tensors())
    result.tensors[name] = to_tensor(view);
  return result;
}

/// All cases of an operator; a failure of the test where there are none.
inline std::vector<TensorCase> load_golden_cases(const std::string& op) {
  std::vector<TensorCase> cases;
  for (const auto& path : golden_files(op))
    cases.push_back(load_golden(path));
  return cases;
}

/// Moves the tokens of left-padded rows to the front, so that the case becomes
/// a right-padded one (semantics.md 8.1). `names` are the tensors [B, T, ...];
/// those of at most two dimensions are static (a DropConnect mask of taps).
inline void shift_to_right_padding(TensorCase& golden, const std::vector<std::string>& names) {
  if (golden.text("pad_side", "right") != "left")
    return;
  const at::Tensor& lengths = golden.at("lengths");
  for (const std::string& name : names) {
    if (!golden.has(name) || golden.at(name).dim() < 3)
      continue;
    const at::Tensor& tensor = golden.at(name);
    const at::Tensor moved = at::empty_like(tensor);
    for (int64_t b = 0; b < tensor.size(0); ++b)
      moved[b].copy_(tensor[b].roll(lengths[b].item<int64_t>(), 0));
    golden.tensors[name] = moved;
  }
  golden.metadata["pad_side"] = "right";
}

/// max |got - want| / max |want|; the plain maximum where `want` is all zero.
inline double relative_error(const at::Tensor& got, const at::Tensor& want) {
  SEQCONV_CHECK(
      got.sizes() == want.sizes(),
      "shapes must agree, but got ",
      concat(got.sizes()),
      " and ",
      concat(want.sizes()));
  if (want.numel() == 0)
    return 0;
  const at::Tensor wide = want.detach().to(at::kDouble);
  const double scale = wide.abs().max().item<double>();
  const double error = (got.detach().to(at::kDouble) - wide).abs().max().item<double>();
  return scale > 0 ? error / scale : error;
}

}  // namespace seqconv::internal::testing

/// The bound of a golden comparison, with the tensor's name and the error.
#define EXPECT_NEAR_TENSOR(got, want, bound) \
  EXPECT_LE(::seqconv::internal::testing::relative_error(got, want), bound) << #got
