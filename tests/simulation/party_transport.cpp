#include "tests/simulation/party_transport.hpp"

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "host/stores/table/table_keys.hpp"

namespace sluice::simulation {
namespace {

namespace json = boost::json;

std::string* target_of(dynamo::HttpRequest& request) {
  for (auto& [name, value] : request.headers) {
    if (name == "x-amz-target" || name == "X-Amz-Target") {
      return &value;
    }
  }
  return nullptr;
}

bool puts_key(const json::value& action) {
  const auto& object = action.as_object();
  const auto* put = object.if_contains("Put");
  if (put == nullptr) {
    return false;
  }
  const auto& id = put->at("Item").at("id").at("S").as_string();
  return std::string_view(id.data(), id.size()).starts_with(queue::table::kKeyPrefix);
}

/// Takes the record of a key out of a transaction: the request that puts it by itself; empty where there is none.
std::string take_key(json::value& transaction) {
  auto& actions = transaction.at("TransactItems").as_array();
  for (auto action = actions.begin(); action != actions.end(); ++action) {
    if (puts_key(*action)) {
      const json::object put{{"TableName", action->at("Put").at("TableName")}, {"Item", action->at("Put").at("Item")}};
      actions.erase(action);
      return json::serialize(put);
    }
  }
  return {};
}

}  // namespace

void PartyTransport::send(dynamo::HttpRequest request, Deadline deadline, Callback done) {
  const std::string* const target = target_of(request);
  const bool transaction = target != nullptr && target->ends_with(".TransactWriteItems");
  std::string key;
  dynamo::HttpRequest copy;
  if (transaction && (tampering_.other_tokens || tampering_.keys_apart)) {
    json::value body = json::parse(request.body);
    if (tampering_.other_tokens) {
      body.as_object()["ClientRequestToken"] = "token-" + std::to_string(++tokens_);
    }
    if (tampering_.keys_apart) {
      key = take_key(body);
      copy = request;
    }
    request.body = json::serialize(body);
  }
  bool committed = false;
  inner_.send(std::move(request), deadline, [&](dynamo::HttpResult result) {
    committed = result && result->status == 200;
    if (tampering_.no_time && result) {
      std::erase_if(result->headers, [](const auto& header) { return header.first == "date"; });
    }
    done(std::move(result));
  });
  if (committed && !key.empty()) {
    send_key(std::move(copy), std::move(key), deadline);
  }
}

void PartyTransport::send_key(dynamo::HttpRequest request, std::string put, Deadline deadline) {
  std::string& target = *target_of(request);
  target.replace(target.rfind('.') + 1, std::string::npos, "PutItem");
  request.body = std::move(put);
  inner_.send(std::move(request), deadline, [](const dynamo::HttpResult&) {});
}

}  // namespace sluice::simulation
