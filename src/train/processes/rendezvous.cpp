#include "train/processes/rendezvous.h"

#include <unistd.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/own_device.h"

namespace seqconv::internal {
namespace {

using Variables = std::function<const char*(const char*)>;

struct Address {
  std::string host;
  uint16_t port = 0;
};

c10::intrusive_ptr<c10d::TCPStore> open_at(
    const Address& address, int64_t rank, const c10d::TCPStoreOptions& options) {
  try {
    return c10::make_intrusive<c10d::TCPStore>(address.host, options);
  } catch (const c10::Error& error) {
    fail(
        "rank ",
        rank,
        options.isServer ? " cannot open" : " cannot reach",
        " the store at ",
        address.host,
        ":",
        address.port,
        " in which processes that train on GPUs find each other: ",
        error.what_without_backtrace());
  }
}

std::string needed(const Launch& launch, const char* name, const Variables& variable) {
  const char* text = variable(name);
  if (text == nullptr || *text == '\0')
    fail_usage(
        started_text(launch),
        ", but ",
        name,
        ", which says where they find each other, is not set");
  return text;
}

Address address_of(const Launch& launch, const Variables& variable) {
  Address address{.host = needed(launch, "MASTER_ADDR", variable)};
  const std::string port = needed(launch, "MASTER_PORT", variable);
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (parsed.ec != std::errc() || parsed.ptr != port.data() + port.size() || address.port == 0)
    fail_usage("MASTER_PORT must be a port, 1 to 65535, but is '", port, "'");
  return address;
}

/// A name of this machine that the others reach.
std::string own_name(const Communicator& processes, const Variables& variable) {
  if (const char* given = variable("MASTER_ADDR"); given != nullptr)
    return given;
  if (processes.local_size() == processes.size())
    return "localhost";
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

c10::intrusive_ptr<c10d::Store> open_by(
    Communicator& host, const Variables& variable, c10d::TCPStoreOptions options) {
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::array<char, 264> name{};  // of the machine; the port behind it
  if (host.is_first()) {
    options.isServer = true;
    options.port = 0;             // any
    options.waitWorkers = false;  // they are told the port first
    const Address address{.host = own_name(host, variable)};
    store = open_at(address, 0, options);
    std::strncpy(name.data(), address.host.c_str(), 255);
    const uint16_t port = store->getPort();
    std::memcpy(name.data() + 256, &port, sizeof port);
  }
  host.broadcast(std::as_writable_bytes(std::span(name)), /*root=*/0);
  if (host.is_first())
    return store;
  std::memcpy(&options.port, name.data() + 256, sizeof options.port);
  return open_at({name.data(), options.port}, host.rank(), options);
}

}  // namespace

c10::intrusive_ptr<c10d::Store> open_store(
    const Launch& launch,
    Communicator* host,
    const Variables& variable,
    std::chrono::milliseconds patience) {
  c10d::TCPStoreOptions options;
  options.timeout = patience;
  options.numWorkers = static_cast<size_t>(launch.size);
  if (host != nullptr)
    return open_by(*host, variable, options);
  if (launch.rank >= launch.size)
    fail_usage(started_text(launch), ", but this one has rank ", launch.rank);
  const Address address = address_of(launch, variable);
  const char* agent = variable("TORCHELASTIC_USE_AGENT_STORE");
  options.isServer = launch.rank == 0 && (agent == nullptr || agent != std::string_view("True"));
  options.port = address.port;
  const auto store = open_at(address, launch.rank, options);
  // torchrun's store outlives the processes that it starts again.
  const char* restarts = variable("TORCHELASTIC_RESTART_COUNT");
  return c10::make_intrusive<c10d::PrefixStore>(
      concat("seqconv/attempt ", restarts ? restarts : "0"), store);
}

void check_own_devices(c10d::Store& store, const Launch& launch, const std::string& own) {
  std::vector<std::string> keys;
  for (int64_t rank = 0; rank < launch.size; ++rank)
    keys.push_back(concat("device of rank ", rank));
  std::vector<std::string> devices;
  try {
    store.set(keys[static_cast<size_t>(launch.rank)], std::vector<uint8_t>(own.begin(), own.end()));
    for (const auto& device : store.multiGet(keys))
      devices.emplace_back(device.begin(), device.end());
  } catch (const c10::Error& error) {
    fail(
        "rank ",
        launch.rank,
        " cannot find out which devices the other processes have: ",
        error.what_without_backtrace());
  }
  const std::string fault = shared_device_fault(devices);
  if (!fault.empty())
    fail_usage(fault);
}

}  // namespace seqconv::internal
