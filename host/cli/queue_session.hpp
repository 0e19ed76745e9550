#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/random.hpp"
#include "host/cli/arguments.hpp"
#include "host/cli/command.hpp"
#include "host/cli/exit.hpp"
#include "host/cli/queue_place.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/host_queues.hpp"

namespace sluice::cli {

/// A command's own flags, and after them those of every command on queues: where the queue is, and --output.
std::vector<Flag> with_store_flags(std::vector<Flag> own, Outboxes outboxes = Outboxes::taken);

/// A queue opened for one command. A resource that can be moved.
class QueueSession {
 public:
  using HostFiles = QueuePlace::HostFiles;
  using Queue = QueuePlace::Queue;

  /// As QueuePlace::find; and exit 1 or 78 for the store.
  static OrExit<QueueSession> open(const Arguments& arguments, Queue queue = Queue::needed,
                                   HostFiles files = HostFiles::anywhere);

  /// Every queue of the host file.
  runtime::HostQueues& queues() { return parts_->queues; }
  /// Looks at the session's queue and changes it. Not to be asked where no queue is named.
  queue::Operator& oper() { return *operator_; }
  OrExit<std::unique_ptr<queue::Sender>> open_sender();
  OrExit<std::unique_ptr<queue::Source>> open_source(queue::Half half);

  /// What the command has spent at DynamoDB; nothing elsewhere.
  std::optional<runtime::DynamoDbCost> cost() const { return parts_->queues.cost(); }
  const QueuePlace& place() const { return parts_->place; }
  /// The host file's content, or what stands for it without one.
  const config::HostConfig& host() const { return place().host(); }
  /// The queue's name; empty when it was optional and is not named.
  const std::string& queue() const { return place().queue(); }
  const Clock& clock() const { return parts_->clock; }
  /// For one request of a command: half a minute from now.
  Deadline deadline() const { return Deadline::after(clock(), std::chrono::seconds(30)); }

  /// What is wrong with the session's queue, and the command that mends it.
  std::string explained(const Error& error) const { return place().explained(error, queue()); }
  /// That command alone, as QueuePlace::mend.
  std::string mend(const Error& error) const { return place().mend(error, queue()); }
  /// How the command ends for that.
  Exit failure(const Error& error) const { return Exit::failure(explained(error)); }

 private:
  /// What refers to each other; it must not move.
  struct Parts {
    explicit Parts(QueuePlace where) : place(std::move(where)), queues(place.host(), clock, random, nullptr, warn) {}

    SystemClock clock;
    SeededRandom random;
    const QueuePlace place;
    runtime::HostQueues queues;
  };

  /// Tells people what a store has to say while a command uses it.
  static void warn(const std::string& line);

  explicit QueueSession(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
  /// How the command ends whose store cannot be opened: no region, a path that is a folder and the like are
  /// configuration.
  Exit unopened(const Error& error) const;

  std::unique_ptr<Parts> parts_;
  std::unique_ptr<queue::Operator> operator_;
};

/// The half of its queue that --dlq names.
queue::Half half_of(const Arguments& arguments);

}  // namespace sluice::cli
