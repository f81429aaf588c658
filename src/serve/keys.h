#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Keys that clients show to be served (docs/serving.md).
namespace seqconv::internal {

struct ApiKey {
  std::string name;                    ///< for those who run the server
  std::array<unsigned char, 32> hash;  ///< SHA-256 of the key
  int64_t requests_per_minute = 0;     ///< 0: any number
};

/// The keys of a file: "NAME SHA256 [REQUESTS_PER_MINUTE]" a line, '#' begins a comment. The file
/// holds no key, so that reading it gives nobody one.
class ApiKeys {
 public:
  ApiKeys() = default;
  /// Error with file and line for what is no such line, or a name or a hash that is there twice.
  explicit ApiKeys(const std::string& file);

  bool empty() const { return keys_.empty(); }
  /// The key whose hash this one has, or null. Takes as long whichever it is.
  const ApiKey* find(std::string_view key) const;

 private:
  std::vector<ApiKey> keys_;
};

/// A key of 256 random bits in hexadecimal digits, and the line that a file has for it.
struct NewApiKey {
  std::string key;
  std::string line;
};
NewApiKey make_api_key(const std::string& name);

}  // namespace seqconv::internal
