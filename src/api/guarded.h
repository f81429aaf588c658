#pragma once

#include <exception>
#include <new>
#include <string>

#include "seqconv/api/runtime.h"
#include "seqconv/base/error.h"

namespace seqconv::api {

/// What `work` gives; whatever it throws as an Error of this library, those of
/// models as `Failure`.
template <class Failure = Error, class Work>
auto guarded(const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const UsageError& error) {
    throw OptionError(error.what());
  } catch (const seqconv::Error& error) {
    throw Failure(error.what());
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("out of memory");
  } catch (const std::exception& error) {
    throw Error(std::string("internal error: ") + error.what());
  }
}

}  // namespace seqconv::api
