#pragma once

#include "seqconv/base/json.h"
#include "seqconv/pipeline/translator.h"
#include "seqconv/verbs/verbs.h"

namespace seqconv::verbs {

/// Everything that shapes the output of a translation: the program's version,
/// the content of the input (verbs/part_input.h) and of the models' files, and
/// what was asked for. Two jobs that say the same here go on with each other's
/// parts. Not in it is what changes speed, memory or messages alone.
Json describe_job(
    const TranslateArguments& arguments,
    const Translator& translator);

}  // namespace seqconv::verbs
