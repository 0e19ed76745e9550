#include "tests/simulation/table_backend.hpp"

#include <charconv>
#include <stdexcept>
#include <utility>

#include "base/timestamp.hpp"
#include "dynamo/client.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "tests/simulation/sim_port.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"

namespace sluice::simulation {
namespace {

namespace attribute = queue::dynamomq::attribute;
using dynamo::Item;
using queue::CompletionAction;
using test::model::ModelSettings;

constexpr const char* kOutside = "OUTSIDE";
constexpr const char* kStranger = "STRANGER";
constexpr const char* kAccounts = "accounts";

// A machine's clock, wrong by a constant.
class SkewedClock final : public Clock {
 public:
  SkewedClock(const Clock& clock, Duration skew) : clock_(clock), skew_(skew) {}
  WallTime wall_now() const override { return clock_.wall_now() + skew_; }
  SteadyTime steady_now() const override { return clock_.steady_now(); }
  SteadyTime machine_time(SteadyTime time) const override { return clock_.machine_time(time); }

 private:
  const Clock& clock_;
  const Duration skew_;
};

std::int64_t number_of(const Item& item, std::string_view name) {
  const auto* number = dynamo::find<dynamo::Number>(item, name);
  std::int64_t value = 0;
  if (number != nullptr) {
    std::from_chars(number->text.data(), number->text.data() + number->text.size(), value);
  }
  return value;
}

bool is_held(const Item& item) { return !text_of(item, attribute::kReceivedAt).empty(); }

queue::Receipt receipt_of(const Item& item) {
  queue::Receipt receipt;
  receipt.id = text_of(item, attribute::kId);
  receipt.version = number_of(item, attribute::kVersion);
  return receipt;
}

}  // namespace

// DynamoDB's own clock, which neither jumps nor is wrong.
class TableBackend::TrueClock final : public Clock {
 public:
  explicit TrueClock(const Clock& clock) : clock_(clock), start_(clock.wall_now()), began_(clock.steady_now()) {}
  WallTime wall_now() const override { return start_ + (clock_.steady_now() - began_); }
  SteadyTime steady_now() const override { return clock_.steady_now(); }

 private:
  const Clock& clock_;
  const WallTime start_;
  const SteadyTime began_;
};

/// One process, as far as its store goes.
struct TableBackend::Party {
  Party(TableBackend& backend, const std::string& access_key, Duration skew)
      : clock(backend.clock_, skew),
        random(backend.random_.next()),
        transport(backend.model_, clock, backend.tampering_),
        credentials(access_key),
        client(options(), transport, credentials, clock, random),
        queues(queue::dynamomq::make_dynamomq_queues({{.host = access_key, .region = "us-east-1"}}, client, clock,
                                                     random)) {}

  static dynamo::ClientOptions options() {
    dynamo::ClientOptions options;
    options.region = "us-east-1";
    return options;
  }

