#pragma once

#include <concepts>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// Files that a name leads to which the user has not given: one in data, in a
/// configuration of a model, or the fixed name of a part of a folder. Whoever
/// made the data or the folder must not choose what else is read.
namespace seqconv::internal {

/// The places to which symbolic links inside a folder may lead.
enum class Links {
  kInside,    ///< to files inside it
  kAnywhere,  ///< anywhere: caches are made of links outwards
};

/// A path that the user gave, or, by `/`, what a name leads to below it.
///
/// A given path is the user's own: it may be anything and lie behind links.
/// A name below it must lead to an ordinary file inside the given folder, also
/// behind links, or anywhere if `links` says so: opening it (read_file,
/// MappedFile) is an Error for all else, and waits for no pipe. Errors tell
/// nothing of what lies outside.
class RootedPath {
 public:
  RootedPath() = default;
  /// Not explicit: a path alone is one that the user gave.
  template <class Path>
  requires(
      std::convertible_to<Path, std::filesystem::path> &&
      !std::is_same_v<std::remove_cvref_t<Path>, RootedPath>)
      RootedPath(const Path& given, Links links = Links::kInside)
      : root_(given), path_(root_), links_(links) {}

  /// Error when `name` cannot be that of a file below (outward_name).
  friend RootedPath operator/(const RootedPath& folder, const std::filesystem::path& name);
  bool operator==(const RootedPath&) const = default;

  /// As it was given, for messages and to write to.
  const std::filesystem::path& path() const { return path_; }
  operator const std::filesystem::path&() const { return path_; }
  std::string string() const { return path_.string(); }
  Links links() const { return links_; }

  /// Opens an ordinary file to be read, wherever a given path lies, and gives
  /// its descriptor, which is the caller's. A given path may be a pipe or a
  /// device too where `or_stream`. Error behind "cannot read 'PATH': " with
  /// what was wanted and what came.
  int open(bool or_stream = false) const;

 private:
  std::filesystem::path root_;  // what the user gave
  std::filesystem::path name_;  // below it; "" for itself
  std::filesystem::path path_;  // both
  Links links_ = Links::kInside;
};

/// Why a name from data cannot be that of a file inside a folder: it is empty,
/// begins at the root, has a part ".." or holds NUL; "" where it can.
std::string outward_name(const std::filesystem::path& name);

}  // namespace seqconv::internal
