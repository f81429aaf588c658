#include "model/checkpoint/fairseq_checkpoint.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "model/checkpoint/fairseq_names.h"

namespace seqconv::internal {
namespace {

/// Classes whose objects are understood, or are settings in their own right.
bool is_expected(std::string_view name) {
  return name.starts_with("torch._utils._rebuild_") || name.starts_with("collections.") ||
      name.starts_with("omegaconf.") || name == "argparse.Namespace";
}

/// True for a model's dictionary: names to tensors.
bool is_state(const PickleValue& value) {
  const auto entries = value.entries();
  return std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return PyTorchFile::is_tensor(entry.second);
  });
}

/// What DistributedDataParallel and torch.compile put in front of the names of
/// a model that they wrap.
constexpr std::string_view kWrappers[] = {"module.", "_orig_mod."};

/// The wrappers, one in the other, that all names begin with. Error when some
/// begin with one and others do not.
std::string common_wrapper(const std::vector<std::string_view>& names, const std::string& where) {
  std::string common;
  for (bool more = true; more;) {
    more = false;
    for (const std::string_view wrapper : kWrappers) {
      const std::string wrapped = concat(common, wrapper);
      const auto other = std::find_if(names.begin(), names.end(), [&](std::string_view name) {
        return !name.starts_with(wrapped);
      });
      const auto one = std::find_if(names.begin(), names.end(), [&](std::string_view name) {
        return name.starts_with(wrapped);
      });
      SEQCONV_CHECK(
          one == names.end() || other == names.end(),
          where,
          ": all names of the model's dictionary or none must begin with '",
          wrapped,
          "', but '",
          *one,
          "' does and '",
          *other,
          "' does not");
      if (one == names.end())
        continue;
      common = wrapped;
      more = true;
    }
  }
  return common;
}

/// A name without the wrapper of all and, of parts that were compiled by
/// themselves, without theirs.
std::string unwrapped(std::string_view name, size_t common) {
  std::string bare(name.substr(common));
  constexpr std::string_view kPart = "._orig_mod.";
  for (size_t at; (at = bare.find(kPart)) != bare.npos;)
    bare.erase(at, kPart.size() - 1);
  return bare;
}

void merge(Json& arguments, const Json& table) {
  if (table.is_object())
    for (const auto& [key, value] : table.items())
      if (!value.is_object() && !value.is_null())
        arguments[key] = value;
}

}  // namespace

FairseqCheckpoint::FairseqCheckpoint(const std::filesystem::path& path, CheckpointWeights weights)
    : FairseqCheckpoint(PyTorchFile(path), weights) {}

FairseqCheckpoint::FairseqCheckpoint(PyTorchFile file, CheckpointWeights weights)
    : file_(std::move(file)) {
  const PickleValue root = file_.root();
  SEQCONV_CHECK(
      root.is_dictionary(),
      where(),
      ": a checkpoint must be a dictionary, but the file holds ",
      root.description());
  const PickleValue ema = root.find("extra_state").find("ema");
  const PickleValue model = root.find("model");
  has_other_ema_ = weights == CheckpointWeights::kTrained && is_state(ema);
  if (weights == CheckpointWeights::kEma) {
    SEQCONV_CHECK(
        is_state(ema),
        where(),
        ": the checkpoint holds no moving average of the weights (extra_state.ema)");
    read_model(ema);
  } else {
    SEQCONV_CHECK(
        !model.entries().empty() || (model.is_none() && is_state(root)),
        where(),
        ": the checkpoint must hold a dictionary of tensors under 'model', but 'model' is ",
        model.is_none() ? "not there" : model.description());
    read_model(model.is_none() ? root : model);
  }
  read_arguments(root);
  list_ignored_classes();
}

void FairseqCheckpoint::read_model(const PickleValue& model) {
  std::vector<std::string_view> names;
  for (const auto& [key, value] : model.entries()) {
    SEQCONV_CHECK(
        key.is(PickleKind::kString),
        where(),
        ": names in the model's dictionary must be strings, but one is ",
        key.description());
    names.push_back(key.node().text);
  }
  wrapper_ = common_wrapper(names, where());
  for (const auto& [key, value] : model.entries()) {
    const std::string name = unwrapped(key.node().text, wrapper_.size());
    StridedTensor tensor = file_.tensor(value, name);
    if (is_bookkeeping(name)) {
      bookkeeping_.insert(name);
      continue;
    }
    SEQCONV_CHECK(
        tensors_.emplace(name, std::move(tensor)).second,
        where(),
        ": the model's dictionary holds '",
        name,
        "' twice");
    values_[name] = value.id();
  }
}

/// Old files: args, a namespace. Later ones: cfg, whose parts have the settings
/// of the model and of the task; args is None there.
void FairseqCheckpoint::read_arguments(const PickleValue& root) {
  const Json settings = root.find("cfg").settings();
  if (settings.is_object()) {
    for (const char* part : {"task", "model"})
      if (settings.contains(part))
        merge(arguments_, settings[part]);
    read_source_cut(settings.value("task", Json()));
  }
  const Json arguments = root.find("args").settings();
  merge(arguments_, arguments);
  read_source_cut(arguments);
}

/// Models have a max_source_positions too, which cuts nothing.
void FairseqCheckpoint::read_source_cut(const Json& task) {
  if (!task.is_object())
    return;
  const Json truncates = task.value("truncate_source", Json());
  SEQCONV_CHECK(
      truncates.is_null() || truncates.is_boolean() || truncates.is_number_integer(),
      where(),
      ": the stored argument truncate_source must be true or false, but is ",
      detail::show_json(truncates));
  if (truncates.is_null() || truncates == false || truncates == 0)
    return;
  constexpr int64_t kDefault = 1024;
  const Json most = task.value("max_source_positions", Json(kDefault));
  SEQCONV_CHECK(
      most.is_number_integer() && most >= 2,
      where(),
      ": the stored argument max_source_positions, to which truncate_source cuts, must be a whole "
      "number from 2, but is ",
      detail::show_json(most));
  source_cut_ = most.get<int64_t>();
}

void FairseqCheckpoint::list_ignored_classes() {
  std::set<std::string> names;
  for (const PickleNode& node : file_.pickle().nodes())
    if (node.kind == PickleKind::kObject && !is_expected(node.text))
      names.emplace(node.text);
  ignored_.assign(names.begin(), names.end());
}

const StridedTensor& FairseqCheckpoint::read(const std::string& name) const {
  const auto found = tensors_.find(name);
  SEQCONV_CHECK(found != tensors_.end(), where(), ": the checkpoint lacks the tensor '", name, "'");
  file_.check_storage({file_.pickle(), values_.at(name)});
  return found->second;
}

}  // namespace seqconv::internal
