#include "serve/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "serve/client.h"
#include "serve/url.h"

namespace seqconv::internal {
namespace {

using testing::Client;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::StartsWith;

/// A server that answers with what it was asked, and keeps exchanges of /later.
class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() { limits_.header_seconds = limits_.body_seconds = 0.5; }
  ~HttpServerTest() override { stop(); }

  void start() {
    server_ = std::make_unique<HttpServer>(
        "127.0.0.1",
        0,
        limits_,
        HttpServer::Hooks{
            .handle = [this](std::shared_ptr<HttpExchange> exchange) { handle(exchange); },
            .refusal =
                [](unsigned status) {
                  return HttpAnswer{status, "text/plain", "refused " + std::to_string(status)};
                },
            .record =
                [this](const HttpRecord& record) {
                  const std::lock_guard lock(mutex_);
                  statuses_.push_back(record.status);
                }});
    thread_ = std::thread([this] { server_->run(2); });
  }

  void stop() {
    if (!thread_.joinable())
      return;
    server_->stop();
    thread_.join();
  }

  void handle(const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& request = exchange->request();
    if (request.path == "/later") {
      later_.set_value(exchange);
    } else if (request.path == "/parts") {
      exchange->begin({200, "text/plain", ""});
      for (const char* part : {"one ", "", "two"})
        exchange->write(part);
      exchange->end();
    } else {
      exchange->answer(
          {200,
           "text/plain",
           request.method + " " + request.path + "?" + request.query + " " + request.body});
    }
  }

  std::string answer_to(std::string_view bytes) {
    const Client client(server_->port());
    client.send(bytes);
    return client.read();
  }

