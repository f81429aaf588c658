#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

/// The files of a job in its folder OUTPUT.parts: these alone are ever removed.
namespace seqconv::internal::verbs {

/// The names of a job's files.
inline constexpr const char* kJobRecord = "job.json";
inline constexpr const char* kJoinLock = "join.lock";
/// Stands behind the record's name, before random letters, while it is made.
inline constexpr const char* kNewRecord = ".tmp-";

/// The name of an entry that no job has made, the first one of several; ""
/// where there is none. Where `begun` is false, as the folder has no record of
/// a job, parts without their locks are no job's either.
std::string foreign_entry(const std::filesystem::path& folder, bool begun);

/// Error for an entry with the name of a job's file that is none: a link would
/// lead elsewhere, and who opens a pipe waits for another.
void check_job_files(const std::filesystem::path& folder);

/// Removes the files of a job of so many parts, its record first: without that
/// the folder is no job's, and records of parts go before the parts. Then the
/// folder goes, if nothing else is in it; a warning names what is.
void remove_job(const std::filesystem::path& folder, int64_t parts);

/// The lock of joining, and the folder where nothing else is left in it: what
/// a process leaves that comes after remove_job().
void remove_empty_job(const std::filesystem::path& folder);

}  // namespace seqconv::internal::verbs
