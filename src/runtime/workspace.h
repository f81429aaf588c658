#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

/// Memory for numbers in between. It does not come from the heap: what lives on
/// there, results above all, would lie between its large blocks, and the next
/// batch would find none that is large enough.
namespace seqconv::internal::runtime {

/// A stack of numbers on pages of its own. It grows to what is needed, and then
/// nothing is allocated any more. For one thread.
class Workspace {
 public:
  Workspace() = default;
  ~Workspace() { drop_from(0); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Gives back, when it ends, what is taken through it. Frames end in the
  /// order opposite to that in which they began.
  class Frame {
   public:
    explicit Frame(Workspace& space)
        : space_(space), page_(space.page_), used_(space.used_), live_(space.live_) {}
    ~Frame() {
      space_.page_ = page_;
      space_.used_ = used_;
      space_.live_ = live_;
      if (live_ == 0 && space_.pages_.size() > 1)
        space_.join();
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

    /// Unset memory for `count` elements, at the start of a cache line.
    template <class T = float>
    T* take(int64_t count) {
      return reinterpret_cast<T*>(space_.take(count * static_cast<int64_t>(sizeof(T))));
    }

   private:
    Workspace& space_;
    size_t page_;
    int64_t used_;
    int64_t live_;
  };

  /// Memory of its pages. It is at most some four times what was taken at a
  /// time; beyond a small page.
  int64_t bytes() const { return bytes_; }
  /// The same of all workspaces of the process.
  static int64_t bytes_of_all() { return bytes_of_all_; }

  /// Between two users, when nothing is taken: keeps what the last one needed,
  /// unless it is very much.
  void rest();

 private:
  static constexpr int64_t kLine = 64;

  struct Page {
    std::byte* data = nullptr;
    int64_t size = 0;
  };

  std::byte* take(int64_t bytes) {
    const int64_t size = (bytes + kLine - 1) / kLine * kLine;
    if (page_ >= pages_.size() || used_ + size > pages_[page_].size)
      turn_page(size);
    std::byte* const taken = pages_[page_].data + used_;
    used_ += size;
    live_ += size;
    most_ = std::max(most_, live_);
    return taken;
  }

  void turn_page(int64_t size);
  void add_page(int64_t size, int64_t least);
  void join();
  void drop_from(size_t page);

  inline static std::atomic<int64_t> bytes_of_all_ = 0;

  std::vector<Page> pages_;
  size_t page_ = 0;     ///< the one in use; those behind it are free
  int64_t used_ = 0;    ///< bytes of it
  int64_t live_ = 0;    ///< bytes that are taken, on all pages
  int64_t most_ = 0;    ///< of them at a time, since the last rest
  int64_t joined_ = 0;  ///< the size of the first page, where there is none
  int64_t bytes_ = 0;
};

/// A buffer of a frame that grows. What is in it is lost when it does.
template <class T>
class Grown {
 public:
  T* data() { return data_; }
  const T* data() const { return data_; }

  /// Memory for `count` elements.
  T* hold(int64_t count, Workspace::Frame& frame) {
    if (count > size_) {
      const int64_t size = std::max(count, size_ + size_ / 2);
      data_ = frame.take<T>(size);
      size_ = size;
    }
    return data_;
  }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
};

/// The memory that a batch works in.
struct Workspaces {
  Workspace kept;     ///< what lives as long as the batch
  Workspace scratch;  ///< what lives as long as a step
};

/// Workspaces of a model, which one batch after another uses: as many as there
/// are batches at a time. Nothing here is locked, so that a child process of
/// fork() finds nothing held by a thread that it does not have.
class WorkspacePool {
 public:
  WorkspacePool() = default;
  ~WorkspacePool();
  WorkspacePool(const WorkspacePool&) = delete;
  WorkspacePool& operator=(const WorkspacePool&) = delete;

  /// Workspaces as long as it lives.
  class Loan {
   public:
    explicit Loan(std::shared_ptr<WorkspacePool> pool)
        : pool_(std::move(pool)), spaces_(pool_->take()) {}
    ~Loan() { pool_->give_back(std::move(spaces_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    Workspaces* operator->() const { return spaces_.get(); }

   private:
    std::shared_ptr<WorkspacePool> pool_;
    std::unique_ptr<Workspaces> spaces_;
  };

 private:
  std::unique_ptr<Workspaces> take();
  void give_back(std::unique_ptr<Workspaces> spaces) noexcept;

  std::array<std::atomic<Workspaces*>, 64> idle_{};
};

}  // namespace seqconv::internal::runtime
