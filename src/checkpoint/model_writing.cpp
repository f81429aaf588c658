#include "seqconv/checkpoint/model_writing.h"

#include "seqconv/base/error.h"
#include "seqconv/base/files.h"
#include "seqconv/checkpoint/descriptions_in_use.h"
#include "seqconv/checkpoint/model_description.h"

namespace seqconv {
namespace fs = std::filesystem;

std::vector<fs::path> description_files(const ModelFiles& model) {
  std::vector<fs::path> files = {model.folder / "config.json"};
  const Json none = Json::object();
  const auto table = [&none](const Json& in, const char* key) -> const Json& {
    const auto found = in.find(key);
    return found != in.end() && found->is_object() ? *found : none;
  };
  const Json& text = table(model.config, "text");
  for (const char* side : {"source", "target", "side"})
    for (const char* key : {"dictionary", "model"})
      if (const Json name = table(text, side).value(key, Json());
          name.is_string())
        files.push_back(
            model.folder / fs::path(name.get<std::string>()).filename());
  return files;
}

void DescriptionsInUse::add(const ModelFiles& model) {
  for (const fs::path& file : description_files(model))
    stamps_.add(file);
}

void DescriptionsInUse::check() const {
  if (const auto file = stamps_.changed())
    fail(
        "'",
        file->string(),
        "' was replaced or changed while the model was being opened: open it "
        "again");
}

void check_own_config(const fs::path& folder) {
  std::error_code none;
  const fs::path file = folder / "config.json";
  SEQCONV_CHECK(
      !fs::is_regular_file(file, none) ||
          read_file(file).find("\"seqconv-model\"") != std::string::npos,
      "'",
      file.string(),
      "' is of another program and would be lost: choose another --output");
}

void write_model_folder(
    const fs::path& folder,
    const std::function<void(const fs::path&)>& write_parameters,
    const std::function<void()>& describe) {
  check_own_config(folder);
  create_folder(folder);
  // Behind a link, as an AtomicFile has it.
  const fs::path file = behind_links(folder / "model.safetensors");
  const fs::path written = concat(file.string(), ".new");
  std::error_code error;
  try {
    write_parameters(written);
  } catch (...) {
    fs::remove(written, error);
    throw;
  }
  fs::remove(folder / "config.json", error);
  fs::rename(written, file, error);
  SEQCONV_CHECK(
      !error,
      "cannot write '",
      file.string(),
      "': ",
      error.message());
  describe();
}

}  // namespace seqconv
