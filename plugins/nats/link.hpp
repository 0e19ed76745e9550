#pragma once

#include <nats/nats.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <sluice/handler.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "publishing/publishing.hpp"

/// The options of a NATS job, checked, but for those that the library alone has to do with. A value.
struct Settings {
  static constexpr std::array<sluice::OptionSpec, 27> kOptions = {
      sluice::option<std::vector<std::string>>("servers", R"(["nats://127.0.0.1:4222"])",
                                               "Servers of one cluster; any that answers is taken."),
      sluice::option<std::string>("name", "The connection's name at the server; default: sluice- and the job's name."),
      sluice::option<std::string>("domain", "The JetStream domain, which is asked when no stream takes a subject."),
      sluice::option<std::string>("stream", "The stream that has to take the messages; another one is refused."),
      sluice::option<std::string>("subject", "Where messages go for which neither a rule nor their type says it."),
      sluice::option<bool>("append_id", "true", "Append a dot and the aggregate id to the subject."),
      sluice::option<std::string>(
          "bad_subject", "reject",
          "What becomes of spaces, wildcards, empty tokens and control characters in a subject: "
          "reject the message, or encode them as %XX."),
      sluice::option<std::string>("message_id", "row",
                                  "Nats-Msg-Id: row (producer, source and row), payload (SHA-256 of the body: equal "
                                  "bodies are stored once), or none."),
      sluice::option<std::vector<std::string>>("attributes", R"(["traceparent", "tracestate"])",
                                               "Attributes of the message that go out as headers of the same names."),
      sluice::option<std::string>(
          "outage", "snooze",
          "What becomes of messages while no server answers: snooze for a second, which counts no attempt, or retry by "
          "the job's policy, which does."),
      sluice::option<std::chrono::milliseconds>("timeout", "5s", "For the acknowledgement of a message."),
      sluice::option<std::chrono::milliseconds>("connect_timeout", "5s", "To connect to one server, TLS included."),
      sluice::option<std::chrono::milliseconds>("reconnect_wait", "500ms", "Between attempts to connect again."),
      sluice::option<std::chrono::milliseconds>("reconnect_jitter", "100ms", "Added to it at random."),
      sluice::option<std::chrono::milliseconds>("reconnect_jitter_tls", "1s", "The same, with TLS."),
      sluice::option<std::string>("username", "The user's name."),
      sluice::option<std::string>("password", "The user's password; best as ${VARIABLE}.").secret(),
      sluice::option<std::string>("token", "A token instead of a user; best as ${VARIABLE}.").secret(),
      sluice::option<std::string>("credentials_file", "A file with a user's JWT and seed (.creds)."),
      sluice::option<std::string>("seed_file", "A file with the seed, where credentials_file has the JWT alone."),
      sluice::option<bool>("tls", "false", "Require TLS, with certificates that are verified."),
      sluice::option<std::string>("ca_file", "Certificates to trust, as PEM; default: the system's. Turns TLS on."),
      sluice::option<std::string>("server_name", "The name in the server's certificate; default: that of its address."),
      sluice::option<std::string>("certificate_file", "A certificate to show to the server, as PEM; with key_file."),
      sluice::option<std::string>("key_file", "The certificate's key, as PEM."),
      sluice::option<bool>("tls_verify", "true", "False takes any certificate: for tests only."),
      sluice::option<std::chrono::milliseconds>(
          "no_stream_wait", "250ms",
          "How long to wait before each of two further tries when no stream takes "
          "a subject."),
  };

  enum class MessageId { row, payload, none };

  /// Throws std::invalid_argument with a sentence for the user.
  static Settings read(const sluice::Options& options);

  std::string domain;
  std::string stream;  ///< empty: any
  bool append_id = true;
  bool encode_subjects = false;
  MessageId message_id = MessageId::row;
  std::vector<std::string> attributes;
  std::chrono::milliseconds timeout{};
  std::chrono::milliseconds reconnect_wait{};
  std::chrono::milliseconds reconnect_jitter{};
  std::chrono::milliseconds reconnect_jitter_tls{};
  std::chrono::milliseconds no_stream_wait{};
  bool tls = false;
};

