#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/cli/command.hpp"
#include "host/cli/options.hpp"
#include "host/operate/audited_operator.hpp"
#include "host/operate/table_tariff.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/host_queues.hpp"

namespace sluice::cli {

/// The host file's path: --config, else SLUICE_CONFIG, else ./host.toml, else /etc/sluice/host.toml. Exit 78 with what
/// was looked for when there is none.
OrExit<std::string> find_host_file(const Arguments& arguments);
/// Finds and reads it. Exit 78 with every error, one a line.
OrExit<config::HostConfig> load_host_file(const Arguments& arguments);
/// The same for words that nobody has parsed yet.
OrExit<config::HostConfig> load_host_file(const std::vector<std::string>& words);
/// Whether the command's options or the environment lead to a host file, and not to a table.
bool works_by_host_file(const Arguments& arguments);
/// Exit 78 with every error of the host's job files, one a line.
OrExit<void> check_job_files(const config::HostConfig& host);
/// Errors as lines.
Exit configuration_exit(const std::vector<config::ConfigError>& errors, int code = kExitConfiguration);
/// The queues that a host file and its jobs name, in order. Job files that cannot be read are passed over.
std::vector<std::string> known_queues(const config::HostConfig& host);
/// A line for the user when --queue names a queue that neither the host file nor its jobs know, and a known one is
/// spelt much like it. Nothing when all is well, or when it cannot be told.
std::optional<std::string> misspelt_queue(const Arguments& arguments);

/// What a person types to mend a failure of a store, to follow its message: "; make it with: sluice table create ...".
/// Empty where no command mends it. `options` are those with which a command finds the queue.
std::string mend_of(const Error& error, const std::string& options);
/// The options with which a command finds a queue of the host file that `arguments` name, as they are typed.
std::string options_of_host_file(const Arguments& arguments, const std::string& queue);
/// How a command ends whose store cannot be opened: no region, a path that is a folder and the like are configuration.
Exit unopened(const Error& error, const std::string& remark = {});
/// By what writes to that queue are paid.
operate::TableTariff tariff_of(const config::HostConfig& host, const std::string& queue);

/// "ops-1"; "?" for a machine without a name.
std::string this_machine();
/// Who gives commands here: "ann@ops-1".
std::string this_operator();

/// Where the queue of a command lies, as its options, the environment and the host file say. A value.
///
/// With --table, with --endpoint or --index and neither --queue nor --config, and where there is no host file, it is a
/// table: its name is --table, else the queue's, else dynamo-mq-table, and AWS's usual environment says the rest.
/// Otherwise it is what the host file says, over which --index, --endpoint and --region win; then --queue names the
/// queue, and may be left out when the file and its jobs name just one.
class QueuePlace {
 public:
  enum class HostFiles {
    anywhere,    ///< --config, SLUICE_CONFIG or the default places
    named_only,  ///< the default places are not looked at
  };
  enum class Queue { needed, optional };

  /// Exit 78 for the host file, 64 for options that contradict each other or name no possible table, and when no queue
  /// is named though one is needed.
  static OrExit<QueuePlace> find(const Arguments& arguments, Queue queue = Queue::needed,
                                 HostFiles files = HostFiles::anywhere);

  /// The host file's content, or what stands for it without one.
  const config::HostConfig& host() const { return host_; }
  /// The queue's name; empty when it was optional and is not named.
  const std::string& queue() const { return queue_; }
  /// The store that it lies in; the default one when no queue is named.
  const config::StoreConfig& store() const { return host_.store_of(queue_); }
  bool in_sqlite() const { return store().kind == config::StoreKind::sqlite; }
  /// Nobody named a host file or a table, and no host file was found: a user of SQLite may wonder at a table.
  bool by_default() const { return by_default_; }
  /// What is wrong with that queue, and the command that mends it where there is one, typed as it stands where this one
  /// was.
  std::string explained(const Error& error, const std::string& queue) const {
    return error.message() + mend(error, queue);
  }
  /// That command alone, as "; make it with: ..."; empty where there is none.
  std::string mend(const Error& error, const std::string& queue) const;

 private:
  static OrExit<QueuePlace> of_table(const Arguments& arguments);
  static OrExit<QueuePlace> of_host_file(const Arguments& arguments, Queue queue);

  config::HostConfig host_;
  std::string queue_;
  bool by_default_ = false;
  /// The options that name the place, but for the queue of a host file.
  std::string naming_;
  bool names_table_ = false;
};

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
  operate::AuditedOperator& oper() { return *operator_; }
  /// Says in the audit what came of the deed that `oper` was told of, and to the user where that cannot be done.
  void finish_deed(const operate::DeedCount& count, const std::string& stopped_by = {});
  OrExit<std::unique_ptr<queue::Sender>> open_sender() { return opened(queues().open_sender(queue())); }
  OrExit<std::unique_ptr<queue::Source>> open_source(queue::Half half) {
    return opened(queues().open_source({queue(), half}));
  }

  /// What the command has spent at DynamoDB; nothing elsewhere.
  std::optional<runtime::DynamoDbCost> cost() const { return parts_->queues.cost(); }
  const QueuePlace& place() const { return parts_->place; }
  /// The host file's content, or what stands for it without one.
  const config::HostConfig& host() const { return place().host(); }
  /// The queue's name; empty when it was optional and is not named.
  const std::string& queue() const { return place().queue(); }
  const Clock& clock() const { return parts_->clock; }
  Random& random() { return parts_->random; }
  /// For one request of a command: half a minute from now.
  Deadline deadline() const { return Deadline::after(clock(), std::chrono::seconds(30)); }

  /// What is wrong with the session's queue, and the command that mends it.
  std::string explained(const Error& error) const { return place().explained(error, queue()); }
  /// That command alone, as QueuePlace::mend.
  std::string mend(const Error& error) const { return place().mend(error, queue()); }
  /// How the command ends for that.
  Exit failure(const Error& error) const { return Exit::failure(explained(error)); }
  /// A store's answer about the session's queue, or about that one; exit 1 with its mend where it has none.
  template <typename T>
  OrExit<T> checked(Result<T> answer) const {
    return checked(std::move(answer), queue());
  }
  template <typename T>
  OrExit<T> checked(Result<T> answer, const std::string& about) const {
    return answer ? OrExit<T>(std::move(*answer)) : OrExit<T>(Exit::failure(place().explained(answer.error(), about)));
  }

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
  template <typename T>
  OrExit<T> opened(Result<T> role) const {
    return role ? OrExit<T>(std::move(*role)) : OrExit<T>(not_opened(role.error()));
  }
  Exit not_opened(const Error& error) const;

  std::unique_ptr<Parts> parts_;
  std::unique_ptr<operate::AuditedOperator> operator_;
};

}  // namespace sluice::cli
