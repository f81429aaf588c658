#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// HTTP/1.1 for others to answer: connections, their limits and their ends.
namespace seqconv::internal {

struct HttpLimits {
  int64_t connections = 1024;  ///< at a time; the one that is idle longest makes room
  int64_t header_bytes = 16 << 10;
  int64_t body_bytes = 2 << 20;
  int64_t all_bodies_bytes = 256 << 20;  ///< of requests that are not answered yet
  double idle_seconds = 60;              ///< until the first byte of a request
  double header_seconds = 10;            ///< from there until its header is whole
  double body_seconds = 30;              ///< and from there until its body is
  double write_seconds = 30;             ///< for each piece of an answer
};

/// A request, whole.
struct HttpRequest {
  std::string method;
  std::string path;   ///< decoded: "/translate"
  std::string query;  ///< as it came, without '?'
  std::string body;
  std::string client;  ///< its IP address
  std::string host, origin, content_type, authorization, accept,
      if_none_match;  ///< of the header; "": none
};

struct HttpAnswer {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers{};
};

/// A request that waits for its answer. Any thread may use it; it outlives its connection and
/// its server.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual const HttpRequest& request() const = 0;

  /// Answers; the first answer counts.
  virtual void answer(HttpAnswer answer) = 0;

  /// Answers in parts: `head` without a body, any number of parts, the end. A part is dropped
  /// when the client is gone.
  virtual void begin(HttpAnswer head) = 0;
  virtual void write(std::string part) = 0;
  virtual void end() = 0;

  /// Calls `gone` once, from a thread of the server's, when the client leaves before the answer
  /// is whole; at once if it has left. One function; it is dropped with the answer's end.
  virtual void on_gone(std::function<void()> gone) = 0;
};

/// An exchange that has ended, for a log.
struct HttpRecord {
  std::string method;  ///< "" where the request was none
  std::string path;
  unsigned status = 0;  ///< 0: the client left before it was answered
  int64_t request_bytes = 0;
  int64_t answer_bytes = 0;
  double seconds = 0;
};

/// Listens at one address. Requests that are no HTTP or exceed a limit it answers itself: 400,
/// 413, 431, 503, with the body that `refusal` makes of the status. Connections that take too
/// long it closes.
class HttpServer {
 public:
  using Handler = std::function<void(std::shared_ptr<HttpExchange>)>;

  struct Hooks {
    Handler handle;  ///< of the server's thread: may not wait
    std::function<HttpAnswer(unsigned status)> refusal;
    std::function<void(const HttpRecord&)> record = nullptr;
  };

  /// Listens; serves nobody before run(). Error where the address is none or taken.
  HttpServer(const std::string& address, int port, const HttpLimits& limits, Hooks hooks);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;  ///< that was taken for port 0
  int64_t connections() const;

  /// Serves until stop(), and then until all exchanges are answered or `drain_seconds` are over.
  void run(double drain_seconds = 30);

  /// From any thread: takes no connection and no request more.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace seqconv::internal
