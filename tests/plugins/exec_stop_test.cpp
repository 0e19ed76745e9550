#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "tests/plugins/live_host.hpp"

namespace sluice::shipped {
namespace {

/// Starts the script, waits until it has printed "ready", asks it to stop as `how` says, and returns what came of it.
template <typename How>
Result stopped(LiveHost& host, How how) {
  Stop stop;
  Result result;
  std::jthread worker([&] { result = host.handle({}, stop); });
  EXPECT_TRUE(host.wait_for_line("ready"));
  how(stop);
  worker.join();
  return result;
}

void request(Stop& stop) { stop.requested = true; }

/// A command that waits until somebody opens its fifo, which a test does after the stop.
class Fifo {
 public:
  Fifo() { ::unlink(path_.c_str()); }
  ~Fifo() { ::unlink(path_.c_str()); }
  std::string script() const { return "mkfifo " + path_ + "; echo ready; cat " + path_ + "; exit 65"; }
  void open() const {
    std::FILE* writer = std::fopen(path_.c_str(), "w");
    std::fclose(writer);
  }

 private:
  const std::string path_ = "/tmp/sluice-exec-fifo-" + std::to_string(::getpid());
};

/// Waits until a process has ended; false after ten seconds.
bool ends(pid_t pid) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (handle < 0) {
    return true;
  }
  pollfd wait{handle, POLLIN, 0};
  const int result = ::poll(&wait, 1, 10'000);
  ::close(handle);
  return result == 1;
}

TEST(ExecStop, ReleasesTheMessage) {
  LiveHost host("exec", shell("echo ready; exec sleep 300", {{"stop_grace", "0s"}}));
  const Result result = stopped(host, request);
  EXPECT_EQ(result.status, SLUICE_RELEASE);
}

TEST(ExecStop, LetsACommandFinishWithinTheDrain) {
  const Fifo fifo;
  LiveHost host("exec", shell(fifo.script()));
  const Result result = stopped(host, [&](Stop& stop) {
    stop.requested = true;
    fifo.open();
  });
  EXPECT_EQ(result.status, SLUICE_REJECT) << result.reason;
}

TEST(ExecStop, EndsACommandBeforeTheDrainEnds) {
  LiveHost host("exec", shell("trap 'echo tidied; exit 0' TERM; echo ready; sleep 300 & wait"));
  const Result result = stopped(host, [](Stop& stop) {
    stop.drain = 500;
    stop.requested = true;
  });
  EXPECT_EQ(result.status, SLUICE_RELEASE);
  EXPECT_TRUE(host.logged("tidied"));
}

TEST(ExecStop, KillsACommandThatWouldOutliveTheDrain) {
  LiveHost host("exec", shell("trap '' TERM; echo ready; while :; do sleep 300; done", {{"kill_after", "1h"}}));
  const Result result = stopped(host, [](Stop& stop) {
    stop.drain = 500;
    stop.requested = true;
  });
  EXPECT_EQ(result.status, SLUICE_RELEASE);
}

TEST(ExecStop, StartsNothingOnceRequested) {
  LiveHost host("exec", shell("echo ready"));
  Stop stop;
  stop.requested = true;
  EXPECT_EQ(host.handle({}, stop).status, SLUICE_RELEASE);
  EXPECT_TRUE(host.log().empty());
}

TEST(ExecStop, LetsTheCommandTidyUp) {
  LiveHost host("exec", shell("trap 'echo tidied; exit 0' TERM; echo ready; sleep 300 & wait", {{"stop_grace", "0s"}}));
  EXPECT_EQ(stopped(host, request).status, SLUICE_RELEASE);
  EXPECT_TRUE(host.logged("tidied"));
}

TEST(ExecStop, KillsWhatIgnoresTheSignal) {
  LiveHost host("exec", shell("trap '' TERM; echo ready; while :; do sleep 300; done",
                              {{"kill_after", "50ms"}, {"stop_grace", "0s"}}));
  EXPECT_EQ(stopped(host, request).status, SLUICE_RELEASE);
}

TEST(ExecStop, WaitsForTheGrace) {
  const Fifo fifo;
  LiveHost host("exec", shell(fifo.script(), {{"stop_grace", "60s"}}));
  const Result result = stopped(host, [&](Stop& stop) {
    stop.requested = true;
    fifo.open();
  });
  EXPECT_EQ(result.status, SLUICE_REJECT);

  LiveHost impatient("exec", shell("echo ready; exec sleep 300", {{"stop_grace", "50ms"}}));
  EXPECT_EQ(stopped(impatient, request).status, SLUICE_RELEASE);
}

TEST(ExecStop, RetriesAfterTheJobsTimeout) {
  LiveHost host("exec", shell("echo ready; echo busy >&2; exec sleep 300", {{"stop_grace", "60s"}}));
  const Result result = stopped(host, [](Stop& stop) { stop.timed_out = true; });
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_EQ(result.reason.rfind("timed out: did not end within the job's timeout", 0), 0U) << result.reason;
}

TEST(ExecStop, SaysThatTheMessageWasLost) {
  LiveHost host("exec", shell("echo ready; echo busy >&2; exec sleep 300", {{"stop_grace", "60s"}}));
  const Result result = stopped(host, [](Stop& stop) { stop.lost = true; });
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_EQ(result.reason.rfind("stopped: the host has lost the message", 0), 0U) << result.reason;
}

TEST(ExecStop, RetriesAfterItsOwnTimeout) {
  LiveHost host("exec", shell("echo busy >&2; exec sleep 300", {{"timeout", "100ms"}}));
  const Result result = host.handle({});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_EQ(result.reason, "timed out: did not end within the option timeout: busy");
}

TEST(ExecStop, KillsTheWholeGroup) {
  // The shell itself ends at SIGTERM, what it started does not.
  LiveHost host("exec",
                shell("(trap '' TERM; echo $$; echo pid $(exec sh -c 'echo $PPID'); echo ready; exec sleep 300) & wait",
                      {{"kill_after", "60s"}, {"stop_grace", "0s"}}));
  EXPECT_EQ(stopped(host, request).status, SLUICE_RELEASE);
  pid_t child = 0;
  for (const std::string& line : host.log()) {
    child = line.rfind("pid ", 0) == 0 ? std::stoi(line.substr(4)) : child;
  }
  ASSERT_GT(child, 0);
  EXPECT_TRUE(ends(child));
}

TEST(ExecStop, EndsManyAtOnce) {
  LiveHost host("exec", shell("echo ready $SLUICE_MESSAGE_ID; exec sleep 300", {{"stop_grace", "0s"}}));
  Stop stop;
  std::atomic<int> released{0};
  std::vector<std::jthread> workers;
  for (int i = 0; i < 16; ++i) {
    workers.emplace_back([&, i] {
      released += host.handle({.body = "", .id = "<" + std::to_string(i) + ">"}, stop).status == SLUICE_RELEASE ? 1 : 0;
    });
  }
  for (int i = 0; i < 16; ++i) {
    EXPECT_TRUE(host.wait_for_line("ready <" + std::to_string(i) + ">"));
  }
  stop.requested = true;
  workers.clear();
  EXPECT_EQ(released, 16);
}

}  // namespace
}  // namespace sluice::shipped
