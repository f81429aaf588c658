#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "serve/answers.h"
#include "serve/assets.h"
#include "serve/detect.h"
#include "serve/languages.h"
#include "serve/service.h"

/// Tells what is served.
namespace seqconv::internal {
namespace {

Json language_entry(const std::string& code, const Json& targets) {
  return {{"code", code}, {"name", language_name(code)}, {"targets", targets}};
}

}  // namespace

HttpAnswer Service::languages() const {
  Json list = Json::array();
  for (const std::string& code : sources()) {
    Json targets = Json::array();
    for (const ServedModel& model : models_.served())
      if (model.source == code && !model.is_language_model())
        targets.push_back(model.target);
    list.push_back(language_entry(code, targets));
  }
  for (const ServedModel& model : models_.served())
    if (!model.is_language_model() &&
        std::ranges::none_of(list, [&](const Json& one) { return one["code"] == model.target; }))
      list.push_back(language_entry(model.target, Json::array()));
  return json_answer(list);
}

HttpAnswer Service::settings() const {
  const std::vector<std::string> known = sources();
  const std::string source = detects_languages() || known.empty() ? "auto" : known[0];
  const std::string target = known.empty() ? "en" : models_.served()[0].target;
  const auto language = [](const std::string& code, const std::string& name) {
    return Json{{"code", code}, {"name", name}};
  };
  Json language_models = Json::array();
  for (const ServedModel& model : models_.served())
    if (model.is_language_model())
      language_models.push_back(model.source);
  return json_answer(
      {{"apiKeys", !options_.keys.empty()},
       {"charLimit", options_.max_characters},
       {"detectsLanguages", detects_languages()},
       {"filesTranslation", false},
       {"frontendTimeout", 500},
       {"keyRequired", options_.require_key},
       {"language",
        {{"source", language(source, source == "auto" ? "Auto Detect" : language_name(source))},
         {"target", language(target, language_name(target))}}},
       {"languageModels", language_models},
       {"maxAlternatives", options_.max_alternatives},
       {"maxLength", options_.max_length},
       {"suggestions", false},
       {"supportedFilesFormat", Json::array()}});
}

HttpAnswer Service::spec() const {
  Json spec = Json::parse(find_asset("openapi.json")->content);
  Json& schemas = spec["components"]["schemas"];
  Json& translation = schemas["TranslateRequest"];
  Json pairs = Json::array(), names = Json::array();
  for (const ServedModel& model : models_.served()) {
    if (model.is_language_model()) {
      names.push_back(model.source);
      continue;
    }
    Json codes = sources(model.target);
    if (detects_languages() || codes.size() == 1)
      codes.push_back("auto");
    Json pair = {{"source", {{"enum", codes}}}, {"target", {{"const", model.target}}}};
    if (Json one = {{"properties", std::move(pair)}}; std::ranges::find(pairs, one) == pairs.end())
      pairs.push_back(std::move(one));
  }
  Json& inspected = schemas["InspectRequest"];
  if (!pairs.empty())
    translation["anyOf"] = inspected["anyOf"] = pairs;
  inspected["properties"]["q"]["maxLength"] = options_.max_characters;
  names.insert(names.end(), {"", nullptr});
  if (has_language_models())
    schemas["GenerateRequest"]["properties"]["model"]["enum"] = names;
  else
    spec["paths"].erase("/generate");
  if (!detects_languages() && sources().size() > 1)
    spec["paths"].erase("/detect");  // it has but one answer: no
  translation["properties"]["alternatives"]["maximum"] = options_.max_alternatives;
  schemas["GenerateRequest"]["properties"]["length"]["maximum"] = options_.max_length;
  for (const char* texts : {"Texts", "FormTexts"}) {
    schemas[texts]["anyOf"][0]["maxLength"] = options_.max_characters;
    schemas[texts]["anyOf"][1]["maxItems"] = options_.max_items;
  }
  return json_answer(spec);
}

}  // namespace seqconv::internal
