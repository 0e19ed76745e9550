// A store on a DynamoMQ table, driven by JSON lines, so that a program in another language can look at what it writes.
// Arguments: endpoint and table. Each line of stdin is one call; each line of stdout is its answer.

#include <boost/json.hpp>
#include <cstdio>
#include <iostream>
#include <map>

#include "base/timestamp.hpp"
#include "dynamo/transport/curl_transport.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"

namespace {

using namespace sluice;
namespace json = boost::json;

std::string text(const json::object& call, const char* name) {
  const auto* value = call.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

Duration milliseconds(const json::object& call, const char* name) {
  const auto* value = call.if_contains(name);
  return std::chrono::milliseconds(value == nullptr ? 0 : value->to_number<std::int64_t>());
}

queue::CompletionAction action_of(const std::string& name) {
  return name == "retry"         ? queue::CompletionAction::retry
         : name == "release"     ? queue::CompletionAction::release
         : name == "dead_letter" ? queue::CompletionAction::dead_letter
                                 : queue::CompletionAction::remove;
}

const char* name_of(queue::SettleStatus status) {
  return status == queue::SettleStatus::applied ? "applied" : status == queue::SettleStatus::lost ? "lost" : "failed";
}

queue::NewMessage message_of(const json::object& call) {
  queue::NewMessage message{.id = text(call, "id"), .body = text(call, "body")};
  if (call.contains("content_type")) {
    message.content_type = text(call, "content_type");
  }
  if (const auto* attributes = call.if_contains("attributes")) {
    for (const auto& [name, value] : attributes->as_object()) {
      message.attributes.emplace(std::string(name), std::string(value.as_string()));
    }
  }
  message.group = text(call, "group");
  message.delay = milliseconds(call, "delay_ms");
  return message;
}

json::object error_of(const Error& error) {
  return {{"error", std::string(to_string(error.code()))}, {"message", error.message()}};
}

const std::map<std::string, queue::ChangeAction> kActions{
    {"remove", queue::ChangeAction::remove},
    {"set_visibility", queue::ChangeAction::set_visibility},
    {"delay", queue::ChangeAction::delay},
    {"move_to_front", queue::ChangeAction::move_to_front},
    {"dead_letter", queue::ChangeAction::dead_letter},
    {"redrive", queue::ChangeAction::redrive},
    {"reset", queue::ChangeAction::reset},
};

class Driver {
 public:
  Driver(const std::string& endpoint, const std::string& table) : transport_(clock_) {
    transport_.start();
    dynamo::ClientOptions options;
    options.region = "eu-west-1";
    options.endpoint = endpoint;
    client_ = std::make_unique<dynamo::Client>(options, transport_, credentials_, clock_, random_);
    table_.table = table;
    queues_ = queue::dynamomq::make_dynamomq_queues(
        {{.host = "driver", .region = options.region}, {{"q", {table, {}}}}}, *client_, clock_, random_);
    desk_ = std::make_unique<test::Desk>(*queues_);
  }

  json::object answer(const json::object& call) {
    const std::string op = text(call, "op");
    const queue::QueueAddress address{"q", text(call, "type") == "DLQ" ? queue::Half::dlq : queue::Half::standard};
    if (op == "create_table") {
      const auto made = queue::dynamodb::create_queue_table(*client_, table_, clock_, soon());
      return made ? json::object{{"created", *made == queue::dynamodb::TableOutcome::created}} : error_of(made.error());
    }
    if (op == "send") {
      const auto message = message_of(call);
      const auto result = desk_->send("q", std::span(&message, 1), soon())[0];
      const char* status = result.status == queue::SendStatus::sent           ? "sent"
                           : result.status == queue::SendStatus::duplicate_id ? "duplicate"
                                                                              : "failed";
      return {{"status", status}, {"id", result.id}, {"message", result.error.message()}};
    }
    if (op == "claim") {
      return claims(address, call);
    }
    if (op == "settle") {
      const queue::Completion completion{
          .receipt = receipt_of(call),
          .action = action_of(text(call, "action")),
          .delay = milliseconds(call, "delay_ms"),
          .failure = {text(call, "error"), text(call, "handler"), "driver", 1, clock_.wall_now()}};
      const auto result = desk_->settle(address, std::span(&completion, 1), soon())[0];
      return {{"status", name_of(result.status)}, {"message", result.error.message()}};
    }
    if (op == "extend") {
      const auto receipt = receipt_of(call);
      const auto result =
          desk_->extend(address, std::span(&receipt, 1), milliseconds(call, "visibility_ms"), soon())[0];
      return {{"status", name_of(result.status)}, {"version", result.receipt.version}};
    }
    return operate(op, call);
  }

 private:
  json::object operate(const std::string& op, const json::object& call) {
    const std::string id = text(call, "id");
    if (op == "edit") {
      const auto before = desk_->get("q", id, soon());
      const auto after = before ? desk_->edit("q", id, before->version, edits_of(call), soon()) : before;
      return after ? json::object{{"version", after->version}} : error_of(after.error());
    }
    if (op == "copy") {
      return copy(id, text(call, "as"), call.contains("replace") ? queue::PutMode::replace : queue::PutMode::insert);
    }
    const auto action = kActions.find(op);
    if (action == kActions.end()) {
      return error_of(Error(ErrorCode::invalid, "no such call: " + op));
    }
    queue::Change change{.id = id, .action = action->second, .after = milliseconds(call, "after_ms")};
    change.failure.error = text(call, "error");
    if (const auto* version = call.if_contains("version")) {
      change.version = version->to_number<std::int64_t>();
    }
    const auto result = desk_->change("q", std::span(&change, 1), soon())[0];
    return result.status == queue::ChangeStatus::applied ? json::object{{"ok", true}} : error_of(result.error);
  }

  // Lists the whole half with everything that its records hold, and writes one of them back under another id.
  json::object copy(const std::string& id, const std::string& as, queue::PutMode mode) {
    for (const auto half : {queue::Half::standard, queue::Half::dlq}) {
      auto page = desk_->list("q", {.half = half, .limit = 1'000, .cursor = {}, .native = true}, soon());
      for (auto& record : page->messages) {
        if (record.message.id == id) {
          record.message.id = as;
          const auto put = desk_->put("q", std::span(&record, 1), mode, soon())[0];
          return put.status == queue::PutStatus::written
                     ? json::object{{"ok", true}, {"native", !record.native.empty()}}
                 : put.status == queue::PutStatus::exists ? json::object{{"error", "exists"}}
                                                          : error_of(put.error);
        }
      }
    }
    return error_of(Error(ErrorCode::not_found, id));
  }

  static std::vector<queue::ContentEdit> edits_of(const json::object& call) {
    std::vector<queue::ContentEdit> edits;
    for (const auto& wanted : call.at("edits").as_array()) {
      queue::ContentEdit edit;
      for (const auto& step : wanted.at("path").as_array()) {
        if (step.is_string()) {
          edit.path.emplace_back(std::string(step.as_string()));
        } else {
          edit.path.emplace_back(step.to_number<std::size_t>());
        }
      }
      if (const auto* value = wanted.as_object().if_contains("json")) {
        edit.json = std::string(value->as_string());
      }
      edits.push_back(std::move(edit));
    }
    return edits;
  }

  Deadline soon() const { return Deadline::after(clock_, std::chrono::seconds(30)); }

  static queue::Receipt receipt_of(const json::object& call) {
    const auto number = [&](const char* name) {
      const auto* value = call.if_contains(name);
      return value == nullptr ? 0 : value->to_number<std::int64_t>();
    };
    return {text(call, "id"), number("version"), number("locator")};
  }

  json::object claims(const queue::QueueAddress& address, const json::object& call) {
    const auto claimed =
        desk_->claim(address, call.at("max").to_number<std::size_t>(), milliseconds(call, "visibility_ms"), soon());
    if (!claimed) {
      return error_of(claimed.error());
    }
    json::array all;
    for (const auto& claim : *claimed) {
      all.push_back({{"id", claim.message.id},
                     {"body", claim.message.body},
                     {"content_type", claim.message.content_type},
                     {"attempt", claim.message.attempt},
                     {"version", claim.receipt.version},
                     {"locator", claim.receipt.locator},
                     {"invisible_until", format_timestamp(claim.invisible_until)}});
    }
    return {{"claims", std::move(all)}};
  }

  SystemClock clock_;
  SeededRandom random_;
  test::AnyCredentials credentials_;
  dynamo::CurlTransport transport_;
  queue::dynamodb::TableSpec table_;
  std::unique_ptr<dynamo::Client> client_;
  std::unique_ptr<queue::Queues> queues_;
  std::unique_ptr<test::Desk> desk_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s ENDPOINT TABLE\n", argv[0]);
    return 64;
  }
  Driver driver(argv[1], argv[2]);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << json::serialize(driver.answer(json::parse(line).as_object())) << '\n' << std::flush;
  }
  return 0;
}
