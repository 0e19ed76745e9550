#include "tests/stores/leased/owner_world.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/ranges.hpp"
#include "dynamo/client.hpp"
#include "host/stores/leased/leased_record.hpp"

namespace sluice::test {
namespace {

namespace leased = queue::leased;
using queue::Completion;
using queue::CompletionAction;
using queue::SettleResult;
using queue::SettleStatus;

dynamo::ClientOptions client_options() {
  dynamo::ClientOptions options;
  options.region = "us-east-1";
  return options;
}

}  // namespace

OwnerHost::OwnerHost(const WorldPlan& plan, const std::string& incarnation, model::Model& model, const Clock& world)
    : name(incarnation),
      clock(world),
      plan_(plan),
      random_(plan.seed * 1000 + std::hash<std::string>()(incarnation) % 1000),
      credentials_(incarnation),
      transport_(model, clock),
      client_(std::make_unique<dynamo::Client>(client_options(), wire_, credentials_, clock, random_)),
      table_clock_(*client_, clock, [this](const std::string& line) { clock_warnings.push_back(line); }),
      runner_(*client_, clock, random_),
      nonces_(incarnation, random_),
      locate_([](const std::string& queue) {
        return queue::table::QueueTable{queue, kOwnersTable, "", "us-east-1"};
      }),
      layouts_([this](const std::string&) -> const queue::table::RecordLayout& { return *queue_.layout; }),
      parts_{*client_, table_clock_, runner_, nonces_, random_, doorbell_, layouts_},
      queue_(locate_(kOwnersQueue), plan.shards, parts_),
      remarks_([this](const std::string& line) { warnings.push_back(line); }, clock) {
  table_ = std::make_unique<leased::OwnedTable>(
      queue::owned::OwnershipCoordinator::Settings{
          .table = kOwnersTable, .host = name, .lease = plan.lease, .own_thread = false},
      parts_, remarks_, clock, [this](const std::string&) -> leased::LeasedQueue& { return queue_; });
  half_ = std::make_unique<leased::LeasedHalf>(*table_, queue_, queue::Half::standard);
  source_ = leased::make_leased_source(*half_);
}

void OwnerHost::start() {
  source_->start({.on_ready = [this] { ++readies; },
                  .lost =
                      [this](std::span<const queue::Receipt> receipts) {
                        for (const queue::Receipt& receipt : receipts) {
                          forget(receipt);
                        }
                      }});
}

bool OwnerHost::has(const queue::Receipt& receipt) const {
  const auto found = out.find(receipt.id);
  return found != out.end() && found->second == receipt.locator;
}

void OwnerHost::forget(const queue::Receipt& receipt) {
  if (has(receipt)) {
    out.erase(receipt.id);
  }
}

bool OwnerHost::keeper_holds() {
  // What it would have to look at before it starts a handler.
  return table_->coordinator.lease().holds();
}

std::vector<queue::Delivery> OwnerHost::claim(std::size_t max, const queue::ClaimRules& rules, bool suspects) {
  auto claimed =
      source_->claim({.max = max, .visibility = 30s, .suspects = suspects, .rules = rules}, Deadline::after(clock, 5s));
  if (!claimed) {
    warnings.push_back("claim: " + claimed.error().message());
    return {};
  }
  for (const queue::Delivery& delivery : claimed->deliveries) {
    out[delivery.message.id] = delivery.receipt.locator;
  }
  return std::move(claimed->deliveries);
}

SettleResult OwnerHost::settle(const queue::Delivery& delivery, CompletionAction action, Duration delay) {
  return settle({Completion{.receipt = delivery.receipt, .action = action, .delay = delay}}).front();
}

std::vector<SettleResult> OwnerHost::settle(const std::vector<Completion>& completions) {
  auto results = source_->settle(completions, Deadline::after(clock, 5s));
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (results[i].status != SettleStatus::failed) {
      forget(completions[i].receipt);
    }
  }
  return results;
}

OwnerWorld::OwnerWorld(const WorldPlan& world_plan)
    : plan(world_plan),
      model(clock, world_plan.seed, world_plan.model),
      random(world_plan.seed),
      outside_(world_plan, "OUTSIDE", model, clock) {
  model.spare("OUTSIDE");
  dynamo::CreateTableRequest request;
  request.name = kOwnersTable;
  request.attribute_types = {{"p", "S"}, {"s", "S"}};
  request.hash_key = "p";
  request.range_key = "s";
  if (const auto made = outside_.client().create_table(request, Deadline::never()); !made) {
    throw std::runtime_error("the model makes no table: " + made.error().message);
  }
}

OwnerHost& OwnerWorld::add(const std::string& name, bool start) {
  hosts.push_back(std::make_unique<OwnerHost>(plan, name, model, clock));
  if (start) {
    hosts.back()->start();
  }
  return *hosts.back();
}

