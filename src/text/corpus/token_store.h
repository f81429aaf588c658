#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

namespace seqconv::internal {

/// Sequences of ids somewhere: the one interface of the data layer.
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
/// in use. Magic, version and sizes are checked when it is opened, an index and
/// its two offsets at every access, so that opening touches no more than two
/// pages of a file of any size. Errors name the file.
///
/// The format, version 1, little-endian:
///   bytes  0-7   "SEQCTOK" and a zero
///   bytes  8-11  version, uint32
///   bytes 12-15  zero
///   bytes 16-23  N, the number of sequences, int64
///   bytes 24-31  M, the number of ids, int64
///   then         M ids, int32; zeros to the next multiple of 8 bytes
///   then         N + 1 offsets, int64: sequence i is ids[offset i, offset i+1)
class TokenStore : public TokenSource {
 public:
  explicit TokenStore(const std::filesystem::path& path);
  int64_t size() const override;
  std::span<const int32_t> tokens(int64_t index) const override;
  int64_t length(int64_t index) const override;

 private:
  std::pair<int64_t, int64_t> range(int64_t index) const;

  MappedFile file_;
  std::span<const int32_t> ids_;
  std::span<const int64_t> offsets_;  // size() + 1 entries
};

/// Writes a token store sequence by sequence, or in smaller pieces, in bounded
/// memory: the offsets wait in a second temporary file.
class TokenStoreWriter {
 public:
  explicit TokenStoreWriter(const std::filesystem::path& path);
  ~TokenStoreWriter();
  /// Begins the next sequence with these ids.
  void append(std::span<const int32_t> ids);
  /// Lengthens the sequence that the last append() began, so that one larger
  /// than memory can be written in pieces; Error when there is none.
  void extend(std::span<const int32_t> ids);
  /// Puts everything on the disk, still hidden: what can fail for want of
  /// space fails here. Nothing may be added afterwards.
  void prepare();
  /// Puts the file in its place; without it nothing appears.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace seqconv::internal
