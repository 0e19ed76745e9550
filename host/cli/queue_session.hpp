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
#include "host/operate/top_model.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/host_queues.hpp"

namespace sluice::cli {

/// How long a command waits for a store that does not answer, before it goes on without what that knows.
inline constexpr Duration kStorePatience = std::chrono::seconds(8);

/// The host file's path: --config, else SLUICE_CONFIG, else ./host.toml, else /etc/sluice/host.toml. Exit 78 with what
/// was looked for when there is none.
OrExit<std::string> find_host_file(const Arguments& arguments);
/// Finds and reads it. Exit 78 with every error, one a line.
OrExit<config::HostConfig> load_host_file(const Arguments& arguments);
/// Whether the command's options or the environment lead to a host file, and not to a table.
bool works_by_host_file(const Arguments& arguments);
/// The jobs by whose lists an outbox's rows count: all of the host's, or none where a file of theirs cannot be read.
std::vector<config::JobConfig> counting_jobs(const config::HostConfig& host);
/// Exit 78 with every error of the host's job files, one a line.
OrExit<void> check_job_files(const config::HostConfig& host);
/// The queues that a host file and its jobs name, in order; where it has a job of this name, that job's alone. Job
/// files that cannot be read are passed over.
std::vector<std::string> known_queues(const config::HostConfig& host, const std::string& job = {});
/// Whether the first plain word of `line`, a command that takes ids or a key after it, is the name of a queue that
/// somebody knows. Exit 64 where nobody does and no queue goes without saying, unless it `may_be_own`, an id or a key;
/// where one does, QueueSession::open sees to it that a word which is no queue is at least a message of that one.
OrExit<bool> names_queue(const Arguments& line, bool may_be_own);
/// Whether somebody knows the queue, as HostQueues::check_known. Exit 64 where nobody does, exit 1 where it cannot be
/// told.
OrExit<void> check_known(
    runtime::HostQueues& queues, const std::string& queue, Deadline deadline,
    const std::string& mend = "`sluice queues` lists them, and send, import and enqueue-test make one with --create");

/// What a person types to mend a failure of a store, to follow its message: "; make it with: sluice table create ...".
/// Empty where no command mends it, as of an outbox. `options` are those with which a command finds the queue.
std::string mend_of(const Error& error, const std::string& queue, const std::string& options);
/// The options with which a command finds a queue of the host file that `arguments` name, as they are typed.
std::string options_of_host_file(const Arguments& arguments, const std::string& queue);
/// How a command ends whose store cannot be opened: no region, a path that is a folder and the like are configuration.
Exit unopened(const Error& error);
/// Whether each look at that queue costs reads: it lies in DynamoDB, as a table or as an outbox.
bool looks_are_billed(const config::HostConfig& host, const std::string& queue);
/// By what writes to that queue are paid.
operate::TableTariff tariff_of(const config::HostConfig& host, const std::string& queue);

/// "ops-1"; "?" for a machine without a name.
std::string this_machine();
/// Who gives commands here: "ann@ops-1", or, through sudo, "ann as sluice@ops-1".
std::string this_operator();

/// Where the queue of a command lies, as its options, the environment and the host file say. A value.
///
/// With --table it is a table, and AWS's usual environment says the rest; so it is where there is no host file and
/// --endpoint, --index or --region say that one is meant: then the queue's name is the table's. Otherwise it is what
/// the host file says, over which --index, --endpoint and --region win; then --queue names the queue, and may be left
/// out when the file and its jobs name just one. Who has neither means nothing: no table is anybody's by default,
/// except that of DynamoMQ's own tool, whose place is `dynamomq`.
class QueuePlace {
 public:
  enum class HostFiles {
    anywhere,    ///< --config, SLUICE_CONFIG or the default places
    named_only,  ///< as for DynamoMQ's tool: the default places are not looked at, and the table may be its own
  };
  enum class Queue {
    needed,
    optional,
    unchecked,  ///< optional, and hosts may know one that nobody here does
    table,      ///< needed; without a host file it is a table's name
    apart,      ///< of a command about two, --from and --to: the first of them
  };

  /// Exit 78 for the host file and where there is none, 64 for options that contradict each other or name no possible
  /// table, and when no queue is named though one is needed.
  static OrExit<QueuePlace> find(const Arguments& arguments, Queue queue = Queue::needed,
                                 HostFiles files = HostFiles::anywhere);

