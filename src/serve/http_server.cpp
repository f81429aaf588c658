#include "serve/http_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <optional>

#include "base/error.h"
#include "serve/exchange.h"
#include "serve/url.h"

namespace seqconv::internal {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace {

using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
// Descriptors for models, logs and what a library may open.
constexpr int64_t kOtherDescriptors = 64;

Clock::duration duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// As many connections as there are descriptors for, of which as many are allowed as can be.
int64_t allowed_connections(int64_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return wanted;
  const rlim_t needed = static_cast<rlim_t>(wanted + kOtherDescriptors);
  if (limit.rlim_cur < needed) {
    limit.rlim_cur = std::min(needed, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  return std::clamp<int64_t>(static_cast<int64_t>(limit.rlim_cur) - kOtherDescriptors, 1, wanted);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const std::string& address, int port, const HttpLimits& limits, Hooks hooks)
      : limits_(limits), hooks_(std::move(hooks)), acceptor_(context_), drain_(context_) {
    limits_.connections = allowed_connections(limits.connections);
    error_code error;
    const auto ip = asio::ip::make_address(address, error);
    if (error)
      fail("[serve] host must be an IP address, but got '", address, "'");
    const tcp::endpoint endpoint(ip, static_cast<uint16_t>(port));
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(endpoint, error);
    if (!error)
      acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    if (error)
      fail("[serve] cannot listen at ", address, " port ", port, ": ", error.message());
  }

  /// Connections end with the context; its exchanges may stay.
  ~Impl() { door_->close(); }

  int port() const { return acceptor_.local_endpoint().port(); }
  int64_t connections() const { return count_; }

  void run(double drain_seconds) {
    drain_seconds_ = drain_seconds;
    asio::co_spawn(context_, accept(), asio::detached);
    context_.run();
  }

  void stop() {
    door_->post([this] { begin_to_stop(); });
  }

 private:
  /// A connection: whoever holds its socket may close it.
  struct Connection {
    explicit Connection(tcp::socket socket) : stream(std::move(socket)) {}
    beast::tcp_stream stream;
    beast::flat_buffer buffer;
    bool is_idle = true;  // no request of it is under way
    std::list<Connection*>::iterator place;
  };
  using Request = http::request_parser<http::string_body>;

  /// A part of what all bodies may have.
  struct BodyShare {
    BodyShare(int64_t& bodies, int64_t bytes) : all(bodies), own(bytes) { all += own; }
    BodyShare(const BodyShare&) = delete;
    ~BodyShare() { all -= own; }
    int64_t& all;
    const int64_t own;
  };

  void begin_to_stop() {
    if (std::exchange(is_stopping_, true))
      return;
    error_code ignored;
    acceptor_.close(ignored);
    for (Connection* connection : open_)
      if (connection->is_idle)
        close(*connection);
    if (open_.empty())
      return;
    drain_.expires_after(duration(drain_seconds_));
    drain_.async_wait([this](error_code error) {
      for (Connection* connection : open_)
        if (!error)
          close(*connection);
    });
  }

  static void close(Connection& connection) {
    error_code ignored;
    connection.stream.socket().close(ignored);
  }

  asio::awaitable<void> accept() {
    while (!is_stopping_) {
      auto [error, socket] = co_await acceptor_.async_accept(kNoThrow);
      if (is_stopping_)
        break;
      if (error) {  // no descriptor is left, say: one may be soon
        asio::steady_timer pause(context_, std::chrono::milliseconds(20));
        co_await pause.async_wait(kNoThrow);
        continue;
      }
      asio::co_spawn(context_, serve(std::move(socket)), asio::detached);
    }
  }

  /// Room for a connection more, if need be of the one that has been idle longest.
  bool make_room() {
    if (count_ < limits_.connections)
      return true;
    const auto idle = std::ranges::find_if(open_, &Connection::is_idle);
    if (idle == open_.end())
      return false;
    close(**idle);
    (*idle)->is_idle = false;  // it is on its way out
    return true;
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    const auto connection = std::make_shared<Connection>(std::move(socket));
    if (!make_room()) {
      co_await refuse(*connection, 503, Clock::now());
      co_return;
    }
    ++count_;
    connection->place = open_.insert(open_.end(), connection.get());
    try {
      while (!is_stopping_ && co_await exchange(connection)) {}
    } catch (const std::exception&) {  // memory: this connection ends, the others go on
    }
    open_.erase(connection->place);
    --count_;
    connection->stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
    close(*connection);
    if (is_stopping_ && open_.empty())
      drain_.cancel();
  }

  /// One request and its answer. False: the connection has ended.
  asio::awaitable<bool> exchange(const std::shared_ptr<Connection>& connection) {
    auto& [stream, buffer, is_idle, place] = *connection;
    is_idle = true;
    open_.splice(open_.end(), open_, place);
    if (buffer.size() == 0) {
      stream.expires_after(duration(limits_.idle_seconds));
      auto [error, count] =
          co_await stream.async_read_some(buffer.prepare(std::size_t{4096}), kNoThrow);
      if (error)
        co_return false;
      buffer.commit(count);
    }
    const auto start = Clock::now();
    Request parser;
    parser.header_limit(static_cast<uint32_t>(limits_.header_bytes));
    parser.body_limit(static_cast<uint64_t>(limits_.body_bytes));
    stream.expires_after(duration(limits_.header_seconds));
    if (auto [error, count] = co_await http::async_read_header(stream, buffer, parser, kNoThrow);
        error)
      co_return co_await refuse(*connection, status_of(error), start);
    is_idle = false;
    const auto size = parser.content_length();
    const int64_t most = limits_.body_bytes;
    const BodyShare share(
        bodies_,
        size                   ? std::min(static_cast<int64_t>(*size), most)
            : parser.chunked() ? most
                               : 0);
    if (bodies_ > limits_.all_bodies_bytes)
      co_return co_await refuse(*connection, 503, start);
    stream.expires_after(duration(limits_.body_seconds));
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      http::response<http::empty_body> more(http::status::continue_, parser.get().version());
      if (auto [error, count] = co_await http::async_write(stream, more, kNoThrow); error)
        co_return false;
    }
    if (auto [error, count] = co_await http::async_read(stream, buffer, parser, kNoThrow); error)
      co_return co_await refuse(*connection, status_of(error), start);
    stream.expires_never();
    co_return co_await respond(connection, parser.release(), start);
  }

  static unsigned status_of(error_code error) {
    if (error == http::error::header_limit)
      return 431;
    if (error == http::error::body_limit)
      return 413;
    return error.category() == make_error_code(http::error::bad_method).category() &&
            error != http::error::end_of_stream && error != http::error::partial_message
        ? 400
        : 0;
  }

  void record(HttpRecord record, Clock::time_point start) {
    record.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (hooks_.record)
      hooks_.record(record);
  }

  /// Answers what is no request, and ends the connection. 0: nobody is there to hear it.
  asio::awaitable<bool> refuse(Connection& connection, unsigned status, Clock::time_point start) {
    int64_t size = 0;
    if (status != 0) {
      HttpAnswer answer = hooks_.refusal(status);
      answer.status = status;
      auto response = response_of(std::move(answer), 11, false, false);
      connection.stream.expires_after(duration(limits_.write_seconds));
      auto [error, count] = co_await http::async_write(connection.stream, response, kNoThrow);
      size = static_cast<int64_t>(count);
      // Closing with unread bytes would take the answer back.
      error_code ignored;
      connection.stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
      connection.stream.expires_after(std::chrono::seconds(1));
      std::array<char, 4096> rest{};
      for (int i = 0; i < 256; ++i)
        if (auto [failed, more] =
                co_await connection.stream.async_read_some(asio::buffer(rest), kNoThrow);
            failed)
          break;
    }
    record({"", "", status, 0, size, 0}, start);
    co_return false;
  }

  http::response<http::string_body> response_of(
      HttpAnswer answer, unsigned version, bool keep_alive, bool is_head) {
    http::response<http::string_body> response(http::int_to_status(answer.status), version);
    response.result(answer.status);
    if (!answer.content_type.empty())
      response.set(http::field::content_type, answer.content_type);
    for (const auto& [name, value] : answer.headers)
      response.set(name, value);
    response.keep_alive(keep_alive);
    if (answer.status != 204 && answer.status != 304)
      response.content_length(answer.body.size());
    if (!is_head)
      response.body() = std::move(answer.body);
    return response;
  }

  /// Notices a client that closes its side while its answer is made. Ends with the next byte
  /// that comes, or with the connection.
  static asio::awaitable<void> watch(
      std::shared_ptr<Connection> connection, std::weak_ptr<Exchange> exchange) {
    auto& socket = connection->stream.socket();
    auto [error] = co_await socket.async_wait(tcp::socket::wait_read, kNoThrow);
    char byte = 0;
    const ssize_t count =
        error ? 0 : ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    const bool is_closed = count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
    if (const auto still = exchange.lock(); still && is_closed)
      still->client_left();
  }

  asio::awaitable<bool> respond(
      const std::shared_ptr<Connection>& connection,
      http::request<http::string_body> message,
      Clock::time_point start) {
    const unsigned version = message.version();
    const bool keep_alive = message.keep_alive();
    const bool is_head = message.method() == http::verb::head;
    HttpRequest request = request_of(std::move(message));
    error_code unknown;
    if (const auto end = connection->stream.socket().remote_endpoint(unknown); !unknown)
      request.client = end.address().to_string();
    HttpRecord done{request.method, request.path, 0, static_cast<int64_t>(request.body.size())};
    const auto bell = std::make_shared<asio::steady_timer>(context_, Clock::time_point::max());
    const auto exchange = std::make_shared<Exchange>(door_, bell, std::move(request));
    asio::co_spawn(context_, watch(connection, exchange), asio::detached);
    hooks_.handle(exchange);
    bool is_open = co_await write_answer(
        *connection, *exchange, *bell, done, version, keep_alive && !is_stopping_, is_head);
    if (is_open)
      exchange->done();
    else
      exchange->client_left();
    record(std::move(done), start);
    co_return is_open&& keep_alive && !is_stopping_;
  }

  asio::awaitable<bool> write_answer(
      Connection& connection,
      Exchange& exchange,
      asio::steady_timer& bell,
      HttpRecord& done,
      unsigned version,
      bool keep_alive,
      bool is_head) {
    auto& stream = connection.stream;
    while (true) {
      while (!exchange.has_news())
        co_await bell.async_wait(kNoThrow);
      Exchange::News news = exchange.take();
      if (news.is_gone)
        co_return false;
      if (news.head && !news.is_stream) {
        done.status = news.head->status;
        auto response = response_of(std::move(*news.head), version, keep_alive, is_head);
        stream.expires_after(duration(limits_.write_seconds));
        auto [error, count] = co_await http::async_write(stream, response, kNoThrow);
        stream.expires_never();
        done.answer_bytes += static_cast<int64_t>(count);
        co_return !error && response.keep_alive();
      }
      if (news.head) {
        done.status = news.head->status;
        http::response<http::empty_body> head(http::int_to_status(news.head->status), version);
        head.set(http::field::content_type, news.head->content_type);
        for (const auto& [name, value] : news.head->headers)
          head.set(name, value);
        head.keep_alive(keep_alive && version >= 11);
        head.chunked(version >= 11);
        http::response_serializer<http::empty_body> serializer(head);
        stream.expires_after(duration(limits_.write_seconds));
        auto [error, count] = co_await http::async_write_header(stream, serializer, kNoThrow);
        if (error)
          co_return false;
        done.answer_bytes += static_cast<int64_t>(count);
      }
      for (const std::string& part : news.parts) {
        stream.expires_after(duration(limits_.write_seconds));
        const auto bytes = asio::buffer(part);
        const auto [error, count] = version >= 11
            ? co_await asio::async_write(stream, http::make_chunk(bytes), kNoThrow)
            : co_await asio::async_write(stream, bytes, kNoThrow);
        if (error)
          co_return false;
        done.answer_bytes += static_cast<int64_t>(count);
      }
      if (news.is_ended) {
        if (version >= 11) {
          stream.expires_after(duration(limits_.write_seconds));
          auto [error, count] =
              co_await asio::async_write(stream, http::make_chunk_last(), kNoThrow);
          if (error)
            co_return false;
        }
        stream.expires_never();
        co_return version >= 11;
      }
      stream.expires_never();
    }
  }

  static HttpRequest request_of(http::request<http::string_body> message) {
    const auto field = [&](http::field name) { return std::string(message[name]); };
    HttpRequest request;
    request.method = std::string(message.method_string());
    const std::string target(message.target());
    const size_t end = std::min(target.find('?'), target.size());
    request.path = decode_url(target.substr(0, end));
    request.query = end < target.size() ? target.substr(end + 1) : "";
    request.host = field(http::field::host);
    request.origin = field(http::field::origin);
    request.content_type = field(http::field::content_type);
    request.authorization = field(http::field::authorization);
    request.accept = field(http::field::accept);
    request.if_none_match = field(http::field::if_none_match);
    request.body = std::move(message.body());
    return request;
  }

  HttpLimits limits_;
  const Hooks hooks_;
  asio::io_context context_{1};
  const std::shared_ptr<Door> door_ = std::make_shared<Door>(context_);
  tcp::acceptor acceptor_;
  asio::steady_timer drain_;
  double drain_seconds_ = 0;
  bool is_stopping_ = false;
  std::atomic<int64_t> count_{0};
  int64_t bodies_ = 0;           // bytes of requests that are under way
  std::list<Connection*> open_;  // the one that has been idle longest first
};

HttpServer::HttpServer(const std::string& address, int port, const HttpLimits& limits, Hooks hooks)
    : impl_(std::make_unique<Impl>(address, port, limits, std::move(hooks))) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const {
  return impl_->port();
}

int64_t HttpServer::connections() const {
  return impl_->connections();
}

void HttpServer::run(double drain_seconds) {
  impl_->run(drain_seconds);
}

void HttpServer::stop() {
  impl_->stop();
}

}  // namespace seqconv::internal
