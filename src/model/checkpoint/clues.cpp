#include "model/checkpoint/clues.h"

namespace seqconv::internal {

bool Clues::has(const std::string& name) const {
  return tensors().contains(name);
}

bool Clues::has_prefix(const std::string& prefix) const {
  const auto next = tensors().lower_bound(prefix);
  return next != tensors().end() && next->first.starts_with(prefix);
}

const Clues::Numbers& Clues::shape(const std::string& name, size_t dimensions) const {
  const auto found = tensors().find(name);
  SEQCONV_CHECK(
      found != tensors().end(), where(), ": the checkpoint lacks the tensor '", name, "'");
  const Numbers& shape = found->second.shape;
  SEQCONV_CHECK(
      shape.size() >= dimensions,
      where(),
      ": '",
      name,
      "' must have ",
      dimensions,
      " dimensions or more, but has ",
      shape.size());
  return shape;
}

const Json* Clues::argument(const std::string& name) const {
  const Json& arguments = checkpoint_.arguments();
  const auto found = arguments.find(name);
  return found == arguments.end() || found->is_null() ? nullptr : &*found;
}

void Clues::reject(const std::string& name, const Json& value, const char* wanted) const {
  fail(
      where(),
      ": the stored argument ",
      name,
      " must be ",
      wanted,
      ", but is ",
      detail::show_json(value));
}

std::optional<int64_t> Clues::integer(const std::string& name) const {
  const Json* value = argument(name);
  if (value == nullptr)
    return {};
  if (!value->is_number_integer())
    reject(name, *value, "a whole number");
  return value->get<int64_t>();
}

std::optional<double> Clues::real(const std::string& name) const {
  const Json* value = argument(name);
  if (value == nullptr)
    return {};
  if (!value->is_number())
    reject(name, *value, "a number");
  return value->get<double>();
}

std::optional<bool> Clues::boolean(const std::string& name) const {
  const Json* value = argument(name);
  if (value == nullptr)
    return {};
  if (value->is_number_integer())  // "--encoder-glu 1" in some versions
    return value->get<int64_t>() != 0;
  if (!value->is_boolean())
    reject(name, *value, "true or false");
  return value->get<bool>();
}

std::optional<Clues::Numbers> Clues::integers(const std::string& name) const {
  const Json* value = argument(name);
  if (value == nullptr)
    return {};
  Json list = *value;
  if (list.is_string()) {
    std::string text = list.get<std::string>();
    if (!text.starts_with('['))
      text = "[" + text + "]";
    list = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  }
  Numbers numbers;
  if (!list.is_array())
    reject(name, *value, "a list of whole numbers");
  for (const Json& entry : list) {
    if (!entry.is_number_integer())
      reject(name, *value, "a list of whole numbers");
    numbers.push_back(entry.get<int64_t>());
  }
  return numbers;
}

}  // namespace seqconv::internal
