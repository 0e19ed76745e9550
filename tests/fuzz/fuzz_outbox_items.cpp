// What lies in an application's outbox table of DynamoDB, where applications of all kinds write: a page of it is read,
// and its rows become messages and rows for operators.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "host/stores/outbox/dynamodb/outbox_place.hpp"

namespace {

namespace dynamo = sluice::dynamo;
namespace outbox = sluice::queue::outbox;
using namespace std::chrono_literals;

/// Gives that page once; then the request is refused, so that no page leads to itself.
class OnePage final : public dynamo::HttpTransport {
 public:
  explicit OnePage(std::string_view body) : body_(body) {}
  void send(dynamo::HttpRequest, sluice::Deadline, Callback done) override {
    const bool first = !std::exchange(asked_, true);
    done(dynamo::HttpResponse{.status = first ? 200 : 400, .headers = {}, .body = first ? std::string(body_) : "{}"});
  }

 private:
  const std::string_view body_;
  bool asked_ = false;
};

class NoCredentials final : public dynamo::CredentialsProvider {
 public:
  dynamo::Result<dynamo::Credentials> get(sluice::Deadline) override {
    return dynamo::Credentials{.access_key_id = "AKIDEXAMPLE", .secret_access_key = "secret"};
  }
};

outbox::Settings settings() {
  outbox::Settings settings;
  settings.name = "orders";
  settings.config.table = "outbox";
  settings.config.buckets = 1;
  settings.config.columns.last_error = "last_error";
  settings.config.columns.created_at = "created_at";
  settings.config.attributes = {"tenant"};
  return settings;
}

void use(outbox::Row&& row) {
  static_cast<void>(outbox::row_key_of(outbox::to_string(row.key())));
  static_cast<void>(outbox::key_of_cursor(outbox::cursor_of(row.key()), false));
  static_cast<void>(sluice::SteadyTime(24h * 365) + row.wait.value_or(0ns));
  static_cast<void>(outbox::message_of(std::move(row), {.producer = "shop", .source_id = {}}, {}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const sluice::SystemClock clock;
  sluice::SeededRandom random{1};
  OnePage transport(text);
  NoCredentials credentials;
  dynamo::Client client({{.region = "eu-west-1"}, 1}, transport, credentials, clock, random);
  outbox::OutboxPlace place(settings(), client, clock);
  const std::array<std::uint32_t, 1> buckets{0};
  const sluice::queue::Selection everything;
  const auto page = outbox::make_dynamodb_reader(place)->fetch({.buckets = buckets, .filter = &everything},
                                                               sluice::Deadline::after(clock, 1s));
  if (page) {
    for (outbox::Row row : page->rows) {
      use(std::move(row));
    }
  }
  if (const auto item = dynamo::decode_item(text)) {
    use(place.row_of(*item, clock.wall_now()));
    static_cast<void>(place.stored_row_of(*item, clock.wall_now()));
  }
  return 0;
}
