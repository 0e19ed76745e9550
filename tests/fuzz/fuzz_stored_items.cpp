// Items of tables that others write to, too: DynamoMQ's programs, the leased layout's producers, hosts of other
// versions. Whatever an item holds, a message, a candidate and a heartbeat are read of it, and what is read can be
// written again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "dynamo/codec/json_codec.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/ownership_items.hpp"

namespace {

namespace queue = sluice::queue;
namespace dynamomq = sluice::queue::dynamomq;
namespace leased = sluice::queue::leased;
using sluice::dynamo::Item;

void demand(bool fact) {
  if (!fact) {
    std::abort();
  }
}

// The id of what is written again is another thing: a store refuses what it could not find again.
template <typename Encode, typename Decode>
void come_back(const queue::StoredMessage& record, const Encode& encode, const Decode& decode) {
  const auto item = encode(record);
  if (!item) {
    demand(!item.error().message().empty());
    return;
  }
  const queue::StoredMessage again = decode(*item);
  // DynamoDB itself stores each number in one spelling.
  demand(again.message.body == record.message.body || record.message.content_type == queue::kJson);
  demand(again.message.content_type == record.message.content_type);
  demand(again.message.sent_at == record.message.sent_at);
  demand(again.version == record.version);
}

void read_dynamomq(const Item& item) {
  const auto candidate = dynamomq::Candidate::of(item);
  static_cast<void>(candidate.due(candidate.due_at()));
  static_cast<void>(candidate.suspect());
  static_cast<void>(candidate.version.next());
  const queue::StoredMessage record = dynamomq::decode_record(item);
  static_cast<void>(dynamomq::decode_standing(item));
  static_cast<void>(dynamomq::says_all(record, item));
  come_back(record, dynamomq::encode_stored, dynamomq::decode_record);
}

void read_leased(const Item& item) {
  static_cast<void>(leased::state_of(item).is_suspect());
  static_cast<void>(leased::shard_of(item));
  static_cast<void>(leased::held_sort(item));
  static_cast<void>(leased::version_of(item).next());
  static_cast<void>(leased::oddity_of(item));
  static_cast<void>(leased::native_of(item));
  static_cast<void>(leased::alias_target(item));
  static_cast<void>(leased::listed_keys(leased::id_of(item)));
  static_cast<void>(leased::parse_partition(leased::Place::of(item).partition));
  static_cast<void>(leased::shard_of_ownership(leased::Place::of(item).sort));
  const leased::Place place = leased::Place::of(item);
  come_back(
      leased::decode_record(item),
      [&place](const queue::StoredMessage& record) { return leased::encode_stored(record, place); },
      leased::decode_record);
  static_cast<void>(leased::moved_item(item, place));
}

void read_heartbeat(const Item& item) {
  if (const auto beat = leased::decode_beat(item)) {
    const auto again = leased::decode_beat(leased::encode_beat(*beat, sluice::WallTime()));
    demand(again && again->host == beat->host && again->lease == beat->lease && again->figures == beat->figures);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (const auto item = sluice::dynamo::decode_item({reinterpret_cast<const char*>(data), size})) {
    read_dynamomq(*item);
    read_leased(*item);
    read_heartbeat(*item);
  }
  return 0;
}
