#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/files.h"
#include "base/one_line.h"
#include "base/safetensors.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "model/model_description.h"
#include "model/stored_parameters.h"
#include "text/vocabulary.h"

namespace seqconv::internal::cli {
namespace fs = std::filesystem;
namespace {

constexpr const char* kInfoExamples =
    "Examples:\n"
    "  seqconv info runs/numbers\n"
    "  seqconv info runs/numbers/training/checkpoints/update-00002000.safetensors";

// "key: value" on one line, whatever a name or a value holds.
template <class Value>
void write_row(const std::string& key, const Value& value, std::ostream& out) {
  out << one_line(concat(key, ": ", value)) << '\n';
}

// A table's rows; tables in it as "table.key: value".
void write_rows(const Json& table, const std::string& path, std::ostream& out) {
  for (const auto& [key, value] : table.items()) {
    if (key == "samples")
      continue;  // the self-test of the text: not for people
    const std::string where = detail::join_key(path, key.c_str());
    if (value.is_object())
      write_rows(value, where, out);
    else
      write_row(where, detail::show_json(value), out);
  }
}

// Whether a tensor has the scales of a matrix of int8.
bool is_scale(const SafetensorsReader& reader, const std::string& name) {
  return name.ends_with(scale_name("")) &&
      reader.contains(name.substr(0, name.size() - scale_name("").size()));
}

void write_parameters(const RootedPath& checkpoint, std::ostream& out) {
  const SafetensorsReader reader(checkpoint);
  int64_t parameters = 0;
  for (const auto& [name, tensor] : reader.tensors())
    parameters += is_scale(reader, name) ? 0 : tensor.count();
  write_row("checkpoint", checkpoint.string(), out);
  write_row("parameters", parameters, out);
  write_row("tensors", reader.tensors().size(), out);
  for (const auto& [key, value] : reader.metadata())
    write_row(concat("checkpoint.", key), value, out);
}

void write_vocabularies(const ModelFiles& model, std::ostream& out) {
  const Json none;
  const auto inside = [&none](const Json& table, const char* key) -> const Json& {
    return table.is_object() && table.contains(key) ? table.at(key) : none;
  };
  for (const auto& [key, label] :
       {std::pair{"source", ".source"}, {"target", ".target"}, {"side", ""}}) {
    const Json& text = inside(model.config, "text");
    const Json& name = inside(inside(text, key), "dictionary");
    if (!name.is_string())
      continue;
    const RootedPath file = model.folder / name.get<std::string>();
    write_row(
        concat("vocabulary", label), Vocabulary::parse(read_file(file), file.string()).size(), out);
  }
}

void write_checkpoints(const fs::path& folder, std::ostream& out) {
  std::error_code none;
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "training", none))
    if (entry.path().extension() == ".safetensors")
      names.push_back(fs::relative(entry.path(), folder).string());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names)
    write_row("file", name, out);
}

// Checks the description and the tensors as opening the model does.
void check_model(const ModelFiles& model) {
  const std::vector<ParameterShape> wanted = parameters_of_model(model.folder);
  check_parameters(SafetensorsReader(model.parameters), wanted);
}

// Tells what can be told of a model that cannot be opened, then why.
void run_info(const RootedPath& path, std::ostream& out) {
  const ModelFiles model = find_model(path);
  write_row("folder", model.folder.string(), out);
  for (const char* key : {"format", "format_version", "task"})
    if (model.config.contains(key))
      write_row(key, detail::show_json(model.config[key]), out);
  std::string fault;
  const auto attempt = [&](const auto& part) {
    try {
      part();
    } catch (const Error& error) {
      if (fault.empty())
        fault = error.what();
    }
  };
  attempt([&] { write_parameters(model.parameters, out); });
  attempt([&] { write_vocabularies(model, out); });
  for (const char* key : {"architecture", "text", "stream", "decoding", "documents"})
    if (model.config.contains(key) && model.config[key].is_object())
      write_rows(model.config[key], key, out);
  write_checkpoints(model.folder, out);
  attempt([&] { check_model(model); });
  out.flush();
  SEQCONV_CHECK(fault.empty(), "the model cannot be used: ", fault);
}

}  // namespace

void add_info(Program& program) {
  auto path = std::make_shared<RootedPath>();
  CLI::App& verb = program.add_verb(
      "info", "Describe a model: architecture, parameters, text, checkpoints", kInfoExamples);
  add_path(verb, "DIR", *path, "Model folder or checkpoint")->type_name("")->required();
  add_follow_links(verb, *path);
  verb.callback(
      [&program, path] { program.run = [&program, path] { run_info(*path, program.out); }; });
}

}  // namespace seqconv::internal::cli
