#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace seqconv::internal::runtime {

/// softmax over s of the products of a query [R] with key(s, c), scaled by
/// R^-0.5 -> shares, one for each position.
template <class Key>
void probe_attention(int64_t R, const float* query, std::span<float> shares, const Key& key) {
  std::vector<double> scores(shares.size());
  for (size_t s = 0; s < shares.size(); ++s) {
    for (int64_t c = 0; c < R; ++c)
      scores[s] +=
          static_cast<double>(query[c]) * static_cast<double>(key(static_cast<int64_t>(s), c));
    scores[s] /= std::sqrt(static_cast<double>(R));
  }
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores)
    sum += score = std::exp(score - most);
  for (size_t s = 0; s < shares.size(); ++s)
    shares[s] = static_cast<float>(scores[s] / sum);
}

}  // namespace seqconv::internal::runtime
