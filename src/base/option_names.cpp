#include "base/option_names.h"

#include "base/error.h"

namespace seqconv::internal {

std::string OptionNames::operator()(std::string_view key) const {
  const auto flag = flags_.find(std::string(key));
  if (flag != flags_.end())
    return flag->second;
  return path_.empty() ? std::string(key) : concat(path_, ".", key);
}

std::string OptionNames::setting(std::string_view key, std::string_view value) const {
  return are_flags() ? concat((*this)(key), " ", value) : concat((*this)(key), " = '", value, "'");
}

std::string OptionNames::off(std::string_view key) const {
  const std::string name = (*this)(key);
  if (!are_flags())
    return name + " = false";
  return name.starts_with("--no-") ? name : "--no-" + name.substr(2);
}

}  // namespace seqconv::internal
