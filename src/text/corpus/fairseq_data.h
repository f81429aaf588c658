#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "text/corpus/token_store.h"
#include "text/text_source.h"

/// Binarised data as fairseq's preprocessing writes them: docs/data.md.
namespace seqconv::internal {

/// The two files of such data, which stand beside each other.
struct FairseqFiles {
  std::filesystem::path index;  ///< name.idx: where the sentences are
  std::filesystem::path data;   ///< name.bin: their ids
};

/// Tells whether a file's name, which ends in .bin or .idx, says that it is one
/// of the two. The files need not be there.
bool is_fairseq_data(const std::filesystem::path& file);
/// The same for a source of lines: no other holds ids.
bool holds_ids(const TextSource& source);

/// Both files, given the name of one of them; Error for another name.
FairseqFiles fairseq_files(const std::filesystem::path& file);

/// Opens binarised data by the name of one of the files; both kinds of index
/// are read ("mmap", and "lazy" or "cached", whose ids are stored plus one).
///
/// tokens() gives a sentence's ids without its final </s>; a sentence that does
/// not end in one is taken whole, and gets its </s> from whoever makes a batch
/// of it, as all do. The ids are a copy, which the next call of tokens()
/// replaces: for one thread at a time. Nothing is resident but the pages in
/// use and that copy.
///
/// Magic, version, kind of numbers and the size of the index are checked here;
/// a sentence's place and ids whenever it is read. Errors name the file and the
/// sentence, counted from 1: an id outside [0, vocabulary) ("wrong dictionary
/// for this data"), and <pad>, which no sentence can hold.
std::shared_ptr<const TokenSource> open_fairseq_data(
    const std::filesystem::path& file, int64_t vocabulary);

}  // namespace seqconv::internal
