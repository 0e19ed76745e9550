#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/dynamomq/dynamomq_roles.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/leased_source.hpp"
#include "host/stores/table/record_layout.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/model.hpp"
#include "tests/support/dynamodb_model/transport.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::queue::leased {

/// Lets somebody else act just before a request goes off.
class HookedTransport final : public dynamo::HttpTransport {
 public:
  explicit HookedTransport(dynamo::HttpTransport& next) : next_(next) {}

  void before(std::function<void(const dynamo::HttpRequest&)> hook) { hook_ = std::move(hook); }
  /// The next so many requests of an operation get no answer, and are under way until `let_go`.
  void hold(std::string operation, int count) {
    operation_ = std::move(operation);
    to_hold_ = count;
  }
  void let_go(Deadline deadline) {
    for (dynamo::HttpRequest& request : std::exchange(held_, {})) {
      next_.send(std::move(request), deadline, [](const dynamo::HttpResult&) {});
    }
  }
  void send(dynamo::HttpRequest request, Deadline deadline, Callback done) override {
    if (hook_) {
      hook_(request);
    }
    const bool holds =
        to_hold_ > 0 && std::any_of(request.headers.begin(), request.headers.end(),
                                    [&](const auto& one) { return one.second.ends_with("." + operation_); });
    if (holds) {
      --to_hold_;
      held_.push_back(std::move(request));
      dynamo::Error lost(dynamo::ErrorKind::transport, "held up");
      lost.outcome_unknown = true;
      done(std::move(lost));
      return;
    }
    next_.send(std::move(request), deadline, std::move(done));
  }

 private:
  dynamo::HttpTransport& next_;
  std::function<void(const dynamo::HttpRequest&)> hook_;
  std::string operation_;
  int to_hold_ = 0;
  std::vector<dynamo::HttpRequest> held_;
};

/// One leased queue on the model of DynamoDB, with whoever sends to it and borrows from it.
class LeasedRig : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kShards = 4;
  static constexpr const char* kTable = "queues";

  void SetUp() override {
    dynamo::CreateTableRequest request;
    request.name = kTable;
    request.attribute_types = {{"p", "S"}, {"s", "S"}};
    request.hash_key = "p";
    request.range_key = "s";
    ASSERT_TRUE(client_.create_table(request, soon()));
  }

  Deadline soon() { return Deadline::after(clock_, std::chrono::seconds(60)); }

  std::string send(NewMessage message) {
    const auto sent = sender_->send(std::span(&message, 1), soon()).front();
    EXPECT_EQ(sent.status, SendStatus::sent) << sent.error.message();
    clock_.advance(std::chrono::milliseconds(1));
    return sent.id;
  }
  std::vector<Delivery> take(const ClaimRequest& request) {
    auto claimed = borrower_.claim(request, soon());
    EXPECT_TRUE(claimed) << claimed.error().message();
    return claimed ? std::move(claimed->deliveries) : std::vector<Delivery>();
  }
  std::vector<Delivery> take(std::size_t max = 10) {
    return take({.max = max, .visibility = std::chrono::seconds(30)});
  }
  SettleResult end(Source& source, const Completion& completion) {
    return source.settle(std::span(&completion, 1), soon()).front();
  }
  SettleResult end(const Receipt& receipt, CompletionAction action, Failure failure = {}) {
    return end(borrower_, {.receipt = receipt, .action = action, .failure = std::move(failure)});
  }
  /// What lies in partitions that begin so.
  std::vector<dynamo::Item> items(const std::string& prefix) {
    std::vector<dynamo::Item> found;
    for (const auto& item : model_.items(kTable)) {
      if (Place::of(item).partition.starts_with(prefix)) {
        found.push_back(item);
      }
    }
    return found;
  }
  void own(std::uint32_t shard, const std::string& owner, std::int64_t epoch, Half half = Half::standard) {
    dynamo::Item item = Place{ownership_partition("orders", half), ownership_sort(shard)}.key();
    item.emplace(attribute::kOwner, owner);
    item.emplace(attribute::kEpoch, dynamo::AttributeValue::number(epoch));
    ASSERT_TRUE(client_.write({.table = kTable, .item = item}, soon()));
  }
  void own_all(const std::string& owner, std::int64_t epoch = 1) {
    for (std::uint32_t shard = 0; shard < kShards; ++shard) {
      own(shard, owner, epoch);
    }
  }

  test::FakeClock clock_;
  test::model::Model model_{clock_, 1};
  test::model::ModelTransport wire_{model_, clock_};
  HookedTransport transport_{wire_};
  test::model::FixedCredentials credentials_;
  SeededRandom random_{7};
  dynamo::Client client_{{{.region = "eu-west-1"}}, transport_, credentials_, clock_, random_};
  table::NonceSource nonces_{"host-a", random_};
  table::TableClock table_clock_{client_, clock_, {}};
  table::StatementRunner runner_{client_, clock_, random_, {}};
  std::function<table::QueueTable(const std::string&)> locate_{[](const std::string& queue) {
    return table::QueueTable{queue, queue == "plain" ? "plain" : kTable, "", ""};
  }};
  table::RecordLayouts layouts_{[this](const std::string& queue) -> const table::RecordLayout& {
    return queue == "plain" ? *plain_ : *queue_.layout;
  }};
  Doorbell doorbell_;
  table::StoreParts parts_{client_, table_clock_, runner_, nonces_, random_, doorbell_, layouts_};
  const std::unique_ptr<table::RecordLayout> plain_ = dynamomq::make_dynamomq_layout(parts_, locate_("plain"));
  LeasedQueue queue_{locate_("orders"), kShards, parts_};
  std::unique_ptr<Sender> sender_ = make_leased_sender(queue_);
  owned::Remarks remarks_{{}, clock_};
  OwnedTable table_{{.table = kTable, .host = "borrower", .own_thread = false},
                    parts_,
                    remarks_,
                    clock_,
                    [this](const std::string&) -> LeasedQueue& { return queue_; }};
  std::vector<std::unique_ptr<LeasedHalf>> halves_;
  /// Not started, so that it borrows.
  std::unique_ptr<Source> borrowing(LeasedQueue& queue, Half half) {
    halves_.push_back(std::make_unique<LeasedHalf>(table_, queue, half));
    return make_leased_source(*halves_.back());
  }
  const std::unique_ptr<Source> of_messages_ = borrowing(queue_, Half::standard);
  const std::unique_ptr<Source> of_dead_letters_ = borrowing(queue_, Half::dlq);
  Source& borrower_ = *of_messages_;
  Source& dead_ = *of_dead_letters_;
};

}  // namespace sluice::queue::leased
