#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/config.hpp"
#include "host/cli/arguments.hpp"
#include "host/cli/command.hpp"
#include "host/cli/exit.hpp"

namespace sluice::cli {

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
  std::string explained(const Error& error, const std::string& queue) const;
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

/// Whether a command takes the rows of an outbox for a queue's messages, by --outbox.
enum class Outboxes { taken, not_taken };
/// A command's own flags, and after them those that say where its queue is: --queue, --outbox, --config, --table,
/// --index, --endpoint, --region.
std::vector<Flag> with_place_flags(std::vector<Flag> own, Outboxes outboxes);

/// The options with which a command finds a queue of the host file that `arguments` name, as they are typed.
std::string options_of_host_file(const Arguments& arguments, const std::string& queue);

/// Whether the command works on a table, whatever a host file says.
bool names_table(const Arguments& arguments);

/// The queues that a host file and its jobs name, in order. Job files that cannot be read are passed over.
std::vector<std::string> known_queues(const config::HostConfig& host);

}  // namespace sluice::cli
