#include "host/stores/table/table_queues.hpp"

#include <utility>

#include "host/stores/table/table_board.hpp"
#include "host/stores/table/table_keys.hpp"

namespace sluice::queue::table {

/// Where the hosts of one table announce how they are woken.
class TableQueues::WakePlace final : public wake::WakePlace {
 public:
  WakePlace(TableQueues& queues, QueueTable place)
      : queues_(queues),
        place_(std::move(place)),
        name_("table '" + place_.table + "'" + (place_.region.empty() ? "" : " in " + place_.region)) {}

  const std::string& name() const override { return name_; }
  std::string bell(Half half) const override { return queues_.settings_.bells.bell(place_, half); }
  WallTime now() const override { return queues_.clock_.wall_now(); }
  Result<double> announce(const wake::Announcement& announcement, Deadline deadline) override {
    return queues_.announce(place_, announcement, deadline);
  }
  Result<void> withdraw(const std::string& host, Deadline deadline) override {
    return queues_.withdraw(place_, host, deadline);
  }
  Result<std::vector<wake::Announcement>> read(Deadline deadline) override {
    return queues_.settings_.bells.read(queues_.parts_, place_, deadline);
  }
  void ring_here(Half half) override { queues_.doorbell_.ring_here({place_.queue, half}); }

 private:
  TableQueues& queues_;
  const QueueTable place_;
  const std::string name_;
};

TableQueues::TableQueues(Settings settings, dynamo::Client& client, const Clock& clock, Random& random)
    : settings_(std::move(settings)),
      random_(random),
      nonces_(settings_.host, random),
      clock_(client, clock, settings_.warn),
      runner_(client, clock, random, settings_.warn),
      layouts_([this](const std::string& queue) { return layout_of(queue); }),
      parts_{client, clock_, runner_, nonces_, settings_.locate, layouts_},
      doorbell_([this](const QueueAddress& address) {
        // A handler here may have sent to a queue of another layout.
        if (settings_.ring_elsewhere && settings_.ring_elsewhere(address)) {
          return;
        }
        const QueueTable place = settings_.locate(address.queue);
        if (wake::Ringer* const ringer = ringer_of(place)) {
          ringer->rang(settings_.bells.bell(place, address.half));
        }
      }) {}

wake::Ringer* TableQueues::ringer_of(const QueueTable& place) {
  if (!settings_.ring) {
    return nullptr;
  }
  const MutexLock lock(ringers_mutex_);
  auto& ringer = ringers_[place.table];
  if (!ringer) {
    ringer = std::make_unique<wake::Ringer>(
        [this, place](Deadline deadline) { return settings_.bells.read(parts_, place, deadline); }, *settings_.ring,
        clock_, random_);
  }
  return ringer.get();
}

void TableQueues::leave_out(const QueueTable& place, const std::string& host) {
  if (wake::Ringer* const ringer = ringer_of(place)) {
    ringer->leave_out(host);
  }
}

std::unique_ptr<RecordLayout> TableQueues::layout_of(const std::string& queue) {
  auto other = settings_.other_layouts ? settings_.other_layouts(queue) : nullptr;
  return other ? std::move(other) : own_layout(queue);
}

Result<std::unique_ptr<NoticeBoard>> TableQueues::open_board(const std::string& queue) {
  return std::unique_ptr<NoticeBoard>(std::make_unique<TableBoard>(parts_, settings_.locate(queue), settings_.names));
}

// Where a table has several queues, their keys are told apart by the queue's name.
Result<std::unique_ptr<IdempotencyKeys>> TableQueues::open_keys(const std::string& queue) {
  const std::string scope = settings_.names.range.empty() ? std::string() : queue;
  return std::unique_ptr<IdempotencyKeys>(
      std::make_unique<TableKeys>(parts_, settings_.locate(queue), ItemScope{settings_.names, scope}));
}

Result<std::unique_ptr<wake::WakePlace>> TableQueues::open_wake_place(const std::string& queue) {
  return std::unique_ptr<wake::WakePlace>(std::make_unique<WakePlace>(*this, settings_.locate(queue)));
}

}  // namespace sluice::queue::table
