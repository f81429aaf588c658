#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "search/backend.h"
#include "search/search.h"

/// Results of two backends, or of one backend twice.
namespace seqconv::internal::testing {

/// Most by which log-probabilities of two backends differ.
inline constexpr double kBound = 1e-4;

/// A search that all models go through.
struct SearchCase {
  std::string name;
  DecodingOptions options;
  size_t sentences = 1;
  bool prefixes = false;  ///< every third target begins with one
  std::vector<int32_t> excluded{};
};

/// Greedy and wide, alone and in batches, with every option of the search.
std::vector<SearchCase> search_cases();

/// What a decoder of these sources finds. Prefixes of a sentence depend on it
/// alone.
std::vector<std::vector<Hypothesis>> run_search(
    StepDecoder& decoder, const std::vector<std::vector<int32_t>>& sources, const SearchCase& of);
std::vector<std::vector<Hypothesis>> run_search(
    const TranslationBackend& backend,
    const std::vector<std::vector<int32_t>>& sources,
    const SearchCase& of);

/// Two decoders that make the same steps. The first one's candidates are given
/// out; it is a failure where a score is not that of the second, within kBound.
/// So a search follows the first, and every choice that it makes is one of the
/// second or tied with it.
class PairedDecoder : public StepDecoder {
 public:
  PairedDecoder(
      const TranslationBackend& first,
      const TranslationBackend& second,
      const std::vector<std::vector<int32_t>>& sources);

  int64_t sentences() const override { return first_->sentences(); }
  int64_t vocabulary_size() const override { return first_->vocabulary_size(); }
  int64_t max_steps() const override { return first_->max_steps(); }
  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) override;

 private:
  std::unique_ptr<StepDecoder> first_;
  std::unique_ptr<StepDecoder> second_;
};

/// Numbers within `bound`; both minus infinity or NaN is alike.
template <class T>
void expect_near(std::span<const T> found, std::span<const T> wanted, double bound = kBound);

/// The bytes of all numbers of a result.
std::string bytes_of(const std::vector<Hypothesis>& hypotheses);
template <class T>
std::string bytes_of(std::span<const T> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

}  // namespace seqconv::internal::testing