/// What came of one message that was sent to the server. A value.
struct Answer {
  enum class End : std::uint8_t {
    stored,         ///< JetStream has it, now or since an earlier try
    no_stream,      ///< nobody takes the subject
    refused,        ///< JetStream said no; `code` and `text` say why
    not_permitted,  ///< the user may not publish there
    too_large,      ///< larger than the server takes; nothing was sent
    timed_out,      ///< no acknowledgement came; it may be stored all the same
    lost,           ///< the connection broke before the acknowledgement
    unreachable,    ///< no server answers; nothing was sent
    stopped,        ///< the handler was asked to finish; nothing was sent
  };
  End end = End::timed_out;
  int code = 0;
  std::string text{};
  std::shared_ptr<natsMsg> message{};  ///< which the library has given back: freed by who has sent it, and read it last
};

/// Who waits for which acknowledgement. Messages are known by their address. Thread-safe.
class Acknowledgements {
 public:
  /// From now on the message's answer goes there.
  std::future<Answer> expect(const void* message, std::string_view subject);
  /// The first one counts.
  void answer(const void* message, Answer answer);
  /// Answers all, or those whose subject stands in quotes in a text of the server's.
  void answer_all(const Answer& answer, const std::string* quoting = nullptr);

 private:
  struct Waiting {
    std::string subject;
    std::promise<Answer> answer;
  };

  std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<const void*, Waiting> waiting_;
};

/// One message for the server. Borrows.
struct Publication {
  std::string_view subject;
  std::string_view body;
  std::string id;  ///< Nats-Msg-Id; empty: none
  std::vector<std::pair<std::string, std::string>> headers;
};

/// What the library's threads tell of connections. They may do so after the handler has gone, so whoever made it keeps
/// it for as long as the process lives. Thread-safe.
class LinkEvents {
 public:
  Acknowledgements acknowledgements;

  /// For a handler that comes: it takes them, unless they are another one's or a connection may call them still.
  bool begin(sluice::Host host);
  /// A connection was made, and was closed for good.
  void opened();
  void closed();
  void lost(const std::string& why);
  void restored(const std::string& where);
  void not_permitted(const std::string& why);
  /// Whether a server acknowledges what it was sent. Costs nothing where that is no news.
  void acknowledges(bool does);
  bool silent() const { return silent_; }
  /// How the broker fares, for whoever looks at the host.
  void show(bool works, const std::string& text);
  /// The handler goes, and makes no connection any more: nothing is told of those that it has.
  void leave();
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
  std::optional<sluice::Host> host_;  ///< of the handler that has them
  int connections_ = 0;
  std::uint64_t changes_ = 0;
};

using OwnedOptions = std::unique_ptr<natsOptions, publishing::FreedBy<natsOptions_Destroy>>;

/// What the library makes of a job's options. Throws std::invalid_argument for what nobody, or the library, can use.
OwnedOptions make_options(const sluice::Options& options, const Settings& settings, std::string_view job,
                          LinkEvents& events);

/// A connection to NATS with its JetStream context. Thread-safe. The settings outlive it.
class Link {
 public:
  /// Tries each server once; the connection, or why there is none. Once it has been up it is restored for ever, but
  /// for a server that refuses its user twice: then it is closed.
  static std::variant<std::unique_ptr<Link>, std::string> connect(const Settings& settings, natsOptions* options,
                                                                  LinkEvents& events);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  bool connected() const;
  bool closed() const;
  std::string last_error() const;
  /// Of the server that is connected, or was last.
  std::string url() const;
  /// A message that is on its way, and what it comes to; or has come to at once, if it could not be sent.
  struct Sent {
    const void* message = nullptr;  ///< by which its answer is known
    std::future<Answer> answer;
  };
  Sent send(const Publication& publication) const;
  /// Why nobody takes this subject, for people. Asks the server, a second at most.
  std::string why_no_stream(std::string_view subject) const;

 private:
  Link(const Settings& settings, LinkEvents& events) : settings_(settings), events_(events) {}
  Answer not_sent(natsStatus status, const Publication& publication) const;

  const Settings& settings_;
  LinkEvents& events_;
  std::unique_ptr<natsConnection, publishing::FreedBy<natsConnection_Destroy>> connection_;
  std::unique_ptr<jsCtx, publishing::FreedBy<jsCtx_Destroy>>
      stream_;  ///< destroyed first: it still uses the connection, and forgets what was not acknowledged
};
