#include "host/isolation/crash_handler.hpp"

#include <fcntl.h>

#include <array>
#include <stdexcept>
#include <thread>

#include "tests/isolation/ledger_rig.hpp"
#include "tests/isolation/sanitized.hpp"

namespace sluice::isolation {
namespace {

using testing::HasSubstr;

// noinline and volatile: what is to crash must not be seen through.
[[gnu::noinline]] void throws() { throw std::runtime_error("nobody catches this"); }
[[gnu::noinline]] void throw_through_noexcept() noexcept { throws(); }

/// Crashes in the middle of a handler, on a worker's thread.
struct Crashed {
  int status = 0;
  std::string said;  ///< on stderr
  LedgerContents left;
};

class CrashHandlerTest : public testing::Test {
 protected:
  Crashed crash(const std::function<void()>& handler, bool inside_handler = true) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    Crashed result;
    result.status = status_of([&] {
      ::dup2(pipe[1], STDERR_FILENO);
      const auto ledger = open_ledger_in(folder_.path());
      install_crash_handler(&ledger->crash_record());
      const auto job = open_job(ledger, {ledger_job()});
      const HeldSlot other = job->hold(delivery("innocent"));
      const HeldSlot slot = job->hold(delivery("bomb-1"));
      std::jthread neighbour([&] { job->started(other, "innocent"); });
      neighbour.join();
      std::jthread worker([&] {
        if (inside_handler) {
          job->started(slot, "bomb-1");
        }
        job_ = job.get();
        other_ = other;
        record_ = &ledger->crash_record();
        handler();
      });
      worker.join();
    });
    ::close(pipe[1]);
    std::array<char, 4096> text{};
    const ssize_t size = ::read(pipe[0], text.data(), text.size());
    result.said.assign(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    ::close(pipe[0]);
    auto contents = read_ledger(folder_.ledger());
    EXPECT_TRUE(contents || std::filesystem::is_empty(folder_.ledger()));
    if (contents) {
      result.left = *contents;
    }
    return result;
  }

  static void expect_blamed(const Crashed& crashed) {
    ASSERT_TRUE(crashed.left.crash);
    EXPECT_TRUE(crashed.left.crash->blamed);
    EXPECT_EQ(crashed.left.crash->message, "bomb-1");
    EXPECT_EQ(crashed.left.crash->handler, "bomb");
    EXPECT_EQ(crashed.left.crash->job, "orders");
    for (const HeldMessage& held : crashed.left.held) {
      EXPECT_EQ(held.blamed, held.receipt.id == "bomb-1") << held.receipt.id;
    }
    for (const char* word : {"bomb-1", "'bomb'", "/plugins/bomb.so", "orders"}) {
      EXPECT_THAT(crashed.said, HasSubstr(word));
    }
    EXPECT_EQ(std::count(crashed.said.begin(), crashed.said.end(), '\n'), 1) << crashed.said;
  }
  static void expect_stack(const Crashed& crashed, const std::string& function) {
    ASSERT_TRUE(crashed.left.crash);
    EXPECT_THAT(crashed.left.crash->failure_text(4096), HasSubstr(function));
  }