  HttpLimits limits_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::promise<std::shared_ptr<HttpExchange>> later_;
  std::mutex mutex_;
  std::vector<unsigned> statuses_;
};

TEST_F(HttpServerTest, AnswersRequests) {
  start();
  EXPECT_THAT(
      answer_to("GET /a%20b?x=%41 HTTP/1.1\r\nConnection: close\r\n\r\n"),
      EndsWith("\r\n\r\nGET /a b?x=%41 "));
  EXPECT_THAT(
      answer_to("POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"),
      EndsWith("POST /? abc"));
  EXPECT_THAT(answer_to("GET / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.0 200 OK\r\n"));
  EXPECT_THAT(
      answer_to("POST / HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
      EndsWith("POST /? abc"));
}

TEST_F(HttpServerTest, AnswersSeveralRequestsOfAConnectionInOrder) {
  start();
  const std::string answers = answer_to(
      "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_LT(answers.find("GET /1"), answers.find("GET /2"));
  EXPECT_THAT(answers, EndsWith("GET /3? "));
}

TEST_F(HttpServerTest, GivesAnswersInParts) {
  start();
  EXPECT_THAT(
      answer_to("GET /parts HTTP/1.1\r\nConnection: close\r\n\r\n"),
      EndsWith("\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n"));
  EXPECT_THAT(answer_to("GET /parts HTTP/1.0\r\n\r\n"), EndsWith("\r\n\r\none two"));
}

TEST_F(HttpServerTest, RefusesWhatExceedsItsLimits) {
  limits_.body_bytes = 1000;
  start();
  const std::string post = "POST / HTTP/1.1\r\nContent-Length: ";
  EXPECT_THAT(answer_to("NONSENSE\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer_to(post + "-1\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer_to(post + "1001\r\n\r\n"), EndsWith("refused 413"));
  EXPECT_THAT(answer_to(post + "99999999999999999999\r\n\r\n"), StartsWith("HTTP/1.1 4"));
  EXPECT_THAT(answer_to("GET / HTTP/1.1\r\n" + std::string(20'000, 'a')), EndsWith("refused 431"));
  // A client too slow for its header or body is left.
  EXPECT_THAT(answer_to("GET / HT"), IsEmpty());
  EXPECT_THAT(answer_to(post + "5\r\n\r\nab"), IsEmpty());
}

TEST_F(HttpServerTest, MakesRoomForNewConnectionsByIdleOnes) {
  limits_.connections = 8;
  start();
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 100; ++i) {
    idle.push_back(std::make_unique<Client>(server_->port()));
    idle.back()->send("GET / HT");
  }
  EXPECT_THAT(answer_to("GET /x HTTP/1.1\r\nConnection: close\r\n\r\n"), EndsWith("GET /x? "));
  EXPECT_LE(server_->connections(), 9);
}

TEST_F(HttpServerTest, BoundsTheBodiesOfAllRequests) {
  limits_.all_bodies_bytes = 1000;
  start();
  const Client first(server_->port());
  first.send("POST /later HTTP/1.1\r\nContent-Length: 600\r\n\r\n" + std::string(600, 'x'));
  const auto exchange = later_.get_future().get();
  const std::string second =
      "POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 500\r\n\r\n" + std::string(500, 'x');
  EXPECT_THAT(answer_to(second), EndsWith("refused 503"));
  exchange->answer({200, "text/plain", "late", {}});
  EXPECT_THAT(first.read("late"), EndsWith("late"));
  // Its share is free soon after the client has read the answer.
  std::string answer;
  for (int turn = 0; turn < 100 && !answer.starts_with("HTTP/1.1 200"); ++turn)
    answer = answer_to(second);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, TellsThatAClientHasLeft) {
  start();
  auto client = std::make_unique<Client>(server_->port());
  client->send("GET /later HTTP/1.1\r\n\r\n");
  const auto exchange = later_.get_future().get();
  std::promise<void> gone;
  exchange->on_gone([&] { gone.set_value(); });
  client.reset();
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
  exchange->answer({});  // harmless
}

TEST_F(HttpServerTest, AnswersWhatIsUnderWayBeforeItStops) {
  start();
  const Client client(server_->port()), idle(server_->port());
  client.send("GET /later HTTP/1.1\r\n\r\n");
  const auto exchange = later_.get_future().get();
  server_->stop();
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    exchange->answer({200, "text/plain", "late"});
  });
  EXPECT_THAT(client.read(), EndsWith("late"));
  EXPECT_THAT(idle.read(), IsEmpty());
  late.join();
  stop();
  EXPECT_THAT(statuses_, ElementsAre(200));
}

TEST_F(HttpServerTest, ExchangesMayOutliveIt) {
  start();
  const Client client(server_->port());
  client.send("GET /later HTTP/1.1\r\n\r\n");
  const auto exchange = later_.get_future().get();
  stop();  // after two seconds
  server_.reset();
  exchange->answer({200, "text/plain", "nobody hears"});
}

TEST(Forms, AreRead) {
  EXPECT_THAT(
      read_form("q=a+b%2B&q=&x&=y&&z=%zz%4"),
      ElementsAre(
          Pair("q", "a b+"), Pair("q", ""), Pair("x", ""), Pair("", "y"), Pair("z", "%zz%4")));
  EXPECT_THAT(read_form(""), IsEmpty());
}

TEST(Forms, OfPartsAreRead) {
  const std::string type = "multipart/form-data; boundary=\"x y\"";
  const std::string body =
      "--x y\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\na\r\n--b\r\n--x y\r\n"
      "content-disposition: form-data; filename=\"name=z\"; name=target\r\nX: y\r\n\r\n\r\n--x "
      "y--\r\n";
  EXPECT_THAT(
      read_multipart_form(body, type),
      Optional(ElementsAre(Pair("q", "a\r\n--b"), Pair("target", ""))));
  EXPECT_THAT(read_multipart_form("--x y--", type), Optional(IsEmpty()));
  for (size_t size = 0; size + 4 < body.size(); ++size)
    EXPECT_EQ(read_multipart_form(body.substr(0, size), type), std::nullopt) << size;
  EXPECT_EQ(read_multipart_form(body, "multipart/form-data"), std::nullopt);
}

}  // namespace
}  // namespace seqconv::internal
