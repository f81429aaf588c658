#include "serve/cors.h"

#include <algorithm>
#include <utility>

namespace seqconv::internal {
namespace {

class SharedExchange final : public HttpExchange {
 public:
  SharedExchange(std::shared_ptr<HttpExchange> exchange, const std::vector<std::string>& origins)
      : exchange_(std::move(exchange)),
        any_(std::ranges::find(origins, "*") != origins.end()),
        is_allowed_(any_ || std::ranges::find(origins, request().origin) != origins.end()),
        varies_(!origins.empty() && !any_) {}

  const HttpRequest& request() const override { return exchange_->request(); }
  void answer(HttpAnswer answer) override { exchange_->answer(with_headers(std::move(answer))); }
  void begin(HttpAnswer head) override { exchange_->begin(with_headers(std::move(head))); }
  void write(std::string part) override { exchange_->write(std::move(part)); }
  void end() override { exchange_->end(); }
  void on_gone(std::function<void()> gone) override { exchange_->on_gone(std::move(gone)); }

 private:
  HttpAnswer with_headers(HttpAnswer answer) const {
    auto& headers = answer.headers;
    headers.emplace_back("X-Content-Type-Options", "nosniff");
    if (varies_)
      headers.emplace_back("Vary", "Origin");
    if (is_allowed_) {
      headers.emplace_back("Access-Control-Allow-Origin", any_ ? "*" : request().origin);
      headers.emplace_back("Access-Control-Allow-Headers", "Authorization, Content-Type");
      headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
      headers.emplace_back("Access-Control-Max-Age", "86400");
    }
    return answer;
  }

  const std::shared_ptr<HttpExchange> exchange_;
  const bool any_;
  const bool is_allowed_;
  const bool varies_;
};

}  // namespace

std::shared_ptr<HttpExchange> with_origins(
    std::shared_ptr<HttpExchange> exchange, const std::vector<std::string>& origins) {
  return std::make_shared<SharedExchange>(std::move(exchange), origins);
}

}  // namespace seqconv::internal
