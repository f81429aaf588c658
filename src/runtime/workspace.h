#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace seqconv::runtime {

/// Memory for numbers in between. It grows once to what is needed, and then
/// nothing is allocated any more. For one thread.
class Workspace {
 public:
  /// What is taken through a frame is given back when the frame ends. Frames
  /// end in the order opposite to that in which they began.
  class Frame {
   public:
    explicit Frame(Workspace& space)
        : space_(space), page_(space.page_), used_(space.used_) {}
    ~Frame() {
      space_.page_ = page_;
      space_.used_ = used_;
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

    /// Unset memory for `count` elements, at the start of a cache line.
    template <class T = float>
    T* take(int64_t count) {
      return reinterpret_cast<T*>(
          space_.take(count * static_cast<int64_t>(sizeof(T))));
    }

   private:
    Workspace& space_;
    size_t page_;
    int64_t used_;
  };

 private:
  static constexpr int64_t kLine = 64;
  static constexpr int64_t kPage = int64_t{1} << 18;

  struct Free {
    void operator()(std::byte* p) const {
      ::operator delete (p, std::align_val_t{kLine});
    }
  };
  struct Page {
    std::unique_ptr<std::byte[], Free> data;
    int64_t size = 0;
  };

  std::byte* take(int64_t bytes) {
    const int64_t size = (bytes + kLine - 1) / kLine * kLine;
    while (page_ < pages_.size() && used_ + size > pages_[page_].size) {
      ++page_;
      used_ = 0;
    }
    if (page_ == pages_.size())
      add_page(std::max(size, kPage));
    std::byte* const taken = pages_[page_].data.get() + used_;
    used_ += size;
    return taken;
  }

  void add_page(int64_t size) {
    auto* const data = static_cast<std::byte*>(
        ::operator new (static_cast<size_t>(size), std::align_val_t{kLine}));
    pages_.push_back({std::unique_ptr<std::byte[], Free>(data), size});
    used_ = 0;
  }

  std::vector<Page> pages_;
  size_t page_ = 0;
  int64_t used_ = 0;
};

}  // namespace seqconv::runtime
