#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <sluice/handler.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "acknowledgements.hpp"
#include "settings.hpp"

/// One message for the server. Borrows.
struct Publication {
  std::string_view subject;
  std::string_view body;
  std::string id;  ///< Nats-Msg-Id; empty: none
  std::vector<std::pair<std::string, std::string>> headers;

  /// Bytes as the server counts them against its max_payload.
  std::size_t size() const;
};

/// What the library's threads tell of connections. They may do so after the handler has gone, so whoever made it keeps
/// it for as long as the process lives. Thread-safe.
class LinkEvents {
 public:
  explicit LinkEvents(sluice::Host host) : host_(host) {}

  Acknowledgements acknowledgements;

  void lost(const std::string& why);
  void restored(const std::string& where);
  void not_permitted(const std::string& why);
  /// Whether a server acknowledges what it was sent. Costs nothing where that is no news.
  void acknowledges(bool does);
  bool silent() const { return silent_; }
  /// How the broker fares, for whoever looks at the host.
  void show(bool works, const std::string& text);
  /// The handler goes: nothing is told any more.
  void end();
  /// Grows with each change of any connection's state.
  std::uint64_t changes();
  /// Waits for a change since `seen`, at most this long.
  void wait_for_change(std::uint64_t seen, std::chrono::nanoseconds span);
  void changed();

 private:
  void log(sluice_log_level level, const std::string& text);

  std::atomic<bool> silent_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::optional<sluice::Host> host_;
  std::uint64_t changes_ = 0;
};

/// A connection to NATS with its JetStream context: the one place that knows libnats. Thread-safe.
class Link {
 public:
  /// What the library makes of the settings. Throws std::invalid_argument for files that it cannot use.
  class Options {
   public:
    Options(const Settings& settings, LinkEvents& events);
    ~Options();
    Options(const Options&) = delete;
    Options& operator=(const Options&) = delete;

   private:
    friend class Link;
    struct State;
    std::unique_ptr<State> state_;
  };

  /// Tries each server once; the connection, or why there is none. Once it has been up it is restored for ever, but
  /// for a server that refuses its user twice: then it is closed.
  static std::variant<std::unique_ptr<Link>, std::string> connect(const Settings& settings, const Options& options,
                                                                  LinkEvents& events);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  bool connected() const;
  bool closed() const;
  std::string last_error() const;
  /// Of the server that is connected, or was last.
  std::string url() const;
  /// Of the server that is connected; nothing while there is none.
  std::optional<std::size_t> max_payload() const;
  /// Sends the message; nothing when it is on its way, and the waiter will be answered, unless somebody forgets it by
  /// `message`. Otherwise what it came to at once.
  std::optional<Answer> send(const Publication& publication, Acknowledgements::Waiter& waiter, const void** message);
  /// Why nobody takes this subject, for people. Asks the server, a second at most.
  std::string why_no_stream(std::string_view subject) const;

 private:
  struct State;
  Link(std::unique_ptr<State> state, LinkEvents& events);

  std::unique_ptr<State> state_;
  LinkEvents& events_;
};
