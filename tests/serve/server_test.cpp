#include "serve/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/json.h"
#include "serve/answers.h"
#include "serve/client.h"
#include "serve/service.h"
#include "support/temporary_folder.h"

/// The server with models, beside clients that are not kind: what the sanitizers watch.
namespace seqconv::internal {
namespace {

using testing::Client;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    options_.model = {
        std::string("de-en=") + SEQCONV_FOLDERS + "/translation_1",
        std::string("en-de=") + SEQCONV_FOLDERS + "/translation_2"};
    options_.language_model = {std::string("book=") + SEQCONV_FOLDERS + "/language_1"};
    options_.port = 0;
    options_.header_seconds = options_.body_seconds = options_.idle_seconds = 5;
  }
  ~ServerTest() override { stop(); }

  void start() {
    server_ = std::make_unique<Server>(options_);
    thread_ = std::thread([this] { server_->run(); });
  }

  void stop() {
    if (!thread_.joinable())
      return;
    server_->stop();
    thread_.join();
  }

  static std::string request(const std::string& path, const Json& body, bool closes = true) {
    const std::string text = body.dump();
    return concat(
        "POST ",
        path,
        " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
        closes ? "Connection: close\r\n" : "",
        "Content-Length: ",
        text.size(),
        "\r\n\r\n",
        text);
  }

  std::string answer_to(const std::string& bytes) const {
    const Client client(server_->port());
    client.send(bytes);
    return client.read();
  }

  Json translation_of(Json body) const {
    const std::string answer = answer_to(request("/translate", body));
    return Json::parse(answer.substr(answer.find("\r\n\r\n")));
  }

  static Json asked(const std::string& text) {
    return {{"q", text}, {"source", "de"}, {"target", "en"}};
  }

  /// Text that takes a while.
  static std::string long_text(int sentences) {
    std::string text;
    for (int i = 0; i < sentences; ++i)
      text += "Dalan mira zo dalan mira zo dalan mira zo. ";
    return text;
  }

