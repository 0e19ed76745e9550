// POSTs each message to an address.

#include <chrono>
#include <sluice/handler.hpp>
#include <string>

#include "answer.hpp"
#include "headers.hpp"
#include "sender.hpp"
#include "settings.hpp"

namespace {

using std::chrono::nanoseconds;

// `handle` is not const: each worker has an instance of its own, and with it a connection of its own.
class Webhook {
 public:
  static constexpr const char* help =
      "POSTs each message to an address. 2xx is done; 408, 425, 429, 5xx and network errors retry; other answers "
      "reject.";
  static constexpr sluice::OptionSpec options[] = {
      sluice::required<std::string>("url", "Where to send, with http or https."),
      sluice::option<std::string>("method", "POST", "POST, PUT, PATCH or DELETE."),
      sluice::option<std::map<std::string, std::string>>("headers", "Headers of your own; they replace ours.").secret(),
      sluice::option<std::string>("content_type", "The Content-Type; default: the message's."),
      sluice::option<std::string>("attribute_prefix", "X-Sluice-Attr-",
                                  "Attributes are sent as headers of this prefix and their name; empty: not at all."),
      sluice::option<std::string>("bearer_token_env", "The environment variable that holds a token for Authorization."),
      sluice::option<std::string>("hmac_secret", "Signs the body with HMAC-SHA256; best as ${VARIABLE}.").secret(),
      sluice::option<std::string>("hmac_secret_env", "The environment variable that holds the secret instead."),
      sluice::option<std::string>("hmac_header", "X-Sluice-Signature", "Where the signature goes, as sha256=HEX."),
      sluice::option<nanoseconds>("connect_timeout", "5s", "To connect, TLS included."),
      sluice::option<nanoseconds>("timeout", "30s", "For the whole request."),
      sluice::option<nanoseconds>("retry_after_max", "1h", "The longest Retry-After that is honoured."),
      sluice::option<std::int64_t>("response_limit", "65536", "At most so many bytes of an answer are read."),
      sluice::option<std::int64_t>("redirects", "0", "How many redirects to follow, up to 10."),
      sluice::option<std::string>("ca_file", "Certificates to trust instead of the system's, as PEM."),
  };

  explicit Webhook(const sluice::Options& values) : settings_(Settings::read(values)), sender_(settings_) {}

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) {
    if (context.stop_requested()) {
      return sluice::release();
    }
    const Answer answer = sender_.send(message.body(), request_headers(settings_, message), context);
    if (answer.end == Answer::End::stopped && context.time_left() <= nanoseconds::zero()) {
      return sluice::retry("no answer within the job's timeout");
    }
    return judge(answer, settings_.retry_after_max);
  }

 private:
  Settings settings_;
  Sender sender_;
};

}  // namespace

SLUICE_PLUGIN("webhook", "1.0.0", Webhook)
