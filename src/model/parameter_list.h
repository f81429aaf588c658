#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/parameters.h"

namespace seqconv::internal {

/// Parameters in the order in which modules register them.
struct ParameterList {
  std::vector<ParameterShape> all;

  void add(const std::string& name, std::vector<int64_t> shape) {
    all.push_back({name, std::move(shape)});
  }
  /// Rows of outputs or of words.
  void matrix(const std::string& name, int64_t rows, int64_t columns) {
    all.push_back({name, {rows, columns}, /*is_matrix=*/true});
  }
  /// A linear map with a bias.
  void linear(const std::string& name, int64_t out, int64_t in) {
    matrix(name + ".weight", out, in);
    add(name + ".bias", {out});
  }
};

}  // namespace seqconv::internal
