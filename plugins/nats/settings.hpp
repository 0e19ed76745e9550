#pragma once

#include <array>
#include <chrono>
#include <sluice/handler.hpp>
#include <string>
#include <vector>

/// The options of a NATS job, checked. A value.
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
          "outage", "retry",
          "What becomes of messages while no server answers: retry, which counts as an attempt, "
          "or snooze, which does not."),
      sluice::option<std::chrono::milliseconds>("timeout", "5s", "For the acknowledgement of a message."),
      sluice::option<std::chrono::milliseconds>("connect_timeout", "5s", "To connect to one server, TLS included."),
      sluice::option<std::chrono::milliseconds>("reconnect_wait", "2s", "Between attempts to connect again."),
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
  static Settings read(const sluice::Options& options, std::string_view job);

  std::vector<std::string> servers;
  std::string name;
  std::string domain;
  std::string stream;  ///< empty: any
  bool append_id = true;
  bool encode_subjects = false;
  MessageId message_id = MessageId::row;
  std::vector<std::string> attributes;
  bool snooze_outages = false;
  std::chrono::milliseconds timeout{};
  std::chrono::milliseconds connect_timeout{};
  std::chrono::milliseconds reconnect_wait{};
  std::chrono::milliseconds reconnect_jitter{};
  std::chrono::milliseconds reconnect_jitter_tls{};
  std::chrono::milliseconds no_stream_wait{};
  std::string username;
  std::string password;
  std::string token;
  std::string credentials_file;
  std::string seed_file;
  bool tls = false;
  std::string ca_file;
  std::string server_name;
  std::string certificate_file;
  std::string key_file;
  bool tls_verify = true;
};
