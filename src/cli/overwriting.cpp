#include "cli/overwriting.h"

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/model_description.h"

namespace seqconv::internal::cli {
namespace fs = std::filesystem;
namespace {

/// A file or folder that is there, whatever leads to it.
struct Place {
  std::string flag;  ///< that named it: "--output"
  fs::path path;
  struct stat info {};

  bool is_file() const { return S_ISREG(info.st_mode); }
  bool is_folder() const { return S_ISDIR(info.st_mode); }
  bool is(const Place& other) const {
    return info.st_dev == other.info.st_dev && info.st_ino == other.info.st_ino;
  }
};

std::optional<Place> find_place(const std::string& flag, const fs::path& path) {
  Place place{flag, path};
  if (::stat(path.c_str(), &place.info) != 0)
    return std::nullopt;
  return place;
}

std::optional<Place> find_stream(const std::string& name, int fd) {
  Place place{name, {}};
  if (::fstat(fd, &place.info) != 0 || !place.is_file())
    return std::nullopt;
  return place;
}

/// "--output" of "-o,--output"; "DIR" of a positional.
std::string flag_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames().front();
}

bool names_files(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return option.get_positional() || type == "FILE" || type == "DIR";
}

bool is_output(const std::string& flag) {
  return flag == "--output" || flag == "OUT";
}

/// The places that the chosen verb was given.
struct GivenPlaces {
  std::vector<Place> outputs;
  std::vector<Place> inputs;
};

void add_places(const CLI::App& verb, GivenPlaces& given) {
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0 || !names_files(*option))
      continue;
    const std::string flag = flag_of(*option);
    for (const std::string& value : option->results())
      if (auto place = find_place(flag, value))
        (is_output(flag) ? given.outputs : given.inputs).push_back(std::move(*place));
  }
}

GivenPlaces given_places(const CLI::App& app) {
  static constexpr std::array<std::string_view, 11> kReadsStandardInput = {
      "translate",
      "summarise",
      "perplexity",
      "tokenize",
      "apply",
      "learn",
      "bleu",
      "chrf",
      "ter",
      "rouge",
      "exact"};
  GivenPlaces given;
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) {
    verb = verb->get_subcommands().front();
    add_places(*verb, given);
  }
  const bool reads = std::ranges::any_of(
      kReadsStandardInput, [verb](std::string_view name) { return name == verb->get_name(); });
  const bool told = std::ranges::any_of(given.inputs, [](const Place& place) {
    return place.flag == "--input" || place.flag == "--hypotheses" || place.flag == "FILE";
  });
  if (reads && !told)
    if (auto in = find_stream("standard input", STDIN_FILENO))
      given.inputs.push_back(std::move(*in));
  if (auto out = find_stream("standard output", STDOUT_FILENO))
    given.outputs.push_back(std::move(*out));
  return given;
}

bool is_model_or_run(const fs::path& folder) {
  std::error_code none;
  return fs::exists(folder / "config.json", none) || fs::exists(folder / "training", none);
}

/// The folder of a model or run that reading `input` reads; "" for none.
fs::path folder_of(const Place& input) {
  if (input.is_folder())
    return is_model_or_run(input.path) ? input.path : fs::path();
  if (input.path.extension() != ".safetensors")
    return {};
  constexpr int kDeepest = 4;  // as find_model looks for it
  std::error_code error;
  fs::path folder = fs::absolute(input.path, error).lexically_normal();
  for (int level = 0; level < kDeepest && !error; ++level) {
    folder = folder.parent_path();
    if (fs::exists(folder / "config.json", error))
      return folder;
  }
  return {};
}

void add_files(const std::string& flag, const fs::path& folder, std::vector<Place>& files) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (auto place = find_place(flag, at->path()); place && place->is_file())
      files.push_back(std::move(*place));
}

/// The files of a model folder and of its training.
std::vector<Place> files_of(const std::string& flag, const fs::path& folder) {
  std::vector<Place> files;
  if (folder.empty())
    return files;
  for (const char* place :
       {"", "training", "training/checkpoints", "training/data", "training/tensorboard"})
    add_files(flag, folder / place, files);
  return files;
}

/// Binarised data are two files, of which one is named.
std::vector<Place> with_partner(const Place& input) {
  std::vector<Place> files = {input};
  for (const auto& [own, other] : {std::pair{".bin", ".idx"}, {".idx", ".bin"}})
    if (input.path.extension() == own)
      if (auto place = find_place(input.flag, fs::path(input.path).replace_extension(other)))
        files.push_back(std::move(*place));
  return files;
}

/// "'a' is 'b'", or "'a'" alone; streams have no paths.
std::string which(const Place& output, const Place& input) {
  const std::string out = output.path.string();
  const std::string in = input.path.string();
  if (out.empty() || in.empty() || out == in)
    return concat("'", out.empty() ? in : out, "'");
  return concat("'", out, "' is '", in, "'");
}

/// True when some verb writes a file of this name into its output folder.
bool is_written(const std::string& name) {
  const auto& names = model_file_names();
  return name.ends_with(".svg") || std::ranges::find(names, name) != names.end();
}

/// True for a part of a model or a run. Standard output may well be
/// another new file in their folder.
bool is_part(const Place& file) {
  const std::string name = file.path.filename().string();
  return is_written(name) || name.ends_with(".safetensors") || name == "metrics.jsonl" ||
      name == "config.toml";
}

void check_file(const Place& output, const Place& input) {
  for (const Place& file : with_partner(input))
    SEQCONV_CHECK(
        !output.is(file),
        output.flag,
        " names a file that ",
        input.flag,
        " reads, which would be lost: ",
        output.path.empty() && input.path.empty() ? "they are one file" : which(output, file),
        "; choose another name");
  for (const Place& file : files_of(input.flag, folder_of(input)))
    SEQCONV_CHECK(
        !output.is(file) || (output.path.empty() && !is_part(file)),
        output.flag,
        " would replace a file of the folder that ",
        input.flag,
        " reads, which would be lost: ",
        which(output, file),
        "; choose another name");
}

/// Of what is in the output folder, which is not the input's, and is an input.
void check_folder(const Place& output, const Place& input) {
  const fs::path model = folder_of(input);
  SEQCONV_CHECK(
      !output.is(input) || model.empty(),
      output.flag,
      " must be another folder than the model's own, which ",
      input.flag,
      " reads, but got '",
      output.path.string(),
      "'");
  if (output.is(input))
    return;
  std::vector<Place> written;
  add_files(output.flag, output.path, written);
  std::erase_if(
      written, [](const Place& file) { return !is_written(file.path.filename().string()); });
  for (const Place& file : written) {
    SEQCONV_CHECK(
        !file.is(input),
        output.flag,
        " would replace a file that ",
        input.flag,
        " reads, which would be lost: ",
        which(file, input),
        "; choose another folder");
    for (const Place& read : files_of(input.flag, model))
      SEQCONV_CHECK(
          !file.is(read),
          output.flag,
          " must be another folder than the model's own, which ",
          input.flag,
          " reads: ",
          which(file, read),
          " and would be lost");
  }
}

}  // namespace

void check_overwriting(const CLI::App& app) {
  const GivenPlaces given = given_places(app);
  for (const Place& output : given.outputs)
    for (const Place& input : given.inputs)
      if (output.is_file())
        check_file(output, input);
      else if (output.is_folder())
        check_folder(output, input);
}

}  // namespace seqconv::internal::cli