void OwnerWorld::put(dynamo::Item item) {
  dynamo::ItemWrite request;
  request.table = kOwnersTable;
  request.item = std::move(item);
  if (const auto made = outside_.client().write(request, Deadline::never()); !made) {
    throw std::runtime_error("cannot be put: " + made.error().message);
  }
}

void OwnerWorld::remove(dynamo::Item key) {
  dynamo::ItemWrite request{.kind = dynamo::ItemWrite::Kind::remove};
  request.table = kOwnersTable;
  request.item = std::move(key);
  if (const auto made = outside_.client().write(request, Deadline::never()); !made) {
    throw std::runtime_error("cannot be removed: " + made.error().message);
  }
}

std::size_t insert_all(dynamo::Client& client, const std::vector<dynamo::Item>& items, Deadline deadline) {
  const auto batch = mapped(items, [](const dynamo::Item& item) {
    return queue::table::statement_of({.kind = queue::table::RecordWrite::Kind::insert,
                                       .table = kOwnersTable,
                                       .expected = {},
                                       .item = item,
                                       .names = &leased::kNames});
  });
  const auto outputs = client.batch_execute(std::span(&batch, 1), deadline);
  const auto& output = outputs.front();
  return !output ? 0
                 : static_cast<std::size_t>(std::count_if(output->results.begin(), output->results.end(),
                                                          [](const auto& result) { return !result.error; }));
}

std::vector<std::string> OwnerWorld::send(std::size_t count, std::size_t body, Duration delay, const std::string& group,
                                          std::optional<std::uint32_t> shard, queue::Priority priority) {
  std::vector<std::string> ids;
  std::vector<dynamo::Item> items;
  for (std::size_t i = 0; i < count; ++i) {
    queue::NewMessage message{.body = std::string(body, 'x'), .group = group, .priority = priority};
    const auto to = shard.value_or(
        static_cast<std::uint32_t>((group.empty() ? random.next() : std::hash<std::string>()(group)) % plan.shards));
    const leased::Place place{leased::partition_of(kOwnersQueue, queue::Half::standard, to),
                              leased::sort_key_of(priority, clock.wall_now() + delay, random)};
    auto record = leased::encode_record(message, {.place = place, .own_id = {}, .now = clock.wall_now()});
    if (!record) {
      throw std::runtime_error(record.error().message());
    }
    items.push_back(std::move(*record));
    ids.push_back(leased::made_id(place.sort, to));
    if (items.size() == 25 || i + 1 == count) {
      if (insert_all(outside_.client(), items, Deadline::never()) < items.size()) {
        throw std::runtime_error("messages cannot be put");
      }
      items.clear();
    }
  }
  return ids;
}

std::optional<dynamo::Item> OwnerWorld::item(const std::string& partition, const std::string& sort) {
  for (const dynamo::Item& one : model.items(kOwnersTable)) {
    if (leased::Place::of(one) == leased::Place{partition, sort}) {
      return one;
    }
  }
  return std::nullopt;
}

std::vector<dynamo::Item> OwnerWorld::messages() {
  std::vector<dynamo::Item> found;
  for (dynamo::Item& one : model.items(kOwnersTable)) {
    if (leased::parse_partition(leased::Place::of(one).partition)) {
      found.push_back(std::move(one));
    }
  }
  return found;
}

std::map<std::uint32_t, std::string> OwnerWorld::owners() {
  std::map<std::uint32_t, std::string> owners;
  for (const dynamo::Item& one : model.items(kOwnersTable)) {
    const auto place = leased::Place::of(one);
    const auto shard = leased::shard_of_ownership(place.sort);
    if (place.partition == leased::ownership_partition(kOwnersQueue, queue::Half::standard) && shard) {
      const auto* owner = dynamo::find<std::string>(one, "o");
      owners.emplace(*shard, owner == nullptr ? std::string() : *owner);
    }
  }
  return owners;
}

std::size_t OwnerWorld::shards_of(const std::string& host) {
  const auto all = owners();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&host](const auto& shard) { return shard.second == host; }));
}

void OwnerWorld::pass(Duration span) {
  pass_until([] { return false; }, span);
}

bool OwnerWorld::pass_until(const std::function<bool()>& so, Duration longest) {
  for (Duration passed{}; passed < longest; passed += 100ms) {
    if (so()) {
      return true;
    }
    clock.advance(100ms);
    for (const auto& host : hosts) {
      if (!host->dead()) {
        host->tend();
      }
    }
  }
  return so();
}

std::uint64_t OwnerWorld::requests() const {
  std::uint64_t all = 0;
  for (const auto& [operation, count] : model.counters().requests) {
    all += count;
  }
  return all;
}

}  // namespace sluice::test
