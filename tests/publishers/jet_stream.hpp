#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::publishers {

/// What a stream holds.
struct StoredMessage {
  std::string subject;
  std::string body;
  std::map<std::string, std::string> headers;
};

/// Looks into JetStream beside the plugin: makes streams, reads them. Throws std::runtime_error with the library's
/// text.
class JetStream {
 public:
  /// `url` may hold a user, "nats://user:password@127.0.0.1:4222". With TLS where certificates to trust are named.
  explicit JetStream(const std::string& url, const std::string& ca_file = "");
  ~JetStream();
  JetStream(const JetStream&) = delete;
  JetStream& operator=(const JetStream&) = delete;

  /// A stream on files. `largest`: bytes of a message; 0: any.
  void add_stream(const std::string& name, const std::vector<std::string>& subjects, std::int32_t largest = 0);
  std::uint64_t count(const std::string& stream);
  /// From the first to the last.
  std::vector<StoredMessage> messages(const std::string& stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::publishers
