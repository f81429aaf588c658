#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "serve/http_server.h"

namespace seqconv::internal {

/// The way to the server's thread, for threads that may outlive it.
class Door {
 public:
  explicit Door(boost::asio::io_context& context) : context_(&context) {}

  void post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (context_ != nullptr)
      boost::asio::post(*context_, std::move(work));
  }

  void close() {
    const std::lock_guard lock(mutex_);
    context_ = nullptr;
  }

 private:
  std::mutex mutex_;
  boost::asio::io_context* context_;
};

/// The meeting place of the handler's threads and the connection's.
class Exchange final : public HttpExchange {
 public:
  /// `bell` belongs to the server's thread: cancelling it tells that there is something new.
  Exchange(
      std::shared_ptr<Door> door,
      std::weak_ptr<boost::asio::steady_timer> bell,
      HttpRequest request)
      : door_(std::move(door)), bell_(std::move(bell)), request_(std::move(request)) {}

  const HttpRequest& request() const override { return request_; }

  void answer(HttpAnswer answer) override {
    const std::lock_guard lock(mutex_);
    if (head_ || is_gone_)
      return;
    head_ = std::move(answer);
    is_ended_ = true;
    tell();
  }

  void begin(HttpAnswer head) override {
    const std::lock_guard lock(mutex_);
    if (head_ || is_gone_)
      return;
    head_ = std::move(head);
    is_stream_ = true;
    tell();
  }

  void write(std::string part) override {
    const std::lock_guard lock(mutex_);
    if (!is_stream_ || is_ended_ || is_gone_ || part.empty())
      return;
    parts_.push_back(std::move(part));
    tell();
  }

  void end() override {
    const std::lock_guard lock(mutex_);
    if (!is_stream_ || is_gone_)
      return;
    is_ended_ = true;
    tell();
  }

  void on_gone(std::function<void()> gone) override {
    {
      const std::lock_guard lock(mutex_);
      if (!is_gone_) {
        on_gone_ = std::move(gone);
        return;
      }
    }
    gone();
  }

  // For the connection, in the server's thread.

  bool has_news() {
    const std::lock_guard lock(mutex_);
    return std::exchange(has_news_, false);
  }

  void client_left() {
    std::function<void()> gone;
    {
      const std::lock_guard lock(mutex_);
      if (is_gone_ || is_done_)
        return;
      is_gone_ = true;
      gone = std::move(on_gone_);
      on_gone_ = nullptr;
      tell();
    }
    if (gone)
      gone();
  }

  /// After the answer's end: the handler's function goes, and with it what that holds.
  void done() {
    std::function<void()> dropped;
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    dropped = std::move(on_gone_);
    on_gone_ = nullptr;
  }

  struct News {
    std::optional<HttpAnswer> head;
    std::deque<std::string> parts;
    bool is_stream = false;
    bool is_ended = false;
    bool is_gone = false;
  };
  News take() {
    const std::lock_guard lock(mutex_);
    News news{{}, std::exchange(parts_, {}), is_stream_, is_ended_, is_gone_};
    if (head_ && !is_taken_) {
      news.head = std::move(head_);
      is_taken_ = true;
    }
    return news;
  }

 private:
  void tell() {
    has_news_ = true;
    door_->post([bell = bell_] {
      if (const auto still = bell.lock())
        still->cancel();
    });
  }

  const std::shared_ptr<Door> door_;
  const std::weak_ptr<boost::asio::steady_timer> bell_;
  const HttpRequest request_;
  std::mutex mutex_;
  std::optional<HttpAnswer> head_;
  std::deque<std::string> parts_;
  std::function<void()> on_gone_;
  bool is_taken_ = false;
  bool is_stream_ = false;
  bool is_ended_ = false;
  bool is_gone_ = false;
  bool is_done_ = false;
  bool has_news_ = false;
};

}  // namespace seqconv::internal
