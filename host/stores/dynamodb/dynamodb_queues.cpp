#include "host/stores/dynamodb/dynamodb_queues.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace sluice::queue {
namespace {

class BothLayouts final : public DynamoDbQueues {
 public:
  BothLayouts(dynamomq::DynamoMqOptions dynamomq, leased::LeasedOptions leased, dynamo::Client& client,
              const Clock& clock, Random& random) {
    for (const auto& [queue, location] : dynamomq.queues) {
      plain_.insert(queue);
    }
    for (const auto& [queue, location] : leased.queues) {
      leased_tables_.emplace(queue, location.table);
    }
    leased.others = [this](const std::string& queue) { return plain_.contains(queue) ? dynamomq_.get() : nullptr; };
    leased_ = leased::make_leased_queues(leased, client, clock, random);
    dynamomq.others = [this](const std::string& queue) { return plain_.contains(queue) ? nullptr : leased_.get(); };
    dynamomq_ = dynamomq::make_dynamomq_queues(dynamomq, client, clock, random);
  }

  Result<std::unique_ptr<Source>> open_source(const QueueAddress& address) override {
    return of(address.queue).open_source(address);
  }
  Result<std::unique_ptr<Sender>> open_sender(const std::string& queue) override {
    return of(queue).open_sender(queue);
  }
  Result<std::unique_ptr<Operator>> open_operator(const std::string& queue) override {
    return of(queue).open_operator(queue);
  }
  Result<std::unique_ptr<NoticeBoard>> open_board(const std::string& queue) override {
    return of(queue).open_board(queue);
  }
  Result<std::unique_ptr<IdempotencyKeys>> open_keys(const std::string& queue) override {
    return of(queue).open_keys(queue);
  }
  Result<std::unique_ptr<wake::WakePlace>> open_wake_place(const std::string& queue) override {
    return of(queue).open_wake_place(queue);
  }
  Result<std::vector<std::string>> made_by_messages(Deadline deadline) override {
    auto made = leased_->made_by_messages(deadline);
    if (made) {
      std::erase_if(*made, [this](const std::string& queue) { return plain_.contains(queue); });
    }
    return made;
  }
  Result<void> owner_ended(const std::set<std::string>& queues, const std::string& incarnation, bool settled,
                           Deadline deadline) override {
    std::set<std::string> tables;
    std::optional<Error> failure;
    for (const std::string& queue : queues) {
      const auto found = leased_tables_.find(queue);
      const std::string table = found == leased_tables_.end() ? leased::LeasedLocation().table : found->second;
      if (plain_.contains(queue) || !tables.insert(table).second) {
        continue;
      }
      if (auto told = leased_->owner_ended(queue, incarnation, settled, deadline); !told && !failure) {
        failure = std::move(told).error();
      }
    }
    return failure ? Result<void>(*std::move(failure)) : Result<void>();
  }

  std::unique_ptr<MoveOwnership> take_ownership(const std::string& queue, const std::vector<Half>& halves) override {
    return plain_.contains(queue) ? nullptr : leased_->take_ownership(queue, halves);
  }

 private:
  Queues& of(const std::string& queue) { return plain_.contains(queue) ? static_cast<Queues&>(*dynamomq_) : *leased_; }

  // Fixed after construction.
  std::set<std::string> plain_;                       ///< of DynamoMQ's layout
  std::map<std::string, std::string> leased_tables_;  ///< by queue, of those that were named
  std::unique_ptr<leased::LeasedQueues> leased_;
  std::unique_ptr<table::TableQueues> dynamomq_;
};

}  // namespace

std::unique_ptr<DynamoDbQueues> make_dynamodb_queues(dynamomq::DynamoMqOptions dynamomq, leased::LeasedOptions leased,
                                                     dynamo::Client& client, const Clock& clock, Random& random) {
  return std::make_unique<BothLayouts>(std::move(dynamomq), std::move(leased), client, clock, random);
}

}  // namespace sluice::queue
