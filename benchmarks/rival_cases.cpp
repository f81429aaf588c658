#include "rival_cases.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <memory>

#include "rivals.h"
#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"
#include "seqconv/ops/talk.h"

namespace seqconv::bench {
namespace {

constexpr int64_t C = 512, H = 8;

using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// A call of f on leaves: alone, or with its gradients.
RivalCase rival(std::string name, bool both, const Function& f, std::vector<at::Tensor> in) {
  for (at::Tensor& tensor : in)
    tensor.requires_grad_(true);
  if (!both)
    return {std::move(name), [f, in] {
              const at::NoGradGuard no_grad;
              f(in);
            }};
  at::Tensor grad;
  {
    const at::NoGradGuard no_grad;
    grad = at::randn_like(f(in));
  }
  return {std::move(name), [f, in, grad] { torch::autograd::grad({f(in)}, in, {grad}); }};
}

struct Sizes {
  int64_t B, T;
};

RivalCase attention(const Sizes& s, bool both) {
  const auto draw = [&] { return at::randn({s.B, H, s.T, C / H}); };
  return rival(
      "sdpa",
      both,
      [](const auto& in) { return at::scaled_dot_product_attention(in[0], in[1], in[2]); },
      {draw(), draw(), draw()});
}

RivalGroup dynamic_group(const Sizes& s, bool both) {
  constexpr int64_t K = 31;
  const auto x = [&] { return at::randn({s.B, s.T, C}); };
  const auto logits = [&] { return at::randn({s.B, s.T, H, K}); };
  RivalGroup group{"dynamicconv", both ? "both" : "forward", C, s.T, K, {}};
  group.entries = {
      rival(
          "seqconv",
          both,
          [](const auto& in) { return ops::dynamicconv(in[0], in[1], {.padding_left = K / 2}); },
          {x(), logits()}),
      rival(
          "dynamic-band",
          both,
          [](const auto& in) { return dynamic_band(in[0], in[1]); },
          {x(), logits()}),
      rival(
          "dynamic-unfold",
          both,
          [](const auto& in) { return dynamic_unfold(in[0], in[1]); },
          {x(), logits()}),
      attention(s, both)};
  return group;
}

RivalGroup light_group(const Sizes& s, int64_t K, bool both) {
  RivalGroup group{"lightconv", both ? "both" : "forward", C, s.T, K, {}};
  group.entries = {
      rival(
          "seqconv",
          both,
          [K](const auto& in) { return ops::lightconv(in[0], in[1], {.padding_left = K / 2}); },
          {at::randn({s.B, s.T, C}), at::randn({H, K})}),
      rival(
          "depthwise conv1d",
          both,
          [K](const auto& in) { return at::conv1d(in[0], in[1], {}, 1, K / 2, 1, C); },
          {at::randn({s.B, C, s.T}), at::randn({C, 1, K})})};
  return group;
}

RivalGroup talk_group(const Sizes& s, int64_t K, bool both) {
  const auto offsets = [&](int64_t a, int64_t b) { return at::rand({a, b, H}); };
  RivalGroup group{"talk", both ? "both" : "forward", C, s.T, K, {}};
  group.entries = {
      rival(
          "seqconv",
          both,
          [K](const auto& in) {
            return ops::talk(in[0], in[1], in[2], {.max_left = K, .max_right = K});
          },
          {at::randn({s.B, s.T, C}), offsets(s.B, s.T), offsets(s.B, s.T)}),
      rival(
          "cumsum",
          both,
          [K](const auto& in) { return talk_cumsum(in[0], in[1], in[2], K, K); },
          {at::randn({s.T, s.B, C}), offsets(s.T, s.B), offsets(s.T, s.B)})};
  return group;
}

}  // namespace

std::vector<RivalGroup> rival_groups(int64_t tokens, int64_t steps) {
  const Sizes s{std::max<int64_t>(1, tokens / steps), steps};
  std::vector<RivalGroup> groups;
  for (const bool both : {false, true}) {
    groups.push_back(dynamic_group(s, both));
    groups.push_back(light_group(s, 3, both));
    groups.push_back(light_group(s, 7, both));
    groups.push_back(talk_group(s, 31, both));
  }
  return groups;
}

}  // namespace seqconv::bench