  StateFolder folder_;
  // In the process that crashes.
  JobLedger* job_ = nullptr;
  HeldSlot other_ = 0;
  CrashRecord* record_ = nullptr;
};

TEST_F(CrashHandlerTest, AHandlerThatHasEndedAnothersMessageIsStillToBlame) {
  expect_blamed(crash([this] {
    job_->ended(other_, true);
    std::abort();
  }));
}

TEST_F(CrashHandlerTest, AbortIsBlamedOnTheMessageOfItsThread) {
  const Crashed crashed = crash([] { std::abort(); });
  EXPECT_TRUE(WIFSIGNALED(crashed.status) && WTERMSIG(crashed.status) == SIGABRT);
  expect_blamed(crashed);
  EXPECT_THAT(crashed.said, HasSubstr("SIGABRT"));
  expect_stack(crashed, "abort");
}

TEST_F(CrashHandlerTest, AnExceptionThatNobodyCatchesIsNamed) {
  const Crashed crashed = crash([] { throw_through_noexcept(); });
  expect_blamed(crashed);
  EXPECT_EQ(crashed.left.crash->what, "nobody catches this");
  EXPECT_THAT(crashed.left.crash->summary(), HasSubstr("nobody catches this"));
  expect_stack(crashed, "throw_through_noexcept");
}

TEST_F(CrashHandlerTest, ExitInAHandlerIsCaughtAndNamed) {
  const Crashed crashed = crash([] { std::exit(3); });
  EXPECT_TRUE(WIFEXITED(crashed.status) && WEXITSTATUS(crashed.status) == 70) << crashed.status;
  expect_blamed(crashed);
  EXPECT_THAT(crashed.said, HasSubstr("the handler called exit(3)"));
  EXPECT_THAT(crashed.left.crash->summary(), HasSubstr("the handler called exit(3)"));
}

// As where the log's reader has stalled: the line is lost, and the process ends all the same.
TEST_F(CrashHandlerTest, AFullPipeKeepsNoProcessFromItsEnd) {
  const Crashed crashed = crash([] {
    ::alarm(20);
    ::fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
    while (::write(STDERR_FILENO, "x", 1) == 1) {
    }
    ::fcntl(STDERR_FILENO, F_SETFL, 0);
    std::abort();
  });
  EXPECT_TRUE(WIFSIGNALED(crashed.status) && WTERMSIG(crashed.status) == SIGABRT) << crashed.status;
  ASSERT_TRUE(crashed.left.crash);
  EXPECT_EQ(crashed.left.crash->message, "bomb-1");
  expect_stack(crashed, "abort");
}

// The line about the crash waits for a reader, and meanwhile a neighbour's handler ends the process.
TEST_F(CrashHandlerTest, AnExitBesideACrashLeavesItToTell) {
  const Crashed crashed = crash([this] {
    ::alarm(20);
    ::fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
    while (::write(STDERR_FILENO, "x", 1) == 1) {
    }
    const std::jthread neighbour([this] {
      job_->started(other_, "innocent");
      while (record_->state.load() < CrashRecord::written) {
        std::this_thread::yield();
      }
      std::exit(3);
    });
    std::abort();
  });
  EXPECT_TRUE(WIFSIGNALED(crashed.status) && WTERMSIG(crashed.status) == SIGABRT) << crashed.status;
  ASSERT_TRUE(crashed.left.crash);
  EXPECT_EQ(crashed.left.crash->message, "bomb-1");
  expect_stack(crashed, "abort");
}

TEST_F(CrashHandlerTest, HistoryKnowsWhomToBlame) {
  crash([this] {
    job_->ended(other_, false);
    job_->drop(other_);  // of a smaller place than the one that is to blame
    std::abort();
  });
  auto orphan = OrphanLedger::take(folder_.ledger());
  ASSERT_TRUE(orphan && *orphan);
  ASSERT_TRUE((*orphan)->archive({}));
  const auto history = read_ledger(folder_.ledgers().history().at(0));
  ASSERT_TRUE(history);
  ASSERT_EQ(history->held.size(), 1U);
  EXPECT_TRUE(history->held[0].blamed);
}

TEST_F(CrashHandlerTest, ExitOutsideOfAHandlerIsNobodysAffair) {
  const Crashed crashed = crash([] { std::_Exit(4); }, false);
  EXPECT_TRUE(WIFEXITED(crashed.status) && WEXITSTATUS(crashed.status) == 4);
  EXPECT_FALSE(crashed.left.crash);
}

TEST_F(CrashHandlerTest, ACrashOutsideOfAHandlerBlamesNobody) {
  const Crashed crashed = crash([] { std::abort(); }, false);
  ASSERT_TRUE(crashed.left.crash);
  EXPECT_FALSE(crashed.left.crash->blamed);
  EXPECT_THAT(crashed.said, HasSubstr("runs no handler"));
  for (const HeldMessage& held : crashed.left.held) {
    EXPECT_FALSE(held.blamed);
  }
}

TEST_F(CrashHandlerTest, ASignalFromAnotherProcessBlamesNobody) {
  const Crashed crashed = crash([] {
    const pid_t victim = ::getpid();
    if (::fork() == 0) {
      ::kill(victim, SIGABRT);
      ::_exit(0);
    }
    while (true) {
      ::pause();
    }
  });
  ASSERT_TRUE(crashed.left.crash);
  EXPECT_FALSE(crashed.left.crash->blamed);
}

TEST_F(CrashHandlerTest, AChildThatAHandlerForksIsNotTheHost) {
  const Crashed crashed = crash([] {
    const pid_t child = ::fork();
    if (child == 0) {
      std::abort();
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ::_exit(WIFSIGNALED(status) ? 5 : 6);
  });
  EXPECT_EQ(WEXITSTATUS(crashed.status), 5);
  EXPECT_FALSE(crashed.left.crash);
}

#ifndef SLUICE_SANITIZED
[[gnu::noinline]] void touch_null() { *const_cast<volatile int*>(static_cast<int*>(nullptr)) = 1; }
[[gnu::noinline]] int go_deeper(int depth) {
  std::array<volatile char, 4096> room{};
  room[static_cast<std::size_t>(depth) % room.size()] = 1;
  return depth < 0 ? 0 : go_deeper(depth + 1) + room[0];
}

TEST_F(CrashHandlerTest, AFaultIsBlamedWithAddressAndStack) {
  const Crashed crashed = crash([] { touch_null(); });
  EXPECT_TRUE(WIFSIGNALED(crashed.status) && WTERMSIG(crashed.status) == SIGSEGV);
  expect_blamed(crashed);
  EXPECT_THAT(crashed.left.crash->summary(), HasSubstr("SIGSEGV at address 0x0"));
  expect_stack(crashed, "touch_null");
}

TEST_F(CrashHandlerTest, ACrashWhoseLedgerWasCutOffBeforeIsNamedAllTheSame) {
  for (const int signal : {SIGBUS, SIGSEGV}) {
    const Crashed crashed = crash([&] {
      std::filesystem::resize_file(folder_.ledger(), 0);
      ::raise(signal);
    });
    EXPECT_TRUE(WIFSIGNALED(crashed.status) && WTERMSIG(crashed.status) == signal);
    EXPECT_FALSE(crashed.left.crash);
    EXPECT_THAT(crashed.said, HasSubstr("bomb-1"));
    std::filesystem::remove_all(folder_.path());
  }
}

TEST_F(CrashHandlerTest, AStackThatIsUsedUpIsCaughtToo) {
  const Crashed crashed = crash([] { go_deeper(0); });
  EXPECT_TRUE(WIFSIGNALED(crashed.status) && WTERMSIG(crashed.status) == SIGSEGV);
  expect_blamed(crashed);
  expect_stack(crashed, "go_deeper");
}

TEST_F(CrashHandlerTest, AJumpToNowhereKeepsWhoJumped) {
  const Crashed crashed = crash([] {
    void (*volatile nowhere)() = nullptr;
    nowhere();
  });
  expect_blamed(crashed);
  EXPECT_GE(crashed.left.crash->stack.size(), 2U);
}
#endif

}  // namespace
}  // namespace sluice::isolation
