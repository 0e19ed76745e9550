// What the embedded store does alone: send, claim and settle in batches, one thread, durable; its memory; and beside a
// plain SQLite loop that works on the same disk in turn with it.
//
//   sqlite_bench [--messages N] [--batch N] [--folder DIR] [--compare N] [--effects N] [--groups N] [--scattered yes]
//   [--hosts N]
//
// What completions cost that commit a message and an SQL statement of their own, in turn with plain ones: --effects.
// With --groups: the same messages in so many groups, each in its order, in turn with a queue without an order, and
// what is left of the rate; groups come one after the other, or at random with --scattered yes. Then again by --hosts N
// hosts at once, each with a store of its own on the file, which look at the order of each message; one in a hundred is
// given back once. Hosts that are processes: tests/e2e/order_test.py.

#include <stdlib.h>
#include <time.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/uuid.hpp"
#include "bench/raw_sqlite.hpp"
#include "host/queue/effects.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"

namespace {

using namespace sluice;
using std::chrono::steady_clock;

struct Sides {
  std::unique_ptr<queue::Sender> sender;
  std::unique_ptr<queue::Source> source;
};

struct Options {
  std::size_t messages = 1'000'000;
  std::size_t batch = 500;
  std::size_t compare = 200'000;
  std::size_t groups = 0;
  std::size_t hosts = 0;
  bool scattered = false;
  std::size_t effects = 200'000;
  std::string folder = std::filesystem::temp_directory_path().string();
};

/// Of the process: what counts when the machine has other things to do.
double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

struct Stopwatch {
  double seconds = 0;
  double processor = 0;
  template <typename Work>
  void time(Work work) {
    const auto start = steady_clock::now();
    const double processor_start = processor_seconds();
    work();
    processor += processor_seconds() - processor_start;
    seconds += std::chrono::duration<double>(steady_clock::now() - start).count();
  }
  double rate(std::size_t count) const { return static_cast<double>(count) / seconds; }
  double microseconds(std::size_t count) const { return processor / static_cast<double>(count) * 1e6; }
};

Stopwatch operator+(const Stopwatch& a, const Stopwatch& b) {
  return {a.seconds + b.seconds, a.processor + b.processor};
}

void print(const char* what, const Stopwatch& watch, std::size_t count) {
  std::printf("%-22s %10.0f a second, %5.2f us of processor each\n", what, watch.rate(count),
              watch.microseconds(count));
}

/// Of this process, in MiB: "VmRSS" or "VmHWM".
double memory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == name + ":") {
      double kib = 0;
      status >> kib;
      return kib / 1024;
    }
  }
  return 0;
}

/// Which groups messages get: one after the other from `next` on, or at random.
struct Groups {
  std::size_t count = 0;
  std::size_t next = 0;
  bool scattered = false;

  std::string name(Random& random) {
    return count == 0 ? "" : "group-" + std::to_string((scattered ? random.next() : next++) % count);
  }
};

void send(Sides& sides, Random& random, std::size_t count, std::size_t batch, Stopwatch& watch, Groups groups = {}) {
  std::vector<queue::NewMessage> messages(batch);
  for (std::size_t sent = 0; sent < count;) {
    messages.resize(std::min(batch, count - sent));
    for (auto& message : messages) {
      message.id = make_uuid_v7(random, SystemClock().wall_now());
      message.group = groups.name(random);
      message.body.assign(100, 'x');
    }
    watch.time([&] {
      for (const auto& result : sides.sender->send(messages, Deadline::never())) {
        if (result.status != queue::SendStatus::sent) {
          throw std::runtime_error(result.error.message());
        }
      }
    });
    sent += messages.size();
  }
}

constexpr std::int64_t kAccounts = 1'000;

