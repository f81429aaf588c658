#include "serve/translation_server.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "seqconv/version.h"
#include "serve/detect.h"
#include "serve/languages.h"
#include "serve/translation_job.h"

namespace seqconv::internal {
namespace {

constexpr size_t kWorkers = 2;  // read requests and put answers together

HttpAnswer json_answer(const Json& json) {
  return {200, "application/json", json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

HttpAnswer later_answer(unsigned status, const std::string& text) {
  HttpAnswer answer = error_answer(status, text);
  answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

/// "localhost" of "localhost:5000", "::1" of "[::1]:5000".
std::string host_name(const std::string& host) {
  return host.starts_with('[') ? host.substr(1, host.find(']') - 1) : host.substr(0, host.find(':'));
}

}  // namespace

class TranslationServer::Impl {
 public:
  explicit Impl(ServerOptions options)
      : options_(std::move(options)),
        models_(options_.models, options_.opening),
        workers_(kWorkers),
        http_(
            options_.host,
            options_.port,
            options_.http,
            {.handle = [this](std::shared_ptr<HttpExchange> exchange) { route(exchange); },
             .refusal = [](unsigned status) { return error_answer(status, refusal(status)); },
             .record = options_.record}) {}

  ~Impl() { workers_.join(); }

  int port() const { return http_.port(); }

  void run(double drain_seconds) {
    std::jthread keeper([this](std::stop_token stop) { close_idle_models(stop); });
    http_.run(drain_seconds);
  }

  void stop() { http_.stop(); }
  void reload() { models_.reload(); }

 private:
  using Exchange = std::shared_ptr<HttpExchange>;

  static const char* refusal(unsigned status) {
    switch (status) {
      case 408:
        return "The request came too slowly";
      case 413:
        return "The body is too large";
      case 431:
        return "The header is too large";
      case 503:
        return "There are too many connections";
      default:
        return "The request is no HTTP";
    }
  }

  void close_idle_models(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; }) &&
           !stop.stop_requested())
      models_.close_idle();
  }

  // In the thread of HTTP: waits for nothing.

  void route(const Exchange& exchange) {
    const HttpRequest& request = exchange->request();
    std::string path = request.path;
    if (path.size() > 1 && path.ends_with('/'))
      path.pop_back();
    if (!is_allowed_host(request.host))
      return answer(exchange, error_answer(403, "This host is not allowed: " + request.host));
    if (request.method == "OPTIONS" && !options_.origins.empty())
      return answer(exchange, {204, "", "", {}});
    for (const Route& route : kRoutes)
      if (path == route.path) {
        if (request.method != route.method && !(request.method == "HEAD" && route.is_get())) {
          HttpAnswer refused = error_answer(405, "Method not allowed");
          refused.headers.emplace_back("Allow", route.method);
          return answer(exchange, std::move(refused));
        }
        boost::asio::post(workers_, [this, exchange, work = route.work] {
          attempt(exchange, [&] { (this->*work)(exchange); });
        });
        return;
      }
    answer(exchange, error_answer(404, "Not found"));
  }

  bool is_allowed_host(const std::string& host) const {
    const std::string name = host_name(host);
    if (name == options_.host || name == "localhost" || name == "127.0.0.1" || name == "::1")
      return true;
    return std::ranges::find(options_.host_names, name) != options_.host_names.end();
  }

  /// With what lets a page of another origin read it, if that is allowed.
  void answer(const Exchange& exchange, HttpAnswer answer) const {
    const std::string& origin = exchange->request().origin;
    const bool any = std::ranges::find(options_.origins, "*") != options_.origins.end();
    if (!options_.origins.empty()) {
      if (any || std::ranges::find(options_.origins, origin) != options_.origins.end()) {
        answer.headers.emplace_back("Access-Control-Allow-Origin", any ? "*" : origin);
        answer.headers.emplace_back("Access-Control-Allow-Headers", "Authorization, Content-Type");
        answer.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
        answer.headers.emplace_back("Access-Control-Max-Age", "86400");
      }
      if (!any)
        answer.headers.emplace_back("Vary", "Origin");
    }
    exchange->answer(std::move(answer));
  }

  // In a worker's thread.

  /// Does work whose faults are answers.
  template <class Work>
  void attempt(const Exchange& exchange, const Work& work) noexcept {
    try {
      try {
        work();
      } catch (const CallError& error) {
        answer(exchange, error_answer(error.status(), error.what()));
      } catch (const QueueFull&) {
        answer(exchange, later_answer(429, "Too many requests wait"));
      } catch (const ModelsBusy& error) {
        answer(exchange, later_answer(503, error.what()));
      } catch (const std::bad_alloc&) {
        answer(exchange, later_answer(503, "There is not memory enough"));
      } catch (const std::exception& error) {
        log_line(LogLevel::kError, error.what());
        answer(exchange, error_answer(500, "The server cannot do this; its log says why"));
      }
    } catch (...) {  // no memory for an answer: the client sees its connection end
      exchange->answer({503, "", "", {}});
    }
  }

  void health(const Exchange& exchange) { answer(exchange, json_answer({{"status", "ok"}})); }

  void languages(const Exchange& exchange) {
    Json list = Json::array();
    for (const std::string& code : sources()) {
      Json targets = Json::array();
      for (const ServedModel& model : models_.served())
        if (model.source == code)
          targets.push_back(model.target);
      list.push_back({{"code", code}, {"name", language_name(code)}, {"targets", targets}});
    }
    for (const ServedModel& model : models_.served())
      if (std::ranges::none_of(list, [&](const Json& one) { return one["code"] == model.target; }))
        list.push_back({{"code", model.target},
                        {"name", language_name(model.target)},
                        {"targets", Json::array()}});
    answer(exchange, json_answer(list));
  }

