#pragma once

#include <boost/core/noncopyable.hpp>
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
#include "host/stores/table/table_keys.hpp"

namespace sluice::queue::table {

/// With what queues in tables of any layout are opened.
struct TableOptions {
  std::string host{};    ///< this host's name; part of what tells its writes from others'
  std::string region{};  ///< for messages only
  /// Told, from any thread, in one line, what people should mend although it goes on; may be empty.
  std::function<void(const std::string&)> warn{};
  /// What is put into these queues is rung for at hosts that announce themselves, with this secret (empty: unsigned);
  /// nothing: nobody is rung.
  std::optional<std::string> ring{};
};

/// One queue in a table: how its table holds it, its sides, and how its hosts are woken. Thread-safe.
class TableQueue : boost::noncopyable {
 public:
  virtual ~TableQueue() = default;

  virtual const RecordLayout& layout() const = 0;
  virtual std::unique_ptr<Source> source(Half half) = 0;
  virtual std::unique_ptr<Sender> sender() = 0;
  virtual std::unique_ptr<Operator> oper() = 0;

  /// How hosts and producers name that half to each other.
  virtual std::string bell(Half half) const = 0;
  /// What hosts announce in its table.
  virtual Result<std::vector<wake::Announcement>> bells(Deadline deadline) const = 0;
  /// By what name this process is among them, which is that host.
  virtual std::string announced_as(const std::string& host) { return host; }
  /// Puts an announcement into the table in the place of what that host said before. The write units that it took.
  virtual Result<double> announce(const wake::Announcement& announcement, Deadline deadline) = 0;
  virtual Result<void> withdraw(const std::string& host, Deadline deadline) = 0;

  // Of a layout in which hosts own parts of a queue.

  /// The owner of that incarnation has ended, as is known for certain: says so in the table. Without a heartbeat there,
  /// nothing is to be said.
  virtual Result<void> owner_ended(const std::string& /*incarnation*/, bool /*settled*/, Deadline /*deadline*/) {
    return {};
  }
  /// Asks the hosts for all of these halves, to carry their messages elsewhere. The queue outlives it. Null: nobody
  /// owns anything of it.
  virtual std::unique_ptr<MoveOwnership> take_ownership(const std::vector<Half>& /*halves*/) { return nullptr; }
  /// The queues that messages have made in its table. Asked of the queue without a name, which lies where those do of
  /// which nobody says where they lie.
  virtual Result<std::vector<std::string>> made_by_messages(Deadline /*deadline*/) const {
    return std::vector<std::string>();
  }
};

/// The queues in all tables of one client, whatever their layouts.
///
/// The references must outlive them. `client.stop()` ends what is under way. Two of them on one table should differ in
/// host name or seed, because both go into the nonce by which one recognises its own writes. What is sent or changed
/// through them wakes the sources that were opened from them, and with `ring` other hosts, too; their destruction then
/// waits for what is being rung.
class TableQueues final : public Queues {
 public:
  /// Makes the queue of that name, in its layout. One serves these queues alone: what it holds ends before any of
  /// them does.
  using Make = std::function<std::unique_ptr<TableQueue>(const StoreParts& parts, const std::string& queue)>;

  TableQueues(const TableOptions& options, dynamo::Client& client, const Clock& clock, Random& random, Make make);

  /// Made when it is first asked for; it lives as long as these.
  TableQueue& queue(const std::string& name);

  Result<std::unique_ptr<Source>> open_source(const QueueAddress& address) override {
    return queue(address.queue).source(address.half);
  }
  Result<std::unique_ptr<Sender>> open_sender(const std::string& name) override { return queue(name).sender(); }
  Result<std::unique_ptr<Operator>> open_operator(const std::string& name) override { return queue(name).oper(); }
  Result<std::unique_ptr<NoticeBoard>> open_board(const std::string& name) override;
  Result<std::unique_ptr<IdempotencyKeys>> open_keys(const std::string& name) override {
    return make_table_keys(queue(name).layout());
  }
  Result<std::unique_ptr<wake::WakePlace>> open_wake_place(const std::string& name) override;
  Result<std::vector<std::string>> made_by_messages(Deadline deadline) override {
    return queue({}).made_by_messages(deadline);
  }

 private:
  class WakePlace;

  /// Who rings for the table of a queue; null where nobody does.
  wake::Ringer* ringer_of(TableQueue& queue);

  // Fixed after construction.
  const std::optional<std::string> ring_;
  NonceSource nonces_;
  TableClock clock_;
  StatementRunner runner_;
  Doorbell doorbell_;
  const RecordLayouts layouts_;
  const StoreParts parts_;

  Mutex mutex_;
  std::map<std::string, std::unique_ptr<TableQueue>> queues_ SLUICE_GUARDED_BY(mutex_);
  // After the queues, which the threads of both use: those end first.
  const Make make_;
  std::map<std::string, std::unique_ptr<wake::Ringer>> ringers_ SLUICE_GUARDED_BY(mutex_);  ///< by table
};

}  // namespace sluice::queue::table