/// A message to another queue, and a row of the user's that is changed.
std::shared_ptr<const queue::Effects> make_effects(Random& random, bool made_id = true) {
  auto effects = std::make_shared<queue::Effects>();
  queue::EmittedMessage& emitted = effects->messages.emplace_back();
  emitted.queue = "receipts";
  emitted.message.id = make_uuid_v7(random, SystemClock().wall_now());
  emitted.message.body.assign(100, 'x');
  emitted.made_id = made_id;
  const auto account = static_cast<std::int64_t>(random.unit() * static_cast<double>(kAccounts));
  effects->writes.push_back(
      {queue::SqlWrite{"UPDATE accounts SET balance = balance + ?1 WHERE number = ?2", {std::int64_t{1}, account}, 1}});
  return effects;
}

/// One claim and its settlement, with effects where there is a source of ids; false when nothing was left.
bool work_batch(Sides& sides, std::size_t batch, Stopwatch& claiming, Stopwatch& settling,
                queue::Order order = queue::Order::none, Random* random = nullptr) {
  std::vector<queue::Completion> completions;
  claiming.time([&] {
    const auto claimed = sides.source->claim(
        {.max = batch, .visibility = std::chrono::seconds(30), .rules = {.order = order}}, Deadline::never());
    if (!claimed) {
      throw std::runtime_error(claimed.error().message());
    }
    for (const auto& delivery : claimed->deliveries) {
      completions.push_back({.receipt = delivery.receipt});
    }
  });
  if (random != nullptr) {
    for (auto& completion : completions) {
      completion.effects = make_effects(*random);
    }
  }
  settling.time([&] {
    for (const auto& result : sides.source->settle(completions, Deadline::never())) {
      if (result.status != queue::SettleStatus::applied) {
        throw std::runtime_error("lost: " + result.error.message());
      }
    }
  });
  return !completions.empty();
}

void alone(Sides& sides, Random& random, const Options& options) {
  Stopwatch sending;
  Stopwatch claiming;
  Stopwatch settling;
  send(sides, random, options.messages, options.batch, sending);
  print("send", sending, options.messages);
  while (work_batch(sides, options.batch, claiming, settling)) {
  }
  print("claim", claiming, options.messages);
  print("settle", settling, options.messages);
  print("claim and settle", claiming + settling, options.messages);
  std::printf("memory  %.1f MiB resident, %.1f at most\n", memory("VmRSS"), memory("VmHWM"));
}

/// What a queue in groups costs, in turn with one that keeps no order, on the same file.
void in_groups(Sides& plain, Sides& grouped, Random& random, const Options& options) {
  std::array<Stopwatch, 2> sending;
  std::array<Stopwatch, 2> claiming;
  std::array<Stopwatch, 2> settling;
  // Kept from the first claim on, so that the messages are put into their groups as they are sent.
  Stopwatch first;
  send(grouped, random, 1, 1, first);
  while (work_batch(grouped, 1, first, first, queue::Order::group)) {
  }
  for (std::size_t sent = 0; sent < options.messages; sent += options.batch) {
    const std::size_t count = std::min(options.batch, options.messages - sent);
    send(plain, random, count, options.batch, sending[0]);
    send(grouped, random, count, options.batch, sending[1], {options.groups, sent, options.scattered});
  }
  while (work_batch(plain, options.batch, claiming[0], settling[0])) {
    work_batch(grouped, options.batch, claiming[1], settling[1], queue::Order::group);
  }
  // Whose groups come at random has fewer of them ready towards the end.
  while (work_batch(grouped, options.batch, claiming[1], settling[1], queue::Order::group)) {
  }
  print("in turn: send", sending[0], options.messages);
  print("         claim", claiming[0], options.messages);
  print("         settle", settling[0], options.messages);
  print("groups: send", sending[1], options.messages);
  print("        claim", claiming[1], options.messages);
  print("        settle", settling[1], options.messages);
  const Stopwatch without = claiming[0] + settling[0];
  const Stopwatch with = claiming[1] + settling[1];
  std::printf("in %zu groups: %.2f of the rate without, %.2f by processor; with sending %.2f and %.2f\n",
              options.groups, without.seconds / with.seconds, without.processor / with.processor,
              (without + sending[0]).seconds / (with + sending[1]).seconds,
              (without + sending[0]).processor / (with + sending[1]).processor);
}

