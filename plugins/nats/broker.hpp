#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <sluice/handler.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "link.hpp"
#include "settings.hpp"

/// Publishes over one connection, which it never gives up. It is made when the first message comes, or at once where
/// the host shows how the broker fares: a thread of its own then connects, and tells of each change. Many threads are
/// in `publish` at once, each with one message in flight. `settings` outlives it.
class Broker {
 public:
  /// Throws std::invalid_argument for settings that the library refuses.
  Broker(const Settings& settings, sluice::Host host);
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  /// Returns when JetStream has the message, or it is known not to take it, or time is up. What a lost connection
  /// leaves open is sent again on the next one, under the same id.
  Answer publish(const Publication& publication, const sluice::Context& context);

 private:
  using Time = std::chrono::steady_clock::time_point;

  Answer publish_over_links(const Publication& publication, const sluice::Context& context);
  std::shared_ptr<Link> connected_link(Time ends, const sluice::Context& context, Answer& failure);
  /// Under the lock: gives up a connection that is closed for good, and makes one where that is due.
  void renew(std::unique_lock<std::mutex>& lock);
  void connect_once(std::unique_lock<std::mutex>& lock);
  Answer send(Link& link, const Publication& publication, Time ends, const sluice::Context& context) const;
  std::chrono::milliseconds reconnect_pause();
  /// The thread: keeps the connection, and shows how it fares.
  void keep(const std::stop_token& stop);
  /// Under the lock.
  std::pair<bool, std::string> health() const;

  const Settings& settings_;
  LinkEvents& events_;  ///< as long as the process
  const Link::Options options_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::shared_ptr<Link> link_;
  bool connecting_ = false;
  Time next_attempt_{};
  std::string last_error_;
  std::minstd_rand random_;

  std::jthread keeper_;
};
