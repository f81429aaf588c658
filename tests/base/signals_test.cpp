#include "base/signals.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/atomic_file.h"
#include "base/files.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

/// Whatever who runs the tests ignores.
void catch_all_stop_signals() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1})
    std::signal(signal, SIG_DFL);
  catch_stop_signals();
}

TEST(Signals, TheFirstOneSetsAFlagAndTheNextAtOnceChangeNothing) {
  for (const int first : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) {
    ASSERT_EQ(stop_signal(), 0);
    catch_all_stop_signals();
    const int64_t before = stop_signals();
    std::raise(first);
    EXPECT_EQ(stop_signals(), before + 1);
    EXPECT_EQ(stop_signal(), first);
    for (const int next : {SIGHUP, SIGUSR1, SIGTERM, SIGINT, first})
      std::raise(next);
    EXPECT_EQ(stop_signal(), first);
    set_stop_signal(0);
  }
}

TEST(Signals, ASecondWishOfAUserASecondLaterEndsTheProgram) {
  catch_all_stop_signals();
  for (const int signal : {SIGHUP, SIGINT, SIGTERM})
    std::raise(signal);
  std::this_thread::sleep_for(std::chrono::milliseconds(1010));
  std::raise(SIGHUP);  // not a user's
  std::raise(SIGUSR1);
  for (const int signal : {SIGINT, SIGTERM})
    EXPECT_EXIT(std::raise(signal), ::testing::KilledBySignal(signal), "");
  {
    const Saving saving;
    for (int times = 0; times < 3; ++times)
      std::raise(SIGTERM);  // of who has started several processes
    EXPECT_EXIT(std::raise(SIGINT), ::testing::KilledBySignal(SIGINT), "");
  }
  EXPECT_EXIT(std::raise(SIGTERM), ::testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(stop_signal(), SIGHUP);
  set_stop_signal(0);
}

TEST(Signals, ADiskThatHangsIsNotWaitedFor) {
  using std::chrono::milliseconds;
  catch_all_stop_signals();
  const testing::TemporaryFolder folder;
  const Saving saving(milliseconds(400));
  AtomicFile file(folder.path() / "state");
  const auto wait = [] { std::this_thread::sleep_for(milliseconds(410)); };
  wait();
  file.write("a", 1);
  std::raise(SIGTERM);
  wait();
  file.flush();
  std::raise(SIGINT);
  wait();
  std::raise(SIGHUP);
  std::raise(SIGUSR1);
  for (const int signal : {SIGINT, SIGTERM})
    EXPECT_EXIT(std::raise(signal), ::testing::KilledBySignal(signal), "");
  file.commit();
  std::raise(SIGTERM);  // nothing is under way
  set_stop_signal(0);
}

TEST(Signals, WhatEndsTheProgramDeletesWhatIsUnfinishedInItAlone) {
  catch_all_stop_signals();
  const testing::TemporaryFolder folder;
  folder.write("model", "old");
  const AtomicFile of_another(folder.path() / "other");
  const auto end_in_the_middle = [&] {
    AtomicFile whole(folder.path() / "whole");
    whole.commit();
    std::vector<std::unique_ptr<AtomicFile>> files;
    for (const char* name : {"model", "config"}) {
      files.push_back(std::make_unique<AtomicFile>(folder.path() / name));
      files.back()->write("new", 3);
    }
    const Saving saving(std::chrono::nanoseconds(1));
    std::raise(SIGTERM);
  };
  EXPECT_EXIT(end_in_the_middle(), ::testing::KilledBySignal(SIGTERM), "");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.insert(entry.path().filename().string());
  EXPECT_EQ(
      names, (std::set<std::string>{"model", "whole", of_another.temporary().filename().string()}));
  EXPECT_EQ(read_file(folder.path() / "model"), "old");
}

TEST(Signals, ThatAreIgnoredStayIgnored) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1})
    std::signal(signal, SIG_DFL);
  std::signal(SIGHUP, SIG_IGN);  // as nohup does
  catch_stop_signals();
  std::raise(SIGHUP);
  EXPECT_EQ(stop_signal(), 0);
  std::raise(SIGTERM);
  std::raise(SIGHUP);
  EXPECT_EQ(stop_signal(), SIGTERM);
  set_stop_signal(0);
  std::signal(SIGHUP, SIG_DFL);
}

}  // namespace
}  // namespace seqconv::internal
