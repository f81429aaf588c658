#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/safetensors.h"

namespace seqconv::internal::testing {

/// Folder of golden data: SEQCONV_GOLDEN, or tests/golden.
inline std::filesystem::path golden_folder() {
  if (const char* folder = std::getenv("SEQCONV_GOLDEN"))
    return folder;
  return std::filesystem::path(SEQCONV_SOURCE_DIR) / "tests" / "golden";
}

/// Files of operators/ by the operator that their metadata names, sorted.
inline const std::map<std::string, std::vector<std::filesystem::path>>& golden_operators() {
  static const auto by_operator = [] {
    std::map<std::string, std::vector<std::filesystem::path>> found;
    const auto folder = golden_folder() / "operators";
    if (std::filesystem::is_directory(folder))
      for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().extension() == ".safetensors")
          found[SafetensorsReader(entry.path()).metadata().at("op")].push_back(entry.path());
    for (auto& [op, files] : found)
      std::sort(files.begin(), files.end());
    return found;
  }();
  return by_operator;
}

/// The files of an operator's cases; a failure of the test where there are
/// none.
inline std::vector<std::filesystem::path> golden_files(const std::string& op) {
  const auto found = golden_operators().find(op);
  if (found != golden_operators().end())
    return found->second;
  ADD_FAILURE() << "no golden case of " << op << " in " << golden_folder();
  return {};
}

/// Folders in the set and in its models/ for which holds(folder), sorted by
/// their own names; each once, whatever links lead to it.
template <class Holds>
std::vector<std::filesystem::path> golden_folders_where(const Holds& holds) {
  std::map<std::string, std::filesystem::path> folders;
  for (const auto& root : {golden_folder(), golden_folder() / "models"})
    if (std::filesystem::is_directory(root))
      for (const auto& entry : std::filesystem::directory_iterator(root))
        if (holds(entry.path()))
          folders[std::filesystem::canonical(entry.path())] = entry.path();
  std::vector<std::filesystem::path> result;
  for (const auto& [name, path] : folders)
    result.push_back(path);
  return result;
}

/// Ends the test as failed where `files` is empty: golden data are never
/// missing, tests/golden has some of every kind.
#define SEQCONV_REQUIRE_GOLDEN(files)                   \
  ASSERT_FALSE((files).empty()) << "no golden data in " \
                                << ::seqconv::internal::testing::golden_folder()

/// One golden case: float64 and int64 tensors, and strings.
class GoldenCase {
 public:
  explicit GoldenCase(const std::filesystem::path& path) : reader_(path) {}

  std::vector<double> values(const std::string& name) const {
    return copy<double>(name, ElementType::kF64);
  }
  std::vector<int64_t> integers(const std::string& name) const {
    return copy<int64_t>(name, ElementType::kI64);
  }
  const std::vector<int64_t>& shape(const std::string& name) const {
    return reader_.at(name).shape;
  }
  bool contains(const std::string& name) const { return reader_.contains(name); }
  const std::string& text(const std::string& key) const { return reader_.metadata().at(key); }
  double number(const std::string& key) const { return std::stod(text(key)); }

 private:
  template <class T>
  std::vector<T> copy(const std::string& name, ElementType type) const {
    const TensorView& view = reader_.at(name);
    SEQCONV_CHECK(
        view.type == type,
        name,
        " must be ",
        element_name(type),
        ", but got ",
        element_name(view.type));
    std::vector<T> out(static_cast<size_t>(view.count()));
    std::memcpy(out.data(), view.data.data(), view.data.size());
    return out;
  }

  SafetensorsReader reader_;
};

/// max |got - want| / max |want| (the measure of the golden data's README).
template <class T>
double golden_error(const T* got, const std::vector<double>& want) {
  double worst = 0, largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - want[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    largest = std::max(largest, std::abs(want[i]));
  }
  return largest > 0 ? worst / largest : worst;
}

}  // namespace seqconv::internal::testing
