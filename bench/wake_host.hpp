#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/wake_notes.hpp"
#include "sluice/client.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/emulator.hpp"

namespace sluice::bench {

enum class Store {
  sqlite,
  dynamodb,       ///< the host finds what comes by looking
  dynamodb_bell,  ///< and is told by datagrams
};

/// Runs a program to its end, with a file as its input and its output dropped, and says what it has used. What it says
/// on stderr goes into the file `errors` where one is named. Throws std::runtime_error when it fails. Of a process with
/// a single thread.
rusage run_to_end(const std::vector<std::string>& arguments, const std::string& input = "/dev/null",
                  const std::string& errors = {});
double processor_seconds(const rusage& usage);

/// `sluice run` in a process of its own, configured by files in a folder as users do, with jobs whose handler notes how
/// late it starts. All of it throws std::runtime_error.
class WakeHost {
 public:
  /// The first job works on queue "bench", further ones on queues that stay empty. There is room for `messages` notes.
  WakeHost(std::string folder, Store store, std::size_t jobs, std::size_t messages);
  ~WakeHost();

  /// The queue as a program that sends opens it. In the process that opens it threads are made.
  client::Result<client::QueueClient> open_queue() const;
  /// Starts it and returns when its first job works; that takes one message.
  void start();
  /// Waits until so many messages have been handled since the start, for at most `seconds`.
  void wait_for(std::size_t messages, double seconds) const;
  /// How late the handlers of the messages started, in nanoseconds.
  std::span<const std::int64_t> notes() const { return notes_.all().subspan(1); }
  /// Calls of the handler since the files were made.
  std::size_t handled() const { return notes_.count(); }
  /// What it has used, in seconds of processor.
  double processor() const;

 private:
  void write_files(std::size_t jobs) const;

  const std::string folder_;
  const Store store_;
  const std::unique_ptr<test::Emulator> emulator_;  ///< null: SQLite
  WakeNotes notes_;
  std::unique_ptr<test::ChildProcess> process_;
};

/// Waits; nobody ever comes before.
void wait_until(std::int64_t monotonic);

}  // namespace sluice::bench
