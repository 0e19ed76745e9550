#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/mutex.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "dynamo/transport/curl_transport.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "tests/stores/dynamomq/faulty_transport.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/emulator.hpp"

namespace sluice::test {

/// Keys that the emulator takes.
class AnyCredentials final : public dynamo::CredentialsProvider {
 public:
  dynamo::Result<dynamo::Credentials> get(Deadline) override {
    dynamo::Credentials credentials;
    credentials.access_key_id = "AKIDEXAMPLE";
    credentials.secret_access_key = "secret";
    return credentials;
  }
};

/// What a client asked for, counted by its observer. Thread-safe.
class UsageCount {
 public:
  void add(const dynamo::CallRecord& record) {
    const MutexLock lock(mutex_);
    capacity_ += record.capacity;
    ++requests_[record.operation];
  }
  std::size_t requests() const {
    const MutexLock lock(mutex_);
    std::size_t total = 0;
    for (const auto& [operation, count] : requests_) {
      total += count;
    }
    return total;
  }
  std::size_t requests(const std::string& operation) const {
    const MutexLock lock(mutex_);
    const auto found = requests_.find(operation);
    return found == requests_.end() ? 0 : found->second;
  }
  dynamo::Capacity capacity() const {
    const MutexLock lock(mutex_);
    return capacity_;
  }
  void reset() {
    const MutexLock lock(mutex_);
    capacity_ = {};
    requests_.clear();
  }

 private:
  mutable Mutex mutex_;
  dynamo::Capacity capacity_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::string, std::size_t> requests_ SLUICE_GUARDED_BY(mutex_);
};

/// One emulator for all tests of a process, ended with it; null where there is none.
inline const Emulator* shared_emulator() {
  static const std::unique_ptr<Emulator> emulator = Emulator::start();
  return emulator.get();
}

/// One host on the emulator: transport with faults, client, queues. Its own tables unless they are named.
class EmulatedHost {
 public:
  EmulatedHost(const Clock& clock, const std::string& name, std::uint64_t seed,
               queue::dynamomq::DynamoMqOptions options = {})
      : random_(seed), transport_(clock), faulty_(transport_) {
    transport_.start();
    dynamo::ClientOptions client_options;
    client_options.region = "eu-west-1";
    client_options.endpoint = shared_emulator()->endpoint();
    client_options.observer = [this](const dynamo::CallRecord& record) { usage_.add(record); };
    client_ = std::make_unique<dynamo::Client>(client_options, faulty_, credentials_, clock, random_);
    options.host = name;
    options.region = client_options.region;
    queues_ = queue::dynamomq::make_dynamomq_queues(options, *client_, clock, random_);
    desk_ = std::make_unique<Desk>(*queues_);
  }

  Desk& desk() { return *desk_; }
  dynamo::Client& client() { return *client_; }
  FaultyTransport& faults() { return faulty_; }
  UsageCount& usage() { return usage_; }
  Random& random() { return random_; }

 private:
  UsageCount usage_;
  AnyCredentials credentials_;
  SeededRandom random_;
  dynamo::CurlTransport transport_;
  FaultyTransport faulty_;
  std::unique_ptr<dynamo::Client> client_;
  std::unique_ptr<queue::Queues> queues_;
  std::unique_ptr<Desk> desk_;
};

/// A table name that no other test of this process uses.
inline std::string fresh_table_name(const std::string& stem) {
  static std::atomic<int> count = 0;
  return stem + "-" + std::to_string(++count);
}

/// Makes a queue's table; throws when that fails, because no test can go on then.
inline void make_table(dynamo::Client& client, const std::string& table, const Clock& clock) {
  queue::dynamodb::TableSpec spec;
  spec.table = table;
  const auto made =
      queue::dynamodb::create_queue_table(client, spec, clock, Deadline::after(clock, std::chrono::seconds(30)));
  if (!made) {
    throw std::runtime_error("cannot make table " + table + ": " + made.error().message());
  }
}

}  // namespace sluice::test
