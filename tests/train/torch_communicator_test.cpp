#include "train/processes/torch_communicator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <csignal>
#include <map>
#include <numeric>
#include <thread>

#include "base/signals.h"
#include "support/errors.h"
#include "thread_backend.h"
#include "thread_communicator.h"
#include "train/processes/processes.h"
#include "train/processes/rendezvous.h"

/// The communicator over LibTorch's process groups, and how its processes find
/// each other.
namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::run_in_threads;
using testing::Through;

class EveryWay : public ::testing::TestWithParam<Through> {};

TEST_P(EveryWay, GivesAllProcessesTheSame) {
  const auto work = [](const std::shared_ptr<Communicator>& processes) {
    const int64_t rank = processes->rank();
    EXPECT_EQ(processes->size(), 3);
    EXPECT_EQ(processes->local_size(), 3);
    EXPECT_EQ(processes->local_rank(), rank);
    std::vector<float> one(5, static_cast<float>(rank)), other(3, 0.5f);
    std::vector<double> numbers(2, 0.1 * static_cast<double>(rank));
    processes->start_sum(one);
    processes->start_sum(std::span(numbers));
    processes->start_sum(other);
    processes->finish_sums();
    EXPECT_THAT(one, ::testing::Each(3));
    EXPECT_THAT(other, ::testing::Each(1.5f));
    EXPECT_THAT(numbers, ::testing::Each(::testing::DoubleEq(0.3)));
    processes->sum(numbers);
    EXPECT_THAT(numbers, ::testing::Each(::testing::DoubleEq(0.9)));
    EXPECT_EQ(processes->largest(int64_t{1} << 60 | rank), int64_t{1} << 60 | 2);
    EXPECT_EQ(processes->largest(-5 - rank), -5);
    EXPECT_TRUE(processes->any(rank == 2));
    EXPECT_FALSE(processes->any(false));
    for (const size_t count : {0, 1, 1000, 2500}) {
      std::vector<std::byte> bytes(count, std::byte(rank));
      processes->broadcast(bytes, 1);
      EXPECT_THAT(bytes, ::testing::Each(std::byte(1)));
    }
  };
  run_in_threads(3, work, GetParam());
}

TEST_P(EveryWay, SharesEvenUnevenAndEmptyParts) {
  const std::vector<std::vector<int64_t>> all{{16, 32, 48}, {16, 16, 48}, {1600, 3216, 4800}};
  const auto work = [&](const std::shared_ptr<Communicator>& processes) {
    const auto rank = static_cast<size_t>(processes->rank());
    for (const std::vector<int64_t>& ends : all) {
      const auto count = static_cast<size_t>(ends.back());
      std::vector<float> wanted(count), values(count, -1);
      std::iota(wanted.begin(), wanted.end(), 1.f);
      const auto begin = static_cast<size_t>(rank == 0 ? 0 : ends[rank - 1]);
      const auto end = static_cast<size_t>(ends[rank]);
      for (size_t i = begin; i < end; ++i)
        values[i] = wanted[i];
      std::vector<float> whole(rank == 0 ? count : 0);
      processes->collect(std::span<const float>(values).subspan(begin, end - begin), whole, ends);
      if (rank == 0) {
        EXPECT_EQ(whole, wanted);
      }
      processes->share(values, ends);
      EXPECT_EQ(values, wanted);
    }
  };
  run_in_threads(3, work, GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Communicators,
    EveryWay,
    ::testing::Values(Through::kMemory, Through::kTorch, Through::kTorchAndHost));

/// A group of one thread.
struct Alone {
  explicit Alone(std::shared_ptr<Communicator> host = nullptr)
      : meeting(1),
        backend(testing::make_thread_backend(meeting, 0, 1)),
        processes(std::make_shared<TorchCommunicator>(TorchCommunicatorParts{
            .backend = backend, .device = at::kCPU, .host = std::move(host)})) {}

  testing::Meeting meeting;
  c10::intrusive_ptr<testing::ThreadBackend> backend;
  std::shared_ptr<TorchCommunicator> processes;
};

TEST(TorchCommunicator, WaitsLongestWhileTheTextIsPrepared) {
  Alone alone;
  std::vector<float> bucket(16);
  const std::vector<int64_t> ends{16};
  alone.processes->barrier();
  alone.processes->start_sum(bucket);
  alone.processes->finish_sums();
  alone.processes->share(bucket, ends);
  alone.processes->collect(bucket, bucket, ends);
  alone.processes->barrier();
  std::vector<std::chrono::milliseconds> times;
  for (const testing::BackendCall& call : alone.backend->calls())
    times.push_back(call.timeout);
  using Times = TorchCommunicator;
  EXPECT_THAT(
      times,
      ::testing::ElementsAre(
          Times::kMostOfPreparing,
          Times::kMostOfASum,
          Times::kMostOfASum,
          Times::kMostOfAPause,
          Times::kMostOfAPause));
}

TEST(TorchCommunicator, EndsTogetherButNotOverAFault) {
  Alone alone;
  alone.processes.reset();
  const auto& calls = alone.backend->calls();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].name, "allreduce");  // the barrier
  EXPECT_EQ(calls[1].name, "shutdown");
  Alone failing;
  const auto fault = [&] {
    const auto processes = std::move(failing.processes);
    fail("no more");
  };
  EXPECT_EQ(testing::error_of<Error>(fault), "no more");
  EXPECT_TRUE(failing.backend->calls().empty());
}

