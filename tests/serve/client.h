#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

namespace seqconv::internal::testing {

/// A connection to a server on this machine, which sends any bytes.
class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    const timeval limit{10, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool is_connected() const { return is_connected_; }
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0)
        return;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }

  /// All that comes until the server closes, or until it holds `end`.
  std::string read(std::string_view end = "") const {
    std::string text;
    char buffer[4096];
    while (end.empty() || text.find(end) == text.npos) {
      const ssize_t count = ::recv(socket_, buffer, sizeof(buffer), 0);
      if (count <= 0)
        break;
      text.append(buffer, static_cast<size_t>(count));
    }
    return text;
  }

  void close() {
    if (socket_ >= 0)
      ::close(std::exchange(socket_, -1));
  }

 private:
  int socket_;
  bool is_connected_ = false;
};

}  // namespace seqconv::internal::testing