  /// The host file's content, or what stands for it without one.
  const config::HostConfig& host() const { return host_; }
  /// The queue's name; empty when it was optional and is not named.
  const std::string& queue() const { return queue_; }
  /// The store that it lies in; the default one when no queue is named.
  const config::StoreConfig& store() const { return host_.store_of(queue_); }
  bool in_sqlite() const { return store().kind == config::StoreKind::sqlite; }
  /// As `looks_are_billed` of that queue.
  bool looks_are_billed() const { return cli::looks_are_billed(host_, queue_); }
  /// What is wrong with that queue, and the command that mends it where there is one, typed as it stands where this one
  /// was.
  std::string explained(const Error& error, const std::string& queue) const {
    return error.message() + mend(error, queue);
  }
  /// That command alone, as "; make it with: ..."; empty where there is none.
  std::string mend(const Error& error, const std::string& queue) const;

 private:
  static OrExit<QueuePlace> of_table(const Arguments& arguments, Queue queue, std::string_view default_table);
  static OrExit<QueuePlace> of_host_file(const Arguments& arguments, Queue queue);

  config::HostConfig host_;
  std::string queue_;
  /// The options that name the place, but for the queue of a host file.
  std::string naming_;
  bool names_table_ = false;
};

/// The queues of a host file, which outlives it, with what they stand on. It does not move.
struct OpenQueues {
  explicit OpenQueues(const config::HostConfig& host, runtime::HostQueues::Report report = {})
      : queues(host, clock, random, nullptr, std::move(report)) {}
  /// For one request of a command: half a minute from now.
  Deadline deadline() const { return Deadline::after(clock, std::chrono::seconds(30)); }

  SystemClock clock;
  SeededRandom random;
  runtime::HostQueues queues;
};

/// What tells the store, or outbox, that a queue lies in from all others of its host file.
const void* store_identity(const config::HostConfig& host, const std::string& queue);
/// A warning where a deed could not be finished in the audit.
inline std::string open_deed(const std::string& why) { return "`sluice audit` will show this as begun: " + why; }

/// A queue opened for one command. A resource that can be moved.
class QueueSession {
 public:
  using HostFiles = QueuePlace::HostFiles;
  using Queue = QueuePlace::Queue;

  /// As QueuePlace::find; exit 1 or 78 for the store; exit 64 for a queue that nobody knows, unless the command's
  /// --create makes it; and where the queue goes without saying, exit 64 if the first of several ids is no message
  /// there, as it may have been meant for a queue, and exit 1 if it stands alone.
  static OrExit<QueueSession> open(const Arguments& arguments, Queue queue = Queue::needed,
                                   HostFiles files = HostFiles::anywhere);

  /// Every queue of the host file.
  runtime::HostQueues& queues() { return parts_->open.queues; }
  /// The names of all queues: those that files name, and those that messages have made in the stores. Why a store
  /// cannot be asked goes to `failures`.
  std::vector<std::string> all_queues(std::vector<std::string>& failures);
  /// Looks at the session's queue and changes it. Not to be asked where no queue is named.
  operate::AuditedOperator& oper() { return *operator_; }
  /// Counts a queue again and again as cheaply as its store allows.
  Result<operate::QueueCounter> open_counter(const std::string& queue);
  /// Says in the audit what came of the deed that `oper` was told of, and to the user where that cannot be done.
  void finish_deed(const operate::DeedCount& count, const std::string& stopped_by = {});
  /// Tells people what a store has to say while a command uses it.
  static void warn(const std::string& line);
  OrExit<std::unique_ptr<queue::Sender>> open_sender() { return or_end(queues().open_sender(queue()), unopened); }
  OrExit<std::unique_ptr<queue::Source>> open_source(queue::Half half) {
    return or_end(queues().open_source({queue(), half}), unopened);
  }

  /// What the command has spent at DynamoDB; nothing elsewhere.
  std::optional<cost::Spent> cost() const { return parts_->open.queues.cost(); }
  const QueuePlace& place() const { return parts_->place; }
  /// The host file's content, or what stands for it without one.
  const config::HostConfig& host() const { return place().host(); }
  /// The queue's name; empty when it was optional and is not named.
  const std::string& queue() const { return place().queue(); }
  const Clock& clock() const { return parts_->open.clock; }
  Random& random() { return parts_->open.random; }
  Deadline deadline() const { return parts_->open.deadline(); }

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
    return or_end(std::move(answer),
                  [&](const Error& error) { return Exit::failure(place().explained(error, about)); });
  }

 private:
  struct Parts {
    explicit Parts(QueuePlace where) : place(std::move(where)), open(place.host(), warn) {}

    const QueuePlace place;
    OpenQueues open;
  };

  explicit QueueSession(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
  OrExit<void> check_plain_id(const Arguments& arguments);

  std::unique_ptr<Parts> parts_;
  std::unique_ptr<operate::AuditedOperator> operator_;
};

}  // namespace sluice::cli
