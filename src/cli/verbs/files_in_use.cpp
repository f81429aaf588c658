#include "cli/verbs/files_in_use.h"

#include "base/error.h"
#include "model/model_writing.h"

namespace seqconv::internal::verbs {

FilesInUse::FilesInUse(const std::vector<RootedPath>& models, const FilesBeside& beside) {
  for (const RootedPath& model : models) {
    const ModelFiles& files = models_.emplace_back(find_model(model));
    stamps_.add(files.parameters);
    for (const auto& file : description_files(files))
      stamps_.add(file);
  }
  for (const auto& file : {beside.shortlist, beside.terminology})
    if (!file.empty())
      stamps_.add(file);
}

void FilesInUse::check_same() const {
  if (const auto file = stamps_.changed())
    fail(
        "'",
        file->string(),
        "' was replaced or changed while the model was being opened: give the same command again");
}

void FilesInUse::check_not_written() const {
  if (const auto file = stamps_.written())
    fail(
        "'",
        file->string(),
        "' was written to while it was in use: results that were made since then are worth "
        "nothing. Replace files of a model by others, never write into them");
}

}  // namespace seqconv::internal::verbs
