#include "serve/keys.h"

#include <sodium.h>

#include <charconv>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace seqconv::internal {
namespace {

using Hash = std::array<unsigned char, 32>;
static_assert(crypto_hash_sha256_BYTES == 32);

void prepare() {
  if (::sodium_init() < 0)
    fail("[serve] the system gives no random bits");
}

Hash hash_of(std::string_view key) {
  Hash hash{};
  ::crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(key.data()), key.size());
  return hash;
}

std::string hexadecimal(const Hash& bytes) {
  std::string text(2 * bytes.size() + 1, '\0');
  ::sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  text.pop_back();
  return text;
}

bool read_hash(const std::string& text, Hash& hash) {
  size_t size = 0;
  return text.size() == 2 * hash.size() &&
      ::sodium_hex2bin(
          hash.data(), hash.size(), text.data(), text.size(), nullptr, &size, nullptr) == 0 &&
      size == hash.size();
}

bool read_rate(const std::string& text, int64_t& rate) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, rate);
  return error == std::errc() && stop == end && rate >= 0;
}

ApiKey read_key(const std::string& line, const std::string& where) {
  std::istringstream words(line);
  ApiKey key;
  std::string hash, rate, more;
  words >> key.name >> hash >> rate >> more;
  if (!read_hash(hash, key.hash) || !more.empty() ||
      (!rate.empty() && !read_rate(rate, key.requests_per_minute)))
    fail(
        where,
        ": a line must be NAME SHA256 [REQUESTS_PER_MINUTE], the hash 64 hexadecimal "
        "digits, as `seqconv serve --new-key NAME` gives it");
  return key;
}

}  // namespace

ApiKeys::ApiKeys(const std::string& file) {
  prepare();
  std::ifstream lines(file);
  if (!lines)
    fail("cannot read the keys '", file, "'");
  std::string line;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == line.npos)
      continue;
    const std::string where = concat(file, ":", number);
    ApiKey key = read_key(line, where);
    for (const ApiKey& other : keys_)
      if (other.name == key.name || other.hash == key.hash)
        fail(
            where,
            ": a name and a hash must be there once, but '",
            other.name,
            "' has come before");
    keys_.push_back(std::move(key));
  }
  if (lines.bad())
    fail("cannot read the keys '", file, "'");
}

const ApiKey* ApiKeys::find(std::string_view key) const {
  const Hash hash = hash_of(key);
  const ApiKey* found = nullptr;
  for (const ApiKey& one : keys_)
    if (::sodium_memcmp(one.hash.data(), hash.data(), hash.size()) == 0)
      found = &one;
  return found;
}

NewApiKey make_api_key(const std::string& name) {
  if (name.empty() || name.find_first_of("# \t\r\n") != name.npos)
    fail_usage("--new-key must be a name without blanks and '#', but got '", name, "'");
  prepare();
  Hash random{};
  ::randombytes_buf(random.data(), random.size());
  const std::string key = hexadecimal(random);
  return {key, name + " " + hexadecimal(hash_of(key))};
}

}  // namespace seqconv::internal
