#pragma once

#include <span>
#include <string>
#include <vector>

#include "seqconv/decode/backend.h"
#include "seqconv/decode/search.h"

/// Results of two backends, or of one backend twice.
namespace seqconv::testing {

/// Most by which log-probabilities of two backends differ.
inline constexpr double kBound = 1e-4;

/// A search that all models go through.
struct SearchCase {
  std::string name;
  SearchOptions options;
  size_t sentences = 1;
  bool prefixes = false;  ///< every third target begins with one
  std::vector<int32_t> excluded{};
};

/// Greedy and wide, alone and in batches, with every option of the search.
std::vector<SearchCase> search_cases();

/// What a backend finds. Prefixes of a sentence depend on it alone.
std::vector<std::vector<Hypothesis>> run_search(
    const TranslationBackend& backend,
    const std::vector<std::vector<int32_t>>& sources,
    const SearchCase& of);

/// The same hypotheses with the same numbers, within kBound. Another one is
/// right only where the scores of both are tied so closely.
void expect_alike(
    const std::vector<std::vector<Hypothesis>>& found,
    const std::vector<std::vector<Hypothesis>>& wanted);

/// Numbers within `bound`; both minus infinity or NaN is alike.
template <class T>
void expect_near(
    std::span<const T> found,
    std::span<const T> wanted,
    double bound = kBound);

/// The bytes of all numbers of a result.
std::string bytes_of(const std::vector<Hypothesis>& hypotheses);
template <class T>
std::string bytes_of(std::span<const T> numbers) {
  return {
      reinterpret_cast<const char*>(numbers.data()),
      numbers.size() * sizeof(T)};
}

}  // namespace seqconv::testing
