#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "seqconv/base/files.h"

namespace seqconv {

/// Sequences of ids somewhere: the one interface of the data layer (seam 8).
/// Sentence pairs are two of them, a language model's stream is one; a foreign
/// binary format is read through it as well.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual int64_t size() const = 0;
  virtual std::span<const int32_t> tokens(int64_t index) const = 0;
  virtual int64_t length(int64_t index) const = 0;
};

/// A memory-mapped file of ids and offsets: nothing is resident but the pages
/// in use. Checked when opened: magic, version, sizes, ascending offsets.
class TokenStore : public TokenSource {
 public:
  explicit TokenStore(const std::filesystem::path& path);
  int64_t size() const override;
  std::span<const int32_t> tokens(int64_t index) const override;
  int64_t length(int64_t index) const override;

 private:
  MappedFile file_;
  std::span<const int32_t> ids_;
  std::span<const int64_t> offsets_;  // size() + 1 entries
};

/// Writes a token store sequence by sequence, in bounded memory.
class TokenStoreWriter {
 public:
  explicit TokenStoreWriter(const std::filesystem::path& path);
  ~TokenStoreWriter();
  void append(std::span<const int32_t> ids);
  /// Puts the file in its place; without it nothing appears.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace seqconv
