#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "host/isolation/crash_ledger.hpp"

namespace sluice::isolation {

/// A folder for ledgers that is gone at the end of the test.
class StateFolder {
 public:
  StateFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-isolation-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~StateFolder() { std::filesystem::remove_all(path_); }
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  std::string path() const { return (path_ / "ledgers").string(); }
  LedgerFolder ledgers() const { return LedgerFolder(path()); }
  /// The only ledger of the folder.
  std::string ledger() const {
    const auto files = ledgers().open_ledgers();
    return files.size() == 1 ? files.front() : "";
  }

 private:
  std::filesystem::path path_;
};

inline queue::Delivery delivery(const std::string& id, std::int64_t version = 1, std::uint32_t attempt = 1) {
  queue::Delivery given;
  given.message.id = id;
  given.message.attempt = attempt;
  given.receipt = {id, version, 7 * version};
  return given;
}

inline LedgerJob ledger_job(const std::string& name = "orders", const std::string& queue = "orders") {
  return {{name, "/plugins/bomb.so", "bomb"}, {queue, queue::Half::standard}};
}

/// The part of a job in a ledger.
inline std::shared_ptr<JobLedger> open_job(const std::shared_ptr<HostLedger>& ledger, std::vector<LedgerJob> queues) {
  auto job = std::make_shared<JobSlots>(std::move(queues));
  job->attach(ledger);
  return job;
}

inline std::shared_ptr<HostLedger> open_ledger_in(const std::string& folder,
                                                  const std::string& incarnation = "host-a/12345678") {
  static const SystemClock clock;
  auto ledger = HostLedger::create(folder, {"host-a", "/etc/sluice/host.toml", incarnation}, clock);
  EXPECT_TRUE(ledger) << ledger.error().message();
  return ledger ? std::move(*ledger) : nullptr;
}

/// Runs `body` in a child and returns how it ended, as waitpid tells it.
inline int status_of(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace sluice::isolation
