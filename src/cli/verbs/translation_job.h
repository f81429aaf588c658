#pragma once

#include "base/json.h"
#include "cli/verbs/input_format.h"
#include "cli/verbs/verbs.h"
#include "model/model_description.h"
#include "pipeline/translator.h"

namespace seqconv::internal::verbs {

/// Everything that shapes the output of a translation: the program's version,
/// the content of the input (cli/verbs/part_input.h) and of the models' files,
/// and what was asked for. Two jobs that say the same here go on with each
/// other's parts. Not in it is what changes speed, memory or messages alone.
Json describe_job(
    const TranslateArguments& arguments,
    const Translator& translator,
    const std::vector<ModelFiles>& models,
    const InputFormat& input);

}  // namespace seqconv::internal::verbs
