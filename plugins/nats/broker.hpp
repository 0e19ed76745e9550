#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <sluice/handler.hpp>
#include <string>

#include "link.hpp"
#include "settings.hpp"

/// Publishes over one connection, which it makes when the first message comes and never gives up. Many threads are in
/// `publish` at once, each with one message in flight. `settings` outlives it.
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

  std::shared_ptr<Link> connected_link(Time ends, const sluice::Context& context, Answer& failure);
  void connect_once(std::unique_lock<std::mutex>& lock);
  Answer send(Link& link, const Publication& publication, Time ends, const sluice::Context& context) const;
  std::chrono::milliseconds reconnect_pause();

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
};