TEST(TorchCommunicator, AsksAHostEachTimeButADeviceSeldom) {
  Alone alone;
  EXPECT_EQ(alone.processes->updates_between_questions(), 8);
  Alone hosted(std::make_shared<SingleProcess>());
  EXPECT_EQ(hosted.processes->updates_between_questions(), 1);
  hosted.processes->barrier();
  EXPECT_TRUE(hosted.backend->calls().empty());
}

TEST(TorchCommunicator, RefusesSharesAndHostsOfOtherProcesses) {
  Alone alone;
  std::vector<float> values(32);
  const std::vector<int64_t> two{16, 32}, one{32}, less{16};
  const auto said = [&](std::span<const int64_t> ends, bool collect) {
    return testing::error_of<Error>([&] {
      if (collect)
        alone.processes->collect(values, values, ends);
      else
        alone.processes->share(values, ends);
    });
  };
  EXPECT_THAT(said(two, false), HasSubstr("each of 1 processes has a share"));
  EXPECT_THAT(said(two, true), HasSubstr("but got ends of 2"));
  EXPECT_THAT(said(less, false), HasSubstr("end at 16 are those of as many"));
  EXPECT_THAT(said(less, true), HasSubstr("has 16 elements, but got 32"));
  class Two : public SingleProcess {
    int64_t size() const override { return 2; }
  };
  EXPECT_THAT(
      testing::error_of<UsageError>([] { Alone other(std::make_shared<Two>()); }),
      HasSubstr("rank 0 of 1 is rank 0 of 2"));
}

/// A port that was free a moment ago.
std::string free_port() {
  const int opened = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(opened, generic, length), 0);
  EXPECT_EQ(::getsockname(opened, generic, &length), 0);
  ::close(opened);
  return std::to_string(ntohs(address.sin_port));
}

class Rendezvous : public ::testing::Test {
 protected:
  static Launch launch(int64_t rank) {
    return {.starter = "torchrun", .variable = "WORLD_SIZE=2", .rank = rank, .size = 2};
  }

  c10::intrusive_ptr<c10d::Store> open(
      int64_t rank,
      Communicator* host = nullptr,
      std::chrono::milliseconds patience = std::chrono::seconds(60)) const {
    const auto variable = [this](const char* name) -> const char* {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    };
    return open_store(launch(rank), host, variable, patience);
  }

