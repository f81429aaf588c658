#include "seqconv/runtime/runtime.h"

#include "seqconv/base/error.h"

namespace seqconv {

std::shared_ptr<const TranslationBackend> RuntimeBackends::translation(
    const std::vector<ModelToRun>& /*models*/) const {
  fail("the runtime is not there yet");
}

std::shared_ptr<const LanguageBackend> RuntimeBackends::language(
    const ModelToRun& /*model*/) const {
  fail("the runtime is not there yet");
}

}  // namespace seqconv
