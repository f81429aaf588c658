#pragma once

#include "cli/verbs/request_reader.h"
#include "cli/verbs/verbs.h"

namespace seqconv::internal::verbs {

/// What the input of translating or summarising is: as was asked for, or as the
/// model was trained. UsageError where flags of summarising contradict that.
InputFormat input_format(const TranslateArguments& arguments, const DocumentOptions& trained);

/// What the output is to be.
OutputFormat output_format(const TranslateArguments& arguments, const InputFormat& input);

}  // namespace seqconv::internal::verbs
