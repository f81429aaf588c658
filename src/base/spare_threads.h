#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace seqconv::internal {

/// Threads that have nothing to do of their own and take parts of the loops of
/// those that have. More than kMostHelping would wait for one another longer
/// than they help. Loops of a few microseconds gain: a spare thread that has
/// just helped looks for the next loop for a while before it sleeps, if
/// anybody's loops are lent to it.
class SpareThreads {
 public:
  using Body = std::function<void(int64_t begin, int64_t end)>;

  /// Lends the calling thread's loops to `threads` as long as it lives.
  class Lending {
   public:
    explicit Lending(SpareThreads& threads);
    ~Lending();
    Lending(const Lending&) = delete;
    Lending& operator=(const Lending&) = delete;

   private:
    SpareThreads& threads_;
    SpareThreads* before_;
  };

  /// Runs body(begin, end) over a partition of [0, count), each part of `grain`
  /// items at least but the last. Parts are run by the calling thread and by
  /// the spare ones that its loops are lent to, if there are any now.
  /// Exceptions of the body are thrown when no part is under way.
  static void loop(int64_t count, int64_t grain, const Body& body);

  /// Called by the first loop that could be shared out, by the thread that
  /// runs it: so that threads are started where there is something for them to
  /// do. Before any loop; it throws nothing.
  void when_help_is_wanted(std::function<void()> call) { wanted_ = std::move(call); }

  /// The number of threads that can help one loop.
  static constexpr int64_t kMostHelping = 7;

  /// A number for help(), to be asked before looking for other work.
  uint32_t calls() const { return calls_; }
  /// Helps until call_back() is called; not at all if it was since `calls`.
  void help(uint32_t calls);
  /// The same without helping.
  void rest(uint32_t calls) const { calls_.wait(calls); }
  /// Ends every help() and rest() with a smaller number.
  void call_back();

 private:
  struct Loop;

  void run(Loop& loop);
  void take_part();
  bool watch(uint32_t calls) const;
  void sleep(uint32_t calls);
  void wake();

  std::function<void()> wanted_;
  std::atomic<bool> was_wanted_ = false;
  std::atomic<uint32_t> calls_ = 0;
  std::atomic<int64_t> lending_ = 0;  ///< threads whose loops may come
  std::atomic<int64_t> helping_ = 0;  ///< threads in help()
  std::atomic<int> sleeping_ = 0;     ///< of them, until there is a loop
  std::atomic<uint32_t> wakes_ = 0;
  std::atomic<bool> taken_ = false;  ///< one loop at a time
  std::atomic<Loop*> loop_ = nullptr;
  std::atomic<int> inside_ = 0;  ///< threads that may look at it
};

}  // namespace seqconv::internal