  SkewedClock clock;
  SeededRandom random;
  PartyTransport transport;
  test::model::FixedCredentials credentials;
  dynamo::Client client;
  std::unique_ptr<queue::Queues> queues;
};

TableBackend::TableBackend(const Clock& clock, Random& random, const TablePlan& plan, Truth& truth)
    : clock_(clock),
      random_(random),
      plan_(plan),
      truth_(truth),
      true_clock_(std::make_unique<TrueClock>(clock)),
      model_(*true_clock_, random.next()) {
  model_.spare(kOutside);
  model_.spare(kStranger);
  join(kOutside, Duration::zero());
  make_queue(SimPort::address().queue);
  model_.observe([this](const std::string& access_key, const std::string& table, const Item* before,
                        const Item* after) {
    // Keys and marks lie among the messages, and are of no half.
    const Item* const either = before != nullptr ? before : after;
    if (either != nullptr && table == SimPort::address().queue && !text_of(*either, attribute::kQueueType).empty()) {
      changed(access_key, before, after);
    }
  });
}

void TableBackend::make_queue(const std::string& table) {
  Party& maker = *parties_.at(kOutside);
  queue::dynamodb::TableSpec spec;
  spec.table = table;
  const auto made = queue::dynamodb::create_queue_table(maker.client, spec, maker.clock, Deadline::never());
  if (!made) {
    throw std::runtime_error("the model makes no table: " + made.error().message());
  }
}

void TableBackend::begin_trade(Stored stored) {
  stored_ = std::move(stored);
  make_queue(kReceipts);
  dynamo::CreateTableRequest request;
  request.name = kAccounts;
  request.attribute_types = {{"id", "S"}};
  request.hash_key = "id";
  if (const auto made = parties_.at(kOutside)->client.create_table(request, Deadline::never()); !made) {
    throw std::runtime_error("the model makes no table: " + made.error().message);
  }
}

queue::EffectWrite TableBackend::add_one(const std::string& account) {
  return {queue::ItemWrite{.action = queue::ItemAction::update,
                           .table = kAccounts,
                           .item = R"({"id":{"S":")" + account + R"("}})",
                           .update = "ADD times :one",
                           .values = R"({":one":{"N":"1"}})"}};
}

queue::EffectWrite TableBackend::never() {
  return {queue::ItemWrite{.action = queue::ItemAction::check,
                           .table = kAccounts,
                           .item = R"({"id":{"S":"nobody"}})",
                           .condition = "attribute_exists(id)"}};
}

std::map<std::string, std::int64_t> TableBackend::accounts() {
  std::map<std::string, std::int64_t> all;
  for (const Item& item : model_.items(kAccounts)) {
    all.emplace(text_of(item, attribute::kId), number_of(item, "times"));
  }
  return all;
}

TableBackend::~TableBackend() = default;

void TableBackend::plant(Mutation mutation) {
  tampering_.no_time = mutation == Mutation::tells_no_time;
  tampering_.other_tokens = mutation == Mutation::token_dropped;
  tampering_.keys_apart = mutation == Mutation::record_apart;
}

TableBackend::Party& TableBackend::join(const std::string& access_key, Duration skew) {
  return *parties_.emplace(access_key, std::make_unique<Party>(*this, access_key, skew)).first->second;
}

queue::Queues& TableBackend::queues_of(Truth::Host host) {
  const std::string access_key = std::to_string(host);
  const auto found = parties_.find(access_key);
  if (found != parties_.end()) {
    return *found->second->queues;
  }
  const auto skew =
      Duration(static_cast<Duration::rep>((random_.unit() * 2 - 1) * static_cast<double>(plan_.skew.count())));
  return *join(access_key, skew).queues;
}

queue::Queues& TableBackend::outside() { return *parties_.at(kOutside)->queues; }

// As a program of DynamoMQ would, whose clock is right: a new version, hidden for two seconds.
void TableBackend::take_away(const queue::QueueAddress& address) {
  const auto stranger = parties_.find(kStranger);
  Party& party = stranger == parties_.end() ? join(kStranger, Duration::zero()) : *stranger->second;
  for (const Item& item : model_.items(address.queue)) {
    if (!is_held(item) || text_of(item, attribute::kQueueType) != queue::to_string(address.half)) {
      continue;
    }
    dynamo::ItemWrite request{.kind = dynamo::ItemWrite::Kind::update};
    request.table = address.queue;
    request.item = {{"id", text_of(item, attribute::kId)}};
    request.update = "SET invisible_until_at = :until ADD #v :one";
    request.names = {{"#v", "version"}};
    request.values = {{":until", format_timestamp(true_clock_->wall_now() + std::chrono::seconds(2))},
                      {":one", dynamo::AttributeValue::number(1)}};
    if (const auto done = party.client.write(request, Deadline::never()); !done) {
      throw std::runtime_error("the stranger fails: " + done.error().message);
    }
  }
}

void TableBackend::set_faults(const FaultMix& faults) {
  ModelSettings settings;
  const bool chaos = faults.any();
  settings.lag = plan_.lag;
  if (!chaos) {
    settings.lag.longest = settings.lag.typical;  // in peace no write is that late
  }
  settings.limits = plan_.limits;
  settings.transaction_span = chaos ? plan_.span : Duration::zero();
  if (tampering_.no_time) {
    settings.signature_life = Duration::zero();  // nobody who is an hour off could find out and sign anew
  }
  settings.faults.throttle = faults.throttled / 2;
  settings.faults.part_throttle = faults.throttled / 2 + faults.one_message / 4;
  settings.faults.refuse = faults.unavailable / 3;
  settings.faults.error_500 = faults.unavailable / 3;
  settings.faults.lose = faults.unavailable / 3;
  settings.faults.commit_then_500 = faults.answer_lost / 4;
  settings.faults.commit_then_lose = faults.answer_lost / 4;
  settings.faults.commit_then_cut = faults.answer_lost / 4;
  settings.faults.bad_crc = faults.answer_lost / 8;
  settings.faults.late = plan_.late ? faults.answer_lost / 8 : 0;
  settings.faults.part_commit_then_error = faults.answer_lost / 4;
  settings.faults.part_error = faults.one_message / 4;
  settings.faults.part_conflict = faults.one_message / 4;
  model_.configure(settings);
}

// What a host's write means, by what it leaves in the record: a claim or an extension holds it, all else lets it go.
void TableBackend::changed(const std::string& access_key, const Item* before, const Item* after) {
  if (before == nullptr) {
    if (stored_) {
      stored_(text_of(*after, attribute::kId), text_of(*after, attribute::kSentAt));
    }
    return;
  }
  if (access_key == kOutside || access_key == kStranger) {
    leases_.erase(text_of(*before, attribute::kId));
    return;
  }
  const Truth::Host host = std::stoi(access_key);
  if (after != nullptr && is_held(*after) && text_of(*after, attribute::kQueueType) == "STANDARD") {
    const bool anew = text_of(*before, attribute::kReceivedAt) != text_of(*after, attribute::kReceivedAt);
    leased(host, *before, *after, anew);
    truth_.granted(host, receipt_of(*after));
    if (anew) {
      queue::Delivery delivery;
      delivery.message.id = text_of(*after, attribute::kId);
      delivery.suspect = number_of(*after, attribute::kMarks) > 0;
      truth_.delivered(delivery);
    }
    return;
  }
  leases_.erase(text_of(*before, attribute::kId));
  queue::Completion completion;
  completion.receipt = receipt_of(*before);
  const bool dead = after != nullptr && text_of(*after, attribute::kQueueType) == "DLQ";
  completion.action = after == nullptr ? CompletionAction::remove
                      : dead           ? CompletionAction::dead_letter
                                       : CompletionAction::retry;
  truth_.settled(host, completion);
}

// Both of its times are by the same clock, so that their difference is what the host means, however wrong it is.
void TableBackend::leased(Truth::Host host, const Item& before, const Item& after, bool anew) {
  const std::string id = text_of(after, attribute::kId);
  const SteadyTime now = clock_.steady_now();
  const auto held = leases_.find(id);
  if (anew && is_held(before) && held != leases_.end() && held->second - now > plan_.early) {
    truth_.violation("host " + std::to_string(host) + " took " + id + ", whose lease had " +
                     std::to_string(std::chrono::duration<double>(held->second - now).count()) + " s left");
  }
  const auto written = parse_timestamp(text_of(after, attribute::kUpdatedAt));
  const auto until = parse_timestamp(text_of(after, attribute::kInvisibleUntilAt));
  leases_[id] = written && until ? now + (*until - *written) : now;
}

}  // namespace sluice::simulation
