#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "libtorch/ops/on_device.h"
#include "support/covered_golden.h"
#include "support/golden.h"
#include "support/gradients.h"
#include "support/tolerances.h"

/// Golden cases of the operators as calls and comparisons.
namespace seqconv::ops {
using namespace internal;

using testing::differentiate;
using testing::Differentiated;
using testing::kTypes;
using testing::layer_tolerance;
using testing::listed;
using testing::load_golden_cases;
using testing::relative_error;
using testing::TensorCase;
using testing::tolerance;

/// Cases of `op`, right-padded.
inline std::vector<TensorCase> cases_of(const std::string& op) {
  std::vector<TensorCase> cases;
  for (TensorCase& golden : load_golden_cases(op)) {
    shift_to_right_padding(
        golden,
        {"x",
         "y",
         "logits",
         "offset_left",
         "offset_right",
         "offsets",
         "drop_mask",
         "grad_output",
         "grad_x",
         "grad_logits",
         "grad_offset_left",
         "grad_offset_right"});
    cases.push_back(std::move(golden));
  }
  return cases;
}

inline std::optional<at::Tensor> maybe(const TensorCase& golden, const std::string& name) {
  return golden.has(name) ? std::optional(golden.at(name)) : std::nullopt;
}

/// The tensor in type `type`, or undefined.
inline at::Tensor typed(const TensorCase& golden, const std::string& name, at::ScalarType type) {
  return golden.has(name) ? golden.at(name).to(type) : at::Tensor();
}

inline Normalization normalization(const TensorCase& golden) {
  return parse_enum<Normalization>(golden.text("weight_norm", ""), golden.name);
}

inline DropConnect drop(const TensorCase& golden) {
  return {golden.real("drop_p", 0), std::nullopt, maybe(golden, "drop_mask")};
}

inline std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

/// The chunks that a sequence is fed in: the case's, or single tokens.
inline std::vector<int64_t> chunks(const TensorCase& golden, bool single) {
  if (!single)
    return golden.numbers("chunks");
  return std::vector<int64_t>(static_cast<size_t>(golden.at("x").size(1)), int64_t{1});
}

/// Runs step(first, count) -> [B, count, C] over the chunks; zero at padding.
template <class Step>
at::Tensor stepped(const TensorCase& golden, bool single, const Step& step) {
  std::vector<at::Tensor> parts;
  int64_t first = 0;
  for (const int64_t count : chunks(golden, single)) {
    parts.push_back(step(first, count));
    first += count;
  }
  EXPECT_EQ(first, golden.at("x").size(1));
  const at::Tensor y = at::cat(parts, 1);
  if (!golden.has("lengths"))
    return y;
  const at::Tensor valid = at::arange(y.size(1)).lt(golden.at("lengths").unsqueeze(1));
  return y * valid.unsqueeze(2);
}

/// y and the gradients of `names`, in that order.
inline void expect_golden(
    const TensorCase& golden,
    const Differentiated& got,
    const std::vector<std::string>& names,
    double bound) {
  EXPECT_LE(relative_error(got.y, golden.at("y")), bound) << "y";
  size_t next = 0;
  for (const std::string& name : names)
    if (golden.has(name)) {
      EXPECT_LE(relative_error(got.grads[next], golden.at("grad_" + name)), bound)
          << "grad_" << name;
      ++next;
    }
  EXPECT_EQ(next, got.grads.size());
}

/// Calls check(golden, type) for every case in every type, with every device in
/// turn as the present one.
template <class Check>
void for_each(const std::vector<TensorCase>& cases, const Check& check) {
  for (const at::DeviceType device : testing::devices()) {
    const testing::DeviceScope scope(device);
    for (const TensorCase& golden : cases)
      for (const at::ScalarType type : kTypes) {
        SCOPED_TRACE(
            concat(golden.name, " in ", c10::toString(type), " on ", testing::test_device()));
        check(golden, type);
      }
  }
}

/// The same for every case of `op`.
template <class Check>
void for_each_case(const std::string& op, const Check& check) {
  for_each(cases_of(op), check);
}

/// Calls check(golden, type, single) for every causal case of `op`, to be fed
/// in its chunks and in single tokens. There must be one.
template <class Check>
void for_each_causal_case(const std::string& op, const Check& check) {
  std::vector<TensorCase> cases = cases_of(op);
  std::erase_if(cases, [](const auto& golden) { return !golden.flag("causal"); });
  EXPECT_FALSE(cases.empty()) << "no causal golden case of " << op;
  for_each(cases, [&](const TensorCase& golden, at::ScalarType type) {
    for (const bool single : {false, true})
      check(golden, type, single);
  });
}

}  // namespace seqconv::ops