  std::vector<std::string> sources(std::string_view target = "") const {
    std::vector<std::string> codes;
    for (const ServedModel& model : models_.served())
      if ((target.empty() || normal_code(model.target) == normal_code(target)) &&
          std::ranges::find(codes, model.source) == codes.end())
        codes.push_back(model.source);
    return codes;
  }

  void settings(const Exchange& exchange) {
    const auto language = [](const std::string& code) {
      return Json{{"code", code}, {"name", code == "auto" ? "Auto Detect" : language_name(code)}};
    };
    const std::string target = models_.served().empty() ? "en" : models_.served()[0].target;
    answer(exchange, json_answer({{"apiKeys", false},
                                  {"charLimit", options_.calls.characters},
                                  {"filesTranslation", false},
                                  {"frontendTimeout", 500},
                                  {"keyRequired", false},
                                  {"language",
                                   {{"source", language("auto")}, {"target", language(target)}}},
                                  {"suggestions", false},
                                  {"supportedFilesFormat", Json::array()}}));
  }

  void detect(const Exchange& exchange) {
    TranslateCall call;
    read_texts(read_parameters(exchange->request()), options_.calls, call);
    Json lists = Json::array();
    for (const std::string& text : call.texts) {
      Json& list = lists.emplace_back(Json::array());
      for (const DetectedLanguage& found : detect_language(text, sources(), false))
        list.push_back({{"confidence", found.confidence}, {"language", found.language}});
    }
    answer(exchange, json_answer(call.is_list ? lists : lists[0]));
  }

  void translate(const Exchange& exchange) {
    const auto call = std::make_shared<const TranslateCall>(
        read_translate_call(read_parameters(exchange->request()), options_.calls));
    auto detected = std::make_shared<Json>(Json::array());
    std::vector<JobText> texts;
    for (const std::string& text : call->texts)
      texts.push_back(job_text(*call, text, *detected));
    const auto job = std::make_shared<TranslationJob>(
        std::move(texts), call->alternatives,
        std::chrono::milliseconds(static_cast<int64_t>(options_.timeout_seconds * 1000)),
        [this](std::function<void()> work) { boost::asio::post(workers_, std::move(work)); });
    exchange->on_gone([weak = std::weak_ptr(job)] {
      if (const auto still = weak.lock())
        still->cancel();
    });
    job->begin([this, exchange, call, detected, weak = std::weak_ptr(job)] {
      const auto own = weak.lock();
      attempt(exchange, [&] { give_translation(exchange, *call, *detected, *own); });
    });
  }

  JobText job_text(const TranslateCall& call, const std::string& text, Json& detected) {
    std::string source = call.source;
    const std::vector<std::string> allowed = sources(call.target);
    if (allowed.empty())
      throw CallError(400, call.target + " is not supported");
    if (source == "auto") {
      const DetectedLanguage found =
          detect_language(text, allowed, call.format == DocumentFormat::kHtml)[0];
      source = found.language;
      detected.push_back({{"confidence", found.confidence}, {"language", found.language}});
    }
    const auto number = models_.find(source, call.target);
    if (!number) {
      const std::vector<std::string> known = sources();
      const bool is_known = std::ranges::any_of(
          known, [&](const std::string& code) { return normal_code(code) == normal_code(source); });
      throw CallError(400, is_known ? call.target + " is no target language of " + source
                                    : source + " is not supported");
    }
    JobText own;
    try {
      own.document = std::make_unique<Document>(text, call.format, source);
    } catch (const Error& error) {
      throw CallError(400, error.what());
    }
    if (!own.document->sentences().empty())
      own.model = models_.open(*number);
    return own;
  }

  void give_translation(
      const Exchange& exchange,
      const TranslateCall& call,
      const Json& detected,
      const TranslationJob& job) {
    const JobOutcome outcome = job.outcome();
    Json json = Json::object();
    const auto add = [&](const char* name, const Json& list) {
      json[name] = call.is_list ? list : list.at(0);
    };
    if (call.source == "auto")
      add("detectedLanguage", detected);
    if (call.alternatives > 0)
      add("alternatives", outcome.alternatives);
    add("translatedText", outcome.texts);
    answer(exchange, json_answer(json));
  }

  struct Route {
    const char* path;
    const char* method;
    void (Impl::*work)(const Exchange&);
    bool is_get() const { return std::string_view(method) == "GET"; }
  };
  static constexpr Route kRoutes[] = {
      {"/translate", "POST", &Impl::translate},
      {"/detect", "POST", &Impl::detect},
      {"/languages", "GET", &Impl::languages},
      {"/health", "GET", &Impl::health},
      {"/frontend/settings", "GET", &Impl::settings},
  };

  const ServerOptions options_;
  Models models_;
  boost::asio::thread_pool workers_;
  HttpServer http_;
};

TranslationServer::TranslationServer(ServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

TranslationServer::~TranslationServer() = default;

int TranslationServer::port() const {
  return impl_->port();
}

void TranslationServer::run(double drain_seconds) {
  impl_->run(drain_seconds);
}

void TranslationServer::stop() {
  impl_->stop();
}

void TranslationServer::reload() {
  impl_->reload();
}

}  // namespace seqconv::internal
