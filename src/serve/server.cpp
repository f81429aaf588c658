#include "serve/server.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/threads.h"
#include "serve/access_log.h"
#include "serve/answers.h"
#include "serve/cors.h"
#include "serve/keys.h"
#include "serve/page.h"
#include "serve/rate_limits.h"
#include "serve/service.h"

namespace seqconv::internal {
namespace {

constexpr size_t kWorkers = 4;  // read requests and put answers together

HttpLimits limits_of(const ServeOptions& options) {
  return {
      .connections = options.max_connections,
      .body_bytes = options.max_body_kb << 10,
      .idle_seconds = options.idle_seconds,
      .header_seconds = options.header_seconds,
      .body_seconds = options.body_seconds};
}

/// "localhost" of "LocalHost:5000", "::1" of "[::1]:5000".
std::string host_name(const std::string& host) {
  std::string name =
      host.starts_with('[') ? host.substr(1, host.find(']') - 1) : host.substr(0, host.find(':'));
  for (char& c : name)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return name;
}

HttpAnswer refusal(unsigned status) {
  switch (status) {
    case 413:
      return error_answer(status, "The body is too large");
    case 431:
      return error_answer(status, "The header is too large");
    case 503:
      return error_answer(status, "There are too many connections, or too large requests", 1);
    default:
      return error_answer(status, "The request is no HTTP");
  }
}

const ServeOptions& checked(const ServeOptions& options) {
  check_options(options);
  return options;
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(const ServeOptions& options)
      : options_(checked(options)),
        keys_(read_keys()),
        log_(options.access_log),
        workers_(kWorkers),
        writers_(static_cast<size_t>(thread_count(options.threads))),
        service_(
            options, metrics_, [this](auto work) { boost::asio::post(workers_, std::move(work)); }),
        http_(
            options.host,
            static_cast<int>(options.port),
            limits_of(options),
            {.handle = [this](Exchange exchange) { route(std::move(exchange)); },
             .refusal = refusal,
             .record = [this](const HttpRecord& record) { note(record); }}) {
    if (options.metrics_port > 0)
      metrics_http_.emplace(
          options.host,
          static_cast<int>(options.metrics_port),
          HttpLimits{.connections = 16, .body_bytes = 1024},
          HttpServer::Hooks{
              .handle = [this](const Exchange& exchange) { give_metrics(*exchange); },
              .refusal = refusal});
    if (options.preload)
      for (size_t i = 0; i < service_.models().served().size(); ++i)
        service_.models().open(i);
  }

  ~Impl() {
    inspector_.join();
    writers_.join();
    workers_.join();
  }

  int port() const { return http_.port(); }
  int metrics_port() const { return metrics_http_ ? metrics_http_->port() : 0; }

  void run() {
    std::jthread keeper([this](const std::stop_token& stop) { close_idle_models(stop); });
    std::jthread metrics;
    if (metrics_http_)
      metrics = std::jthread([this] { metrics_http_->run(1); });
    http_.run(options_.drain_seconds);
    service_.wait();
    if (metrics_http_)
      metrics_http_->stop();
  }

  void stop() { http_.stop(); }

  void reload() {
    const auto attempt = [](const auto& work) {
      try {
        work();
      } catch (const std::exception& error) {
        log_line(LogLevel::kError, error.what());
      }
    };
    attempt([this] {
      auto keys = read_keys();
      const std::lock_guard lock(mutex_);
      keys_ = std::move(keys);
    });
    attempt([this] { log_.reopen(); });
    service_.models().reload();
    log_info("models and keys are read anew");
  }

 private:
  using Exchange = std::shared_ptr<HttpExchange>;

  std::shared_ptr<const ApiKeys> read_keys() const {
    return options_.keys.empty() ? std::make_shared<const ApiKeys>()
                                 : std::make_shared<const ApiKeys>(options_.keys);
  }

  void close_idle_models(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      changed.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
      service_.models().close_idle();
    }
  }

  void give_metrics(HttpExchange& exchange) const {
    if (exchange.request().path != "/metrics")
      return exchange.answer(error_answer(404, "Not found"));
    std::vector<Gauge> gauges = service_.gauges();
    gauges.push_back({"seqconv_connections", "", static_cast<double>(http_.connections())});
    exchange.answer({200, "text/plain; version=0.0.4", metrics_.text(std::move(gauges)), {}});
  }

  // In the thread of HTTP: waits for nothing.

  void note(const HttpRecord& record) {
    log_.add(record);
    const Route* const route = find_route(record.path);
    metrics_.add_request(route != nullptr ? route->path : "other", record.status, record.seconds);
  }

  void route(Exchange plain) {
    const Exchange exchange = with_origins(std::move(plain), options_.cors);
    const HttpRequest& request = exchange->request();
    if (!is_allowed_host(request.host))
      return exchange->answer(error_answer(403, "This host is not allowed: " + request.host));
    if (request.method == "OPTIONS" && !options_.cors.empty())
      return exchange->answer({204, "", "", {}});
    const Route* const route = find_route(request.path);
    if (route == nullptr)
      return exchange->answer(error_answer(404, "Not found"));
    if (request.method != route->method && !(request.method == "HEAD" && route->is_get())) {
      HttpAnswer refused = error_answer(405, "Method not allowed");
      refused.headers.emplace_back("Allow", route->method);
      return exchange->answer(std::move(refused));
    }
    boost::asio::post(
        threads_of(*route), [this, exchange, route, under_way = service_.under_way()] {
          try {
            (this->*route->work)(exchange);
          } catch (...) {
            exchange->answer(answer_for_fault());
          }
        });
  }