  ServeOptions options_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST_F(ServerTest, AnswersManyClientsAtATimeAlike) {
  start();
  const std::string wanted = answer_to(request("/translate", asked("dalan mira")));
  EXPECT_THAT(wanted, StartsWith("HTTP/1.1 200 OK\r\n"));
  std::vector<std::thread> clients;
  std::atomic<int> alike = 0;
  for (int i = 0; i < 8; ++i)
    clients.emplace_back([&] {
      for (int turn = 0; turn < 10; ++turn)
        alike += answer_to(request("/translate", asked("dalan mira"))) == wanted ? 1 : 0;
    });
  for (std::thread& client : clients)
    client.join();
  EXPECT_EQ(alike, 80);
}

TEST_F(ServerTest, OutlivesUnkindClients) {
  start();
  const std::string deep(1'000'000, '[');
  const std::string json = "POST /translate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                           "Content-Type: application/json\r\nContent-Length: ";
  EXPECT_THAT(answer_to(concat(json, deep.size(), "\r\n\r\n", deep)), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(answer_to(json + "2\r\n\r\n\xff\xfe"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(answer_to(json + "1000000000\r\n\r\n"), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(
      answer_to("GET / HTTP/1.1\r\n" + std::string(40'000, 'a')), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(answer_to(std::string(1000, '\0') + "\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(answer_to("GET /health HTTP/1.0\r\n\r\n"), EndsWith(R"({"status":"ok"})"));
  // Requests that come before the answer to the first are answered in their order.
  const std::string several = request("/translate", asked("dalan"), false) +
      request("/translate", asked("zo"), false) +
      "GET /health HTTP/1.1\r\nHost: localhost\r\n"
      "Connection: close\r\n\r\n";
  const std::string answers = answer_to(several);
  EXPECT_THAT(answers, EndsWith(R"({"status":"ok"})"));
  EXPECT_EQ(std::count(answers.begin(), answers.end(), '{'), 3);
  // Clients that vanish at any byte.
  const std::string whole = request("/translate", asked(long_text(20)));
  for (size_t bytes = 0; bytes <= whole.size(); bytes += 37) {
    const Client client(server_->port());
    client.send(std::string_view(whole).substr(0, bytes));
  }
  EXPECT_THAT(answer_to(request("/translate", asked("zo"))), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTest, RefusesMoreNamesThanItComparesQuickly) {
  start();
  std::string form, keys;
  for (int i = 0; i < 100'000; ++i) {
    form += concat("x", i, "=&");
    keys += concat("\"x", i, "\":1,");
  }
  const std::string table = "{" + keys + "\"y\":1}";
  const auto posted = [&](const std::string& type, const std::string& body) {
    return answer_to(concat(
        "POST /translate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: ",
        type,
        "\r\nContent-Length: ",
        body.size(),
        "\r\n\r\n",
        body));
  };
  for (const auto& [type, body] :
       {std::pair<std::string, std::string>("application/x-www-form-urlencoded", form),
        {"application/json", table},
        {"application/json", "{\"q\":" + table + "}"}}) {
    const std::string answer = posted(type, body);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(answer, HasSubstr("more than 100"));
  }
}

TEST_F(ServerTest, BoundsHalfOpenConnections) {
  options_.max_connections = 50;
  options_.header_seconds = options_.idle_seconds = 0.3;
  start();
  std::vector<std::unique_ptr<Client>> half;
  for (int i = 0; i < 400; ++i) {
    half.push_back(std::make_unique<Client>(server_->port()));
    half.back()->send("GET /health HT");
  }
  EXPECT_THAT(
      answer_to("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
      EndsWith(R"({"status":"ok"})"));
  EXPECT_THAT(half.back()->read(), IsEmpty());  // a byte a minute is too slow
}

TEST_F(ServerTest, StreamsToClientsThatStayOrLeave) {
  start();
  const Json text = asked(long_text(5));
  const std::string events = answer_to(request("/translate/stream", text));
  EXPECT_THAT(events, HasSubstr("event: part\ndata: {\"index\":0"));
  EXPECT_THAT(events, HasSubstr("event: done\n"));
  const Json prompt = {{"prompt", "1"}, {"length", 2000}, {"stream", true}};
  for (const auto& [path, body] :
       {std::pair("/translate/stream", asked(long_text(200))), std::pair("/generate", prompt)}) {
    const Client client(server_->port());
    client.send(request(path, body));
    EXPECT_THAT(client.read("event: part"), HasSubstr("event: part"));
  }
  EXPECT_THAT(answer_to(request("/translate", asked("zo"))), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServerTest, TranslatesASentenceThatIsTooLongInParts) {
  options_.max_sentence_characters = 11;
  start();
  const auto translated = [&](const std::string& text) {
    return translation_of(asked(text))["translatedText"].get<std::string>();
  };
  EXPECT_EQ(translated("dalan mira zo  urat"), translated("dalan mira ") + translated("zo  urat"));
}

TEST_F(ServerTest, AlternativesLeaveTheTranslationAsItIs) {
  start();
  std::string text;  // a sentence a line
  for (const char* a : {"dalan", "mira", "zo", "urat", "tolu"})
    for (const char* b : {"pelim", "so", "mira", "dalan", "zo"})
      for (const char* c : {"", " urat", " tolu mira", " so so zo"})
        text += concat(a, ' ', b, c, '\n');
  Json body = asked(text);
  const Json wanted = translation_of(body)["translatedText"];
  for (const int count : {1, 2, 3, 10}) {  // the model's beam is 3
    body["alternatives"] = count;
    const Json answer = translation_of(body);
    EXPECT_EQ(answer["translatedText"], wanted) << count;
    EXPECT_EQ(answer["alternatives"].size(), count);
  }
}

TEST_F(ServerTest, OpensAModelOnceForManyInspections) {
  const testing::TemporaryFolder folder;
  const std::string own = folder.path() / "model";
  std::filesystem::copy(std::string(SEQCONV_FOLDERS) + "/translation_1", own);
  options_.model = {"de-en=" + own};
  start();
  const std::string wanted = answer_to(request("/inspect", asked("dalan mira")));
  EXPECT_THAT(wanted, StartsWith("HTTP/1.1 200 OK\r\n"));
  std::filesystem::remove_all(own);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(answer_to(request("/inspect", asked("dalan mira"))), wanted);
}

/// A client that reads nothing, or that has left.
class Unread final : public HttpExchange {
 public:
  const HttpRequest& request() const override { return request_; }
  void answer(HttpAnswer answer) override { status = answer.status; }
  void begin(HttpAnswer) override {}
  void write(std::string) override {}
  void end() override {}
  void on_gone(std::function<void()> gone) override { gone_ = std::move(gone); }

  unsigned status = 0;

 private:
  HttpRequest request_;
  std::function<void()> gone_;
};

TEST_F(ServerTest, BoundsInspectionsThatNobodyReads) {
  Metrics metrics;
  Service service(options_, metrics, [](const auto& work) { work(); });
  std::vector<std::shared_ptr<Unread>> unread;
  const auto inspect = [&] {
    unread.push_back(std::make_shared<Unread>());
    service.inspect(unread.back(), asked("dalan"));
    return unread.back()->status;
  };
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(inspect(), 200U);
  try {
    inspect();
    FAIL() << "it is answered";
  } catch (const CallError& error) {
    EXPECT_EQ(error.status(), 429U);
  }
  unread.erase(unread.begin());
  EXPECT_EQ(inspect(), 200U);
}

TEST_F(ServerTest, ReloadsAndStopsUnderLoadWithoutALostRequest) {
  options_.keep_minutes = 1e-4;
  start();
  std::atomic<int> answered = 0, refused = 0;
  std::atomic<bool> is_stopping = false;
  std::vector<std::thread> clients;
  for (int i = 0; i < 6; ++i)
    clients.emplace_back([&, i] {
      while (!is_stopping) {
        const Client client(server_->port());
        client.send(request("/translate", asked(i % 2 == 0 ? "dalan mira" : long_text(3))));
        const std::string answer = client.read();
        if (answer.starts_with("HTTP/1.1 200"))
          ++answered;
        else if (!is_stopping)
          ++refused;
      }
    });
  for (int i = 0; i < 10; ++i) {
    while (answered + refused < 2 * (i + 1))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    server_->reload();
  }
  is_stopping = true;
  stop();
  for (std::thread& client : clients)
    client.join();
  EXPECT_GE(answered, 20);
  EXPECT_EQ(refused, 0);
}

TEST_F(ServerTest, EndsWhatTakesLongerThanItMay) {
  options_.drain_seconds = 0.1;
  options_.max_characters = 10'000'000;
  options_.threads = 1;
  start();
  const Client translation(server_->port()), generation(server_->port());
  translation.send(request("/translate", asked(long_text(20'000))));
  generation.send(request("/generate", {{"prompt", "1"}, {"length", 2000}}));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  stop();
  server_.reset();
}

}  // namespace
}  // namespace seqconv::internal