/// What all hosts know of the order together.
struct Order {
  struct Group {
    std::atomic<bool> out = false;
    std::atomic<std::size_t> done = 0;
  };
  explicit Order(std::size_t count) : groups(count) {}
  std::vector<Group> groups;
  std::atomic<std::size_t> done = 0;
  std::atomic<std::size_t> wrong = 0;
};

/// One host of several, until all is done. Each message says its group and its number there.
void work_in_order(const std::string& path, const Options& options, Order& order) {
  const SystemClock clock;
  SeededRandom random(7);
  const auto queues = queue::open_sqlite_queues({.path = path}, clock, random);
  const auto source = *(*queues)->open_source({"grouped"});
  while (order.done < options.messages) {
    const auto claimed = source->claim(
        {.max = options.batch / 4 + 1, .visibility = std::chrono::minutes(10), .rules = {.order = queue::Order::group}},
        Deadline::never());
    std::vector<queue::Completion> completions;
    for (const auto& delivery : claimed->deliveries) {
      const std::size_t number = std::stoul(delivery.message.body);
      Order::Group& group = order.groups[number % options.groups];
      const bool turn = group.done == number / options.groups;
      order.wrong += group.out.exchange(true) || !turn ? 1 : 0;
      const bool back = number % 100 == 99 && delivery.message.content_type == "first" && random.next() % 2 == 0;
      completions.push_back({.receipt = delivery.receipt,
                             .action = back ? queue::CompletionAction::release : queue::CompletionAction::remove});
      group.done += back ? 0 : 1;
      group.out = false;  // before it is settled: afterwards another host may have the next one
      order.done += back ? 0 : 1;
    }
    for (const auto& result : source->settle(completions, Deadline::never())) {
      order.wrong += result.status == queue::SettleStatus::applied ? 0 : 1;
    }
  }
}

void by_several_hosts(Sides& sides, const std::string& path, const Options& options) {
  std::vector<queue::NewMessage> messages;
  for (std::size_t sent = 0; sent < options.messages;) {
    messages.assign(std::min(options.batch, options.messages - sent), {});
    for (auto& message : messages) {
      message.body = std::to_string(sent);
      message.content_type = "first";
      message.group = "group-" + std::to_string(sent++ % options.groups);
    }
    sides.sender->send(messages, Deadline::never());
  }
  Order order(options.groups);
  Stopwatch watch;
  watch.time([&] {
    std::vector<std::jthread> hosts;
    for (std::size_t i = 0; i < options.hosts; ++i) {
      hosts.emplace_back([&] { work_in_order(path, options, order); });
    }
  });
  print("several hosts", watch, options.messages);
  if (order.wrong > 0) {
    throw std::runtime_error(std::to_string(order.wrong) + " messages were out of order");
  }
  std::printf("        the order of %zu messages in %zu groups held on %zu hosts\n", options.messages, options.groups,
              options.hosts);
}

