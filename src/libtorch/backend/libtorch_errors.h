#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <filesystem>
#include <new>

#include "base/error.h"

namespace seqconv::internal {

/// Returns what `work` gives; throws whatever LibTorch throws as
/// seqconv::internal::Error, its messages without the stack.
template <class Work>
auto guarded(const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    fail(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    fail("out of memory; smaller batches need less");
  } catch (const std::filesystem::filesystem_error& error) {
    fail("cannot use '", error.path1().string(), "': ", error.code().message());
  } catch (const std::exception& error) {
    fail("internal error: ", error.what());
  }
}

}  // namespace seqconv::internal
