#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/queues.hpp"
#include "host/queue/wake/ringer.hpp"
#include "host/stores/table/record_layout.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::table {

/// How the tables of one layout tell whom to ring. Called from any thread.
struct Bells {
  /// What hosts announce in that table.
  Result<std::vector<wake::Announcement>> (*read)(const StoreParts& parts, const QueueTable& place, Deadline deadline);
  /// How hosts and producers name that half of the queue to each other.
  std::string (*bell)(const QueueTable& place, Half half);
};

class TableQueues;

/// With what queues in tables of any layout are opened.
struct TableOptions {
  std::string host{};    ///< this host's name; part of what tells its writes from others'
  std::string region{};  ///< for messages only
  /// Told, from any thread, in one line, what people should mend although it goes on; may be empty.
  std::function<void(const std::string&)> warn{};
  /// What is put into these queues is rung for at hosts that announce themselves, with this secret (empty: unsigned);
  /// nothing: nobody is rung.
  std::optional<std::string> ring{};
  /// Whose a queue is that lies in no table of this layout, as handlers may send to it, too; null: it does. Called from
  /// any thread; may be empty.
  std::function<TableQueues*(const std::string& queue)> others{};
};

/// Queues in tables of one layout, as far as layouts do not differ.
///
/// The references must outlive them. `client.stop()` ends what is under way. Two of them on one table should differ in
/// host name or seed, because both go into the nonce by which one recognises its own writes. What is sent or changed
/// through them wakes the sources that were opened from them, and with `ring` other hosts, too; their destruction then
/// waits for what is being rung.
class TableQueues : public Queues {
 public:
  Result<std::unique_ptr<NoticeBoard>> open_board(const std::string& queue) override;
  Result<std::unique_ptr<IdempotencyKeys>> open_keys(const std::string& queue) override;
  Result<std::unique_ptr<wake::WakePlace>> open_wake_place(const std::string& queue) override;

 protected:
  struct Settings {
    TableOptions options;
    std::function<QueueTable(const std::string& queue)> locate;
    const LayoutNames& names;
    Bells bells;
  };
  TableQueues(Settings settings, dynamo::Client& client, const Clock& clock, Random& random);

  virtual std::unique_ptr<RecordLayout> own_layout(const std::string& queue) = 0;
  /// Puts an announcement into the table in the place of what that host said before. The write units that it took.
  virtual Result<double> announce(const QueueTable& place, const wake::Announcement& announcement,
                                  Deadline deadline) = 0;
  virtual Result<void> withdraw(const QueueTable& place, const std::string& host, Deadline deadline) = 0;
  /// Never rings this process for what it puts into the table.
  void leave_out(const QueueTable& place, const std::string& host);

  // Fixed after construction.
  const Settings settings_;
  Random& random_;
  NonceSource nonces_;
  TableClock clock_;
  StatementRunner runner_;
  const RecordLayouts layouts_;
  const StoreParts parts_;

 private:
  class WakePlace;

  /// Itself, or the others whose queue that is: handlers send to any of them.
  TableQueues& owner_of(const std::string& queue);
  void ring_beyond(const QueueAddress& address);
  /// Who rings for a table; null where nobody does.
  wake::Ringer* ringer_of(const QueueTable& place);

  Mutex ringers_mutex_;
  std::map<std::string, std::unique_ptr<wake::Ringer>> ringers_ SLUICE_GUARDED_BY(ringers_mutex_);  ///< by table

 protected:
  Doorbell doorbell_;
};

}  // namespace sluice::queue::table
