#pragma once

#include "cli/verbs/request_reader.h"
#include "cli/verbs/verbs.h"

namespace seqconv::internal::verbs {

/// Returns the format of the input of translating or summarising: the flags', or that which the
/// model was trained on. UsageError if flags of summarising contradict that.
InputFormat input_format(const TranslateArguments& arguments, const DocumentOptions& trained);

/// Returns the format of the output.
OutputFormat output_format(const TranslateArguments& arguments, const InputFormat& input);

}  // namespace seqconv::internal::verbs