  /// A store as torchrun's, to which the variables lead.
  c10::intrusive_ptr<c10d::TCPStore> start_agent() {
    auto store = c10::make_intrusive<c10d::TCPStore>(
        "localhost", c10d::TCPStoreOptions{.port = 0, .isServer = true, .waitWorkers = false});
    variables_ = {
        {"MASTER_ADDR", "localhost"},
        {"MASTER_PORT", std::to_string(store->getPort())},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
    return store;
  }

  std::string refusal(int64_t rank) const {
    return testing::error_of<UsageError>([&] { open(rank); });
  }

  /// Each of two says its rank to the other. The first, which may hold the
  /// store, stays until the other has heard.
  static void expect_meeting(c10d::Store& store, int64_t rank) {
    const auto name = [](int64_t of) { return "rank" + std::to_string(of); };
    store.set(name(rank), std::vector<uint8_t>(1, static_cast<uint8_t>(rank)));
    const auto other = static_cast<uint8_t>(1 - rank);
    EXPECT_THAT(store.get(name(1 - rank)), ::testing::ElementsAre(other));
    if (rank == 1)
      store.set("heard", std::vector<uint8_t>(1));
    else
      store.wait({"heard"});
  }

  std::map<std::string, std::string> variables_;
};

TEST_F(Rendezvous, IsWhereTorchrunSaysWhoeverOpensIt) {
  const auto meet = [&](const std::shared_ptr<Communicator>& processes) {
    const auto store = open(processes->rank());
    expect_meeting(*store, processes->rank());
  };
  variables_ = {{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", free_port()}};
  run_in_threads(2, meet);
  const auto agent = start_agent();
  run_in_threads(2, meet);
}

TEST_F(Rendezvous, ForgetsWhatWasSaidBeforeARestart) {
  const auto agent = start_agent();
  const auto said = [&](const char* restarts) {
    variables_["TORCHELASTIC_RESTART_COUNT"] = restarts;
    return open(0)->check({"rank0"});
  };
  open(0)->set("rank0", std::vector<uint8_t>(1));
  EXPECT_TRUE(said("0"));
  EXPECT_FALSE(said("1"));
}

TEST_F(Rendezvous, IsToldByTheFirstWhereProcessesSpeakAlready) {
  run_in_threads(2, [&](const std::shared_ptr<Communicator>& processes) {
    const auto store = open(processes->rank(), processes.get());
    expect_meeting(*store, processes->rank());
    processes->barrier();
  });
}

TEST_F(Rendezvous, SaysWhatIsMissingOrWrong) {
  EXPECT_THAT(refusal(0), AllOf(HasSubstr("WORLD_SIZE=2"), HasSubstr("MASTER_ADDR")));
  variables_["MASTER_ADDR"] = "localhost";
  EXPECT_THAT(refusal(1), HasSubstr("MASTER_PORT, which says where"));
  for (const char* port : {"0", "70000", "12x", "-1"}) {
    variables_["MASTER_PORT"] = port;
    EXPECT_THAT(refusal(1), HasSubstr(concat("but is '", port, "'")));
  }
  EXPECT_THAT(refusal(2), HasSubstr("but this one has rank 2"));
}

TEST_F(Rendezvous, IsGivenUpWhereNobodyAnswers) {
  variables_ = {{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", free_port()}};
  const std::string said =
      testing::error_of<Error>([&] { open(1, nullptr, std::chrono::milliseconds(200)); });
  EXPECT_THAT(
      said, HasSubstr("rank 1 cannot reach the store at localhost:" + variables_["MASTER_PORT"]));
}

TEST_F(Rendezvous, IsWhereProcessesLearnThatTheyShareADevice) {
  const auto check = [&](const std::string& first, const std::string& second) {
    const auto agent = start_agent();
    run_in_threads(2, [&](const std::shared_ptr<Communicator>& processes) {
      const int64_t rank = processes->rank();
      const std::string own = rank == 0 ? first : second;
      const std::string said = own != "shared" ? "" : "ranks 0 and 1 both have";
      const auto store = open(rank);
      const auto meet = [&] { check_own_devices(*store, launch(rank), own); };
      if (said.empty())
        EXPECT_NO_THROW(meet());
      else  // in both
        EXPECT_THAT(testing::error_of<UsageError>(meet), HasSubstr(said));
      processes->barrier();
    });
  };
  check("one", "another");
  check("shared", "shared");
}

/// Threads as processes on a device that nobody looks for.
TEST(OpenOnDevice, SaysThatNcclIsNotBuilt) {
  const auto open = [](const std::shared_ptr<Communicator>& processes) {
    open_on_device(processes, {at::kCUDA, static_cast<c10::DeviceIndex>(processes->rank())});
  };
  EXPECT_THAT(
      testing::error_of<Error>([&] { run_in_threads(2, open); }),
      AllOf(
          HasSubstr("this build has no NCCL"),
          HasSubstr("libseqconv_nccl.so"),
          HasSubstr("SEQCONV_NCCL=ON")));
}

TEST(OpenOnDevice, RefusesOneDeviceForSeveralAndDevicesOfTwoKinds) {
  const auto said = [](const std::function<at::Device(int64_t)>& device_of) {
    return testing::error_of<UsageError>([&] {
      run_in_threads(2, [&](const std::shared_ptr<Communicator>& processes) {
        open_on_device(processes, device_of(processes->rank()));
      });
    });
  };
  EXPECT_THAT(
      said([](int64_t) { return at::Device(at::kCUDA, 1); }),
      HasSubstr("ranks 0 and 1 both have "));
  EXPECT_THAT(
      said(
          [](int64_t rank) { return rank == 0 ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU); }),
      HasSubstr("is the CPU in rank 1 and a GPU in rank 0"));
}

/// The second of two, which speaks if the first has not ended it.
class Second : public SingleProcess {
 public:
  int64_t rank() const override { return 1; }
  int64_t size() const override { return 2; }
  void abort(int code) override { aborted = code; }

  int aborted = 0;
};

TEST(RunTogether, IsSilentInAProcessThatItsStarterAsksToStop) {
  for (const bool asked : {true, false}) {
    Second second;
    ::testing::internal::CaptureStderr();
    const std::string said = testing::error_of<UsageError>([&] {
      run_together(second, [&] {
        std::thread starter([asked] {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          set_stop_signal(asked ? SIGTERM : 0);
        });
        starter.detach();
        fail_usage("too much");
      });
    });
    EXPECT_EQ(said, "too much");
    EXPECT_EQ(second.aborted, 2);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), asked ? "" : "error: too much\n");
    set_stop_signal(0);
  }
}

}  // namespace
}  // namespace seqconv::internal