void with_effects(Sides& sides, Random& random, const Options& options, const std::string& folder) {
  Stopwatch sending;
  send(sides, random, options.effects * 2, options.batch, sending);
  bench::RawSqlite raw(folder + "/effects.db", options.effects * 3);
  Stopwatch claiming;
  Stopwatch plain;
  Stopwatch with;
  Stopwatch raw_claiming;
  std::array<Stopwatch, 3> floor;
  while (work_batch(sides, options.batch, claiming, plain) &&
         work_batch(sides, options.batch, claiming, with, queue::Order::none, &random)) {
    for (const auto effects : {bench::RawEffects::none, bench::RawEffects::each, bench::RawEffects::together}) {
      raw_claiming.time([&] { raw.claim(options.batch); });
      floor.at(static_cast<std::size_t>(effects)).time([&] { raw.remove(effects); });
    }
  }
  print("in turn: send", sending, options.effects * 2);
  print("         settle", plain, options.effects);
  print("    with effects", with, options.effects);
  print("plain SQLite: delete", floor[0], options.effects);
  print(" with a row each", floor[1], options.effects);
  print(" with rows at once", floor[2], options.effects);
  const Stopwatch half_claiming{claiming.seconds / 2, claiming.processor / 2};
  std::printf("with effects: %.2f of the processor of a plain settlement, %.2f with the claim\n",
              with.processor / plain.processor, (half_claiming + with).processor / (half_claiming + plain).processor);
  const double least = std::min(floor[1].processor, floor[2].processor);
  std::printf("plain SQLite with effects: %.2f of the processor of our plain settlement, %.2f of its own\n",
              least / plain.processor, least / floor[0].processor);
}

void beside_raw(Sides& sides, Random& random, const Options& options, const std::string& folder) {
  Stopwatch sending;
  send(sides, random, options.compare, options.batch, sending);
  bench::RawSqlite raw(folder + "/raw.db", options.compare);
  Stopwatch claiming;
  Stopwatch settling;
  Stopwatch raw_claiming;
  Stopwatch raw_removing;
  while (work_batch(sides, options.batch, claiming, settling)) {
    raw_claiming.time([&] { raw.claim(options.batch); });
    raw_removing.time([&] { raw.remove(); });
  }
  const Stopwatch both = claiming + settling;
  const Stopwatch raw_both = raw_claiming + raw_removing;
  print("beside it: claim", claiming, options.compare);
  print("           settle", settling, options.compare);
  print("plain SQLite: claim", raw_claiming, options.compare);
  print("              delete", raw_removing, options.compare);
  std::printf("the store does %.2f of plain SQLite by time, %.2f by processor\n", raw_both.seconds / both.seconds,
              raw_both.processor / both.processor);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--messages") {
      options.messages = std::stoul(argv[i + 1]);
    } else if (name == "--batch") {
      options.batch = std::stoul(argv[i + 1]);
    } else if (name == "--compare") {
      options.compare = std::stoul(argv[i + 1]);
    } else if (name == "--groups") {
      options.groups = std::stoul(argv[i + 1]);
    } else if (name == "--scattered") {
      options.scattered = std::string(argv[i + 1]) == "yes";
    } else if (name == "--hosts") {
      options.hosts = std::stoul(argv[i + 1]);
    } else if (name == "--effects") {
      options.effects = std::stoul(argv[i + 1]);
    } else if (name == "--folder") {
      options.folder = argv[i + 1];
    } else {
      throw std::runtime_error("unknown option " + name);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  std::string folder = options.folder + "/sluice-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    throw std::runtime_error("cannot make a folder in " + options.folder);
  }
  const SystemClock clock;
  SeededRandom random(1);
  {
    queue::SqliteOptions store_options;
    store_options.path = folder + "/store.db";
    const auto queues = queue::open_sqlite_queues(store_options, clock, random);
    if (!queues) {
      throw std::runtime_error(queues.error().message());
    }
    Sides sides{*(*queues)->open_sender("bench"), *(*queues)->open_source({"bench"})};
    alone(sides, random, options);
    if (options.effects > 0) {
      bench::UserTable accounts(store_options.path, kAccounts);
      with_effects(sides, random, options, folder);
    }
    if (options.groups > 0) {
      Sides grouped{*(*queues)->open_sender("grouped"), *(*queues)->open_source({"grouped"})};
      in_groups(sides, grouped, random, options);
      if (options.hosts > 0) {
        by_several_hosts(grouped, store_options.path, options);
      }
    }
    if (options.compare > 0) {
      beside_raw(sides, random, options, folder);
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "sqlite_bench: " << error.what() << '\n';
  return 1;
}