  /// A page that has its own name lead here must not read answers. An address is no name, and a
  /// client without the header is no browser.
  bool is_allowed_host(const std::string& host) const {
    const std::string name = host_name(host);
    boost::system::error_code is_name;
    boost::asio::ip::make_address(name, is_name);
    if (host.empty() || !is_name || name == "localhost")
      return true;
    return std::ranges::find(options_.allowed_host, name) != options_.allowed_host.end();
  }

  // In a worker's thread.

  /// The parameters of a request that may be made. CallError 400, 403, 429.
  Json admitted(const HttpExchange& exchange) {
    const HttpRequest& request = exchange.request();
    Json parameters = read_parameters(request);
    std::string key = text_parameter(parameters, "api_key");
    constexpr std::string_view kBearer = "Bearer ";
    if (key.empty() && request.authorization.starts_with(kBearer))
      key = request.authorization.substr(kBearer.size());
    std::shared_ptr<const ApiKeys> keys;
    {
      const std::lock_guard lock(mutex_);
      keys = keys_;
    }
    const ApiKey* const known = key.empty() ? nullptr : keys->find(key);
    if (!key.empty() && known == nullptr && !keys->empty())
      throw CallError(403, "Invalid API key");
    if (known == nullptr && options_.require_key)
      throw CallError(400, "An API key is needed here: ask whoever runs this server for one");
    const auto wait = known != nullptr
        ? limits_.take("key " + known->name, known->requests_per_minute)
        : limits_.take(request.client, options_.requests_per_minute);
    if (wait)
      throw CallError(
          429, "Too many requests", std::max<int64_t>(1, std::lround(std::ceil(*wait))));
    return parameters;
  }

  void translate(const Exchange& exchange) {
    service_.translate(exchange, admitted(*exchange), false);
  }
  void stream(const Exchange& exchange) { service_.translate(exchange, admitted(*exchange), true); }
  void generate(const Exchange& exchange) { service_.generate(exchange, admitted(*exchange)); }
  void inspect(const Exchange& exchange) { service_.inspect(exchange, admitted(*exchange)); }
  void page(const Exchange& exchange) { exchange->answer(page_answer(exchange->request())); }
  void detect(const Exchange& exchange) { exchange->answer(service_.detect(admitted(*exchange))); }
  void languages(const Exchange& exchange) { exchange->answer(service_.languages()); }
  void settings(const Exchange& exchange) { exchange->answer(service_.settings()); }
  void health(const Exchange& exchange) {
    exchange->answer({200, "application/json", R"({"status":"ok"})", {}});
  }
  void spec(const Exchange& exchange) { exchange->answer(service_.spec()); }
  void refuse_files(const Exchange& exchange) {
    exchange->answer(error_answer(403, "Translating files is not a part of this server"));
  }
  void refuse_suggestions(const Exchange& exchange) {
    exchange->answer(error_answer(403, "This server takes no suggestions"));
  }

  enum class Threads { kWorkers, kWriters, kInspector };

  struct Route {
    const char* path;
    const char* method;
    void (Impl::*work)(const Exchange&);
    Threads threads;
    bool is_get() const { return std::string_view(method) == "GET"; }
  };
  static constexpr Route kRoutes[] = {
      {"/", "GET", &Impl::page},
      {"/assets", "GET", &Impl::page},
      {"/translate", "POST", &Impl::translate},
      {"/translate/stream", "POST", &Impl::stream},
      {"/detect", "POST", &Impl::detect},
      {"/generate", "POST", &Impl::generate, Threads::kWriters},
      {"/inspect", "POST", &Impl::inspect, Threads::kInspector},
      {"/languages", "GET", &Impl::languages},
      {"/health", "GET", &Impl::health},
      {"/frontend/settings", "GET", &Impl::settings},
      {"/spec", "GET", &Impl::spec},
      {"/suggest", "POST", &Impl::refuse_suggestions},
      {"/translate_file", "POST", &Impl::refuse_files},
  };

  static const Route* find_route(std::string_view path) {
    if (path.size() > 1 && path.ends_with('/'))
      path.remove_suffix(1);
    if (path.starts_with("/assets/"))
      path = "/assets";
    const auto* const found =
        std::ranges::find_if(kRoutes, [&](const Route& route) { return path == route.path; });
    return found == std::end(kRoutes) ? nullptr : found;
  }

  boost::asio::thread_pool& threads_of(const Route& route) {
    switch (route.threads) {
      case Threads::kWriters:
        return writers_;
      case Threads::kInspector:
        return inspector_;
      case Threads::kWorkers:
        break;
    }
    return workers_;
  }

  const ServeOptions options_;
  std::mutex mutex_;  // of keys_
  std::shared_ptr<const ApiKeys> keys_;
  RateLimits limits_;
  Metrics metrics_;
  AccessLog log_;
  boost::asio::thread_pool workers_;
  boost::asio::thread_pool writers_;  // generate
  boost::asio::thread_pool inspector_{1};
  Service service_;
  HttpServer http_;
  std::optional<HttpServer> metrics_http_;
};

Server::Server(const ServeOptions& options) : impl_(std::make_unique<Impl>(options)) {}

Server::~Server() = default;

int Server::port() const {
  return impl_->port();
}

int Server::metrics_port() const {
  return impl_->metrics_port();
}

void Server::run() {
  impl_->run();
}

void Server::stop() {
  impl_->stop();
}

void Server::reload() {
  impl_->reload();
}

}  // namespace seqconv::internal
